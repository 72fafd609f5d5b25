"""Each line of the competition beside its definition, written plainly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from inlier.calibration import competition
from inlier.calibration.competition import Rivals, RivalShare, share_by_rivals
from inlier.calibration.cross_fit import expected_wrong
from inlier.calibration.p_values import calibrate

SHARES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)


def unit_by_definition(differences, allowed):
    """The unit of the largest likelihood; a smaller one than 1 must add two to its logarithm, and so on."""
    best, highest = None, -np.inf
    for unit in (1.0, 0.5, 0.25, 0.125):
        likelihoods = []
        for share in SHARES:
            total = 0.0
            for row, may in zip(differences, allowed, strict=True):
                weights = np.exp(unit * row[may])
                own = (1 + may.sum()) / (1 + weights.sum())  # beside 1 / (1 + count), the chance of any row
                total += np.log(share * own + 1 - share)
            likelihoods.append(total)
        if max(likelihoods) > highest + 2:
            best, highest = unit, max(likelihoods)
    return best


def unit_of(differences, allowed):
    return competition._unit_of_evidence(np.where(allowed, differences, -np.inf), allowed.sum(axis=1))


def mean_ratio(differences, allowed, unit):
    return competition._log_mean_ratio(np.where(allowed, differences, -np.inf), allowed.sum(axis=1), unit)


@pytest.mark.parametrize("seed", range(12))
def test_the_unit_of_evidence_is_that_of_the_largest_likelihood(seed):
    rng = np.random.default_rng(seed)
    boast = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)[seed % 6]  # by how much the scores promise too much
    evidence = rng.normal(2.0, 1.0, size=(40, 1))
    differences = boast * (rng.normal(-1.0, 1.5, size=(40, 30)) - evidence)
    wrong = rng.random(40) < 0.2
    differences[wrong, 5] = boast * 4.0
    allowed = rng.random((40, 30)) < 0.9
    assert unit_of(differences, allowed) == unit_by_definition(differences, allowed)


def test_units_differ_with_what_scores_promise():
    rng = np.random.default_rng(0)
    units = []
    for boast in (1.0, 3.0, 10.0):
        differences = boast * rng.normal(-1.0, 1.0, size=(64, 40))
        units.append(unit_of(differences, np.ones((64, 40), dtype=bool)))
    assert units == sorted(units, reverse=True)
    assert len(set(units)) == 3


@pytest.mark.parametrize("unit", [1.0, 0.25])
def test_the_mean_ratio_is_that_over_the_rivals_that_are_allowed(unit):
    rng = np.random.default_rng(1)
    differences, allowed = rng.normal(0, 3, size=(20, 7)), rng.random((20, 7)) < 0.6
    allowed[:, 0] = True
    found = mean_ratio(differences, allowed, unit)
    for row, may, value in zip(differences, allowed, found, strict=True):
        assert value == pytest.approx(np.log(np.mean(np.exp(unit * row[may]))), abs=1e-5)


def test_ratios_beyond_all_numbers_stay_finite():
    differences = np.array([[5000.0, -5000.0], [-5000.0, -5000.0], [-5000.0, 3.0], [1.0, 2.0]])
    allowed = np.array([[True, True], [True, True], [True, False], [False, False]])
    found = mean_ratio(differences, allowed, 1.0)
    assert found[0] == pytest.approx(5000 - np.log(2))
    assert np.isfinite(found).all()
    assert (found[1:] < -79).all()
    one_rival = mean_ratio(np.array([[2.0, 9.0]]), np.array([[True, False]]), 1.0)
    assert one_rival[0] == pytest.approx(2.0)


@pytest.mark.parametrize(("low", "high", "share", "n"), [(-6, 6, 0.7, 2000), (-2, 2, 0.3, 500), (-1, 3, 0.9, 200)])
def test_the_share_is_that_of_the_largest_likelihood_and_its_error_that_of_its_curvature(low, high, share, n):
    rng = np.random.default_rng(n)
    log_ratio = np.where(rng.random(n) < share, low, high) + rng.normal(size=n)
    ratio = np.exp(log_ratio)

    def minus_log_likelihood(r):
        return -np.sum(np.log(r + (1 - r) * ratio))

    best = minimize_scalar(minus_log_likelihood, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-9}).x
    found = share_by_rivals(log_ratio[None, :])
    assert found.share[0] == pytest.approx(best, abs=1e-4)
    step = 1e-4
    curvature = (
        minus_log_likelihood(best + step) - 2 * minus_log_likelihood(best) + minus_log_likelihood(best - step)
    ) / step**2
    assert found.share[1] == pytest.approx(curvature**-0.5, rel=1e-2)
    odds = (1 - best) / best * ratio
    np.testing.assert_allclose(found.chance_wrong, odds / (1 + odds), atol=1e-3)


@pytest.mark.parametrize(("ratio", "share"), [(-30.0, 1 - 0.5 / 40), (30.0, 0.5 / 40)])
def test_the_share_is_never_quite_none_or_all(ratio, share):
    found = share_by_rivals(np.full((1, 40), ratio))
    assert found.share[0] == pytest.approx(share, rel=1e-9)


def test_without_information_the_error_is_the_largest_there_is():
    assert share_by_rivals(np.zeros((1, 10))).share == (pytest.approx(0.5), 1.0)


def test_of_several_deals_the_middle_one_counts():
    rng = np.random.default_rng(3)
    middle = rng.normal(size=50) * 4
    deals = np.stack([middle - 3, middle, middle + 50])
    deals[0, 7] = np.nan  # was in no test fold of that deal: the others tell
    expected = middle.copy()
    expected[7] = (middle[7] + middle[7] + 50) / 2
    there, here = share_by_rivals(expected[None, :]), share_by_rivals(deals)
    np.testing.assert_allclose(here.chance_wrong, there.chance_wrong)
    assert here.share == pytest.approx(there.share)
    assert share_by_rivals(deals[:1]) is None


def test_a_contradiction_is_twice_the_standard_error_of_the_difference():
    beside_rivals = RivalShare(np.zeros(3), (0.5, 0.04))
    assert beside_rivals.contradicts(0.601, 0.03)  # whose difference has an error of 0.05
    assert not beside_rivals.contradicts(0.599, 0.03)
    assert not beside_rivals.contradicts(0.2, 0.03)


def test_a_suspicion_adds_what_both_say_of_the_share_and_of_the_accepted():
    chance, accepted = np.array([0.9, 0.9, 0.9, 0.9, 0.0, 0.8]), np.array([True] * 5 + [False])
    beside_rivals = RivalShare(chance, (0.5, 0.04))
    # 3.6 of the accepted are wrong, 0.44 were expected: 3.16 / 1.2 = 2.63 of its errors; none between the shares
    assert beside_rivals.suspects(0.5, 0.03, accepted, 0.44, 0.01)  # 2.63 / sqrt(2) = 1.86
    assert not beside_rivals.suspects(0.45, 0.03, accepted, 0.44, 0.01)  # one of its errors the other way: 1.15
    assert not beside_rivals.suspects(0.5, 0.03, accepted, 3.6, 0.01)
    assert not beside_rivals.suspects(0.9, 0.03, np.zeros(6, dtype=bool), 0.0, 0.01)  # none accepted, none wrong
    assert beside_rivals.suspects(0.5, 0.03, accepted, 0.44, 0.71)  # 3.6 of five are more than was promised
    assert not beside_rivals.suspects(0.5, 0.03, accepted, 0.44, 0.73)


def test_wrong_pairs_among_the_accepted_are_those_that_re_pairings_promise():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(3, 1, 500), rng.normal(0, 1, 500)])
    judged = calibrate(scores, rng.normal(size=100_000))
    accepted = judged.accepted(0.05)
    assert expected_wrong(judged, accepted) == pytest.approx(accepted[500:].sum(), abs=3 * accepted[500:].sum() ** 0.5)
    assert expected_wrong(judged, np.zeros(1000, dtype=bool)) == 0


def test_of_many_pairs_each_is_compared_with_a_random_part(monkeypatch):
    x, labels = np.arange(600.0)[:, None], np.stack([np.arange(600)] * 2)
    everyone = Rivals.of(x, -x, labels, np.random.RandomState(0))
    assert everyone.rows.tolist() == list(range(600))
    monkeypatch.setattr(competition, "_MOST_COMPARED", 600 * 250)
    some = Rivals.of(x, -x, labels, np.random.RandomState(0))
    assert some.rows.size == np.unique(some.rows).size == 250
    assert (np.diff(some.rows) > 0).all()
    assert some.rows.min() < 50 < 550 < some.rows.max()
    np.testing.assert_array_equal(np.asarray(some.x)[:, 0], some.rows)
    np.testing.assert_array_equal(np.asarray(some.y)[:, 0], -some.rows)
    monkeypatch.setattr(competition, "_MOST_COMPARED", 600)
    assert Rivals.of(x, -x, labels, np.random.RandomState(0)).rows.size == 100  # as few as there may be


@pytest.mark.parametrize("kind", ["all differ", "a point twice", "groups and strata"])
@pytest.mark.parametrize("n_rivals", [40, 25])
def test_rivals_that_a_pair_is_not_compared_with(kind, n_rivals):
    """Itself, pairs that share a point or the group with it, and those of another stratum."""
    rng = np.random.default_rng(0)
    x, y = np.arange(40), np.arange(40)
    if kind == "a point twice":
        y[7] = y[3]
        y = np.unique(y, return_inverse=True)[1]  # as points are numbered
    labels = np.stack([x, y])
    if kind == "groups and strata":
        labels = np.stack([x, y, np.arange(40) // 3, np.arange(40) % 2])
    chosen = np.sort(rng.choice(40, n_rivals, replace=False))
    rivals, rows = Rivals(None, None, chosen, labels), np.array([0, 3, 7, 39, 20])
    expected = set()
    for place, i in enumerate(rows):
        for rival, j in enumerate(chosen):
            alike = x[i] == x[j] or y[i] == y[j]
            if kind == "groups and strata":
                alike = alike or i // 3 == j // 3 or i % 2 != j % 2
            if alike:
                expected.add((place, rival))
    assert set(zip(*(part.tolist() for part in rivals._banned(rows)), strict=True)) == expected
