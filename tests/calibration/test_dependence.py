"""Replicates and failed samples that nobody named."""

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration.dependence import Dependence, _nearest, blanks, nearly_equal
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
