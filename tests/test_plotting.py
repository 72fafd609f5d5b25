from __future__ import annotations

import sys
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from inlier import CalibratedMatcher, Registration, RowSumMatcher, SplitMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.plotting import as_png, new_figure, plot_map, plot_points, plot_scores


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


def test_scores_far_below_the_cut_are_drawn_at_the_edge_and_the_axis_says_so(data):
    result = RowSumMatcher().fit(data.X, data.Y).result_
    far = replace(result, scores=np.where(result.inlier_mask, result.scores, -1e9))
    ax = plot_scores(far)
    assert sum(bar.get_height() for bar in ax.patches) == 300
    assert ax.get_xlim()[0] > -1e6
    assert "lower ones at the edge" in ax.get_xlabel()
    assert "edge" not in plot_scores(result).get_xlabel()


def test_every_function_draws_where_it_is_told_and_returns_the_axes(data):
    ax = new_figure().subplots()
    assert plot_scores(RowSumMatcher().fit(data.X, data.Y).result_, ax=ax) is ax
    assert plot_points(data.X[:, :2], data.inlier_mask, "real", ax=ax) is ax
    assert plot_points(data.X[:, :2], data.inlier_mask, "real") is not ax


def test_highlighted_points_are_told_apart(data):
    ax = plot_points(data.X[:, :2], data.inlier_mask, "real")
    quiet, drawn = ax.collections
    assert (len(quiet.get_offsets()), len(drawn.get_offsets())) == (120, 180)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["real"]


def test_a_picture_has_the_size_of_its_figure_and_shows_something(data):
    figure = plot_scores(RowSumMatcher().fit(data.X, data.Y).result_).figure
    picture = np.asarray(Image.open(BytesIO(as_png(figure, dpi=100))).convert("L"))
    assert picture.shape == (320, 500)
    assert 0.02 < (picture < 250).mean() < 0.9


def test_without_matplotlib_the_command_is_named(data, monkeypatch):
    result = RowSumMatcher().fit(data.X, data.Y).result_
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'inlier\[report\]'"):
        plot_scores(result)


def test_a_map_is_drawn_on_the_axes_given(data):
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    ax = new_figure().subplots()
    assert plot_map(matcher, data.X, data.Y, ax) is ax
    wrong, real = (np.asarray(group.get_offsets()) for group in ax.collections)
    assert (len(real), len(wrong)) == (matcher.inlier_mask_.sum(), (~matcher.inlier_mask_).sum())
    assert np.corrcoef(real.T)[0, 1] > 0.9
    assert abs(np.corrcoef(wrong.T)[0, 1]) < 0.5
    assert plot_scores(matcher, ax=ax) is ax
    points = data.X[:, :3]
    assert plot_map(Registration(random_state=0).fit(points, points[:, [1, 2, 0]]), points, points[:, [1, 2, 0]])
