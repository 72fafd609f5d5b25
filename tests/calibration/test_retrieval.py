from __future__ import annotations

import numpy as np
import pytest

from inlier.calibration import retrieval
from inlier.calibration.retrieval import Alignment, Side, best_partners, crowding, mutual_neighbours, unit_rows


@pytest.fixture(params=[2**24, 60])
def _blocks_of(request, monkeypatch):
    """All rows at once, and a few at a time."""
    monkeypatch.setattr(retrieval, "_BLOCK", request.param)


def rows_of(n, d, seed):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, d))).astype(np.float32)


def csls(x, y, k=10):
    """The definition, all rows with all rows."""
    cosines = x.astype(np.float64) @ y.T.astype(np.float64)
    around_x = np.array([np.sort(row)[-min(k, len(y)) :].mean() for row in cosines])
    around_y = np.array([np.sort(row)[-min(k, len(x)) :].mean() for row in cosines.T])
    return 2 * cosines - around_x[:, None] - around_y


@pytest.mark.usefixtures("_blocks_of")
@pytest.mark.parametrize(("n", "m"), [(30, 40), (5, 40), (40, 5)])
def test_best_partners_are_those_of_the_definition(n, m):
    x, y = rows_of(n, 6, 0), rows_of(m, 6, 1)
    scores = csls(x, y)
    rows, found = best_partners(x, y, crowding(y, x), k=3)
    order = np.argsort(-scores, axis=1)[:, :3]
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_allclose(found, np.take_along_axis(scores, order, axis=1), atol=1e-5)


@pytest.mark.usefixtures("_blocks_of")
def test_mutual_neighbours_are_those_of_the_definition():
    x, y = rows_of(50, 5, 2), rows_of(45, 5, 3)
    scores = csls(x, y)
    best, back = scores.argmax(axis=1), scores.argmax(axis=0)
    expected = [(i, j) for i, j in enumerate(best) if back[j] == i]
    assert list(zip(*map(np.ndarray.tolist, mutual_neighbours(x, y)), strict=True)) == expected


@pytest.mark.usefixtures("_blocks_of")
def test_a_partner_that_is_left_out_is_not_found():
    x = rows_of(20, 5, 4)
    own = np.concatenate([np.arange(20), np.arange(20)])
    rows, _ = best_partners(x, x, crowding(x, x))
    np.testing.assert_array_equal(rows[:, 0], np.arange(20))
    rows, scores = best_partners(x, x, crowding(x, x), leave_out=own)
    assert (rows[:, 0] != np.arange(20)).all()
    reference = csls(x, x)
    np.fill_diagonal(reference, -np.inf)
    np.testing.assert_array_equal(rows[:, 0], reference.argmax(axis=1))
    np.testing.assert_allclose(scores[:, 0], reference.max(axis=1), atol=1e-5)


def test_a_rotation_is_undone_whatever_the_units():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 8))
    Y = X @ np.linalg.qr(rng.normal(size=(8, 8)))[0] * 30 + 7
    sides = Side.of(X * 10.0 ** np.arange(-4, 4)), Side.of(Y)
    a, b = sides[0](X * 10.0 ** np.arange(-4, 4)), sides[1](Y)
    alignment = Alignment.of(sides, a[:100], b[:100], np.ones(100))
    x, y = alignment.x(a), alignment.y(b)
    rows, _ = best_partners(x[100:], y, crowding(y, x))
    assert (rows[:, 0] == np.arange(100, 200)).mean() > 0.95


def test_rows_of_zeros_stay():
    assert (unit_rows(np.zeros((2, 3))) == 0).all()
