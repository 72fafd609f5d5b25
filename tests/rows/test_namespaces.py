from __future__ import annotations

import array_api_strict
import numpy as np
import pytest

from inlier.rows.namespaces import compute_dtype, ridge_solver, to_host
from tests.stores import STRICT_DEVICE


def here(table):
    return table


def in_torch(table):
    return pytest.importorskip("torch", reason="torch is the user's to bring, and is not here").from_numpy(table)


def on_strict_device(table):
    return array_api_strict.asarray(table, device=STRICT_DEVICE)


@pytest.mark.parametrize("put", [here, in_torch, on_strict_device])
def test_the_system_is_solved_for_each_right_side(put):
    rng = np.random.default_rng(0)
    rows, right = rng.standard_normal((12, 7)), rng.standard_normal((7, 3))
    solve = ridge_solver(put(rows.T @ rows), 0.5)
    for some in (right, right[:, :1]):
        expected = np.linalg.solve(rows.T @ rows + 0.5 * np.eye(7), some)
        np.testing.assert_allclose(to_host(solve(put(some))), expected, atol=1e-12)


@pytest.mark.parametrize("put", [here, in_torch, on_strict_device])
def test_what_lies_in_few_rows_keeps_its_digits_under_a_tiny_ridge(put):
    """With fewer rows than columns, x^T (X^T X + ridge I)^-1 x is 1 - ridge (K + ridge I)^-1_ii, K = X X^T."""
    rng = np.random.default_rng(0)
    rows, ridge = rng.standard_normal((5, 40)), 1e-7
    solved = to_host(ridge_solver(put(rows.T @ rows), ridge)(put(np.ascontiguousarray(rows.T))))
    leverage = np.einsum("ij,ji->i", rows, solved)
    beyond = ridge * np.diag(np.linalg.inv(rows @ rows.T + ridge * np.eye(5)))
    np.testing.assert_allclose(1 - leverage, beyond, rtol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("u1", "f4"), ("i2", "f4"), ("f2", "f4"), ("f4", "f4"), ("?", "f4"), ("i4", "f8"), ("i8", "f8"), ("f8", "f8")],
)
def test_precision_holds_every_value(dtype, expected):
    assert compute_dtype(np.dtype(dtype)) == np.dtype(expected)
