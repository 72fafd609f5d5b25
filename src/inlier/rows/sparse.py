"""Sparse tables by their strongest directions: most of their numbers are zero, and all of them would not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds

from inlier._typing import FloatArray

MOST_DIRECTIONS = 50  # as analyses of single cells keep


def is_sparse(data: Any) -> bool:
    """Whether this is a sparse matrix, or array, of SciPy."""
    return hasattr(data, "tocsr") and hasattr(data, "nnz") and hasattr(data, "shape")


def strongest_directions(matrix: Any, n_directions: int = MOST_DIRECTIONS) -> tuple[FloatArray, str]:
    """Coordinates of the rows along the strongest directions of the centred columns, and what was done in words.

    Counts are made comparable first: each row is scaled to the median of their sums, then it is log(1 + x).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from inlier.rows.sparse import strongest_directions
    >>> counts = csr_array(np.random.default_rng(0).poisson(0.1, size=(200, 300)))
    >>> coordinates, said = strongest_directions(counts, 10)
    >>> coordinates.shape, said
    ((200, 10), 'logarithms of its counts, along their 10 strongest directions (truncated SVD)')
    """
    table = matrix.tocsr().astype(np.float64)
    are_counts = table.nnz > 0 and bool((table.data >= 0).all() and (table.data % 1 == 0).all())
    if are_counts:
        table = _logarithms(table)
    k = min(n_directions, min(table.shape) - 1)
    if k < 1:
        return np.asarray(table.toarray()), "its numbers"
    mean = np.asarray(table.mean(axis=0)).reshape(-1)
    centred = LinearOperator(
        table.shape,
        matvec=lambda v: table @ v.reshape(-1) - mean @ v.reshape(-1),
        rmatvec=lambda u: table.T @ u.reshape(-1) - mean * u.sum(),
        dtype=np.float64,
    )
    left, strength, _ = svds(centred, k=k, v0=np.ones(min(table.shape)) / min(table.shape))
    order = np.argsort(-strength)
    left, strength = left[:, order], strength[order]
    largest = left[np.abs(left).argmax(axis=0), np.arange(k)]
    kind = "logarithms of its counts, along their" if are_counts else "its numbers, along their"
    return left * strength * np.where(largest < 0, -1.0, 1.0), f"{kind} {k} strongest directions (truncated SVD)"


def _logarithms(counts: Any) -> Any:
    totals = np.asarray(counts.sum(axis=1)).reshape(-1)
    scale = np.median(totals[totals > 0]) / np.where(totals > 0, totals, 1.0)
    table = counts.copy()
    table.data = np.log1p(table.data * np.repeat(scale, np.diff(table.indptr)))
    return table
