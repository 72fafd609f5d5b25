from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import comb, rel_entr
from scipy.stats import binom, hypergeom, special_ortho_group

from inlier import Registration
from inlier.consensus import evidence
from inlier.consensus.evidence import (
    Chance,
    count_places,
    find_near_misses,
    fit_mixture,
    histogram,
    log_likelihood_ratio,
    most_within,
    shares_within,
)
from inlier.consensus.pairs import ColumnPairs, ResidualCounts
from inlier.transforms.least_squares import MapModel, Maps

IDENTITY = Maps(np.eye(3)[None], np.zeros((1, 3)))
BOUND = 0.04


def chance_of(pairs: ColumnPairs) -> Chance:
    return Chance(MapModel("rigid", len(pairs.x)), lambda: np.linspace(0, 1, 1000), pairs, 20_000)


def clouds(n=1500, seed=0):
    """Two surfaces that look alike, as columns: real scans are no uniform clouds."""
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=(3, n)) for _ in range(2))
    return (points / np.linalg.norm(points, axis=0) * [[1.0], [0.6], [0.3]] for points in (x, y))


def share_of_re_pairings(x, y, bound):
    """Of all x_i and y_j, i != j: the slow, obvious count."""
    near = cdist(x.T, y.T) <= bound
    return (near.sum() - np.trace(near)) / (near.size - len(near))


@pytest.mark.parametrize("bound", [0.05, 0.15])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_no_map_brings_more_together_by_chance_than_the_bound_says(bound, scale):
    x, y = clouds()
    most = chance_of(ColumnPairs(x, y, np.ones(x.shape[1]))).most_by_chance(bound, scale)
    rng = np.random.default_rng(1)
    for draw in range(20):
        rotation, shift = special_ortho_group.rvs(3, random_state=rng), 0.4 * rng.normal(size=(3, 1)) * (draw % 4)
        assert share_of_re_pairings(scale * rotation @ x + shift, y, bound) <= 1.2 * most


def test_the_bound_is_reached_where_the_two_sides_lie_alike():
    x, y = clouds()
    most = chance_of(ColumnPairs(x, y, np.ones(x.shape[1]))).most_by_chance(0.1, 1.0)
    assert share_of_re_pairings(x, y, 0.1) == pytest.approx(most, rel=0.15)


def test_a_map_to_a_point_may_bring_all_together():
    x, y = clouds()
    chance = chance_of(ColumnPairs(x, y, np.ones(x.shape[1])))
    of_y_alone = share_of_re_pairings(y, y, 0.2)
    assert chance.most_by_chance(0.2, 0.0) == pytest.approx(np.sqrt(of_y_alone), rel=0.15)


@pytest.mark.parametrize("stretch", [0.5, 1.0, 0.0])
@pytest.mark.parametrize("bound", [0.0, 1e-9, 0.03, 0.1, 1e9])
def test_the_bound_is_read_off_between_the_distances_that_were_counted(bound, stretch):
    x, y = clouds()
    chance = chance_of(ColumnPairs(x, y, np.ones(x.shape[1])))
    tiny = np.finfo(float).tiny
    log_bound, log_stretch = np.log(max(bound, tiny)), np.log(max(stretch, tiny))
    expected = np.interp(log_bound - log_stretch, *chance._sides[0]) + np.interp(log_bound, *chance._sides[1])
    assert chance.most_by_chance(bound, stretch) == pytest.approx(np.exp(expected / 2), rel=1e-12)


def test_sides_of_different_dimension_have_no_bound():
    x, y = np.random.default_rng(0).random((2, 300)), np.random.default_rng(1).random((3, 300))
    chance = chance_of(ColumnPairs(x, y, np.ones(300)))
    assert [chance.most_by_chance(bound, 0.0) for bound in (0.0, 0.1, 1e9)] == [0.0, 0.0, 0.0]


def test_shares_below_the_smallest_count_follow_the_rise_above_it():
    bounds = np.geomspace(0.01, 1.0, 60)
    counts = np.floor(10_000 * bounds**2).astype(int)  # a surface: shares grow with the square
    shares = shares_within(bounds, counts, 10_000, 3)
    np.testing.assert_allclose(shares[10:], bounds[10:] ** 2, rtol=0.15)
    assert shares[0] == pytest.approx(1e-4, rel=0.3)
    assert (shares >= 1 / 10_001).all()


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_places_are_cubes_with_points_in_them(d):
    points = np.random.default_rng(d).random((d, 300))
    lowest = points.min(axis=1)
    cubes = {tuple(np.floor((point - lowest) / 0.3)) for point in points.T}
    assert count_places(points, 0.3) == len(cubes)
    assert count_places(points[:, :0], 0.3) == 0
    assert count_places(points, 10.0) == 1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_many_pairs_in_one_spot_do_not_outweigh_fewer_all_over(seed):
    """80 wrong matches join one spot to another (a pattern that repeats); 60 right ones lie all over."""
    rng = np.random.default_rng(seed)
    n, n_spot, n_real = 2000, 80, 60
    x, y = rng.uniform(-1, 1, size=(2, n, 3))
    rotation, shift = special_ortho_group.rvs(3, random_state=rng), np.array([0.3, -0.2, 0.1])
    y[:n_real] = x[:n_real] @ rotation.T + shift
    spot = slice(n_real, n_real + n_spot)
    x[spot] = [0.8, 0.8, 0.8] + 0.05 * rng.uniform(-1, 1, size=(n_spot, 3))
    turned = special_ortho_group.rvs(3, random_state=rng)
    y[spot] = (x[spot] - 0.8) @ turned.T + [-0.8, 0.9, -0.7]
    y += 0.01 * rng.normal(size=y.shape)
    fits = [Registration(random_state=draw).fit(x, y) for draw in range(4)]  # about one in a hundred prefers the spot
    right = [np.allclose(found.transformation_.rotation, rotation, atol=0.02) for found in fits]
    assert sum(right) >= 3
    assert fits[np.argmax(right)].inlier_mask_[:n_real].mean() > 0.9


@pytest.mark.parametrize(("d", "side"), [(2, 0.5), (3, 0.3), (40, 1e-9), (40, 3.0), (200, 2.0)])
def test_places_are_cubes_in_any_dimension(d, side):
    points = np.random.default_rng(0).normal(size=(d, 300))
    cubes = np.floor((points - points.min(axis=1, keepdims=True)) / side)
    assert count_places(points, side) == len(np.unique(cubes, axis=1).T)


def column_pairs(n=500, n_real=100, noise=0.01, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.random((2, 3, n))
    y[:, :n_real] = x[:, :n_real] + noise * rng.normal(size=(3, n_real))
    order = rng.permutation(n)
    return ColumnPairs(x[:, order], y[:, order], np.ones(n))


def test_counts_are_those_of_all_residuals():
    pairs = column_pairs(300)
    maps = Maps(np.diag([1.0, 2.0, 0.5])[None], np.array([[0.1, 0.0, -0.2]]))
    counts = pairs.count_residuals(maps, re_pairings=900)
    moved = maps.linear[0] @ pairs.x + maps.shift[0][:, None]
    own = np.linalg.norm(pairs.y - moved, axis=0)
    others = np.concatenate([np.linalg.norm(np.roll(pairs.y, -step, axis=1) - moved, axis=0) for step in (1, 2, 3)])
    np.testing.assert_allclose(np.sqrt(pairs.squared_residuals(maps)), own)
    for residuals, counted in ((own, counts.pairs), (others, counts.re_pairings)):
        expected = [(residuals < bound).sum() for bound in counts.bounds]
        assert np.abs(counted - expected).max() <= 1  # a residual on an edge
    np.testing.assert_allclose(np.sort(pairs.re_paired_residuals(maps, 900)), np.sort(others))


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_a_shuffled_sample_stands_for_all_pairs_where_they_are_re_paired(d):
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(2, d, 900))
    sample = ColumnPairs(x[:, ::3].copy(), y[:, ::3].copy(), np.ones(300))
    maps = Maps(np.eye(d)[None], np.full((1, d), 0.2))
    counts = ColumnPairs(x, y, np.ones(900), shuffled=sample).count_residuals(maps, 600)
    own = np.linalg.norm(y - x - 0.2, axis=0)
    others = [np.linalg.norm(np.roll(sample.y, -step, axis=1) - sample.x - 0.2, axis=0) for step in (1, 2)]
    for residuals, counted in ((own, counts.pairs), (np.concatenate(others), counts.re_pairings)):
        expected = [(residuals < bound).sum() for bound in counts.bounds]
        assert np.abs(counted - expected).max() <= 1  # a residual on an edge
    assert (counts.n_pairs, counts.n_re_pairings) == (900, 600)


def test_equal_points_are_never_re_paired():
    pairs = column_pairs(50, n_real=10)
    pairs.y[:, :25] = pairs.y[:, [0]]
    pairs.x[:, 40:43] = pairs.x[:, [40]]
    pairs.x[0, 44], pairs.y[1, 45] = pairs.x[0, 43], pairs.y[1, 46]  # one coordinate in common is not the same point
    shared = ColumnPairs(pairs.x, pairs.y, pairs.weights)
    pairings = sum(
        (pairs.x[:, i] != pairs.x[:, j]).any() and (pairs.y[:, i] != pairs.y[:, j]).any()
        for i in range(50)
        for j in range(50)
    )
    assert pairings == 50 * 49 - 25 * 24 - 3 * 2
    assert shared.count_residuals(IDENTITY, 50 * 49).re_pairings[-1] == pairings
    assert shared.re_paired_residuals(IDENTITY, 50 * 49).size == pairings


def test_the_bound_is_where_real_pairs_end():
    pairs = column_pairs(noise=0.01)
    chance = Chance(MapModel("rigid", 3), lambda: np.linspace(0, 1, 1000), pairs, 20_000)
    evidence = chance.weigh(pairs.count_residuals(IDENTITY, 50_000), IDENTITY)
    assert 0.02 < evidence.bound < 0.05  # 2 to 5 sd of the noise
    assert 90 <= evidence.n_supporting <= 104
    assert evidence.inlier_fraction == pytest.approx(0.2, abs=0.02)
    assert evidence.log_false_alarms < -400


def test_false_alarms_are_maps_times_a_binomial_tail():
    model = MapModel("rigid", 3)
    counts = ResidualCounts(np.array([0.1]), np.array([12]), np.array([400]), 200, 100_000)
    evidence = Chance(model, lambda: np.linspace(0, 1, 999), column_pairs(), 20_000).weigh(counts, IDENTITY)
    p, q = 401 / 100_001, 200 / 1000
    expected = comb(200, 3) * q**3 * binom.sf(12 - 3 - 1, 200 - 3, p)
    assert np.exp(evidence.log_false_alarms) == pytest.approx(expected, rel=0.15)
    assert np.exp(evidence.log_false_alarms) > expected  # for p is an estimate


@pytest.mark.parametrize(
    ("n", "found", "m", "counted"),
    [(1000, 30, 20_000, 20), (10_000, 45, 200_000, 200), (100_000, 90, 20_000, 3), (1_000_000, 280, 20_000, 0)],
)
def test_a_rate_that_was_counted_in_a_sample_is_less_sure_than_one_that_is_known(n, found, m, counted):
    """Fisher's exact test, given how many there are in both samples together."""
    counts = ResidualCounts(np.array([0.1]), np.array([found + 3]), np.array([counted]), n + 3, m)
    chance = Chance(MapModel("rigid", 3), lambda: np.linspace(0, 1, 999), column_pairs(), 20_000)
    log_chance = chance.weigh(counts, IDENTITY).log_false_alarms - chance.log_number_of_maps(n + 3, 0.1)
    exact = hypergeom.logsf(found - 1, n + m, found + counted, n)
    known = binom.logsf(found - 1, n, (counted + 1) / (m + 1))
    assert log_chance == pytest.approx(exact, abs=3 + 0.05 * abs(exact))
    assert log_chance > known


@pytest.mark.parametrize("m", [20_000, 2_000_000])
def test_a_bound_that_everything_lies_within_proves_nothing(m):
    counts = ResidualCounts(np.array([9.0]), np.array([100_000]), np.array([m]), 100_000, m)
    chance = Chance(MapModel("rigid", 3), lambda: np.linspace(0, 1, 1000), column_pairs(), 20_000)
    assert chance.weigh(counts, IDENTITY).log_false_alarms >= 0


@pytest.mark.parametrize("supporting", [0, 1, 3])
def test_as_many_pairs_as_determine_a_map_prove_nothing(supporting):
    bounds = np.array([0.1, 0.2])
    counts = ResidualCounts(bounds, np.full(2, supporting), np.zeros(2, dtype=int), 50, 10_000)
    chance = Chance(MapModel("rigid", 3), lambda: np.linspace(0, 1, 1000), column_pairs(), 20_000)
    assert chance.weigh(counts, IDENTITY).log_false_alarms >= 0


def test_score_is_the_divergence_and_nothing_below_chance():
    share, p = 0.3, 0.1
    expected = 50 * (share * np.log(share / p) + (1 - share) * np.log((1 - share) / (1 - p)))
    assert log_likelihood_ratio(15, 50, p) == pytest.approx(expected)
    assert log_likelihood_ratio(5, 50, 0.2) == 0
    assert log_likelihood_ratio(50, 50, p) == pytest.approx(-50 * np.log(p))
    assert log_likelihood_ratio(-3, 50, p) == log_likelihood_ratio(0, 0, p) == 0


def slow_score(support, n, own, most, s):
    """With caution beside the most that chance can do, and a thousandth of that beside what it does: scipy's sums."""
    found = np.clip((support - s) / (n - s), 0, 1)
    beside = [np.clip(2 * chance, 1e-15, 1 - 1e-12) for chance in (np.maximum(own, most), own)]
    divergence = [np.where(found > p, rel_entr(found, p) + rel_entr(1 - found, 1 - p), 0) for p in beside]
    return (n - s) * (divergence[0] + 1e-3 * divergence[1])


@pytest.mark.parametrize("largest", [1.0, 0.01, 1e-9])
@pytest.mark.parametrize(("n_real", "factor"), [(100, 1.0), (500, 1.0), (20, 0.7), (0, 1.0)])
def test_the_scan_is_that_of_all_bounds_at_once(n_real, factor, largest):
    pairs, maps = column_pairs(n_real=n_real), Maps(factor * np.eye(3)[None], np.zeros((1, 3)))
    chance, counts = chance_of(pairs), pairs.count_residuals(maps, 20_000)
    evidence = chance.weigh(counts, maps, largest)
    own = shares_within(counts.bounds, counts.re_pairings, counts.n_re_pairings, 3)
    most = np.array([chance.most_by_chance(bound, factor) for bound in counts.bounds])
    score = slow_score(counts.pairs, 500, own, most, s=3)
    score[1:][own[1:] > largest] = 0
    best = np.argmax(score)
    assert (evidence.bound, evidence.n_supporting) == (counts.bounds[best], counts.pairs[best])
    assert evidence.by_chance == own[best]
    assert evidence.score == pytest.approx(score[best], rel=1e-9)


@pytest.mark.parametrize("by_chance", [1.0, 0.01, 1e-9])
@pytest.mark.parametrize("re_pairings", [500, 20_000])
@pytest.mark.parametrize("n_real", [0, 20, 200, 500])
def test_no_bound_that_chance_seldom_meets_has_more_pairs_than_the_quick_look_says(n_real, re_pairings, by_chance):
    pairs = column_pairs(n_real=n_real)
    counts = pairs.count_residuals(IDENTITY, re_pairings)
    own = shares_within(counts.bounds, counts.re_pairings, counts.n_re_pairings, 3)
    share = counts.pairs[own <= by_chance].max(initial=0) / 500
    assert share <= most_within(counts, by_chance)
    if by_chance * re_pairings > 100:  # where they were counted, it is that very share
        assert share == pytest.approx(most_within(counts, by_chance))


def test_a_table_of_scores_is_that_of_each_map_and_bound():
    chance = chance_of(column_pairs())
    rng = np.random.default_rng(0)
    factors = np.array([0.5, 1.0, 2.0, 0.0])
    maps = Maps(factors[:, None, None] * np.eye(3), np.zeros((4, 3)))
    bounds, own = rng.uniform(0, 0.5, size=(2, 5, 4))
    support = rng.integers(0, 500, size=(5, 4)).astype(float)
    table = chance.score(support, 500, own, bounds, maps.stretch)
    most = np.array([[chance.most_by_chance(*pair) for pair in zip(row, factors, strict=True)] for row in bounds])
    np.testing.assert_allclose(table, slow_score(support, 500, own, most, s=3), rtol=1e-9, atol=1e-9)
    assert 0 < np.count_nonzero(table) < table.size


def test_wrong_pairs_have_no_evidence_for_a_map_that_was_not_looked_for():
    pairs = column_pairs(n_real=0)
    chance = Chance(MapModel("rigid", 3), lambda: np.linspace(0, 1, 1000), pairs, 20_000)
    assert chance.weigh(pairs.count_residuals(IDENTITY, 50_000), IDENTITY).log_false_alarms > 0


def test_the_place_score_counts_places_and_not_pairs():
    pairs = column_pairs(noise=0.001)
    chance = Chance(MapModel("rigid", 3), lambda: np.linspace(0, 1, 1000), pairs, 20_000)
    assert chance.place_score(60, 500, IDENTITY, 0.02) > chance.place_score(20, 500, IDENTITY, 0.02) > 0
    assert chance.place_score(3, 500, IDENTITY, 0.02) == 0  # any three pairs have a map


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
    v, width, shares = evidence._DEGREES_OF_FREEDOM, BOUND / 3, [1 / 3, 1 / 3, 1 / 3]
    grid = np.exp(np.linspace(math.log(end / 1024), math.log(end), 4000))
    step = math.log(grid[1] / grid[0])

    def core(r, s):
        return (r / s) ** d * (1 + (r / s) ** 2 / v) ** (-(v + d) / 2)

    def near(r, s):
        b = evidence._WIDTH * s
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
    monkeypatch.setattr(evidence, "_SETTLED", 1e-6)
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
