"""Compiled loops over pairs of pairs: who agrees with whom, and who has friends in common.

Points come as columns (d, m), so that the inner loops run along memory; a tile of them stays in cache. A kernel covers
a range of rows and releases the interpreter, so that ranges can run in threads.

Two pairs agree when their distances a and b differ by no more than the tolerance t, |a - b| <= t, and a + b > t: two
pairs nearer than that on both sides agree whatever the transformation is, and say nothing. Then a, b and t are the
sides of a triangle, and by Heron's formula that is (a^2 - b^2)^2 <= t^2 (2 (a^2 + b^2) - t^2): no square root is taken.
"""

from __future__ import annotations

import numpy as np

from inlier.rows.compiled import compiled

_WORD = 64
_TILE = 512  # columns at a time, some words
_ROUNDS = 10  # of power iteration


@compiled
def _squared_distances(origins, i, points, first, squared):
    """|origin_i - p_j|^2 for the columns j from ``first`` on."""
    count = squared.size
    stop = first + count
    if len(points) == 3:
        a, b, c = points[0, first:stop], points[1, first:stop], points[2, first:stop]
        at_a, at_b, at_c = origins[0, i], origins[1, i], origins[2, i]
        for j in range(count):
            u, v, w = a[j] - at_a, b[j] - at_b, c[j] - at_c
            squared[j] = u * u + v * v + w * w
    else:
        for j in range(count):
            squared[j] = 0.0
        for axis in range(len(points)):
            along, here = points[axis, first:stop], origins[axis, i]
            for j in range(count):
                step = along[j] - here
                squared[j] += step * step


@compiled
def _compare(in_x, in_y, difference, total):
    """(a^2 - b^2)^2 and 2 (a^2 + b^2) from a^2 and b^2."""
    for j in range(in_x.size):
        step = in_x[j] - in_y[j]
        half = in_x[j] + in_y[j]
        difference[j] = step * step
        total[j] = half + half


@compiled
def agreement_bits(x, y, tolerances, start, stop, bits):
    """Set bit j of bits[t, i] where pairs i and j agree to tolerance t, for rows start to stop."""
    m = x.shape[1]
    in_x, in_y = np.empty(_TILE, x.dtype), np.empty(_TILE, x.dtype)
    difference, total = np.empty(_TILE, x.dtype), np.empty(_TILE, x.dtype)
    for first in range(0, m, _TILE):
        count = min(_TILE, m - first)
        difference[count:] = 1.0  # beyond the last column nobody agrees
        total[count:] = 0.0
        for i in range(start, stop):
            _squared_distances(x, i, x, first, in_x[:count])
            _squared_distances(y, i, y, first, in_y[:count])
            _compare(in_x[:count], in_y[:count], difference, total)
            for t in range(tolerances.size):
                square = tolerances[t] * tolerances[t]
                for word in range(0, count, _WORD):
                    left, right = difference[word : word + _WORD], total[word : word + _WORD]
                    value = np.uint64(0)
                    for b in range(_WORD):
                        value |= np.uint64(left[b] <= square * (right[b] - square)) << np.uint64(b)
                    bits[t, i, (first + word) // _WORD] = value


@compiled
def _count_agreeing(in_x, in_y, difference, total, tolerances, counts):
    """Add to counts[t] how many of a tile agree to tolerance t."""
    _compare(in_x, in_y, difference, total)
    for t in range(tolerances.size):
        square, agreeing = tolerances[t] * tolerances[t], np.float32(0.0)  # counts as wide as the numbers compared
        for j in range(in_x.size):
            agreeing += np.float32(difference[j] <= square * (total[j] - square))
        counts[t] += agreeing


@compiled
def excess_degrees(x, sides, tolerances, start, stop, excess):
    """Write, for rows start to stop and each tolerance, friends minus friends among re-paired columns, in their sd.

    ``sides`` holds y and, beneath it, its columns in another order.
    """
    m = x.shape[1]
    in_x, in_y = np.empty(_TILE, x.dtype), np.empty(_TILE, x.dtype)
    difference, total = np.empty(_TILE, x.dtype), np.empty(_TILE, x.dtype)
    counts = np.zeros((2, stop - start, tolerances.size))
    for first in range(0, m, _TILE):
        a, b = in_x[: min(_TILE, m - first)], in_y[: min(_TILE, m - first)]
        for i in range(start, stop):
            _squared_distances(x, i, x, first, a)
            for side in range(2):
                _squared_distances(sides[0], i, sides[side], first, b)
                _count_agreeing(a, b, difference, total, tolerances, counts[side, i - start])
    for i in range(stop - start):
        for t in range(tolerances.size):
            excess[start + i, t] = (counts[0, i, t] - counts[1, i, t]) / np.sqrt(counts[1, i, t] + 1.0)


@compiled
def _count_bits(value):
    """Number of bits that are set (the compiler knows this pattern and uses one instruction for it)."""
    value = value - ((value >> np.uint64(1)) & np.uint64(0x5555555555555555))
    value = (value & np.uint64(0x3333333333333333)) + ((value >> np.uint64(2)) & np.uint64(0x3333333333333333))
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((value * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _count_common(bits, i, friends, common, how_many):
    """List the friends of i and how many friends each has in common with it; return their number and the most.

    ``how_many[k]`` counts, on top of what it holds, those with k in common.
    """
    words = bits.shape[1]
    count, most = 0, 0
    for word in range(words):
        rest = bits[i, word]
        while rest != 0:
            lowest = rest & (~rest + np.uint64(1))
            j = word * _WORD + _count_bits(lowest - np.uint64(1))
            rest ^= lowest
            shared = 0
            for w in range(words):
                shared += _count_bits(bits[i, w] & bits[j, w])
            friends[count], common[count] = j, shared
            how_many[shared] += 1
            most = max(most, shared)
            count += 1
    return count, most


@compiled
def _tightness(bits, circle, inside):
    """Friends among the other members that a friend of a member has on average; ``inside`` is room for a row of bits.

    The first member is left out: all others are its friends, whether they have anything to do with each other or not.
    """
    inside[:] = np.uint64(0)
    for a in range(1, circle.size):
        inside[circle[a] // _WORD] |= np.uint64(1) << np.uint64(circle[a] % _WORD)
    total, squares = 0, 0
    for a in range(1, circle.size):
        degree = 0
        for w in range(inside.size):
            degree += _count_bits(bits[circle[a], w] & inside[w])
        total += degree
        squares += degree * degree
    return squares / max(total, 1)


@compiled
def circles_of_friends(bits, start, stop, members, tightness):
    """Gather, for rows start to stop, the friends with whom each has most friends in common; see `Circles`."""
    m, words = bits.shape
    size = members.shape[1]
    friends, common = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    how_many = np.zeros(m + 1, dtype=np.int64)
    inside = np.empty(words, dtype=np.uint64)
    for i in range(start, stop):
        n_friends, level = _count_common(bits, i, friends, common, how_many)
        room = size - 1  # for those with exactly ``level`` in common, after all with more
        while level > 0 and how_many[level] < room:
            room -= how_many[level]
            how_many[level] = 0
            level -= 1
        how_many[: level + 1] = 0
        members[i, 0] = i
        count = 1
        for k in range(n_friends):
            if common[k] > level or (common[k] == level and room > 0):
                room -= common[k] == level
                members[i, count] = friends[k]
                count += 1
        members[i, count:] = -1
        tightness[i] = _tightness(bits, members[i, :count], inside)


@compiled
def circle_weights(bits, members, weights):
    """Leading eigenvector of the agreement among the members of each circle, by power iteration; 0 beyond them."""
    size = members.shape[1]
    local, image = np.empty((size, size)), np.empty(size)
    for s in range(len(members)):
        count = 0
        while count < size and members[s, count] >= 0:
            count += 1
        for a in range(count):
            for b in range(count):
                i, j = members[s, a], members[s, b]
                local[a, b] = (bits[i, j // _WORD] >> np.uint64(j % _WORD)) & np.uint64(1)
        weights[s, :count] = 1.0
        weights[s, count:] = 0.0
        for _ in range(_ROUNDS):
            length = 0.0
            for a in range(count):
                image[a] = 0.0
                for b in range(count):
                    image[a] += local[a, b] * weights[s, b]
                length += image[a] * image[a]
            if length == 0.0:
                break
            for a in range(count):
                weights[s, a] = image[a] / np.sqrt(length)
