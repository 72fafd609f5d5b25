from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inlier.calibration.any_pairs import IMPOSSIBLE, compare_any
from inlier.calibration.p_values import means_of_surer
from inlier.calibration.partners import (
    _assigned,
    _Evidence,
    _in_proportion,
    _LogRatio,
    _mean_log_odds,
    _mean_own_log_odds,
    _rivals,
    _Worth,
    find_owners,
    name_partners,
)
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


def test_the_log_ratio_is_that_of_two_normal_distributions_and_rises():
    rng = np.random.default_rng(0)
    right, wrong = rng.normal(2, 1, 20_000), rng.normal(0, 1, 20_000)
    ratio = _LogRatio.of(right, wrong, wrong.size)
    values = np.linspace(-1, 3, 9)
    np.testing.assert_allclose(ratio(values), 2 * values - 2, atol=0.5)  # log of the ratio of the densities
    assert (np.diff(ratio(np.linspace(-50, 50, 1_000))) > 0).all()
    assert ratio(np.array([50.0]))[0] < np.log(20_001) + 1  # one wrong one may be above all


def test_the_evidence_of_a_swap_is_at_most_that_it_is_one_for_sure():
    rng = np.random.default_rng(0)
    odds = _LogRatio.of(rng.normal(6, 1, 5_000), rng.normal(0, 1, 5_000), 5_000)
    m, onward, back = 40, np.full(3, 3.0), np.array([-5.0, 3.0, 30.0])
    evidence = _Evidence(odds, np.ones(m))
    t = evidence(onward, back, np.ones(3))
    returned = 1 / (1 + (m - 1) * np.exp(-odds(back)))
    np.testing.assert_allclose(t, odds(onward) + np.log(1 - 0.8 * returned + 0.8 * m * returned))
    assert t[0] < t[1] < t[2] < odds(onward)[0] + np.log(0.2 + 0.8 * m)
    assert evidence(np.array([IMPOSSIBLE]), np.array([3.0]), np.ones(1))[0] < -40


def test_the_evidence_is_what_bayes_says():
    rng = np.random.default_rng(0)
    odds = _LogRatio.of(rng.normal(6, 1, 5_000), rng.normal(0, 1, 5_000), 5_000)
    wrong = np.array([1.0, 0.4, 0.1])
    m, onward, back = 3, rng.normal(2, 2, (3, 3)), rng.normal(2, 2, (3, 3))
    found = _Evidence(odds, wrong)(onward, back, wrong, wrong[:, None])
    for i in range(3):
        for j in range(3):
            v_i, v_j = wrong[i] / 0.5, wrong[j] / 0.5
            prior = wrong[j] * v_i / m
            for_it = prior * np.exp(odds(back[i, [j]])[0])
            returned = for_it / (for_it + 1 - prior)
            expected = odds(onward[i, [j]])[0] + np.log(v_j * (1 - 0.8 * returned) + m * 0.8 * returned)
            assert found[i, j] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_there_is_no_evidence_where_both_log_odds_are_below_the_level(seed):
    rng = np.random.default_rng(seed)
    odds = _LogRatio.of(rng.normal(3, 2, 5_000), rng.normal(-2, 2, 5_000), 5_000)
    wrong = rng.uniform(0.1, 1, 200)
    evidence = _Evidence(odds, wrong)
    below = evidence.level - rng.exponential(0.5, (2, 5_000))
    of_x, of_y = rng.choice(wrong, (2, 5_000))
    assert (evidence(*below, of_y, of_x) <= 0).all()
    assert evidence(np.array([odds.above(3.0)]), below[1][:1], np.ones(1))[0] > 0
    assert odds.above(100.0) == np.inf


def test_numbers_are_drawn_in_proportion():
    weights = np.array([1.0, 0.0, 2.0, 0.5])
    drawn = np.bincount(_in_proportion(weights, 3_500), minlength=4)
    np.testing.assert_allclose(drawn, [1_000, 0, 2_000, 500], atol=10)


def test_the_chances_of_wrong_names_add_up():
    rng, m = np.random.default_rng(0), 4_000
    best_wrong, own = rng.normal(3, 1, 10_000), rng.normal(6, 1.5, 10_000)
    worth = _Worth(None, _LogRatio.of(own, best_wrong, 10_000), np.sort(best_wrong), np.sort(own))
    here = rng.uniform(size=m) < 0.6
    right, wrong = np.where(here, rng.normal(6, 1.5, m), -np.inf), rng.normal(3, 1, m)
    is_wrong_name, not_here = worth.judge(np.maximum(right, wrong), np.zeros((2, m)), np.ones(m))
    assert abs(is_wrong_name.sum() - (wrong > right).sum()) < 0.03 * m
    assert abs(not_here.mean() - 0.4) < 0.05
    named = means_of_surer(is_wrong_name) <= 0.05
    assert named.sum() > 0.3 * m
    assert 0.03 < (wrong > right)[named].mean() < 0.07


def test_a_name_is_as_doubtful_as_its_rivals_are_strong():
    rng = np.random.default_rng(0)
    best_wrong, own = rng.normal(3, 1, 10_000), rng.normal(6, 1.5, 10_000)
    worth = _Worth(None, _LogRatio.of(own, best_wrong, 10_000), np.sort(best_wrong), np.sort(own))
    rivals, none = np.array([0.0, 0.1, 1.0, 1.0]), np.zeros(4)
    for of_both in ((rivals, none), (none, rivals)):
        wrong_name, not_here = worth.judge(np.full(4, 8.0), of_both, np.ones(4))
        assert wrong_name[0] < wrong_name[1] < wrong_name[2] == wrong_name[3]
        assert wrong_name[0] < 0.1
        assert wrong_name[2] >= 0.5  # a rival as good as the name: it is right with a chance of one half at the most
        assert (not_here[0] > not_here[2]) == (of_both[0] is rivals)  # another x for the same y says nothing about that


@given(arrays(np.float64, (5, 5), elements=st.floats(-5, 10)))
def test_the_rivals_of_a_name_are_all_others_in_its_row_and_column(evidence):
    row, column = np.indices((5, 5)).reshape(2, -1)
    chosen, strength = _assigned(*(part[evidence.ravel() > 0] for part in (row, column, evidence.ravel())), 5)
    expected = np.zeros((2, 5))
    for i, j in enumerate(chosen):
        if j >= 0:
            others = [evidence[i, k] for k in range(5) if k != j], [evidence[k, j] for k in range(5) if k != i]
            for side in range(2):
                expected[side, i] = sum(np.exp(t - evidence[i, j]) for t in others[side] if t > 0)
    np.testing.assert_allclose(_rivals(row, column, evidence.ravel(), chosen, strength), expected)


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
    return compared, suspects, trusted


def test_log_odds_are_means_over_the_deals(mixed_up):
    compared, suspects, _ = mixed_up
    rows, folds = np.arange(0, 400, 9), []
    for row in rows:
        folds.append([fold for fold in compared if row in fold.rows])
    assert {len(of) for of in folds} == {len(compared) // 5} != {1}
    met = []
    for places, onward, back in _mean_log_odds(compared, rows, suspects):
        met.extend(places)
        for place, at in enumerate(places):
            one = rows[[at]]
            expected = np.mean([fold.log_odds(one, suspects)[0] for fold in folds[at]], axis=0)
            np.testing.assert_allclose(onward[place], expected, atol=1e-3)
            expected = np.mean([fold.log_odds(suspects, one)[:, 0] for fold in folds[at]], axis=0)
            np.testing.assert_allclose(back[place], expected, atol=1e-3)
    assert sorted(met) == list(range(rows.size))
    own = [np.mean([fold.own_log_odds(rows[[at]])[0] for fold in of]) for at, of in enumerate(folds)]
    np.testing.assert_allclose(_mean_own_log_odds(compared, rows), own)


def test_swaps_and_cycles_are_named_and_the_lost_are_not(mixed_up):
    compared, suspects, sure = mixed_up
    names = name_partners(compared, suspects, np.ones(sure.size), sure.sum())
    named = names.q_values <= 0.05
    assert named.tolist() == [True] * 5 + [False] * 2
    assert names.partner[:5].tolist() == [7, 3, 22, 20, 21]
    assert (names.not_here[5:] > 0.5).all()


@pytest.mark.parametrize("among_all", [True, False])
def test_a_partner_in_a_row_that_seems_right_is_named_where_all_rows_are_candidates(mixed_up, among_all):
    compared, suspects, sure = mixed_up
    wrong = np.where(sure, 1e-3, 1.0)
    wrong[3] = 0.05
    others = suspects[suspects != 3]
    names = name_partners(compared, others, wrong, sure.sum(), None, np.arange(sure.size) if among_all else None)
    assert (names.q_values[0] <= 0.05) == among_all
    assert (names.partner[0] == 3) == among_all
    assert names.partner[1:4].tolist() == [22, 20, 21]
    assert (names.q_values[1:4] <= 0.05).all()


@pytest.mark.parametrize(("chance", "is_named"), [(0.3, True), (1e-9, False)])
def test_a_row_that_is_right_gets_no_name_and_keeps_its_y(mixed_up, chance, is_named):
    compared, suspects, sure = mixed_up
    wrong = np.ones(sure.size)
    wrong[suspects[0]] = chance
    names = name_partners(compared, suspects, wrong, sure.sum())
    assert ((names.q_values[:2] <= 0.05) == is_named).all()
    assert (names.q_values[2:5] <= 0.05).all()
    assert names.partner[2:5].tolist() == [22, 20, 21]
    assert (names.partner[1] == 3) == is_named


def test_a_copy_has_an_owner(mixed_up):
    compared, suspects, sure = mixed_up
    owners = find_owners(compared, suspects, sure)[0]
    assert owners.of[6] == 61
    assert owners.q_values[6] <= 0.05
    assert (owners.q_values[:6] > 0.05).all()


def test_without_right_pairs_nobody_is_named(mixed_up):
    compared, suspects, sure = mixed_up
    names = name_partners(compared, suspects, np.ones(sure.size), 0)
    assert (names.partner == -1).all()
    assert (names.q_values == 1).all()
    assert (find_owners(compared, suspects, np.zeros_like(sure))[1].of == -1).all()
    assert name_partners(compared, suspects[:0], np.ones(sure.size), sure.sum()).partner.size == 0
