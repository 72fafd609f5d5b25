from __future__ import annotations

import math

import numpy as np
import pytest

from inlier.consensus import near_misses
from inlier.consensus.near_misses import find_near_misses, fit_mixture, histogram

BOUND = 0.04


def lengths(vectors):
    return np.linalg.norm(vectors, axis=1)


def residuals_of(rng, core, near, background, d=3, noise=None):
    """Lengths of Gaussian errors of 0.01, of displacements six times as wide with long tails, and of chance."""
    noise = rng.normal(size=(core, d)) if noise is None else noise
    cauchy = rng.normal(size=(near, d)) / np.abs(rng.normal(size=(near, 1)))
    return np.concatenate([lengths(0.01 * noise), lengths(0.06 * cauchy), lengths(rng.uniform(-1, 1, (background, d)))])


def re_paired(rng, n=200_000, d=3):
    return lengths(rng.uniform(-1, 1, (n, d)))


def slow_mixture(residuals, null, end, d, rounds=300):
    """EM, one residual after the other, beside densities of the logarithm of r that are normalised by fine sums."""
    v, width, shares = near_misses._DEGREES_OF_FREEDOM, BOUND / 3, [1 / 3, 1 / 3, 1 / 3]
    grid = np.exp(np.linspace(math.log(end / 1024), math.log(end), 4000))
    step = math.log(grid[1] / grid[0])

    def core(r, s):
        return (r / s) ** d * (1 + (r / s) ** 2 / v) ** (-(v + d) / 2)

    def near(r, s):
        b = near_misses._WIDTH * s
        return (r / b) ** d * (1 + (r / b) ** 2) ** (-(1 + d) / 2)

    inside = null[null <= end]
    power = math.log(inside.size / np.count_nonzero(inside <= end / 2)) / math.log(2)
    for _ in range(rounds):
        totals = [step * core(grid, width).sum(), step * near(grid, width).sum()]
        weight, squares, sums = 0.0, 0.0, [0.0, 0.0, 0.0]
        for r in residuals[residuals <= end]:
            parts = [
                shares[0] * core(r, width) / totals[0],
                shares[1] * near(r, width) / totals[1],
                shares[2] * power * (r / end) ** power,  # re-pairings are uniform in a ball: a power of r
            ]
            parts = [part / sum(parts) for part in parts]
            sums = [total + part for total, part in zip(sums, parts, strict=True)]
            weight += parts[0]
            squares += parts[0] * r**2 * (v + d) / (v + (r / width) ** 2)
        shares, width = [total / sum(sums) for total in sums], math.sqrt(squares / (d * weight))
    return width, np.array(sums)


@pytest.mark.parametrize("d", [2, 3])
def test_the_histogram_gives_what_residuals_one_by_one_give(d, monkeypatch):
    monkeypatch.setattr(near_misses, "_SETTLED", 1e-6)
    rng = np.random.default_rng(d)
    residuals, null = residuals_of(rng, 300, 150, 400, d), re_paired(rng, d=d)
    found = histogram(residuals, null, BOUND, d)
    mixture = fit_mixture(found, BOUND)
    width, numbers = slow_mixture(residuals, null, found.ends[-1], d, rounds=100)
    assert mixture.width == pytest.approx(width, rel=0.02)
    np.testing.assert_allclose(mixture.numbers.sum(axis=1), numbers, rtol=0.03, atol=4)


def test_counts_are_those_of_a_plain_histogram():
    rng = np.random.default_rng(0)
    residuals, null = residuals_of(rng, 200, 100, 300), re_paired(rng, 20_000)
    found = histogram(residuals, null, BOUND, 3)
    edges = np.append(0.0, found.ends)
    below = np.nextafter(edges, -np.inf)  # a bin begins with its lower end
    np.testing.assert_array_equal(found.counts, np.diff(np.searchsorted(np.sort(residuals), below, side="right")))
    assert found.n_pairs == np.count_nonzero(residuals < found.ends[-1])
    assert found.background.sum() == pytest.approx(1)
    np.testing.assert_allclose(found.ends[8:] / found.ends[:-8], 2)  # eight bins an octave


@pytest.mark.parametrize("d", [2, 3])
def test_near_misses_are_found_where_they_are(d):
    rng = np.random.default_rng(10 + d)
    residuals = residuals_of(rng, 1000, 500, 2000, d)
    found = find_near_misses(residuals, re_paired(rng, d=d), BOUND, d)
    assert 0.02 < found.bound < 0.06
    core, near, _ = found.expected_within(found.bound)
    assert core == pytest.approx(np.count_nonzero(residuals[:1000] <= found.bound), rel=0.1)
    assert near < 0.1 * core
    mask = found.among(residuals, found.bound)
    assert not mask[residuals <= found.bound].any()
    assert mask[1000:1500].mean() > 0.5
    assert mask[:1000].mean() < 0.05


@pytest.mark.parametrize("n_near", [500, 700])
def test_the_core_ends_where_it_is_three_times_as_likely_as_the_others(n_near):
    rng = np.random.default_rng(1)
    found = find_near_misses(residuals_of(rng, 1000, n_near, 2000), re_paired(rng), BOUND, 3)
    is_core = found.numbers[0] > 3 * found.numbers[1:].sum(axis=0)
    assert found.bound == pytest.approx(found.ends[is_core].max(), rel=1e-12)


def test_doubt_begins_at_the_bound_and_grows():
    rng = np.random.default_rng(1)
    residuals = np.sort(residuals_of(rng, 1000, 500, 2000))
    found = find_near_misses(residuals, re_paired(rng), BOUND, 3)
    doubt = found.doubt(residuals)
    assert (np.diff(doubt) >= 0).all()
    assert (doubt[residuals <= found.bound] == 0).all()
    assert (doubt[residuals > found.bound] >= 1 / 4).all()
    assert doubt[-1] == 1
    order = rng.permutation(residuals.size)
    np.testing.assert_array_equal(found.doubt(residuals[order]), doubt[order])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_core", [30, 300, 3000])
def test_noise_is_no_near_miss(n_core, seed):
    rng = np.random.default_rng([seed, n_core])
    null = re_paired(rng, 50_000)
    for noise in (rng.normal(size=(n_core, 3)), rng.standard_t(3, (n_core, 3)), rng.laplace(size=(n_core, 3))):
        for background in (0, n_core, 10 * n_core):
            residuals = residuals_of(rng, n_core, 0, background, noise=noise)
            assert find_near_misses(residuals, null, BOUND, 3) is None


def test_only_where_there_are_neighbouring_places():
    rng = np.random.default_rng(2)
    residuals, null = residuals_of(rng, 1000, 500, 2000), re_paired(rng)
    assert find_near_misses(residuals, null, BOUND, 4) is None
    assert find_near_misses(residuals, null, 0.0, 3) is None
    assert find_near_misses(np.zeros(100), null, BOUND, 3) is None
    assert find_near_misses(residuals, null, BOUND, 3) is not None


def test_units_do_not_matter():
    rng = np.random.default_rng(3)
    residuals, null = residuals_of(rng, 1000, 500, 2000), re_paired(rng)
    found, other = (find_near_misses(unit * residuals, unit * null, unit * BOUND, 3) for unit in (1.0, 2.0**20))
    assert other.bound == pytest.approx(2.0**20 * found.bound)
    np.testing.assert_array_equal(other.numbers, found.numbers)
