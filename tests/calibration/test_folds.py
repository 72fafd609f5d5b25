"""What shares a fold, and what may be learned from: nothing that tells the answer of the pairs that are judged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inlier import CalibratedMatcher
from inlier.calibration.folds import deal_folds, mean_size, training_without, units_of
from inlier.rows.null_pairs import pair_labels

numbers = st.integers(0, 8)


def point_labels(x, y, groups=None, strata=None):
    """Labels of pairs whose rows are told by one number each."""
    return pair_labels(np.array(x, dtype=float)[:, None], np.array(y, dtype=float)[:, None], groups, strata)


def dealt(labels, n_folds, *, has_groups=False, seed=0):
    units = units_of(labels, has_groups=has_groups)
    return deal_folds(labels, units, n_folds, np.random.RandomState(seed))


def test_where_all_rows_differ_every_pair_is_one_of_its_own():
    labels = point_labels(range(10), range(10))
    assert units_of(labels, has_groups=False) is None
    assert np.bincount(dealt(labels, 5)).tolist() == [2] * 5


@given(arrays(np.int64, st.integers(2, 40), elements=numbers), st.data())
def test_equal_rows_of_the_table_that_repeats_itself_more_are_a_unit(x, data):
    y = data.draw(arrays(np.int64, x.size, elements=st.integers(0, 30)))
    assume(np.unique(x).size < np.unique(y).size)
    for one, other in ((x, y), (y, x)):
        units = units_of(point_labels(one, other), has_groups=False)
        assert ((units[:, None] == units) == (x[:, None] == x)).all()


@given(arrays(np.int64, st.integers(2, 30), elements=numbers), st.data())
def test_a_unit_of_groups_holds_a_group_and_whatever_has_a_pair_of_it_again(x, data):
    y, groups = (data.draw(arrays(np.int64, x.size, elements=numbers)) for _ in "yg")
    labels = point_labels(x, y, np.unique(groups, return_inverse=True)[1])
    units = units_of(labels, has_groups=True)
    units = np.arange(x.size) if units is None else units
    together = (groups[:, None] == groups) | ((x[:, None] == x) & (y[:, None] == y))
    for _ in range(x.size):  # what is together with one that is together
        together = (together.astype(int) @ together) > 0
    assert ((units[:, None] == units) == together).all()


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("n_folds", [2, 5])
def test_equal_rows_share_a_fold(side, n_folds):
    subject = np.random.default_rng(0).permutation(np.repeat(np.arange(40), 5))
    tables = [np.arange(200), np.arange(200)]
    tables[side] = subject
    fold = dealt(point_labels(*tables), n_folds)
    assert all(np.unique(fold[subject == k]).size == 1 for k in range(40))
    assert np.unique(fold).tolist() == list(range(n_folds))
    assert np.ptp(np.bincount(fold)) <= 10  # two subjects


def test_groups_share_a_fold_and_every_stratum_is_in_every_fold():
    rng = np.random.default_rng(1)
    groups = rng.permutation(np.repeat(np.arange(60), 4))
    strata = groups % 3
    fold = dealt(point_labels(range(240), range(240), groups, strata), 5, has_groups=True)
    assert all(np.unique(fold[groups == k]).size == 1 for k in range(60))
    assert all(np.unique(fold[strata == k]).size == 5 for k in range(3))


@given(arrays(np.int64, st.integers(4, 40), elements=numbers), st.data())
def test_nothing_is_learned_from_that_has_a_row_in_common(x, data):
    y = data.draw(arrays(np.int64, x.size, elements=numbers))
    labels = point_labels(x, y)
    fold = dealt(labels, 4)
    for k in np.unique(fold):
        own = np.flatnonzero(fold == k)
        expected = [i for i in range(x.size) if i not in own and x[i] not in x[own] and y[i] not in y[own]]
        assert training_without(own, labels, has_groups=False).tolist() == expected


def test_with_groups_they_alone_say_what_must_not_be_learned_from():
    """Who names groups says that equal rows of different groups are different measurements."""
    labels = point_labels([1, 1, 2, 3], range(4), np.arange(4))
    assert training_without(np.array([0]), labels, has_groups=True).tolist() == [1, 2, 3]
    assert training_without(np.array([0]), labels, has_groups=False).tolist() == [2, 3]


def test_as_many_as_stand_or_fall_together():
    assert mean_size(None) == 1
    assert mean_size(np.array([0, 0, 0, 1])) == pytest.approx((3 * 3 + 1) / 4)


@pytest.mark.parametrize("merged", ["X", "y"])
def test_a_table_of_subjects_merged_onto_visits_finds_nothing_in_what_is_unrelated(merged):
    """A subject's visits resemble each other, so that one visit tells the answer of the next, if it may."""
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        subject = rng.permutation(np.repeat(np.arange(40), 5))
        of_visits = 0.5**0.5 * (rng.normal(size=(40, 20))[subject] + rng.normal(size=(200, 20)))
        of_subjects = rng.normal(size=(40, 10))[subject]
        X, Y = (of_subjects, of_visits) if merged == "X" else (of_visits, of_subjects)
        found += CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y).inlier_mask_.any()
    assert found <= 4  # at a rate of one in twenty, five or more have a chance of 6 in 100,000
