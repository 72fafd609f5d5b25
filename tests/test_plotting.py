from __future__ import annotations

import sys

import numpy as np
import pytest

from inlier import RowSumMatcher, SplitMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.plotting import as_png, plot_scores


@pytest.fixture(scope="module")
def data():
    return make_gaussian_pairs(300, 10, 0.6, rng=0)


def test_every_pair_is_in_the_histogram_and_the_threshold_is_drawn(data):
    result = RowSumMatcher().fit(data.X, data.Y).result_
    ax = plot_scores(result, data.inlier_mask)
    # Two stacked groups: the tops of the second are the totals.
    real, wrong = (sum(bar.get_height() for bar in group) for group in ax.containers)
    assert (real, wrong) == (180, 120)
    assert ax.lines[0].get_xdata()[0] == result.threshold
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["real pairs", "wrong pairs", "threshold"]


def test_without_the_truth_there_is_one_group(data):
    ax = plot_scores(RowSumMatcher().fit(data.X, data.Y).result_)
    assert len(ax.containers) == 1


def test_a_split_has_a_threshold_per_part(data):
    result = SplitMatcher(RowSumMatcher(), 3, random_state=0).fit(data.X, data.Y).result_
    ax = plot_scores(result)
    drawn = [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata())]
    np.testing.assert_array_equal(drawn, result.threshold)


def test_png(data):
    figure = plot_scores(RowSumMatcher().fit(data.X, data.Y).result_).figure
    assert as_png(figure).startswith(b"\x89PNG")


def test_without_matplotlib_the_command_is_named(data, monkeypatch):
    result = RowSumMatcher().fit(data.X, data.Y).result_
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'inlier\[report\]'"):
        plot_scores(result)
