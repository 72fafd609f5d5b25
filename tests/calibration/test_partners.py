from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from inlier.calibration.any_pairs import compare_any
from inlier.calibration.partners import _assigned, _in_units_of_chance, find_owners, name_partners
from inlier.datasets import make_gaussian_pairs
from inlier.estimators._base import prepare_model_pairs
from inlier.rows.null_pairs import pair_labels


@pytest.mark.parametrize("seed", range(5))
def test_the_assignment_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    m = 6
    gain = np.where(rng.uniform(size=(m, m)) < 0.4, rng.uniform(1, 2, size=(m, m)), 0.0)
    row, column = np.nonzero(gain)
    chosen, strength = _assigned(row, column, gain[row, column], m)
    best = max(sum(gain[i, p[i]] for i in range(m)) for p in permutations(range(m)))
    assert strength.sum() == pytest.approx(best)
    taken = chosen[chosen >= 0]
    assert np.unique(taken).size == taken.size
    assert all(strength[i] == (gain[i, chosen[i]] if chosen[i] >= 0 else 0) for i in range(m))


def test_nobody_is_assigned_where_there_are_no_candidates():
    none = np.empty(0, dtype=int)
    chosen, strength = _assigned(none, none, np.empty(0), 3)
    assert chosen.tolist() == [-1, -1, -1]
    assert strength.tolist() == [0, 0, 0]


def test_units_of_chance_are_minus_log_p_and_go_on_beyond():
    rising = np.sort(np.random.default_rng(0).exponential(size=10_000))
    values = np.array([0.1, 1.0, 2.0, 6.0, 30.0])
    np.testing.assert_allclose(_in_units_of_chance(values, rising), values, rtol=0.1, atol=0.02)
    assert (np.diff(_in_units_of_chance(np.linspace(0, 40, 100), rising)) >= -0.02).all()


@pytest.fixture(scope="module")
def mixed_up():
    data = make_gaussian_pairs(400, 10, 1.0, noise=0.2, rng=0)
    y = data.Y.copy()
    y[[3, 7]] = y[[7, 3]]
    y[[20, 21, 22]] = y[[21, 22, 20]]
    y[50] = np.random.default_rng(1).normal(size=10) * y.std()
    y[60] = y[61] + 0.02
    suspects = np.array([3, 7, 20, 21, 22, 50, 60])
    trusted = np.ones(400, dtype=bool)
    trusted[suspects] = False
    pairs = prepare_model_pairs(data.X, y, whiten=True)
    compared = compare_any(pairs, pair_labels(data.X, y), trusted, 5, np.random.RandomState(0))
    for fold in compared:
        fold.weigh()
    return compared, suspects, trusted


def test_swaps_and_cycles_are_named_and_the_lost_are_not(mixed_up):
    compared, suspects, sure = mixed_up
    names = name_partners(compared, suspects, np.ones(suspects.size), sure)
    named = names.q_values <= 0.05
    assert named.tolist() == [True] * 5 + [False] * 2
    assert names.partner[:5].tolist() == [7, 3, 22, 20, 21]
    assert (names.not_here[5:] > 0.5).all()


def test_a_row_that_is_more_likely_right_gets_no_name_but_its_y_may(mixed_up):
    compared, suspects, sure = mixed_up
    wrong = np.ones(suspects.size)
    wrong[0] = 0.4
    names = name_partners(compared, suspects, wrong, sure)
    assert (names.partner[0], names.q_values[0]) == (-1, 1)
    assert (names.q_values[1:5] <= 0.05).all()
    assert names.partner[1:5].tolist() == [3, 22, 20, 21]


def test_a_copy_has_an_owner(mixed_up):
    compared, suspects, sure = mixed_up
    owners = find_owners(compared, suspects, sure, of_y=True)
    assert owners.of[6] == 61
    assert owners.q_values[6] <= 0.05
    assert (owners.q_values[:6] > 0.05).all()


def test_without_right_pairs_nobody_is_named(mixed_up):
    compared, suspects, sure = mixed_up
    names = name_partners(compared, suspects, np.ones(suspects.size), np.zeros_like(sure))
    assert (names.partner == -1).all()
    assert (names.q_values == 1).all()
    assert (find_owners(compared, suspects, np.zeros_like(sure), of_y=False).of == -1).all()
    assert name_partners(compared, suspects[:0], np.ones(0), sure).partner.size == 0
