"""Compiled loops over pairs of pairs: who agrees with whom, and who has neighbours in common.

Points come as columns (d, m), so that the inner loops run along memory; a tile of them stays in cache. A loop covers a
range of rows and releases the interpreter, so that ranges can run in threads; room to write in is given.

Two pairs agree when their distances a and b differ by no more than the tolerance t, |a - b| <= t, and a + b > t: two
pairs nearer than that on both sides agree whatever the transformation is, and say nothing. Then a, b and t are the
sides of a triangle, and by Heron's formula that is (a^2 - b^2)^2 <= t^2 (2 (a^2 + b^2) - t^2): no square root is taken.
"""

from __future__ import annotations

import numpy as np

from inlier.rows.compiled import compiled, inlined

WORD = 64
TILE = 512  # columns at a time, some words


@compiled
def _squared_distances(origins, i, points, first, count, squared):
    """|origin_i - p_j|^2 for ``count`` columns j from ``first`` on."""
    if points.shape[0] == 3:  # in one go: twice as fast
        a, b, c = points[0, first:], points[1, first:], points[2, first:]
        at_a, at_b, at_c = origins[0, i], origins[1, i], origins[2, i]
        for j in range(count):
            u, v, w = a[j] - at_a, b[j] - at_b, c[j] - at_c
            squared[j] = u * u + v * v + w * w
        return
    for axis in range(points.shape[0]):
        along, here = points[axis, first:], origins[axis, i]
        for j in range(count):
            step = along[j] - here
            squared[j] = step * step + (squared[j] if axis > 0 else 0 * step)


@compiled
def agreement_bits(x, y, squared_tolerances, start, stop, room, bits):
    """Set bit j of bits[t, i] where pairs i and j agree to tolerance t, for rows start to stop."""
    m = x.shape[1]
    in_x, in_y = room[0], room[1]
    for first in range(0, m, TILE):
        count = m - first if m - first < TILE else TILE
        for i in range(start, stop):
            _squared_distances(x, i, x, first, count, in_x)
            _squared_distances(y, i, y, first, count, in_y)
            for j in range(count):
                difference, half = in_x[j] - in_y[j], in_x[j] + in_y[j]
                in_x[j], in_y[j] = difference * difference, half + half
            for j in range(count, TILE):  # beyond the last column nobody agrees
                in_x[j], in_y[j] = 1, 0
            for t in range(squared_tolerances.size):
                square = squared_tolerances[t]
                for word in range((count + WORD - 1) // WORD):
                    left, right = in_x[word * WORD :], in_y[word * WORD :]
                    value = np.uint64(0)
                    for b in range(WORD):
                        value |= np.uint64(left[b] <= square * (right[b] - square)) << np.uint64(b)
                    bits[t, i, first // WORD + word] = value


@compiled
def count_agreeing(x, sides, squared_tolerances, start, stop, room, counts):
    """Count, for rows i from start to stop and each tolerance, the columns that agree with (x_i, y_i).

    ``sides`` holds y and, beneath it, its columns in another order; counts[side, i, t] are added to.
    """
    m = x.shape[1]
    in_x, in_y, difference, total = room[0], room[1], room[2], room[3]
    for first in range(0, m, TILE):
        count = m - first if m - first < TILE else TILE
        for i in range(start, stop):
            _squared_distances(x, i, x, first, count, in_x)
            for side in range(sides.shape[0]):
                _squared_distances(sides[0], i, sides[side], first, count, in_y)
                for j in range(count):
                    step, half = in_x[j] - in_y[j], in_x[j] + in_y[j]
                    difference[j], total[j] = step * step, half + half
                for t in range(squared_tolerances.size):
                    square, agreeing = squared_tolerances[t], np.float32(0.0)  # as wide as the numbers compared
                    for j in range(count):
                        agreeing += np.float32(difference[j] <= square * (total[j] - square))
                    counts[side, i, t] += agreeing


@compiled
def _count_bits(value):
    """Number of bits that are set (the compiler knows this pattern and uses one instruction for it)."""
    value = value - ((value >> np.uint64(1)) & np.uint64(0x5555555555555555))
    value = (value & np.uint64(0x3333333333333333)) + ((value >> np.uint64(2)) & np.uint64(0x3333333333333333))
    value = (value + (value >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((value * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def _count_common(bits, i, neighbours, common, how_many):
    """List the neighbours of i and how many neighbours each has in common with it; return their number and the most.

    ``how_many[k]`` counts, on top of what it holds, those with k in common.
    """
    words = bits.shape[1]
    count, most = 0, 0
    for word in range(words):
        rest = bits[i, word]
        while rest != 0:
            lowest = rest & (~rest + np.uint64(1))
            j = word * WORD + _count_bits(lowest - np.uint64(1))
            rest ^= lowest
            shared = 0
            for w in range(words):
                shared += _count_bits(bits[i, w] & bits[j, w])
            neighbours[count], common[count] = j, shared
            how_many[shared] += 1
            most = shared if shared > most else most
            count += 1
    return count, most


@inlined
def _density(bits, members, inside):
    """Neighbours among the other members that a neighbour of a member has on average; ``inside`` is a row of bits.

    The first member is left out: all others are its neighbours, whether they have to do with each other or not. A
    member -1 ends the list.
    """
    for w in range(inside.size):
        inside[w] = np.uint64(0)
    for a in range(1, members.size):
        if members[a] < 0:
            break
        inside[members[a] // WORD] |= np.uint64(1) << np.uint64(members[a] % WORD)
    total, squares = 0, 0
    for a in range(1, members.size):
        if members[a] < 0:
            break
        degree = 0
        for w in range(inside.size):
            degree += _count_bits(bits[members[a], w] & inside[w])
        total += degree
        squares += degree * degree
    return squares / total if total > 0 else 0.0


@compiled
def gather_seed_sets(bits, start, stop, room, inside, members, density):
    """Gather, for rows start to stop, the neighbours with whom each has most in common; see `SeedSets`.

    ``room`` has three rows of m + 1 whole numbers, the last of zeros.
    """
    size = members.shape[1]
    neighbours, common, how_many = room[0], room[1], room[2]
    for i in range(start, stop):
        n_neighbours, level = _count_common(bits, i, neighbours, common, how_many)
        left = size - 1  # for those with exactly ``level`` in common, after all with more
        while level > 0 and how_many[level] < left:
            left -= how_many[level]
            how_many[level] = 0
            level -= 1
        for k in range(level + 1):
            how_many[k] = 0
        members[i, 0] = i
        count = 1
        for k in range(n_neighbours):
            if common[k] > level or (common[k] == level and left > 0):
                left -= common[k] == level
                members[i, count] = neighbours[k]
                count += 1
        for k in range(count, size):
            members[i, k] = -1
        density[i] = _density(bits, members[i], inside)


@compiled
def leading_eigenvectors(bits, members, rounds, room, vectors):
    """Of the agreement among the members of each set, by power iteration; 0 beyond them, and 1 where none agree.

    ``room`` has two rows for the vectors, and one for each member.
    """
    size, here, image, local = members.shape[1], room[0], room[1], room[2:]
    for s in range(len(members)):
        count = 0
        while count < size and members[s, count] >= 0:
            here[count] = 1.0
            count += 1
        for a in range(count):
            for b in range(count):
                j = members[s, b]
                local[a, b] = np.float64((bits[members[s, a], j // WORD] >> np.uint64(j % WORD)) & np.uint64(1))
        squares = 0.0
        for _ in range(rounds):  # at most size^rounds: no need to scale on the way
            squares = 0.0
            for a in range(count):
                image[a] = 0.0
                for b in range(count):
                    image[a] += local[a, b] * here[b]
                squares += image[a] * image[a]
            for a in range(count):
                here[a] = image[a]
        length = np.sqrt(squares)
        for a in range(size):
            vectors[s, a] = 0.0 if a >= count else here[a] / length if length > 0 else 1.0
