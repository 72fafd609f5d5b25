"""Slow and obvious: the paper's definitions, written with whole matrices. Every fast path is compared with these."""

from __future__ import annotations

import numpy as np


def overlap(X, Y):
    """H of eq. (1), entry by entry a product of two inner products."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    return (X @ X.T) * (Y @ Y.T)


def prepared(X):
    """Step 1: centre each column, scale each row to unit length, on a copy of everything."""
    X = np.asarray(X, dtype=np.float64)
    X = X.reshape(len(X), -1)
    centred = X - X.mean(axis=0)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.divide(centred, length, out=np.zeros_like(centred), where=length > 0)


def whitened(X):
    """An orthonormal basis of the centred column space by SVD, then unit rows."""
    centred = np.asarray(X, dtype=np.float64) - np.mean(X, axis=0)
    U, singular_values, _ = np.linalg.svd(centred, full_matrices=False)
    U = U[:, singular_values > 1e-6 * singular_values[0]]
    return U / np.linalg.norm(U, axis=1, keepdims=True)


def row_sum_scores(X, Y):
    """Paper's S_i - d^2 for rows of norm sqrt(d)."""
    x, y = prepared(X), prepared(Y)
    x, y = x * np.sqrt(x.shape[1]), y * np.sqrt(y.shape[1])
    H = overlap(x, y)
    return H.sum(axis=1) - np.diag(H)


def leading_eigenvector(H):
    values, vectors = np.linalg.eigh(H)
    v = vectors[:, -1]
    return values[-1], v if v.sum() >= 0 else -v


def lloyd(values, low, high):
    """Lloyd's iteration in its plainest form: assign, average, repeat."""
    values = np.asarray(values)
    while True:
        upper = np.abs(values - high) <= np.abs(values - low)
        new_low = values[~upper].mean() if (~upper).any() else low
        new_high = values[upper].mean() if upper.any() else high
        if (new_low, new_high) == (low, high):
            return upper
        low, high = new_low, new_high


def best_two_means(values):
    """Try every cut; return the smallest within-cluster sum of squares."""
    ordered = np.sort(values)
    return min(
        ((part - part.mean()) ** 2).sum() + ((rest - rest.mean()) ** 2).sum()
        for part, rest in ((ordered[:k], ordered[k:]) for k in range(1, len(ordered)))
    )
