"""Bounds on how many pairs are wrong: they fail as rarely as they say, at all cuts together, whatever real pairs do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from inlier import CalibratedMatcher
from inlier.calibration.bounds import WrongAtMost
from inlier.datasets import make_gaussian_pairs

DRAWS = 200
CUTS = np.geomspace(1e-3, 1, 12)
NEVER = 1e-6  # chance that a test fails though the bound is right

REAL = {  # p-values of real pairs
    "clear": lambda rng, n: 1e-4 * rng.uniform(size=n),
    "weak": lambda rng, n: rng.beta(0.3, 3, size=n),
    "half like strangers": lambda rng, n: np.where(
        rng.random(n) < 0.5, rng.uniform(size=n), 1e-4 * rng.uniform(size=n)
    ),
    "crowded at 1": lambda rng, n: np.where(rng.random(n) < 0.5, 1 - 0.01 * rng.uniform(size=n), 1e-4),
}


def draw(rng, kind, n=400, n_real=240, unit=1):
    """P-values of pairs, the wrong ones first, of which so many in a row have the same; and which are wrong."""
    wrong = np.repeat(rng.uniform(size=(n - n_real) // unit), unit)
    real = REAL[kind](rng, n - wrong.size)
    return np.concatenate([wrong, real]), np.arange(n) < wrong.size


def most(rate, draws=DRAWS):
    """More draws fail than that less than once in a million times, if each does at this rate."""
    return binom.isf(NEVER, draws, rate)


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("n_real", [0, 40, 240, 400])
def test_the_number_of_wrong_pairs_is_bounded_whatever_real_ones_do(kind, n_real):
    rng, failed, bounds = np.random.default_rng(n_real), 0, []
    for _ in range(DRAWS):
        p, wrong = draw(rng, kind, n_real=n_real)
        bounds.append(WrongAtMost.of(p).of_all(0.05))
        failed += bounds[-1] < wrong.sum()
    assert failed <= most(0.05)
    if kind == "clear":  # the bound is not won by giving up: beside what chance adds it is tight
        assert np.mean(bounds) <= min(400, 400 - n_real + 5 * np.sqrt(400 - n_real) + 10)


@pytest.mark.parametrize(("kind", "confidence"), [*((kind, 0.95) for kind in REAL), ("clear", 0.8)])
def test_at_no_cut_are_more_wrong_than_bounded_in_more_draws_than_said(kind, confidence):
    rng, failed = np.random.default_rng(1), 0
    for _ in range(DRAWS):
        p, wrong = draw(rng, kind)
        bounds = WrongAtMost.of(p)
        failed += any(bounds.up_to(cut, confidence) < (p[wrong] <= cut).sum() for cut in CUTS)
    assert failed <= most(1 - confidence)


def test_a_bound_for_one_cut_alone_would_be_noticed():
    """What the test before is worth: the binomial quantile at each cut by itself fails far too often."""
    rng, failed = np.random.default_rng(1), 0
    for _ in range(DRAWS):
        p, wrong = draw(rng, "clear")
        failed += any(binom.isf(0.05, wrong.sum(), cut) < (p[wrong] <= cut).sum() for cut in CUTS)
    assert failed > most(0.05)


@pytest.mark.parametrize("unit", [5, 20])
def test_pairs_that_stand_or_fall_together_are_one_witness(unit):
    """Units of so many pairs have one p-value; ``alike`` says so, and without it the bound fails too often."""
    failed = {1.0: 0, float(unit): 0}
    rng = np.random.default_rng(2)
    for _ in range(DRAWS):
        p, wrong = draw(rng, "clear", unit=unit)
        for alike in failed:
            failed[alike] += WrongAtMost.of(p, alike=alike).of_all(0.05) < wrong.sum()
    assert failed[float(unit)] <= most(0.05)
    if unit == 20:
        assert failed[1.0] > most(0.05)


@pytest.mark.parametrize("kind", REAL)
def test_the_bound_is_at_most_what_is_found_and_never_falls_with_the_cut(kind):
    p, _ = draw(np.random.default_rng(3), kind)
    bounds = WrongAtMost.of(p)
    found = [(p <= cut).sum() for cut in CUTS]
    upper = [bounds.up_to(cut) for cut in CUTS]
    assert all(0 <= one <= n for one, n in zip(upper, found, strict=True))
    assert (np.diff(upper) >= 0).all()
    assert all(bounds.up_to(cut, 0.99) >= bounds.up_to(cut, 0.8) for cut in CUTS)


def test_where_real_pairs_are_clear_little_is_left_to_doubt():
    p, wrong = draw(np.random.default_rng(4), "clear", n=2000, n_real=1000)
    bounds = WrongAtMost.of(p)
    assert (p[wrong] <= 0.01).sum() <= bounds.up_to(0.01) <= 40  # 10 are expected
    assert bounds.up_to(1e-4) <= 10


@given(arrays(np.float64, st.integers(1, 40), elements=st.sampled_from(np.linspace(0.01, 1, 30))), st.data())
def test_counted_p_values_are_bounded_as_those_of_pairs(p, data):
    counts = data.draw(arrays(np.int64, p.size, elements=st.integers(1, 30)))
    counted, one_by_one = WrongAtMost.of(p, counts), WrongAtMost.of(np.repeat(p, counts))
    assert counted.n_pairs == one_by_one.n_pairs == counts.sum()
    assert counted.of_all() == pytest.approx(one_by_one.of_all())
    assert all(counted.up_to(cut) == one_by_one.up_to(cut) for cut in (0.01, 0.3, 1.0))


def test_of_deals_in_which_a_pair_could_not_be_scored_the_others_count():
    rng = np.random.default_rng(5)
    p, _ = draw(rng, "clear")
    deals = np.stack([p, p])
    deals[1, rng.permutation(p.size)[:200]] = np.nan
    assert WrongAtMost.of(p, of_deals=deals).of_all() == pytest.approx(WrongAtMost.of(p).of_all(), rel=0.15)
    assert WrongAtMost.of(p, of_deals=np.full(deals.shape, np.nan)).of_all() == p.size


@pytest.mark.seeds
def test_both_bounds_hold_in_tables(seed, promise):
    """Through the matcher, where p-values share their re-pairings and their maps."""
    of_share = of_cuts = 0
    draws, alphas = 20, (0.001, 0.01, 0.05, 0.2, 0.5)
    for k in range(draws):
        data = make_gaussian_pairs(300, 5, 0.6, noise=0.4, rng=np.random.default_rng([seed, k]))
        found = CalibratedMatcher(random_state=k).fit(data.X, data.Y)
        of_share += found.inlier_fraction_at_least_ > data.inlier_mask.mean()
        wrong = [((found.q_values_ <= alpha) & ~data.inlier_mask).sum() for alpha in alphas]
        bounds = [found.wrong_at_most(alpha) for alpha in alphas]
        of_cuts += any(n > bound for n, bound in zip(wrong, bounds, strict=True))
        assert (np.diff(bounds) >= 0).all()
        assert found.wrong_at_most() == bounds[1]  # at the alpha of the matcher
    promise("shares below their bound", of_share, draws, 0.05)
    promise("cuts with more wrong pairs than bounded", of_cuts, draws, 0.05)
    assert of_share <= most(0.05, draws)
    assert of_cuts <= most(0.05, draws)


def noisy_rows(rng, n=300):
    """A fifth of the rows has five times the noise; a fifth of the pairs is wrong."""
    X = rng.normal(size=(n, 6))
    Y = X @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    Y += rng.normal(size=Y.shape) * np.where(rng.random(n) < 0.2, 1.5, 0.3)[:, None]
    wrong, partner = rng.permutation(n)[: n // 5], np.arange(n)
    partner[wrong] = np.roll(wrong, 1)
    return X, Y[partner], partner == np.arange(n)


@pytest.mark.seeds
@pytest.mark.filterwarnings("ignore::inlier.exceptions.DependenceWarning")  # now and then, by chance
def test_real_pairs_that_look_like_strangers_do_not_break_the_bound_of_the_share(seed, promise):
    shares, draws = [], 20
    for k in range(draws):
        X, Y, real = noisy_rows(np.random.default_rng([seed, k]))
        found = CalibratedMatcher(alpha=0.05, random_state=k).fit(X, Y)
        assert found.inlier_fraction_at_least_ <= found.inlier_fraction_
        shares.append(found.inlier_fraction_at_least_ - real.mean())
    above = np.sum(np.array(shares) > 0)
    promise("shares below their bound", above, draws, 0.05)
    assert np.median(shares) > -0.4
    assert above <= most(0.05, draws)


def test_nothing_is_bounded_where_nothing_is_accepted():
    data = make_gaussian_pairs(100, 5, 0.0, rng=0)
    found = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert found.wrong_at_most() == 0
    assert found.inlier_fraction_at_least_ <= 0.05
    with pytest.raises(ValueError, match="confidence"):
        found.wrong_at_most(confidence=1.5)
