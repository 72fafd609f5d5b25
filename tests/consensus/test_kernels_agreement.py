from __future__ import annotations

import numpy as np
import pytest

from inlier.consensus._kernels_agreement import (
    TILE,
    WORD,
    agreement_bits,
    count_agreeing,
    gather_seed_sets,
    leading_eigenvectors,
)

SQUARED = np.array([0.04, 1.0])


@pytest.fixture(params=[(2, 2, 70), (3, 3, 600), (4, 2, 130)])
def points(request):
    d_x, d_y, m = request.param
    rng = np.random.default_rng(m)
    x, y = rng.normal(size=(d_x, m)), rng.normal(size=(d_y, m))
    y[: min(d_x, d_y), ::2] = x[: min(d_x, d_y), ::2]  # half of them agree
    return x, y


def distances(points, others):
    return np.linalg.norm(points[:, :, None] - others[:, None, :], axis=0)


def agreeing(x, sides, others, tolerance):
    """Whether distances differ by no more than the tolerance, and are not both shorter."""
    a, b = distances(x, x), distances(sides, others)
    return (np.abs(a - b) <= tolerance) & (a + b > tolerance)


def packed(A):
    """The rows of a matrix of bool, 64 bits to a word."""
    m, words = len(A), -(-len(A) // WORD)
    padded = np.zeros((m, words * WORD), dtype=bool)
    padded[:, :m] = A
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_bits_say_who_agrees(points, kind):
    x, y = (side.astype(kind) for side in points)
    m = x.shape[1]
    bits = np.zeros((2, m, -(-m // WORD)), dtype=np.uint64)
    for start, stop in ((0, 30), (30, m)):
        agreement_bits(x, y, SQUARED.astype(kind), start, stop, np.empty((2, TILE), kind), bits)
    for t, square in enumerate(SQUARED):
        expected = packed(agreeing(*(side.astype(np.float64) for side in (x, y, y)), np.sqrt(square)))
        if kind is np.float64:
            np.testing.assert_array_equal(bits[t], expected)
        else:  # rounding decides where distances differ by just the tolerance
            different = np.bitwise_count(bits[t] ^ expected).sum()
            assert different <= 1e-4 * m * m


def test_those_who_agree_are_counted(points):
    x, y = points
    m = x.shape[1]
    sides, counts = np.stack([y, np.roll(y, 5, axis=1)]), np.full((2, m, 2), 3.0)
    count_agreeing(x, sides, SQUARED, 4, m - 3, np.empty((4, TILE)), counts)
    for side in range(2):
        for t, square in enumerate(SQUARED):
            expected = 3 + agreeing(x, y, sides[side], np.sqrt(square)).sum(axis=1)
            expected[:4] = expected[m - 3 :] = 3  # rows that were not asked for
            np.testing.assert_array_equal(counts[side, :, t], expected)


@pytest.mark.parametrize(("m", "share"), [(40, 0.1), (150, 0.4), (70, 0.0), (64, 1.0)])
def test_seeds_gather_those_with_most_neighbours_in_common(m, share):
    rng = np.random.default_rng(m)
    A = np.triu(rng.uniform(size=(m, m)) < share, 1)
    A |= A.T
    size, bits = 12, packed(A)
    members, density = np.empty((m, size), dtype=np.int64), np.empty(m)
    gather_seed_sets(bits, 0, m, np.zeros((3, m + 1), dtype=np.int64), np.empty_like(bits[0]), members, density)
    common = A.astype(int) @ A
    for i in range(m):
        neighbours = np.flatnonzero(A[i])
        ranked = neighbours[np.argsort(-common[i, neighbours], kind="stable")][: size - 1]
        assert members[i, 0] == i
        assert sorted(members[i, 1 : 1 + ranked.size]) == sorted(ranked)
        assert (members[i, 1 + ranked.size :] == -1).all()
        degrees = A[np.ix_(ranked, ranked)].sum(axis=1)
        assert density[i] == pytest.approx((degrees**2).sum() / max(degrees.sum(), 1))


def test_eigenvectors_are_those_of_power_iteration_among_the_members():
    rng = np.random.default_rng(0)
    A = np.triu(rng.uniform(size=(90, 90)) < 0.6, 1)
    A |= A.T
    members = np.stack([rng.permutation(90)[:8] for _ in range(5)])
    members[1, 5:] = -1
    members[2, 1:] = -1  # alone
    vectors = np.empty((5, 8))
    leading_eigenvectors(packed(A), members, 10, np.empty((10, 8)), vectors)
    for row, vector in zip(members, vectors, strict=True):
        inside = row[row >= 0]
        local = A[np.ix_(inside, inside)].astype(float)
        image = np.linalg.matrix_power(local, 10).sum(axis=1)
        length = np.linalg.norm(image)
        np.testing.assert_allclose(vector[: inside.size], image / length if length else 1.0)
        assert (vector[inside.size :] == 0).all()
