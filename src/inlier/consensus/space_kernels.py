"""Compiled fits of motions in space: what `models` does in any dimension, without leaving the loop over the pairs."""

from __future__ import annotations

import numpy as np

from inlier.consensus.kernels import near_moments
from inlier.engine.compiled import compiled

_MOST_SWEEPS = 30
_ORTHOGONAL = 1e-15  # cosine between columns
_NOTHING = 1e-300


@compiled
def rotation_in_space(cross, mirrored):
    """R = U D V^T for cross = U S V^T: det R = 1, or where it may be mirrored the sign of det(cross).

    By Jacobi: turns V of the columns until they are orthogonal, cross V = U S. The direction of the smallest singular
    value is across the two others on either side, so it needs no size of its own, and its sign no determinant of U.
    """
    columns, turns = np.ascontiguousarray(cross.T), np.eye(3)  # rows of these are columns of cross V and of V
    for _ in range(_MOST_SWEEPS):
        steady = True
        for p in range(2):
            for q in range(p + 1, 3):
                steady &= _made_orthogonal(columns, turns, p, q)
        if steady:
            break
    lengths = np.sqrt((columns**2).sum(axis=1))
    smallest = np.argmin(lengths)
    p, q = (smallest + 1) % 3, (smallest + 2) % 3
    if min(lengths[p], lengths[q]) <= _NOTHING:
        return np.eye(3)
    u, v = columns[p] / lengths[p], columns[q] / lengths[q]
    across_u, across_v = _across(u, v), _across(turns[p], turns[q])
    if mirrored and (_across(cross[0], cross[1]) * cross[2]).sum() < 0:
        across_u = -across_u
    rotation = np.empty((3, 3))
    for a in range(3):
        for b in range(3):
            rotation[a, b] = u[a] * turns[p, b] + v[a] * turns[q, b] + across_u[a] * across_v[b]
    return rotation


@compiled
def _made_orthogonal(columns, turns, p, q):
    """Turn two rows into each other until they are orthogonal; whether they were."""
    a, b, c = (columns[p] ** 2).sum(), (columns[q] ** 2).sum(), (columns[p] * columns[q]).sum()
    if abs(c) <= _ORTHOGONAL * np.sqrt(a * b):
        return True
    ratio = (b - a) / (2 * c)
    tangent = (1.0 if ratio >= 0 else -1.0) / (abs(ratio) + np.sqrt(1 + ratio * ratio))
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    sine = cosine * tangent
    for rows in (columns, turns):
        for k in range(3):
            rows[p, k], rows[q, k] = cosine * rows[p, k] - sine * rows[q, k], sine * rows[p, k] + cosine * rows[q, k]
    return False


@compiled
def _across(u, v):
    return np.array([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])


@compiled
def refit_in_space(linear, shift, x, y, weights, reach, sharpnesses, has_shift, mirrored, steady):
    """Fit to the pairs within reach, and again to those within reach of that, with each sharpness in turn.

    Until no coefficient of the rotation changes by ``steady``.
    """
    for sharpness in sharpnesses:
        _, total, x_bar, y_bar, cross, _ = near_moments(
            linear, shift, x, y, weights, reach, sharpness, False, 0, x.shape[1]
        )
        total = max(total, _NOTHING)
        cross /= total
        x_bar, y_bar = (x_bar / total, y_bar / total) if has_shift else (np.zeros(3), np.zeros(3))
        for a in range(3):
            for b in range(3):
                cross[a, b] -= y_bar[a] * x_bar[b]
        before, linear = linear, rotation_in_space(cross, mirrored)
        shift = y_bar.copy()
        for a in range(3):
            for b in range(3):
                shift[a] -= linear[a, b] * x_bar[b]
        if np.abs(linear - before).max() < steady:
            break
    return linear, shift
