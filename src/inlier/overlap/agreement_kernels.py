"""Compiled loops over pairs of pairs: who agrees with whom, and who has friends in common.

Points come as columns (d, m), so that the inner loops run along memory. A kernel covers a range of rows and
releases the interpreter, so that ranges can run in threads.
"""

from __future__ import annotations

import numpy as np

from inlier.engine.compiled import compiled

_WORD = 64


@compiled
def _distances(points, i, distance):
    """|p_i - p_j| for all j."""
    d, m = points.shape
    distance[:] = 0.0
    for a in range(d):
        here = points[a, i]
        for j in range(m):
            step = points[a, j] - here
            distance[j] += step * step
    for j in range(m):
        distance[j] = np.sqrt(distance[j])


@compiled
def excess_degrees(x, y, partner, tolerances, start, stop, excess):
    """Write, for rows start to stop and each tolerance, friends minus friends among re-paired columns, in their sd."""
    m = x.shape[1]
    in_x, in_y = np.empty(m), np.empty(m)
    friends, strangers = np.empty(tolerances.size), np.empty(tolerances.size)
    for i in range(start, stop):
        _distances(x, i, in_x)
        _distances(y, i, in_y)
        friends[:] = 0.0
        strangers[:] = 0.0
        for t in range(tolerances.size):
            tolerance = tolerances[t]
            count, by_chance = 0, 0
            for j in range(m):
                count += np.abs(in_x[j] - in_y[j]) <= tolerance and in_x[j] + in_y[j] > tolerance
                other = in_y[partner[j]]
                by_chance += np.abs(in_x[j] - other) <= tolerance and in_x[j] + other > tolerance
            friends[t], strangers[t] = count, by_chance
        for t in range(tolerances.size):
            excess[i, t] = (friends[t] - strangers[t]) / np.sqrt(strangers[t] + 1.0)


@compiled
def agreement_bits(x, y, tolerance, start, stop, bits):
    """Set bit j of row i where pairs i and j agree: their distances differ by no more than the tolerance.

    Two pairs that are nearer than the tolerance on both sides agree whatever the transformation is, and say nothing.
    """
    m = x.shape[1]
    in_x, in_y = np.empty(m), np.empty(m)
    for i in range(start, stop):
        _distances(x, i, in_x)
        _distances(y, i, in_y)
        for word in range(bits.shape[1]):
            value = np.uint64(0)
            for b in range(min(_WORD, m - word * _WORD)):
                j = word * _WORD + b
                agrees = np.abs(in_x[j] - in_y[j]) <= tolerance and in_x[j] + in_y[j] > tolerance
                value |= np.uint64(agrees) << np.uint64(b)
            bits[i, word] = value


@compiled
def _count_bits(value):
    """Number of bits that are set (the compiler knows this pattern and uses one instruction for it)."""
    value = value - ((value >> np.uint64(1)) & np.uint64(0x5555555555555555))
    value = (value & np.uint64(0x3333333333333333)) + ((value >> np.uint64(2)) & np.uint64(0x3333333333333333))
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((value * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _agree(bits, i, j):
    return (bits[i, j // _WORD] >> np.uint64(j % _WORD)) & np.uint64(1)


@compiled
def circles_of_friends(bits, start, stop, members, weights, strength):
    """Gather, for each row, the friends with whom it has most friends in common, and how tightly they hold together.

    ``members[i]`` are pair i and those friends, -1 where there are fewer; ``weights[i]`` the leading eigenvector of
    the agreement among them, ``strength[i]`` its eigenvalue: k for a clique of k + 1.
    """
    m, words = bits.shape
    size = members.shape[1]
    common = np.empty(size, dtype=np.int64)
    local = np.empty((size, size))
    for i in range(start, stop):
        count = 1
        members[i, 0] = i
        common[0] = m + 1  # itself comes first
        for word in range(words):
            rest = bits[i, word]
            while rest != 0:
                lowest = rest & (~rest + np.uint64(1))
                j = word * _WORD + _count_bits(lowest - np.uint64(1))
                rest ^= lowest
                shared = 0
                for w in range(words):
                    shared += _count_bits(bits[i, w] & bits[j, w])
                if count < size or shared > common[count - 1]:
                    place = count if count < size else size - 1
                    count = min(count + 1, size)
                    while common[place - 1] < shared:
                        common[place], members[i, place] = common[place - 1], members[i, place - 1]
                        place -= 1
                    common[place], members[i, place] = shared, j
        members[i, count:] = -1
        strength[i] = _leading_eigenvector(bits, members[i, :count], local, weights[i])
        weights[i, count:] = 0.0


@compiled
def _leading_eigenvector(bits, circle, local, vector):
    """Leading eigenvector of the agreement among these pairs, into ``vector``, by power iteration; its eigenvalue."""
    count = circle.size
    for a in range(count):
        for b in range(count):
            local[a, b] = _agree(bits, circle[a], circle[b])
    vector[:count] = 1.0
    length = 0.0
    for _ in range(10):
        length = 0.0
        image = np.zeros(count)
        for a in range(count):
            for b in range(count):
                image[a] += local[a, b] * vector[b]
            length += image[a] * image[a]
        length = np.sqrt(length)
        if length == 0.0:
            break
        for a in range(count):
            vector[a] = image[a] / length
    return length
