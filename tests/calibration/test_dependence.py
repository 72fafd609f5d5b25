"""Replicates and failed samples that nobody named."""

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration.dependence import (
    Dependence,
    _dips,
    _k_means,
    _nearest,
    blanks,
    find_clusters,
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
def test_clusters_are_found(d):
    rng = np.random.default_rng(d)
    cluster, table = clustered(rng, d=d, k=3)
    p, found = find_clusters(table, np.random.RandomState(0))
    assert p < 1e-4
    for k in range(3):  # a cluster that was found lies in one that there is, or holds several whole ones
        inside = np.bincount(found[cluster == k])
        assert inside.max() > 0.3 * inside.sum()


@pytest.mark.parametrize("kind", ["Gaussian", "heavy-tailed", "skewed", "uniform", "one column"])
def test_no_clusters_are_found_where_there_are_none(kind):
    smallest = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        table = {
            "Gaussian": lambda rng=rng: rng.normal(size=(300, 10)),
            "heavy-tailed": lambda rng=rng: rng.standard_t(3, size=(300, 10)),
            "skewed": lambda rng=rng: rng.lognormal(size=(300, 10)),
            "uniform": lambda rng=rng: rng.uniform(size=(300, 3)),
            "one column": lambda rng=rng: rng.normal(size=(300, 1)),
        }[kind]()
        smallest.append(find_clusters(table, np.random.RandomState(seed))[0])
    assert sum(p < 0.01 for p in smallest) <= 1


def test_a_table_of_equal_or_few_rows_has_no_clusters():
    for table in (np.ones((50, 3)), np.zeros((5, 2)), np.repeat(np.eye(2), 3, axis=0)):
        p, found = find_clusters(table, np.random.RandomState(0))
        assert p == 1
        assert found.tolist() == [0] * len(table)


def test_k_means_ends_where_each_centre_is_the_mean_of_its_rows():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 3))
    centres = _k_means(z, 4, np.random.RandomState(0))
    nearest = np.array([[np.sum((row - centre) ** 2) for centre in centres] for row in z]).argmin(axis=1)
    moved = np.array([z[nearest == k].mean(axis=0) for k in range(4)])
    assert np.abs(moved - centres).max() < 0.1  # settled, or nearly so after twenty rounds


def test_a_dip_counts_rows_midway_and_around_the_nearer_end():
    centres = np.array([[0.0], [1.0], [9.0]])
    rows = np.array([0.0, 0.1, -0.1, 0.05, 0.45, 0.95, 1.0, 1.1, 1.14, 9.0])[:, None]
    # 0 and 1 are each other's nearest: 4 rows around 0, one midway, 4 around 1; 1 is the nearest of 9, too
    dips = sorted(_dips(rows, centres))
    assert dips[0] == pytest.approx(6 / 2**5)
    assert len(dips) == 2


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
        return np.ones(len(x))  # whatever is asked would be accepted

    tables = X, kind[:, None]
    assert not warn_of_clusters(tables, tables, everything, 0.5, 0.05, rng)  # a stratum holds one y
    tables = X, kind[:, None] + 0.1 * rng.normal(size=(180, 1))
    with pytest.warns(DependenceWarning, match="Rows form clusters, about 3, and 100% of the re-pairings"):
        assert warn_of_clusters(tables, tables, everything, 0.5, 0.05, rng)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_clusters_are_found_in_any_unit(unit):
    rng = np.random.RandomState(0)
    table = unit * (np.repeat([0.0, 8.0], 100)[:, None] + rng.normal(size=(200, 3)))
    p, found = find_clusters(table, rng)
    assert p < 1e-6
    assert np.unique(found).size == 2
