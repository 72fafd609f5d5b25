from __future__ import annotations

import numpy as np

from inlier import CalibratedMatcher
from inlier.calibration.true_partners import FoldScores, _lowest_named, clearly_real, without_true_partners


def problem(seed, shift):
    """40 pairs, 10 of them real; the others' partners are in the same fold, `shift` above chance."""
    rng = np.random.default_rng(seed)
    folds, real = [], np.zeros(400, dtype=bool)
    for fold in range(10):
        rows = np.arange(40 * fold, 40 * fold + 40)
        real[rows[:10]] = True
        scores = rng.normal(size=(40, 40))
        scores[np.arange(10, 40), np.roll(np.arange(10, 40), 1)] += shift
        folds.append(FoldScores(rows, scores, ~np.eye(40, dtype=bool)))
    return folds, real


def test_true_partners_are_left_out_and_little_else():
    folds, real = problem(0, 12.0)
    kept = without_true_partners(folds, real, np.random.RandomState(0))
    partners = (np.arange(10, 40), np.roll(np.arange(10, 40), 1))
    left = sum(int(mask[partners].sum()) for mask in kept)
    assert left < 0.15 * 300
    assert sum(int((~mask).sum()) for mask in kept) <= 10 * 40 + 300


def test_where_there_are_none_nothing_is_left_out():
    folds, real = problem(0, 0.0)
    kept = without_true_partners(folds, real, np.random.RandomState(0))
    assert all((mask == fold.may_be_re_paired).all() for mask, fold in zip(kept, folds, strict=True))


def test_few_names_are_wrong_from_the_lowest_on():
    rng = np.random.default_rng(0)
    chance = rng.normal(size=200)
    threshold, rate = _lowest_named(np.concatenate([rng.normal(size=50), rng.normal(10, 1, 50)]), chance)
    assert 1 < threshold < 9
    assert rate <= 0.1
    assert _lowest_named(np.full(3, -np.inf), chance) == (np.inf, 0.0)


def test_it_is_looked_for_only_where_it_matters():
    rng = np.random.default_rng(0)
    null = rng.normal(size=10_000)
    few = np.concatenate([rng.normal(9, 1, 30), rng.normal(size=270)])
    real = clearly_real(few, null, None)
    assert real is not None
    assert real[:30].all()
    assert clearly_real(rng.normal(9, 1, 300), null, None) is None
    assert clearly_real(rng.normal(size=300), null, None) is None


def test_partners_that_were_parted_help_to_learn():
    rng = np.random.default_rng(2)
    latent = rng.normal(size=(497, 20))
    X, Y = (latent @ rng.normal(size=(20, 50)) + 0.1 * rng.normal(size=(497, 50)) for _ in range(2))
    ring, partner = np.random.default_rng(1002).permutation(497)[:447], np.arange(497)
    partner[ring] = np.roll(ring, 1)
    real = partner == np.arange(497)
    accepted = CalibratedMatcher(random_state=2).fit(X, Y[partner]).inlier_mask_
    assert (accepted & real).sum() >= 30
    assert (accepted & ~real).sum() <= 1
