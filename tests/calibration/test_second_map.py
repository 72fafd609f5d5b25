"""Two maps: told apart, counted, and not seen where there is one."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from inlier import CalibratedMatcher
from inlier.calibration.second_map import find_second_map, is_worth_a_fit
from inlier.exceptions import DependenceWarning


def two_motions(seed, d=3, n=1200, second=0.3, noise=0.1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    first, other = (ortho_group.rvs(d, random_state=rng) for _ in range(2))
    follows = rng.uniform(size=n) < second
    return x, np.where(follows[:, None], x @ other, x @ first) + noise * rng.normal(size=(n, d)), follows


@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_two_maps_are_told_apart(seed):
    x, y, follows = two_motions(seed)
    found = find_second_map(x, y, np.random.RandomState(0))
    assert ((found.chance > 0.5) == follows).mean() > 0.95
    assert not found.is_curve


def heavy_tailed(rng, x):
    return x[:, ::-1] + 0.1 * rng.standard_t(1.5, size=x.shape)


def with_strays(rng, x):
    y = x[:, ::-1] + 0.1 * rng.normal(size=x.shape)
    y[:60] = rng.normal(size=(60, x.shape[1]))
    return y


def one_map(rng, x):
    return x[:, ::-1] + 0.3 * rng.normal(size=x.shape)


@pytest.mark.parametrize("make", [one_map, heavy_tailed, with_strays])
def test_one_map_is_not_taken_for_two(make):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(1000, 4))
        assert find_second_map(x, make(rng, x), np.random.RandomState(seed)) is None


def test_a_curve_is_taken_for_one():
    """Of one that bends, no second map is seen, or one that is known for a part of the curve."""
    seen = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(1500, 2))
        found = find_second_map(x, np.abs(x) + 0.02 * rng.normal(size=x.shape), np.random.RandomState(seed))
        seen += [] if found is None else [found.is_curve]
    assert seen  # else nothing was tried
    assert all(seen)


def test_few_pairs_and_many_columns_are_not_looked_at():
    x, y, _ = two_motions(0, n=60)
    assert find_second_map(x, y, np.random.RandomState(0)) is None
    wide = np.random.default_rng(0).normal(size=(2000, 25))
    assert find_second_map(wide, wide, np.random.RandomState(0)) is None


def test_the_rest_is_worth_a_fit_where_another_map_is_in_it():
    rng = np.random.default_rng(1)
    x, y, follows = two_motions(1, second=0.5)
    accepted, rest = (x[~follows], y[~follows]), (x[follows], y[follows])
    assert is_worth_a_fit(accepted, rest, np.random.RandomState(0))
    weak = rng.normal(size=(500, 3))
    of_the_first = weak @ np.linalg.lstsq(*accepted, rcond=None)[0] + rng.normal(size=weak.shape)
    wrong = [is_worth_a_fit(accepted, (weak, rng.normal(size=weak.shape)), np.random.RandomState(k)) for k in range(40)]
    assert np.mean(wrong) <= 0.2  # one in twenty
    passed = [is_worth_a_fit(accepted, (weak[k::5], of_the_first[k::5]), np.random.RandomState(k)) for k in range(5)]
    assert np.mean(passed) <= 0.4


@pytest.mark.filterwarnings("ignore::inlier.exceptions.DependenceWarning")
@pytest.mark.parametrize("seed", range(3))
def test_maps_are_counted_and_only_the_first_is_accepted(seed):
    x, y, follows = two_motions(seed, n=1500)
    matcher = CalibratedMatcher(random_state=0).fit(x, y)
    accepted = matcher.inlier_mask_
    assert matcher.n_maps_ == 2
    assert (accepted & follows).sum() <= 0.015 * accepted.sum()
    assert (accepted & ~follows).sum() >= 0.97 * (~follows).sum()
    assert ((matcher.map_labels_ == 1) & follows).sum() >= 0.9 * follows.sum()
    assert (matcher.map_labels_[accepted] == 0).all()
    low, high = matcher.inlier_fraction_interval_
    assert low <= (~follows).mean() <= high


def test_one_map_and_none():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 5))
    y = one_map(rng, x)
    y[:100] = rng.normal(size=(100, 5))
    matcher = CalibratedMatcher(random_state=0).fit(x, y)
    assert matcher.n_maps_ == 1
    assert ((matcher.map_labels_ == 0) == matcher.inlier_mask_).all()
    nothing = CalibratedMatcher(random_state=0).fit(x, rng.normal(size=(400, 5)))
    assert nothing.n_maps_ == 0
    assert (nothing.map_labels_ == -1).all()


def test_a_part_of_the_rows_with_a_map_of_its_own_is_warned_of():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(1500, 3))
    part = x[:, 0] > 0.5
    turn = ortho_group.rvs(3, random_state=rng)
    y = np.where(part[:, None], x @ turn, x) + 0.05 * rng.normal(size=x.shape)
    with pytest.warns(DependenceWarning) as said:
        matcher = CalibratedMatcher(random_state=0).fit(x, y)
    apart = not (matcher.inlier_mask_ & part).sum() > 0.015 * matcher.inlier_mask_.sum()
    assert apart or any("two linear maps" in str(one.message) or "second map" in str(one.message) for one in said)
