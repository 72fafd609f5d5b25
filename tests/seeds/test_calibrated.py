"""What `CalibratedMatcher` promises, on average over draws: a right answer fails about once in a million seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from inlier import CalibratedMatcher
from inlier.datasets import make_gaussian_pairs

pytestmark = pytest.mark.seeds

NEVER = 1e-6  # chance that one test fails though all is right
CLUSTERED = 2.0  # pairs of one fit are judged by one map: their mistakes vary that much more than independent ones


def fits(seed, draws, n, d, fraction, noise, alpha=0.05):
    """Fresh pairs for each draw: the fitted matchers with the truth."""
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw, n, d])
        data = make_gaussian_pairs(n, d, fraction, noise=noise, rng=rng)
        yield CalibratedMatcher(alpha=alpha, random_state=seed).fit(data.X, data.Y), data.inlier_mask


@pytest.mark.parametrize(
    ("n", "d", "fraction", "noise", "draws"),
    [(600, 3, 0.5, 0.3, 12), (1000, 6, 0.2, 0.4, 6), (500, 20, 0.3, 0.8, 6)],
    ids=["plane-like", "few-real", "noisy"],
)
def test_no_more_than_alpha_of_the_accepted_are_wrong(seed, note, promise, n, d, fraction, noise, draws):
    """In cases where real and wrong pairs overlap, so that the rate is really used up."""
    alpha, accepted, wrong, real = 0.05, 0, 0, 0
    for matcher, truth in fits(seed, draws, n, d, fraction, noise, alpha):
        accepted += matcher.inlier_mask_.sum()
        wrong += (matcher.inlier_mask_ & ~truth).sum()
        real += truth.sum()
    note(false_discoveries=wrong / max(accepted, 1), recall=(accepted - wrong) / real)
    promise("wrong among the accepted", wrong, accepted, alpha, CLUSTERED)
    assert wrong <= alpha * accepted + norm.isf(NEVER) * np.sqrt(CLUSTERED * alpha * accepted)
    assert accepted - wrong >= 0.3 * real  # accepting next to nothing would be easy


@pytest.mark.parametrize(("n", "d", "draws"), [(100, 3, 12), (60, 10, 6), (60, 40, 6)])
def test_where_no_pair_is_real_none_is_found(seed, note, promise, n, d, draws):
    alpha = 0.05
    found = sum(matcher.inlier_mask_.any() for matcher, _ in fits(seed, draws, n, d, 0.0, 0.0, alpha))
    note(fits_that_found_some=found / draws)
    promise("fits to nothing that found some", found, draws, alpha)
    assert found <= binom.isf(NEVER, draws, alpha)


@pytest.mark.parametrize(("n", "d", "fraction"), [(1000, 6, 0.4), (600, 20, 0.7)])
def test_the_share_of_real_pairs_is_at_least_its_bound_and_near_its_estimate(seed, note, promise, n, d, fraction):
    draws = list(fits(seed, 12, n, d, fraction, 0.2))
    above = np.array([matcher.inlier_fraction_at_least_ > truth.mean() for matcher, truth in draws])
    off = np.array([matcher.inlier_fraction_ - truth.mean() for matcher, truth in draws])
    slack = np.array([truth.mean() - matcher.inlier_fraction_at_least_ for matcher, truth in draws])
    note(mean_off=np.mean(off), mean_slack=np.mean(slack))
    promise("shares below their bound", int(above.sum()), len(draws), 0.05)
    assert above.sum() <= binom.isf(NEVER, len(draws), 0.05)
    assert abs(np.mean(off)) < 0.03
    assert np.mean(slack) < 0.15  # a bound of 0 would hold, too


def test_p_values_of_wrong_pairs_are_uniform(seed, note):
    p = np.concatenate([matcher.p_values_[~truth] for matcher, truth in fits(seed, 10, 1000, 6, 0.3, 0.2)])
    for level in (0.01, 0.1, 0.5, 0.9):
        share = (p <= level).mean()
        note(**{f"share_up_to_{level}": share})
        assert abs(share - level) < norm.isf(NEVER) * np.sqrt(CLUSTERED * level * (1 - level) / p.size)
