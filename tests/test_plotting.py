from __future__ import annotations

import sys
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from inlier import CalibratedMatcher, Registration, RowSumMatcher, SplitMatcher, estimate_transformation, plotting
from inlier.datasets import make_gaussian_pairs
from inlier.plotting import as_png, new_figure, plot_accepted, plot_alignment, plot_map, plot_points, plot_scores


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
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (new_figure, lambda: plot_scores(result)):
        with pytest.raises(ImportError, match="pip install matplotlib"):
            draw()


def test_as_many_pairs_are_accepted_at_alpha_as_the_mask_holds(data):
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    ax = plot_accepted(matcher.result_, alpha=0.01)
    alphas, counts = ax.lines[0].get_data()
    assert counts[np.searchsorted(alphas, 0.01, side="right") - 1] == matcher.inlier_mask_.sum()
    assert ax.lines[1].get_xdata()[0] == 0.01
    with pytest.raises(ValueError, match="RowSumMatcher gives no q-values"):
        plot_accepted(RowSumMatcher().fit(data.X, data.Y).result_)


@pytest.mark.parametrize(("d", "projection"), [(2, None), (3, None), (3, "3d"), (7, None), (1, None)])
def test_a_set_that_is_carried_onto_the_other_is_drawn_on_top_of_it(d, projection):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, d))
    Y = X + 3
    move = estimate_transformation("rigid", X, Y)
    ax = new_figure().add_subplot(projection=projection)
    assert plot_alignment(X, Y, move, ax=ax) is ax

    def drawn(points):
        return np.ma.getdata(np.array(points._offsets3d if projection else points.get_offsets().T))

    moved, target = ax.collections
    np.testing.assert_allclose(drawn(moved), drawn(target), atol=1e-9)
    as_it_came = plot_alignment(X, Y, ax=new_figure().add_subplot(projection=projection)).collections
    assert np.ptp(drawn(as_it_came[0]) - drawn(as_it_came[1]), axis=1).max() < 1e-9
    assert np.abs(drawn(as_it_came[0]) - drawn(as_it_came[1])).max() > 1


def test_pairs_are_joined_real_ones_above_the_others(data):
    mask = data.inlier_mask
    ax = plot_alignment(data.X[:, :2], data.Y[:, :2], inlier_mask=mask)
    ends = [line.get_xydata() for line in ax.lines]
    assert len(ends) == len(mask)
    np.testing.assert_array_equal(ends[0], [data.X[~mask][0, :2], data.Y[~mask][0, :2]])
    np.testing.assert_array_equal(ends[-1], [data.X[mask][-1, :2], data.Y[mask][-1, :2]])


def test_sets_of_different_spaces_cannot_be_drawn_together(data):
    with pytest.raises(ValueError, match="X has 10 columns and y has 2"):
        plot_alignment(data.X, data.Y[:, :2])


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


def test_what_cannot_be_drawn_is_a_sentence():
    with pytest.raises(ValueError, match=r"shape \(5, 3\).*choose two columns"):
        plotting.plot_points(np.zeros((5, 3)), np.ones(5, dtype=bool), "some")
    with pytest.raises(TypeError, match="got RowSumMatcher"):
        plotting.plot_repair(RowSumMatcher())


def test_a_matcher_is_drawn_like_its_result():
    data = make_gaussian_pairs(200, 5, 0.6, noise=0.1, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    drawn = [plotting.plot_accepted(one).lines[0].get_ydata() for one in (matcher, matcher.result_)]
    np.testing.assert_array_equal(*drawn)
