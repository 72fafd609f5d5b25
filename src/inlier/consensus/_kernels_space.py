"""Compiled fits of motions in space: what `models` does in any dimension, without leaving the loop over the pairs.

Written in loops throughout: array expressions would take the compiler many times as long.
"""

from __future__ import annotations

import numpy as np

from inlier.consensus._kernels_pairs import near_moments
from inlier.rows.compiled import compiled

_MOST_SWEEPS = 30
_ORTHOGONAL = 1e-15  # cosine between columns
_NOTHING = 1e-150


@compiled
def rotation_in_space(cross, mirrored):
    """R = U D V^T for cross = U S V^T: det R = 1, or where it may be mirrored the sign of det(cross).

    The direction of the smallest singular value is across the two others on either side, so it needs no size of its
    own, and its sign no determinant of U.
    """
    columns, turns, unit, determinant = _orthogonal_columns(cross)
    rotation = turns.copy()
    if unit == 0:
        return rotation
    smallest = 0
    for k in (1, 2):
        if _dot(columns[k], columns[k]) < _dot(columns[smallest], columns[smallest]):
            smallest = k
    p, q = (smallest + 1) % 3, (smallest + 2) % 3
    if _dot(columns[p], columns[p]) < _dot(columns[q], columns[q]):
        p, q = q, p
    length_p, length_q = np.sqrt(_dot(columns[p], columns[p])), np.sqrt(_dot(columns[q], columns[q]))
    if length_q <= _NOTHING:  # points on a line: any direction across it will do
        _put_across(columns, p, q)
        length_q = np.sqrt(_dot(columns[q], columns[q]))
    per_length = (-1.0 if mirrored and determinant < 0 else 1.0) / (length_p * length_q)
    for a in range(3):
        u, v, w = columns[p, a] / length_p, columns[q, a] / length_q, per_length * _across(columns[p], columns[q], a)
        for b in range(3):
            rotation[a, b] = u * turns[p, b] + v * turns[q, b] + w * _across(turns[p], turns[q], b)
    return rotation


@compiled
def singular_values_in_space(cross):
    """From the largest to the smallest, and the sign of the determinant."""
    columns, _, unit, determinant = _orthogonal_columns(cross)
    values = np.empty(3)
    for k in range(3):
        value, place = unit * np.sqrt(_dot(columns[k], columns[k])), k
        while place > 0 and values[place - 1] < value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
    return values, np.sign(determinant)


@compiled
def _orthogonal_columns(cross):
    """Columns of cross V = U S over the largest coefficient of cross, and of V, as rows; that, and a determinant.

    By Jacobi: turns V of the columns until they are orthogonal. The determinant is that of cross over its coefficient.
    """
    columns, turns = np.empty((3, 3)), np.empty((3, 3))
    unit = 0.0
    for a in range(3):
        for b in range(3):
            unit = max(unit, abs(cross[a, b]))
    for a in range(3):  # in units that no product leaves
        for b in range(3):
            columns[b, a] = cross[a, b] / unit if unit > 0 else 0.0
            turns[a, b] = 1.0 if a == b else 0.0
    determinant = 0.0
    for k in range(3):
        determinant += columns[2, k] * _across(columns[0], columns[1], k)
    for _ in range(_MOST_SWEEPS if unit > 0 else 0):
        steady = True
        for p in range(2):
            for q in range(p + 1, 3):
                steady &= _made_orthogonal(columns, turns, p, q)
        if steady:
            break
    return columns, turns, unit, determinant


@compiled
def rotations_in_space(crosses, mirrored):
    """Do the same for several."""
    rotations = np.empty(crosses.shape)
    for s in range(len(crosses)):
        rotation = rotation_in_space(crosses[s], mirrored)
        for a in range(3):
            for b in range(3):
                rotations[s, a, b] = rotation[a, b]
    return rotations


@compiled
def _made_orthogonal(columns, turns, p, q):
    """Turn two rows into each other until they are orthogonal; whether they were."""
    a, b, c = _dot(columns[p], columns[p]), _dot(columns[q], columns[q]), _dot(columns[p], columns[q])
    if abs(c) <= _ORTHOGONAL * np.sqrt(a * b):
        return True
    ratio = (b - a) / (2 * c)
    tangent = (1.0 if ratio >= 0 else -1.0) / (abs(ratio) + np.sqrt(1 + ratio * ratio))
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    sine = cosine * tangent
    for k in range(3):
        u, v = columns[p, k], columns[q, k]
        columns[p, k], columns[q, k] = cosine * u - sine * v, sine * u + cosine * v
        u, v = turns[p, k], turns[q, k]
        turns[p, k], turns[q, k] = cosine * u - sine * v, sine * u + cosine * v
    return False


@compiled
def _put_across(columns, p, q):
    """Make row q one that is orthogonal to row p: the unit vector least along it, made so."""
    least = 0
    for k in (1, 2):
        if abs(columns[p, k]) < abs(columns[p, least]):
            least = k
    along = columns[p, least] / _dot(columns[p], columns[p])
    for k in range(3):
        columns[q, k] = (1.0 if k == least else 0.0) - along * columns[p, k]


@compiled
def _dot(u, v):
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


@compiled
def _across(u, v, k):
    """Coordinate k of the vector product."""
    i, j = (k + 1) % 3, (k + 2) % 3
    return u[i] * v[j] - u[j] * v[i]


@compiled
def refit_in_space(linear, shift, x, y, weights, reach, sharpnesses, options, steady, start, stop):
    """Fit to the pairs within reach, and again to those within reach of that, with each sharpness in turn.

    Until no coefficient of the rotation changes by ``steady``. The options: whether there is a shift, whether the
    motion may be mirrored, and False, for no scatter is needed. (With constants in their place, the sums would be
    compiled once more.) Also how many pairs the last fit was to, and their cross-covariance.
    """
    has_shift, mirrored, scattered = options
    near, cross = 0, linear
    for sharpness in sharpnesses:
        near, total, x_bar, y_bar, cross, _ = near_moments(
            linear, shift, x, y, weights, reach, sharpness, scattered, start, stop
        )
        total = max(total, _NOTHING)
        for a in range(3):
            x_bar[a] *= has_shift / total
            y_bar[a] *= has_shift / total
        for a in range(3):
            for b in range(3):
                cross[a, b] = cross[a, b] / total - y_bar[a] * x_bar[b]
        before, linear = linear, rotation_in_space(cross, mirrored)
        shift, change = y_bar, 0.0
        for a in range(3):
            shift[a] -= _dot(linear[a], x_bar)
            for b in range(3):
                change = max(change, abs(linear[a, b] - before[a, b]))
        if change < steady:
            break
    return linear, shift, near, cross
