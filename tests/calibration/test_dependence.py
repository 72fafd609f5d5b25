"""Replicates and failed samples that nobody named.

Clusters of rows, and what swaps inside of them would do.
"""

import warnings

import numpy as np
import pytest
from scipy.stats import gaussian_kde

from inlier import CalibratedMatcher
from inlier.calibration.dependence import (
    Dependence,
    _directions,
    _n_modes,
    _nearest,
    bands_of_size,
    blanks,
    find_clusters,
    find_valleys,
    most_alike,
    nearly_equal,
    warn_of_clusters,
)
from inlier.exceptions import DependenceWarning
from inlier.rows import PairedRows


def look(x, y, seed=0):
    return Dependence.between(x, y, np.arange(len(x)), np.random.RandomState(seed))


@pytest.mark.parametrize(("subjects", "times", "d"), [(60, 5, 100), (200, 3, 20), (50, 4, 10), (300, 2, 50)])
def test_replicates_on_both_sides_are_seen(subjects, times, d):
    rng = np.random.default_rng(0)
    x, y = (np.repeat(rng.normal(size=(subjects, d)), times, 0) for _ in range(2))
    x, y = (side + 0.2 * rng.normal(size=side.shape) for side in (x, y))
    order = rng.permutation(len(x))
    assert look(x[order], y[order]).replicates == times
    assert look(x[order], rng.normal(size=y.shape)).replicates == 0  # on one side they do no harm


def test_samples_that_failed_are_seen_on_each_side():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 500, 10))
    assert not np.any(blanks(x, y))
    y[:50] *= 0.1
    of_x, of_y = blanks(x, y)
    assert not of_x.any()
    assert np.flatnonzero(of_y).tolist() == list(range(50))
    x[40:90] *= 0.1
    assert np.flatnonzero(blanks(x, y)[0]).tolist() == list(range(40, 90))
    levels = rng.integers(-1, 2, size=(500, 1)).astype(float)
    assert not np.any(blanks(levels, levels))  # whole numbers in one column leave gaps of their own


@pytest.mark.parametrize("both", [False, True], ids=["y", "both sides"])
def test_failed_samples_are_warned_of_and_not_accepted(both):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(500, 10))
    y = x[:, ::-1] + rng.normal(size=x.shape)
    y[:100] = 0.1 * rng.normal(size=(100, 10))
    if both:
        x[:100] = 0.1 * rng.normal(size=(100, 10))
    with pytest.warns(DependenceWarning, match="100 rows of y lie near the mean"):
        matcher = CalibratedMatcher(random_state=0).fit(x, y)
    assert matcher.inlier_mask_[:100].sum() <= 0.015 * max(matcher.inlier_mask_.sum(), 1)
    assert matcher.inlier_mask_[100:].mean() > 0.5


def test_rows_that_resemble_the_next_ones_are_seen():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(500, 10))
    for t in range(1, 500):
        x[t] = 0.9 * x[t - 1] + np.sqrt(1 - 0.9**2) * x[t]
    y = x[:, ::-1] + 0.3 * rng.normal(size=x.shape)
    assert look(x, y).in_order
    order = rng.permutation(500)
    assert not look(x[order], y[order]).in_order


@pytest.mark.parametrize("d", [2, 5, 30, 150])
def test_independent_rows_are_not(d):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.standard_t(4, size=(300, d)) / np.arange(1, d + 1) ** (seed % 2)
        y = x + 0.1 * rng.normal(size=x.shape)
        assert look(x - x.mean(axis=0), y - y.mean(axis=0), seed) == Dependence()


def test_a_few_rows_are_not_looked_at():
    x, y = np.repeat(np.random.default_rng(0).normal(size=(2, 5, 3)), 2, axis=1)
    assert look(x, y) == Dependence()


def test_groups_keep_unrelated_replicates_from_being_called_real():
    rng = np.random.default_rng(2)
    x, y = (np.repeat(rng.normal(size=(60, 100)), 5, 0) + 0.2 * rng.normal(size=(300, 100)) for _ in range(2))
    subject = np.repeat(np.arange(60), 5)
    with pytest.warns(DependenceWarning, match="groups="):
        CalibratedMatcher(random_state=0).fit(x, y)
    matcher = CalibratedMatcher(random_state=0).fit(x, y, groups=subject)
    assert not matcher.inlier_mask_.any()
    assert matcher.inlier_fraction_interval_[0] == 0


def test_the_nearest_is_that_of_a_plain_loop():
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(30, 4)), rng.normal(size=(50, 4))
    apart = np.array([[np.linalg.norm(a - b) for b in others] for a in rows])
    distance, nearest = _nearest(rows, others)
    np.testing.assert_allclose(distance, apart.min(axis=1))
    np.testing.assert_array_equal(nearest, apart.argmin(axis=1))
    assert (_nearest(rows, rows, skip_own=True)[1] != np.arange(30)).all()


def test_only_near_copies_are_found():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(200, 5))
    y[10] = y[20] + 0.01
    sure = np.ones(200, dtype=bool)
    sure[[10, 11]] = False
    found = nearly_equal(PairedRows(y, y), np.array([10, 11]), sure)
    assert found.tolist() == [20, -1]
    assert nearly_equal(PairedRows(y, y), np.array([10]), np.zeros(200, dtype=bool)).tolist() == [-1]


def clustered(rng, n=400, d=12, k=4, apart=4.0):
    cluster = rng.integers(0, k, n)
    return cluster, apart * rng.normal(size=(k, d))[cluster] + rng.normal(size=(n, d))


@pytest.mark.parametrize("d", [6, 12, 600])
@pytest.mark.parametrize("n", [60, 400])
def test_clusters_are_found(n, d):
    rng = np.random.default_rng(d)
    cluster, table = clustered(rng, n, d, k=2)
    found = find_clusters(table, rng.normal(size=(n, 3)), np.random.RandomState(0))  # in one table is enough
    for k in range(2):  # most rows of a cluster are together, apart from the other's
        inside = np.bincount(found[cluster == k], minlength=found.max() + 1)
        assert inside.max() > 0.4 * inside.sum()
        assert np.bincount(found[cluster != k], minlength=found.max() + 1)[inside.argmax()] < 0.1 * inside.max()


KINDS = {
    "Gaussian": lambda rng: rng.normal(size=(300, 10)),
    "heavy-tailed": lambda rng: rng.standard_t(3, size=(300, 10)),
    "skewed": lambda rng: rng.lognormal(size=(300, 10)),
    "uniform": lambda rng: rng.uniform(size=(300, 3)),
    "one column": lambda rng: rng.normal(size=(300, 1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_clusters_are_warned_of_where_there_are_none(kind):
    warned = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = KINDS[kind](rng)
        Y = X[:, ::-1] + 0.3 * X.std() * rng.normal(size=X.shape)
        Y[:60] = Y[rng.permutation(60)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y)
        warned += any("Rows form clusters" in str(warning.message) for warning in caught)
    assert warned <= 1


@pytest.mark.parametrize("kind", ["Gaussian", "heavy-tailed", "skewed"])
def test_a_direction_without_clusters_has_no_valley(kind):
    found = 0
    for seed in range(20):
        values = KINDS[kind](np.random.default_rng(seed))[:, 0]
        found += find_valleys(values, np.random.RandomState(seed))[1].size > 0
    assert found <= 1


def test_a_table_of_equal_or_few_rows_has_no_clusters():
    for table in (np.ones((50, 3)), np.zeros((5, 2)), np.repeat(np.eye(2), 3, axis=0)):
        assert find_clusters(table, table, np.random.RandomState(0)) is None


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_clusters_are_found_in_any_unit(unit):
    rng = np.random.RandomState(0)
    kind = np.repeat([0, 1], 100)
    table = unit * (8.0 * kind[:, None] + rng.normal(size=(200, 3)))
    found = find_clusters(table, table, rng)
    assert all(np.unique(kind[found == k]).size == 1 for k in np.unique(found))


def test_the_bandwidth_is_the_smallest_with_one_mode():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 1, 150), rng.normal(4, 1, 150)])
    bandwidth, valleys = find_valleys(values, np.random.RandomState(0))
    low, high = np.quantile(values, (0.05, 0.95))
    inside = values[(values >= low) & (values <= high)]
    places = np.linspace(low - 1, high + 1, 400)

    def n_modes(h):  # by summing kernels, one by one
        density = gaussian_kde(inside, h / inside.std(ddof=1))(places)
        return int(_n_modes(density))

    assert n_modes(1.05 * bandwidth * inside.std()) == 1
    assert n_modes(0.95 * bandwidth * inside.std()) == 2
    assert np.abs(valleys - 2).min() < 0.5


def test_directions_that_both_share_come_first():
    rng = np.random.default_rng(0)
    common = rng.normal(size=400)
    x, y = rng.normal(size=(400, 5)), rng.normal(size=(400, 6))
    x[:, 2], y[:, 4] = common, -common
    assert abs(np.corrcoef(_directions(x, y)[:, 0], common)[0, 1]) > 0.95


def test_swaps_inside_clusters_that_would_be_accepted_are_warned_of():
    rng = np.random.default_rng(3)
    cluster, X = clustered(rng)
    Y = np.hstack([X[:, :3] + 2 * rng.normal(size=(400, 3)), X[:, 3:] + 2 * rng.normal(size=(400, 9))])
    with pytest.warns(DependenceWarning, match="strata="):
        matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, Y)
    assert matcher.inlier_fraction_interval_[0] == 0
    CalibratedMatcher(alpha=0.05, random_state=0).fit(X, Y, strata=cluster)  # no word where they were said


def test_clusters_inside_which_rows_are_told_apart_are_not_warned_of():
    rng = np.random.default_rng(4)
    _, X = clustered(rng, apart=3.0)
    matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, X[:, ::-1] + 0.05 * rng.normal(size=X.shape))
    assert matcher.inlier_mask_.mean() > 0.99
    assert matcher.inlier_fraction_interval_[0] > 0.9


def test_rows_that_are_equal_are_no_wrong_partners():
    rng = np.random.RandomState(0)
    kind = np.repeat([0.0, 5.0, 10.0], 60)
    X = kind[:, None] + rng.normal(size=(180, 4))

    def everything(x, y):
        return np.ones(len(x), dtype=bool)

    tables = X, kind[:, None]
    assert not warn_of_clusters(tables, tables, everything, 1.0, 0.05, rng)  # a stratum holds one y
    tables = X, kind[:, None] + 0.1 * rng.normal(size=(180, 1))
    with pytest.warns(DependenceWarning, match="Rows form clusters.* 20 % of the accepted would be wrong"):
        assert warn_of_clusters(tables, tables, everything, 1.0, 0.05, rng)


def test_how_many_would_be_wrong_depends_on_how_many_real_pairs_are_found():
    rng = np.random.RandomState(0)
    X = np.repeat([0.0, 9.0], 100)[:, None] + rng.normal(size=(200, 4))

    def some(x, y):
        return np.arange(len(x)) % 10 == 0

    assert not warn_of_clusters((X, X), (X, X), some, 1.0, 0.05, rng)  # 0.02 of 0.82
    with pytest.warns(DependenceWarning, match="7.7 % of the accepted would be wrong, not at most 5 %"):
        assert warn_of_clusters((X, X), (X, X), some, 0.3, 0.05, rng)  # 0.02 of 0.26


def of_many_sizes(rng, spread, n=800, d=8):
    """Columns that share a factor, with noise that does not; a fifth of the pairs in a ring."""
    X = np.exp(0.5 * rng.normal(size=(n, d)) + spread * rng.normal(size=(n, 1)))
    Y = X[:, ::-1] + 0.3 * np.median(X) * rng.normal(size=(n, d))
    Y[: n // 5] = np.roll(Y[: n // 5], 1, axis=0)
    return X, Y


def test_small_rows_that_noise_makes_alike_are_warned_of():
    X, Y = of_many_sizes(np.random.default_rng(1000), spread=1.0)
    with pytest.warns(DependenceWarning, match="Rows of a size resemble each other.* strata="):
        matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    assert matcher.inlier_fraction_interval_[0] == 0


def test_rows_of_about_one_size_are_not():
    X, Y = of_many_sizes(np.random.default_rng(1000), spread=0.0)
    assert CalibratedMatcher(random_state=0).fit(X, Y).inlier_fraction_interval_[0] > 0.7


def test_bands_hold_rows_that_are_large_or_small_in_both_tables():
    rng = np.random.default_rng(0)
    size = np.repeat([1.0, 10.0, 100.0], 20)[:, None]
    X, Y = size * rng.uniform(1, 2, size=(60, 3)), size * rng.uniform(1, 2, size=(60, 2))
    order = rng.permutation(60)
    assert np.array_equal(bands_of_size(X[order], Y[order]), order // 20)


def test_the_row_most_alike_is_the_nearest_in_standardised_columns_and_of_another_group():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(40, 3)) * [1.0, 100.0, 1e-3]
    table[7] = table[3]  # the same point, which is no other
    group = np.arange(40) // 2
    columns = table / table.std(axis=0)
    for labels in (None, group):
        for row, found in zip([3, 12, 39], most_alike(table, np.array([3, 12, 39]), labels), strict=True):
            distance = np.linalg.norm(columns - columns[row], axis=1)
            distance[(distance < 1e-9) | (labels is not None and group == group[row])] = np.inf
            assert found == np.argmin(distance)


def test_where_all_rows_are_equal_none_is_alike():
    assert most_alike(np.ones((5, 2)), np.arange(5)).tolist() == [-1] * 5
