from __future__ import annotations

import numpy as np
import pytest

from inlier.calibration.any_pairs import compare_any
from inlier.calibration.suspects import Own, chance_by_ranks, chance_by_scores, chance_wrong
from inlier.datasets import make_gaussian_pairs
from inlier.estimators._base import prepare_model_pairs
from inlier.rows.null_pairs import pair_labels


def test_wrong_pairs_have_standard_normal_ranks_and_real_ones_high_ones():
    data = make_gaussian_pairs(1000, 5, 0.5, noise=0.5, rng=0)
    pairs, labels = prepare_model_pairs(data.X, data.Y, whiten=True), pair_labels(data.X, data.Y)
    compared = compare_any(pairs, labels, data.inlier_mask, 5, np.random.RandomState(0))
    own = Own.of(compared, 1000, np.random.RandomState(1))
    z, share, least = own.z, own.better, own.least
    wrong = z[~data.inlier_mask]
    assert abs(wrong.mean()) < 0.2
    assert 0.85 < wrong.std() < 1.15
    assert np.median(z[data.inlier_mask]) > 2
    assert ((share >= 0) & (share <= 1)).all()
    assert 0 < least < 0.01


@pytest.mark.parametrize("n_wrong", [5, 20, 100])
def test_the_chances_add_up(n_wrong):
    stated, true, n = 0.0, 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = np.concatenate([rng.normal(size=n_wrong), rng.normal(4.5, 1, 1000 - n_wrong)])
        chance, share = chance_by_ranks(z, 0.0025)
        suspects = chance > 0.5
        stated += float(np.sum(1 - chance[suspects]))
        true += int(suspects[n_wrong:].sum())
        n += int(suspects.sum())
        assert 0.3 * n_wrong - 2 < 1000 * share < 2 * n_wrong + 3
    assert abs(stated - true) / n < 0.12  # of five wrong ones, little is seen of the real tail
    assert n > 20 * n_wrong * 0.7


@pytest.mark.parametrize("share", [0.1, 0.5, 0.77, 0.9])
def test_a_gap_between_wrong_and_real_pairs_is_seen_whatever_the_share(share):
    n_wrong = round(13_000 * share)
    z = np.append(np.random.default_rng(0).normal(size=n_wrong), np.full(13_000 - n_wrong, 3.8))
    chance, found = chance_by_ranks(z, 0.00025)
    assert found == pytest.approx(share, abs=0.01)
    below = z < 3
    assert (chance[below] > 0.9).mean() > 0.998
    assert (chance[n_wrong:] < 0.01).all()


def test_wrong_pairs_vary_as_re_pairings_do_however_many_deals_there_are():
    data = make_gaussian_pairs(300, 20, 0.6, noise=1.0, rng=0)
    pairs, labels = prepare_model_pairs(data.X, data.Y, whiten=True), pair_labels(data.X, data.Y)
    compared = compare_any(pairs, labels, data.inlier_mask, 5, np.random.RandomState(0), steady=True)
    assert len(compared) == 5 * 10
    z = Own.of(compared, 300, np.random.RandomState(1)).z
    assert abs(np.std(z[~data.inlier_mask]) - 1) < 0.2


def test_three_wrong_pairs_far_below_all_others_are_no_heavy_tail():
    z = np.append([1.0, 1.1, 1.14], np.full(297, 3.05))
    chance, share = chance_by_ranks(z, 0.0027)
    assert (chance[:3] > 0.9).all()
    assert (chance[3:] < 0.01).all()
    assert 0.005 < share < 0.02


def test_chances_rise_as_ranks_fall_and_the_unknown_are_wrong():
    rng = np.random.default_rng(0)
    z = np.append(rng.normal(3, 2, 300), np.nan)
    chance, _ = chance_by_ranks(z, 0.0025)
    assert chance[-1] == 1
    order = np.argsort(z[:-1])
    assert (np.diff(chance[order]) <= 0).all()
    chance, share = chance_by_ranks(np.full(3, np.nan), 0.1)
    assert chance.tolist() == [1, 1, 1]
    assert share == 1


def _ideal(n, n_wrong, d, noise, seed):
    """Log likelihood ratios of Gaussian pairs, the first of which are wrong, and of re-pairings."""
    rng, rho = np.random.default_rng(seed), (1 + noise**2) ** -0.5
    x = rng.normal(size=(n, d))
    y = rho * (x + noise * rng.normal(size=(n, d)))
    y[:n_wrong] = np.roll(y[:n_wrong], 1, axis=0)

    def ratio(y):
        return ((y**2).sum(1) - ((y - rho * x) ** 2).sum(1) / (1 - rho**2) - d * np.log(1 - rho**2)) / 2

    return ratio(y), np.concatenate([ratio(np.roll(y, shift, axis=0)) for shift in range(100, 900, 100)])


@pytest.mark.parametrize("n_wrong", [5, 20, 100])
def test_log_likelihood_ratios_are_believed_and_innocents_are_counted(n_wrong):
    stated, true, n = 0.0, 0, 0
    for seed in range(20):
        evidence, of_wrong = _ideal(1000, n_wrong, 10, 1.0, seed)
        chance = chance_by_scores(evidence, of_wrong, np.ones(1000))
        suspects = chance > 0.5
        stated += float(np.sum(1 - chance[suspects]))
        true += int(suspects[n_wrong:].sum())
        n += int(suspects.sum())
    assert abs(stated - true) / n < (0.1 if n_wrong == 5 else 0.04)
    assert n > 20 * n_wrong * 0.3


def test_accepted_pairs_that_stand_for_many_change_little():
    evidence, of_wrong = _ideal(20_000, 400, 10, 1.0, 0)
    chance = chance_by_scores(evidence, of_wrong, np.ones(20_000))
    drawn = np.flatnonzero((evidence < 2) | (np.arange(20_000) % 10 == 0))
    stands_for = np.where(evidence[drawn] < 2, 1.0, 10.0)
    again = chance_by_scores(evidence[drawn], of_wrong, stands_for)
    assert np.abs(again - chance[drawn]).max() < 0.1


def test_scores_are_not_believed_where_those_whom_they_call_wrong_have_good_ranks():
    rng = np.random.default_rng(0)
    evidence = np.concatenate([rng.normal(-8, 4, 80), rng.normal(4, 2, 420)])
    of_wrong, all_pairs = rng.normal(-8, 4, 4_000), np.ones(500, dtype=bool)
    fits_badly = np.arange(500) < 80
    for z_of_these, believed in ((0.0, True), (1.5, False)):
        z = np.where(fits_badly, rng.normal(z_of_these, 1, 500), rng.normal(4, 0.5, 500))
        chance = chance_wrong(Own(evidence, of_wrong, z, np.zeros(500), 0.001), all_pairs, np.ones(500))
        assert ((chance[fits_badly] > 0.9).mean() > 0.9) == believed


def test_a_pair_without_evidence_is_judged_by_its_rank_and_one_without_either_is_wrong():
    rng = np.random.default_rng(0)
    evidence = np.concatenate([rng.normal(-8, 4, 50), rng.normal(4, 2, 450)])
    z = np.concatenate([rng.normal(0, 1, 50), rng.normal(4, 0.5, 450)])
    evidence[[0, 499]], z[[0, 499]] = np.nan, [np.nan, 5.0]
    own = Own(evidence, rng.normal(-8, 4, 4_000), z, np.zeros(500), 0.001)
    chance = chance_wrong(own, np.ones(500, dtype=bool), np.ones(500))
    assert chance[0] == 1
    assert chance[499] < 0.05
