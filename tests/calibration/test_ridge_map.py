"""Ridge regressions both ways, scored by cosines."""

from dataclasses import replace

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration.ridge_map import _FREE, _Ridge, learn_ridge


def few_pairs(n=30, d_x=20, d_y=12, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d_x))
    y = x[:, :d_y] + 0.5 * rng.normal(size=(n, d_y))
    return x - x.mean(axis=0), y - y.mean(axis=0)


def refitted(x, y, ridge, without, at):
    """Prediction at row ``at`` of a ridge regression without some rows, with a constant column."""
    length = np.mean(np.sum(x**2, axis=1))
    x = np.column_stack([x, np.full(len(x), _FREE * length**0.5)])
    kept = np.setdiff1d(np.arange(len(x)), without)
    A = x[kept].T @ x[kept] + ridge * np.eye(x.shape[1])
    return x[at] @ np.linalg.solve(A, x[kept].T @ y[kept])


def test_predictions_without_pairs_are_those_of_fits_without_them():
    x, y = few_pairs()
    fit = _Ridge.best(x, y)
    length = np.mean(np.sum(x**2, axis=1))
    with_constant = np.column_stack([x, np.full(len(x), _FREE * length**0.5)])
    eigenvalues = np.linalg.eigvalsh(with_constant.T @ with_constant)
    ridge = float(1 / fit.shrunk[-1] - eigenvalues[-1])
    alone = fit.without_own_pair()
    both = fit.without_both(np.array([3, 4]), np.array([8, 2]))
    for i in (0, 7):
        assert alone[i] == pytest.approx(refitted(x, y, ridge, [i], i), abs=1e-6)
    assert both[0] == pytest.approx(refitted(x, y, ridge, [3, 8], 3), abs=1e-6)
    assert both[1] == pytest.approx(refitted(x, y, ridge, [4, 2], 4), abs=1e-6)
    coefficients, offset = fit.coefficients()
    assert (x @ coefficients + offset)[5] == pytest.approx(refitted(x, y, ridge, [], 5), abs=1e-6)


def test_the_strength_agrees_better_than_its_neighbours():
    x, y = few_pairs(seed=1)
    best = _Ridge.best(x, y)
    ridge = 1 / best.shrunk.max()  # the smallest eigenvalue is about 0
    for factor in (10**0.5, 10**-0.5):
        other = replace(best, shrunk=1 / (1 / best.shrunk + (factor - 1) * ridge))
        assert agreement(best, y) >= agreement(other, y) - 1e-3


def agreement(fit, y):
    """Mean cosine of what is predicted without a pair and its y."""
    predicted = fit.without_own_pair()
    return np.mean(np.sum(predicted * y, axis=1) / np.linalg.norm(predicted, axis=1) / np.linalg.norm(y, axis=1))


def test_all_pairings_hold_the_pairs():
    x, y = few_pairs(seed=2)
    learned = learn_ridge(x, y, np.random.RandomState(0), np.stack([np.arange(30)] * 2))
    assert np.diag(learned.scores_of_all_pairings(x, y)) == pytest.approx(learned.scores(x, y))
    assert learned.significance.berk_jones > 20
    assert learn_ridge(x[:2], y[:2], np.random.RandomState(0), np.stack([np.arange(2)] * 2)) is None


def test_few_rows_and_many_columns_are_matched():
    """A few weak directions in common, far more columns than rows: no map can be learned, but directions agree."""
    found, share = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n, latent = 80, rng.normal(size=(80, 8))
        X = latent @ rng.normal(size=(8, 400)) + 3 * rng.normal(size=(n, 400))
        Y = latent @ rng.normal(size=(8, 40)) + 1 * rng.normal(size=(n, 40))
        partner = np.arange(n)
        wrong = rng.permutation(n)[:16]
        partner[wrong] = np.roll(wrong, 1)
        real = partner == np.arange(n)
        matcher = CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, Y[partner])
        found.append((matcher.inlier_mask_ & real).sum() / real.sum())
        share.append(matcher.inlier_fraction_)
        assert (matcher.inlier_mask_ & ~real).sum() <= 0.15 * matcher.inlier_mask_.sum()
    assert np.mean(found) > 0.5
    assert np.mean(share) == pytest.approx(0.8, abs=0.15)
