"""Clumps beside plain loops over all pairs of pairs: how far mistakes reach, what coincides, blocks, nearest points."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.consensus import clumps
from inlier.consensus.clumps import (
    cell_side,
    cells,
    clump_length,
    error_length,
    looks_clumped,
)

SHELLS = [2.0 ** (k / 2) for k in range(-16, 3)]  # of the spread


def counted(x, y, ends):
    """Pairs of pairs within each of these distances on both sides, without those that have a point in common."""
    of_x, of_y = (np.linalg.norm(side[:, None] - side, axis=2)[np.triu_indices(len(side), 1)] for side in (x, y))
    counts = (of_x > 0) & (of_y > 0)
    return np.array([np.count_nonzero(counts & (of_x <= end) & (of_y <= end)) for end in ends])


def seen_and_expected(x, y, ends, n_orders, rng):
    orders = [rng.permutation(len(y)) for _ in range(n_orders)]
    expected = sum(counted(x, y[order], ends) for order in orders) / n_orders
    return counted(x, y, ends), expected


def spread_of(x, y):
    return min(np.sqrt(((side - side.mean(axis=0)) ** 2).sum() / len(side)) for side in (x, y))


def slow_length(X, Y, rng):
    some = rng.permutation(len(X))
    x, y = X[some], Y[some]
    ends = [spread_of(x, y) * shell for shell in SHELLS]
    seen, expected = seen_and_expected(x, y, ends, 2, rng)
    length, before = 0.0, (0.0, 0.0)  # what the shells up to the last that told hold
    for k, (end, n_seen, n_expected) in enumerate(zip(ends, seen, expected, strict=True)):
        more, by_chance = n_seen - before[0], n_expected - before[1]
        if more < 20 and by_chance < 10:
            continue
        before = n_seen, n_expected
        octave = min(k + 2, len(ends) - 1)
        beyond = (seen[octave] - n_seen) / max(expected[octave] - n_expected, 1.0)
        if not (more > 1.5 * by_chance and more > by_chance + 4 * np.sqrt(by_chance + 1)):
            if length > 0:
                return length
        elif length == 0 or more > 1.35 * beyond * by_chance:
            length = end
    return length


def partly_clumped(seed):
    """Spots of some width among independent mistakes: some hardly to be seen, with points that are used twice."""
    rng = np.random.default_rng(seed)
    n, n_spots = 200, int(rng.integers(4, 20))
    spot, width = rng.integers(n_spots, size=n), rng.choice([0.02, 0.05, 0.1, 0.2])
    X, Y = (rng.random((n_spots, 2))[spot] + width * rng.normal(size=(n, 2)) for _ in range(2))
    alone = rng.random(n) < rng.choice([0.0, 0.3, 0.6])
    X[alone], Y[alone] = rng.random((2, np.count_nonzero(alone), 2))
    X[:10] = X[10:20]
    return X, Y * rng.choice([0.3, 1.0, 4.0])


@pytest.mark.parametrize("seed", range(14))
def test_the_length_is_that_of_all_pairs_of_pairs_counted_one_by_one(seed):
    X, Y = partly_clumped(seed)
    found = clump_length(X, Y, np.random.default_rng(seed))
    assert found == pytest.approx(slow_length(X, Y, np.random.default_rng(seed)))


def test_lengths_of_all_kinds_were_among_these():
    lengths = [clump_length(*partly_clumped(seed), np.random.default_rng(seed)) for seed in range(14)]
    assert 1 <= lengths.count(0.0) <= 8
    assert len(set(lengths)) > 4


@pytest.mark.parametrize(
    ("seen", "expected", "shell"),
    [
        ([19], [0], None),  # too few to tell
        ([20], [0], 0),
        ([19, 1], [0, 0], 1),  # those of the next are added
        ([14, 0, 15], [9.5, 0.5, 0], None),  # ten expected tell, too: that there are none
        ([300, 100, 20], [100, 100, 0], 0),  # what comes after an end is another matter
        ([151], [100], 0),
        ([150], [100], None),  # not more than one and a half times as many
        ([37], [17.4], 0),  # 4 sqrt(18.4) = 17.16
        ([34], [17.4], None),
        ([25], [0.1, 0], 0),
        ([0, 0, 40], [0, 0, 10], 2),
        ([300, 90, 300], [100, 60, 300], 0),
        ([300, 160, 300], [100, 100, 300], 1),
        ([900, 280, 190, 160, 140, 120], [100] * 6, 1),  # what falls no more is no clump
        ([900, 880, 860, 100], [100] * 4, 2),  # but a clump may be as dense throughout
        ([900, 271, 200, 200, 150, 150], [100] * 6, 1),
        ([900, 270, 200, 200, 150, 150], [100] * 6, 0),  # not more than 1.35 times as many as in the next two
    ],
)
def test_shells_are_pooled_until_they_tell(monkeypatch, seen, expected, shell):
    def counts(x, y, ends, n_orders, rng):
        assert n_orders == 2
        parts = (np.append(part, np.zeros(len(ends) - len(part))) for part in (seen, expected))
        return tuple(np.cumsum(part) for part in parts)

    monkeypatch.setattr(clumps, "_joint_within", counts)
    X = np.random.default_rng(0).normal(size=(50, 2))
    expected_length = 0.0 if shell is None else spread_of(X, X) * SHELLS[shell]
    assert clump_length(X, X, np.random.default_rng(0)) == pytest.approx(expected_length)


@pytest.mark.parametrize("seed", range(14))
def test_a_glance_compares_the_same_numbers(seed):
    X, Y = partly_clumped(seed)
    rng = np.random.default_rng(seed)
    ends = [spread_of(X, Y) * shell for shell in SHELLS if shell <= 0.36]
    seen, expected = seen_and_expected(X, Y, ends, 2, rng)
    excess = max(s - 1.25 * e - 4 * np.sqrt(e + 1) for s, e in zip(seen, expected, strict=True))
    assert looks_clumped(X, Y, np.random.default_rng(seed)) == (excess > 0)


def test_a_glance_is_at_the_first_250_pairs():
    rng = np.random.default_rng(0)
    X, Y = (np.repeat(rng.random((10, 2)), 40, axis=0) + 0.01 * rng.normal(size=(400, 2)) for _ in range(2))
    X[:250], Y[:250] = rng.random((2, 250, 2))
    assert not looks_clumped(X, Y, np.random.default_rng(1))
    assert looks_clumped(X[::-1], Y[::-1], np.random.default_rng(1))


def test_a_cell_is_five_lengths_wide():
    rng = np.random.default_rng(0)
    points = rng.random((200, 2))
    errors = np.stack([np.sin(3 * points[:, 0]), np.cos(3 * points[:, 1])], axis=1)
    assert error_length(points, errors) > 0
    assert cell_side(points, errors) == 5 * error_length(points, errors)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_cells_are_those_of_a_turned_grid(d):
    points = np.random.default_rng(0).normal(size=(100, d))
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    shift = rng.random(d)
    corners = [tuple(np.floor(point @ turn / 0.7 + shift)) for point in points]
    expected = [sorted(set(corners)).index(corner) for corner in corners]
    np.testing.assert_array_equal(cells(points, 0.7, np.random.default_rng(1)), expected)


def test_up_to_700_points_are_compared_each_with_each():
    rng = np.random.default_rng(0)
    points = rng.random((701, 2))
    errors = rng.normal(size=(701, 2))
    errors[1::2] = np.sin(3 * points[1::2])  # only those in between err alike
    assert error_length(points, errors) == 0 < error_length(points[:700], errors[:700])
