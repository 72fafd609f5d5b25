"""Ridge regressions both ways, scored by cosines."""

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration.models.ridge_map import _FIRST, _FREE, _STRENGTHS, SharedRidge, _best, _Spectrum, learn_ridge


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


@pytest.mark.parametrize("out", [[], [1, 9, 20]], ids=["of all pairs", "of all but three"])
def test_predictions_without_pairs_are_those_of_fits_without_them(out):
    x, y = few_pairs()
    spectrum, kept = _Spectrum.of(x, y), np.setdiff1d(np.arange(30), out)
    fit = spectrum.fit_without(np.array(out, dtype=int), kept, 4) if out else spectrum.fit(4)
    ridge = _STRENGTHS[4] * np.mean(np.sum(x**2, axis=1))
    alone = fit.without_own_pair()
    i, j = np.array([3, 4]), np.array([8, 2])
    both = fit.without_both(i, j)
    for place in (0, 7):
        expected = refitted(x, y, ridge, [*out, kept[place]], kept[place])
        assert alone[place] == pytest.approx(expected, abs=1e-6)
    for k in (0, 1):
        assert both[k] == pytest.approx(refitted(x, y, ridge, [*out, kept[i[k]], kept[j[k]]], kept[i[k]]), abs=1e-6)
    coefficients, offset = fit.coefficients()
    for place in (5, 9):  # of a pair that was learned from, and of one that was not
        assert (x @ coefficients + offset)[place] == pytest.approx(refitted(x, y, ridge, out, place), abs=1e-6)


def test_the_strength_agrees_better_than_its_neighbours():
    x, y = few_pairs(seed=1)
    spectrum = _Spectrum.of(x, y)
    agreements = [agreement(spectrum.fit(k), y) for k in range(_STRENGTHS.size)]
    assert agreement(_best(spectrum.fit)[1], y) >= max(agreements[_FIRST - 1 : _FIRST + 2])


def agreement(fit, y):
    """Mean cosine of what is predicted without a pair and its y."""
    predicted = fit.without_own_pair()
    return np.mean(np.sum(predicted * y, axis=1) / np.linalg.norm(predicted, axis=1) / np.linalg.norm(y, axis=1))


def test_ridges_that_share_a_spectrum_are_those_learned_alone():
    x, y = few_pairs(seed=3)
    kept = np.setdiff1d(np.arange(30), [2, 11, 12])
    points = np.stack([np.arange(27)] * 2)
    shared = SharedRidge(x, y).learn(kept, np.random.RandomState(0), points)
    alone = learn_ridge(x[kept], y[kept], np.random.RandomState(0), points)
    # the strength is in units of the rows' mean square, here of all rows, there of those that are kept
    np.testing.assert_allclose(shared.scores(x, y), alone.scores(x, y), atol=0.02)
    assert shared.significance.berk_jones == pytest.approx(alone.significance.berk_jones, rel=0.1)


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
