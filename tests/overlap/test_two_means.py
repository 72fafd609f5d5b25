from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inlier.overlap import two_means as cluster
from inlier.overlap.two_means import lloyd_cut, optimal_cut
from inlier.rows import Scores, backend, paired_rows
from inlier.rows.paired_rows import Histogram, Window
from inlier.rows.stores import MEMORY
from tests import reference

lines = arrays(np.float64, st.integers(2, 30), elements=st.floats(-100, 100, width=16))


def all_of(values):
    return Window(0, 0.0, np.sort(values), 0, 0.0)


def within(values, upper):
    return sum(((part - part.mean()) ** 2).sum() for part in (values[upper], values[~upper]) if part.size)


@given(lines)
def test_lloyd_is_the_plain_iteration(values):
    np.testing.assert_array_equal(values >= lloyd_cut(values, -1.0, 1.0), reference.lloyd(values, -1.0, 1.0))


@given(lines)
def test_optimal_cut_is_the_best_of_all_cuts(values):
    upper = values >= optimal_cut(values)
    if np.ptp(values) == 0:
        assert upper.all()
    else:
        assert 0 < upper.sum() < values.size
        assert within(values, upper) <= reference.best_two_means(values) * (1 + 1e-9) + 1e-9


@given(lines, st.floats(0.1, 10), st.floats(-5, 5))
def test_optimal_cut_moves_with_the_values(values, scale, shift):
    moved = values * scale + shift
    best = reference.best_two_means(moved)
    assert within(moved, moved >= optimal_cut(moved)) == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert within(moved, values >= optimal_cut(values)) == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_equal_values_are_never_parted():
    values = np.array([0.0] * 5 + [1.0] * 3)
    assert (values >= optimal_cut(values)).tolist() == [False] * 5 + [True] * 3


def test_values_one_rounding_apart_are_parted_where_the_optimum_says():
    values = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert (values >= optimal_cut(values)).tolist() == [False, True]


def test_lloyd_leaves_an_empty_cluster_empty():
    values = np.array([0.9, 1.0, 1.1])
    assert (values >= lloyd_cut(values, -1.0, 1.0)).all()
    assert not (-values >= lloyd_cut(-values, -1.0, 1.0)).any()


class TestWithoutSorting:
    """The cut found from a histogram and a window is the one found by sorting everything."""

    @pytest.fixture(scope="class", autouse=True, params=[(4, 0), (4, 10**6), (64, 10**6)], ids=str)
    @classmethod
    def coarse(cls, request):
        """Few buckets, so that the cut lies deep inside one; small windows, so that they are looked at again."""
        n_buckets, largest_window = request.param
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(paired_rows, "N_BUCKETS", n_buckets)
            patch.setattr(MEMORY, "most_fetched", largest_window)
            yield

    @given(lines)
    def test_optimal_cut(self, values):
        expected = cluster._best_cut_in(all_of(values))
        found = optimal_cut(values)
        best = within(values, values >= expected)
        assert within(values, values >= found) <= best * (1 + 1e-12) + 1e-12

    @given(lines)
    def test_lloyd(self, values):
        expected = cluster._lloyd_in(all_of(values), -1.0, 1.0, 0.0)
        assert lloyd_cut(values, -1.0, 1.0) == pytest.approx(expected, rel=1e-12, abs=1e-12)

    @pytest.mark.parametrize("seed", range(8))
    def test_many_values_of_awkward_shapes(self, seed):
        rng = np.random.default_rng(seed)
        values = np.concatenate(
            [
                rng.normal(0, 1, 5000),
                rng.normal(3, 0.1, 4000),
                np.full(3000, 2.5),
                rng.integers(0, 4, 2000),
                [1e4, -1e3],
            ]
        )[: 14_002 - 2 * (seed % 2)]
        upper = values >= cluster._best_cut_in(all_of(values))
        np.testing.assert_array_equal(values >= optimal_cut(values), upper)
        upper = values >= cluster._lloyd_in(all_of(values), -1.0, 1.0, 0.0)
        np.testing.assert_array_equal(values >= lloyd_cut(values, -1.0, 1.0), upper)


def test_a_million_values_are_cut_as_if_sorted():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 1, 700_000), rng.normal(4, 1, 300_000)])
    ordered = all_of(values)
    assert optimal_cut(values) == pytest.approx(cluster._best_cut_in(ordered), rel=1e-12)
    assert lloyd_cut(values, -1.0, 1.0) == pytest.approx(cluster._lloyd_in(ordered, -1.0, 1.0, 0.0), rel=1e-12)


def test_only_values_near_the_cut_are_sorted(monkeypatch):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 1, 700_000), rng.normal(4, 1, 300_000)])
    sizes = []
    sort = np.sort
    monkeypatch.setattr(np, "sort", lambda array: sizes.append(array.size) or sort(array))
    optimal_cut(values)
    lloyd_cut(values, -1.0, 1.0)
    assert sizes
    assert max(sizes) < 50_000


@pytest.mark.parametrize("kernels", [True, False])
def test_histogram_and_window_tell_the_same_with_and_without_kernels(kernels, monkeypatch):
    monkeypatch.setattr(backend, "FEWEST_ROWS", 1)
    if not kernels:
        monkeypatch.setattr(backend, "_BACKENDS", ())
    values = np.random.default_rng(0).integers(-50, 50, 3000) / 7
    scores = Scores.of_values(values)
    histogram = scores.histogram()
    assert histogram.counts.sum() == values.size
    assert histogram.zeros == (values == 0).sum()
    np.testing.assert_allclose(histogram.sums.sum(), values.sum())
    window = scores.window(-1.0, 2.0)
    np.testing.assert_array_equal(window.inside, np.sort(values[(values >= -1) & (values < 2)]))
    assert (window.n_below, window.n_above) == ((values < -1).sum(), (values >= 2).sum())
    assert window.sum_below == pytest.approx(values[values < -1].sum())
    assert window.sum_above == pytest.approx(values[values >= 2].sum())


@pytest.mark.parametrize("n", [10**3, 10**7, 10**11])
def test_however_many_values_there_are_few_buckets_can_hold_the_cut(n):
    edges = np.linspace(-30_000, 30_000, 1025)
    middle = (edges[1:] + edges[:-1]) / 2
    density = np.exp(-((middle / 10_000) ** 2) / 2)
    counts = np.floor(n * density / density.sum()).astype(np.int64)
    low, high = cluster._stretch_with_best_cut(Histogram(edges, counts, counts * middle, 0))
    assert low < 0 < high
    assert high - low <= 6 * (edges[1] - edges[0])
