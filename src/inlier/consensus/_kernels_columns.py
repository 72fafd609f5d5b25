"""Compiled loops over points as columns, whatever the map: where they lie, how far apart, how many places they fill."""

from __future__ import annotations

import numpy as np

from inlier.consensus._kernels_pairs import _TILE, _add_three, _squared_distances, _three_slices
from inlier.rows.compiled import compiled

_WITHOUT_SIGN = np.int64(2**63 - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: multiplying by it mixes bits


@compiled
def copy_to_columns(table, columns, start, stop):
    """Write rows start to stop of a table as columns; the sum of each coordinate."""
    d = table.shape[1]
    sums = np.zeros(d)
    if d == 3:  # in one go
        _copy_three(table[start:stop], _three_slices(columns, start, stop - start), sums)
        return sums
    for first in range(start, stop, _TILE):
        rows = table[first : min(first + _TILE, stop)]
        for a in range(d):
            line, total = columns[a, first : first + len(rows)], 0.0
            for t in range(len(rows)):
                line[t] = rows[t, a]
                total += line[t]
            sums[a] += total
    return sums


@compiled
def _copy_three(rows, columns, sums):
    """Do the same with rows of three."""
    u, v, w = columns
    first = second = third = 0.0
    for t in range(len(rows)):
        u[t], v[t], w[t] = rows[t, 0], rows[t, 1], rows[t, 2]
        first, second, third = first + rows[t, 0], second + rows[t, 1], third + rows[t, 2]
    _add_three(sums, first, second, third)


@compiled
def subtract_from_columns(columns, mean, start, stop):
    """Subtract the mean from columns start to stop."""
    for a in range(len(columns)):
        line = columns[a, start:stop]
        for t in range(line.size):
            line[t] -= mean[a]


@compiled
def farthest_coordinates(points):
    """Length of the vector of the largest absolute coordinates."""
    largest, total = np.zeros(len(points)), 0.0
    for a in range(len(points)):
        bits, most = points[a].view(np.int64), np.int64(0)
        for i in range(bits.size):
            most = max(most, bits[i] & _WITHOUT_SIGN)  # as whole numbers, whose largest vectorises
        largest.view(np.int64)[a] = most
        total += largest[a] * largest[a]
    return np.sqrt(total)


@compiled
def spread_of(points):
    """Root mean square of the columns about their mean."""
    total = 0.0
    for a in range(len(points)):
        row, mean = points[a], 0.0
        for i in range(row.size):
            mean += row[i]
        mean /= row.size
        for i in range(row.size):
            total += (row[i] - mean) * (row[i] - mean)
    return np.sqrt(total / points.shape[1])


@compiled
def row_sums(x, y, weights, centred):
    """x_i^T (sum_j w_j x_j y_j^T) y_i, of points about their means if ``centred``."""
    d_x, d_y, n = len(x), len(y), x.shape[1]
    mean_x, mean_y, products = np.zeros(d_x), np.zeros(d_y), np.zeros((d_x, d_y))
    for points, mean in ((x, mean_x), (y, mean_y)):
        for a in range(len(points) if centred else 0):
            row = points[a]
            for i in range(n):
                mean[a] += row[i]
            mean[a] /= n
    for a in range(d_x):
        for b in range(d_y):
            u, v, total = x[a], y[b], 0.0
            for i in range(n):
                total += weights[i] * (u[i] - mean_x[a]) * (v[i] - mean_y[b])
            products[a, b] = total
    sums = np.zeros(n)
    for a in range(d_x):
        for b in range(d_y):
            u, v, factor = x[a], y[b], products[a, b]
            for i in range(n):
                sums[i] += factor * (u[i] - mean_x[a]) * (v[i] - mean_y[b])
    return sums


@compiled
def count_places(points, side):
    """How many cubes of this side hold some of the points (columns)."""
    d, n = points.shape
    name, row = np.zeros(n, dtype=np.uint64), np.empty(n)
    for a in range(d):  # a hash of its coordinates names a cube; 64 bits hardly name two alike
        lowest = points[a, 0]
        for t in range(n):
            lowest = min(lowest, points[a, t])
        for t in range(n):
            row[t] = np.floor((points[a, t] - lowest) / side)
        bits = row.view(np.uint64)
        for t in range(n):
            mixed = (name[t] ^ bits[t]) * _GOLDEN
            name[t] = mixed ^ (mixed >> np.uint64(29))
    return _distinct(name)


@compiled
def _distinct(names):
    """How many different names there are, by a table with open addresses; 0 marks a free one."""
    size, shift = 16, 60
    while size < 2 * names.size:
        size, shift = 2 * size, shift - 1
    table = np.zeros(size, dtype=np.uint64)
    found = 0
    for t in range(names.size):
        name = names[t] | np.uint64(1)
        place = np.intp((name * _GOLDEN) >> np.uint64(shift))  # the upper bits are mixed best
        while table[place] != 0 and table[place] != name:
            place = (place + 1) & (size - 1)
        if table[place] == 0:
            table[place] = name
            found += 1
    return found


@compiled
def disagreements_along(x, y, scale, rounds):
    """| scale |x_i - x_(i + g)| - |y_(i + 2g) - y_(i + 3g)| |, round and round, for gaps g from 1 on."""
    n = x.shape[1]
    found, in_y = np.empty(rounds * n), np.empty(n)
    for gap in range(1, rounds + 1):
        line = found[(gap - 1) * n : gap * n]
        for points, squared in ((x, line), (y, in_y)):
            for offset, partner, length in ((0, gap, n - gap), (n - gap, 0, gap)):
                _squared_distances(points, offset, points, partner, length, squared)
        for offset, partner, length in ((0, 2 * gap, n - 2 * gap), (n - 2 * gap, 0, 2 * gap)):
            here, there = line[offset : offset + length], in_y[partner : partner + length]
            for t in range(length):
                here[t] = abs(scale * np.sqrt(here[t]) - np.sqrt(there[t]))
    return found


@compiled
def distances_between(points, i, j):
    """|p_i - p_j| for lists of columns i and j; in space in one go."""
    distance = np.zeros(i.size)
    if len(points) == 3:
        p, q, r = points[0], points[1], points[2]
        for t in range(i.size):
            here, there = np.uint64(i[t]), np.uint64(j[t])  # plainly not negative
            u, v, w = p[here] - p[there], q[here] - q[there], r[here] - r[there]
            distance[t] = np.sqrt(u * u + v * v + w * w)
        return distance
    for a in range(len(points)):
        for t in range(i.size):
            step = points[a, i[t]] - points[a, j[t]]
            distance[t] += step * step
    return np.sqrt(distance)
