"""Compiled loops over pairs under a given map: residuals, support, histograms of residuals, weighted moments.

Points are columns, so that the innermost loops run along memory and vectorise; a tile of them stays in cache. All
arrays are C-contiguous, numbers are float64 and room to write in is given: then each loop is compiled once, and nothing
beside it. Slices start at 0 in the innermost loops: else the compiler must allow for negative indices.

x_i is compared with y_(i + step): step 0 are the pairs themselves. y goes on after its end with its first columns, so
that a step leads to another pair for every i; see `ColumnPairs.around`.
"""

from __future__ import annotations

import numpy as np

from inlier.rows.compiled import compiled, inlined

TILE = 1024  # numbers of a row: all that is needed of it stays in a first-level cache
_SUMMED = 256  # pairs whose products are added up before the sums of others are
CAUTION = 2.0  # times that a wrong match may lie near more often than a re-pairing: features look alike nearby
TIE_BREAK = 1e-3  # where the most that chance can do explains all, what it does for this map decides
_MOST_SWEEPS, _TURNED = 30, 1e-28  # of turns of two axes; square of the sine of the largest, where they end

# Squared residuals are counted by the first bits of their floating-point form: exponent and two bits of the fraction.
# So there are four bins to an octave, and no logarithm is taken.
_FRACTION_BITS = 50
_LOWEST_BIN = (1023 - 70) << 2  # 2^-70
N_BINS = 80 << 2  # up to 2^10
UPPER_ENDS = np.sqrt(  # of the bins, as residuals
    (np.arange(_LOWEST_BIN + 1, _LOWEST_BIN + N_BINS + 1, dtype=np.int64) << _FRACTION_BITS).view(np.float64)
)
_LOWEST, _BEYOND = (  # where the first bin begins, and the last has ended
    float(np.ldexp(1.0, (_LOWEST_BIN >> 2) - 1023)),
    float(np.ldexp(1.0, ((_LOWEST_BIN + N_BINS) >> 2) - 1023)),
)
_HIGHEST = float(np.nextafter(_BEYOND, 0.0))


@compiled
def residuals_within(linear, shift, x, y, steps, start, squared_bounds, room, squared, found):
    """Write squared residuals of x_i and y_(i + step), i from ``start`` on, into a row of ``squared`` for each step.

    Count, for each map s, those up to the bounds [k, s], and add to found[k, s]. What stays is of the last map.
    """
    for s in range(len(linear)):
        for step in range(steps[0], steps[1]):
            row = squared[step - steps[0]]
            squared_residuals(linear[s], shift[s], x, y, step, start, start + row.size, room, row)
            for k in range(len(squared_bounds)):
                limit, count = squared_bounds[k, s], 0
                for t in range(row.size):
                    count += row[t] <= limit
                found[k, s] += count


@compiled
def squared_residuals(linear, shift, x, y, step, start, stop, room, out):
    """|y_(i + step) - linear x_i - shift|^2 for i from start to stop, into out[: stop - start]."""
    d_y, d_x = linear.shape
    for first in range(start, stop, TILE):
        count = stop - first if stop - first < TILE else TILE
        last, partner, tile = first + count, first + step, out[first - start : first - start + count]
        if d_y == 3 and d_x == 3:  # in one go: three times as fast
            a, b, c = linear[0], linear[1], linear[2]
            x0, x1, x2 = x[0, first:last], x[1, first:last], x[2, first:last]
            y0, y1, y2 = y[0, partner:], y[1, partner:], y[2, partner:]
            for t in range(count):
                u = y0[t] - shift[0] - a[0] * x0[t] - a[1] * x1[t] - a[2] * x2[t]
                v = y1[t] - shift[1] - b[0] * x0[t] - b[1] * x1[t] - b[2] * x2[t]
                w = y2[t] - shift[2] - c[0] * x0[t] - c[1] * x1[t] - c[2] * x2[t]
                tile[t] = u * u + v * v + w * w
            continue
        gap = room[-1]
        for a in range(d_y):
            there = y[a, partner:]
            for t in range(count):
                gap[t] = there[t] - shift[a]
            for b in range(d_x):
                here, factor = x[b, first:last], linear[a, b]
                for t in range(count):
                    gap[t] -= factor * here[t]
            for t in range(count):
                tile[t] = gap[t] * gap[t] + (tile[t] if a > 0 else 0.0)


@compiled
def near_moments(linear, shift, x, y, step, weights, reach, sharpness, scattered, start, stop, room, sums):
    """Add up w z (1, x)^T over the pairs whose squared residual e is at most ``reach``, z = (1, x, y), into ``sums``.

    There w = weight / (1 + sharpness e)^2: all alike where the sharpness is 0. Of x x^T only the diagonal, unless it is
    to be ``scattered``. Return how many pairs they are.
    """
    d_y, d_x = linear.shape
    near = 0
    for first in range(start, stop, _SUMMED):
        count = stop - first if stop - first < _SUMMED else _SUMMED
        w, product = room[0, :count], room[1, :count]
        squared_residuals(linear, shift, x, y, step, first, first + count, room, w)
        trust, total = weights[first : first + count], 0.0
        for t in range(count):
            falloff, within = 1.0 + sharpness * w[t], w[t] <= reach
            near += within
            w[t] = (trust[t] if within else 0.0) / (falloff * falloff)
            total += w[t]
        sums[0, 0] += total
        for a in range(d_y):
            sums[d_x + 1 + a, 0] += _dot(w, y[a, first : first + count])
        for b in range(d_x):
            here = x[b, first : first + count]
            total = 0.0
            for t in range(count):
                product[t] = w[t] * here[t]
                total += product[t]
            sums[b + 1, 0] += total
            sums[0, b + 1] += total
            for c in range(0 if scattered else b, b + 1):
                sums[b + 1, c + 1] += _dot(product, x[c, first : first + count])
                sums[c + 1, b + 1] = sums[b + 1, c + 1]
            for a in range(d_y):
                sums[d_x + 1 + a, b + 1] += _dot(product, y[a, first : first + count])
    return near


@compiled
def _dot(tile, values):
    total = 0.0
    for t in range(tile.size):
        total += tile[t] * values[t]
    return total


@compiled
def fit_rotation(linear, shift, sums, has_shift, work):
    """Replace a rotation and shift by those of least squares for the sums of `near_moments`; the largest change."""
    d, cross = linear.shape[0], work[3]
    total = sums[0, 0] if sums[0, 0] > 0 else 1.0
    for a in range(d):
        shift[a] = sums[d + 1 + a, 0] / total if has_shift else 0.0
        for b in range(d):
            cross[a, b] = sums[d + 1 + a, b + 1] / total - shift[a] * sums[b + 1, 0] / total
    change = _rotate_to(cross, linear, work)
    for a in range(d):
        for b in range(d):
            shift[a] -= linear[a, b] * sums[b + 1, 0] / total if has_shift else 0.0
    return change


@compiled
def _rotate_to(cross, rotation, work):
    """Replace a rotation R by the one with the largest tr(R^T C), the polar factor of C; the largest change.

    By Kogbetliantz' method: N = P^T C W, from P = R and W = I on, is made diagonal by turns of two axes. One turn of P
    makes two rows symmetric, and their trace as large as can be; one of both P and W makes them diagonal. Then P W^T is
    the answer. Nothing is divided by, so C may have any rank.
    """
    d = cross.shape[0]
    n, left, right = work[0], work[1], work[2]  # the latter are P^T and W^T
    for a in range(d):
        for b in range(d):
            left[a, b], right[a, b], n[a, b] = rotation[b, a], 1.0 if a == b else 0.0, 0.0
            for k in range(d):
                n[a, b] += rotation[k, a] * cross[k, b]
    for _ in range(_MOST_SWEEPS):
        steady = True
        for p in range(d - 1):
            for q in range(p + 1, d):
                along, across = n[p, p] + n[q, q], n[q, p] - n[p, q]
                length = np.sqrt(along * along + across * across)
                if length > 0:
                    cosine, sine = along / length, across / length
                    steady &= cosine > 0 and sine * sine < _TURNED
                    _turn(n, p, q, cosine, -sine)
                    _turn(left, p, q, cosine, -sine)
                gap, off = n[q, q] - n[p, p], 2 * n[p, q]
                if off * off > _TURNED * length * length:
                    steady = False
                    tangent = off / (gap + (1.0 if gap >= 0 else -1.0) * np.sqrt(gap * gap + off * off))
                    cosine = 1 / np.sqrt(1 + tangent * tangent)
                    _turn(n, p, q, cosine, tangent * cosine)
                    _turn(left, p, q, cosine, tangent * cosine)
                    _turn(right, p, q, cosine, tangent * cosine)
                    for k in range(d):
                        u, v = n[k, p], n[k, q]
                        n[k, p], n[k, q] = cosine * (u - tangent * v), cosine * (tangent * u + v)
        if steady:
            break
    change = 0.0
    for a in range(d):
        for b in range(d):
            before, rotation[a, b] = rotation[a, b], 0.0
            for k in range(d):
                rotation[a, b] += left[k, a] * right[k, b]
            step = rotation[a, b] - before
            change = step if step > change else -step if -step > change else change
    return change


@compiled
def _turn(lines, p, q, cosine, sine):
    """Turn two rows into each other."""
    for k in range(lines.shape[1]):
        u, v = lines[p, k], lines[q, k]
        lines[p, k], lines[q, k] = cosine * u - sine * v, sine * u + cosine * v


@compiled
def count_residuals(linear, shift, x, y, steps, per_unit, start, stop, room, room_bits, counts):
    """Count the squared residuals of x_i and y_(i + step), in units, by bins: i from start to stop, for all steps.

    A re-pairing of two pairs that share a point may be a real pair: it is counted beyond the last bin. So x goes on
    after its end too.
    """
    squared, bits = room[0], room_bits[0]
    for first in range(start, stop, TILE):
        count = stop - first if stop - first < TILE else TILE
        here, there = x[0, first : first + count], y[0, first : first + count]
        for step in range(steps[0], steps[1]):
            squared_residuals(linear, shift, x, y, step, first, first + count, room, squared)
            for t in range(count):
                value = squared[t] * per_unit
                value = value if value > _LOWEST else _LOWEST
                squared[t] = value if value < _HIGHEST else _HIGHEST
            next_x, next_y, alike = x[0, first + step :], y[0, first + step :], 0
            for t in range(count):
                alike += (here[t] == next_x[t]) + (there[t] == next_y[t])
            for t in range(count if step > 0 and alike > 0 else 0):
                i, j = first + t, first + t + step
                if _is_same_point(x, i, j) or _is_same_point(y, i, j):
                    squared[t] = _BEYOND
            for t in range(count):
                counts[(bits[t] >> np.uint64(_FRACTION_BITS)) - np.uint64(_LOWEST_BIN)] += 1


@inlined
def _is_same_point(points, i, j):
    """Whether columns i and j are equal."""
    a = 0
    while a < points.shape[0] and points[a, i] == points[a, j]:
        a += 1
    return a == points.shape[0]


@compiled
def count_joint(x, y, squared_reaches, room, counts):
    """Count the i < j for which the larger of the squares of |x_i - x_j| and |y_i - y_j| is within each reach.

    Reaches rise. Those that share a point are left out.
    """
    n, joint, of_y = x.shape[1], room[0], room[1]
    for i in range(n):
        for first in range(i + 1, n, TILE):
            count = n - first if n - first < TILE else TILE
            for t in range(count):
                joint[t] = 0.0
                of_y[t] = 0.0
            for a in range(len(x)):
                there, here = x[a, first : first + count], x[a, i]
                for t in range(count):
                    joint[t] += (there[t] - here) * (there[t] - here)
            for a in range(len(y)):
                there, here = y[a, first : first + count], y[a, i]
                for t in range(count):
                    of_y[t] += (there[t] - here) * (there[t] - here)
            for t in range(count):
                both, larger = joint[t] > 0 and of_y[t] > 0, joint[t] if joint[t] > of_y[t] else of_y[t]
                joint[t] = larger if both else np.inf
            for k in range(len(squared_reaches) - 1, -1, -1):
                reach, found = squared_reaches[k], 0
                for t in range(count):
                    found += joint[t] <= reach
                if found == 0:
                    break
                counts[k] += found


@compiled
def shares_within(bounds, counts, total, dimension, few, some, shares):
    """Write counts / total; below ``few`` of them, as a power of the bound, and never less than could be seen.

    The power is that with which counts rise from ``few`` to ``some``, between 1 and the dimension.
    """
    last, k, m = counts.size - 1, 0, 0
    while k < last and counts[k] < few:
        k += 1
    while m < last and counts[m] < some:
        m += 1
    for a in range(counts.size):
        shares[a] = (counts[a] + 1.0) / (total + 1.0)
    if k < m:
        rise = np.log(counts[m] / counts[k]) / np.log(bounds[m] / bounds[k])
        power = 1.0 if rise < 1.0 else rise if rise < dimension else np.float64(dimension)
        for a in range(k):
            below = shares[k] * (bounds[a] / bounds[k]) ** power
            shares[a] = below if below > 1.0 / (total + 1.0) else 1.0 / (total + 1.0)


@compiled
def best_bound(found, own, most, free, n, largest):
    """Which of rising bounds one map scores best within, and how much; the first, or one that chance seldom meets.

    The score is `Chance.score`, for the pairs found within each bound beside what chance does for this map (``own``)
    and for any (``most``). Of the pairs, so many are ``free``: they prove nothing.
    """
    best, highest = 0, 0.0
    for k in range(found.size):
        if found[k] <= free or (k > 0 and (found[k] == found[k - 1] or own[k] > largest)):
            continue  # as many in a wider bound are less surprising
        share = (found[k] - free) / (n - free)
        rate = own[k] if own[k] > most[k] else most[k]
        score = (n - free) * (divergence(share, CAUTION * rate) + TIE_BREAK * divergence(share, CAUTION * own[k]))
        if score > highest:
            best, highest = k, score
    return best, highest


@compiled
def divergence(share, rate):
    """KL(share || rate) where the share is larger, else 0; no rate is impossible, and none sure."""
    rate = 1e-15 if rate < 1e-15 else 1 - 1e-12 if rate > 1 - 1e-12 else rate
    if share <= rate:
        return 0.0
    other = (1 - share) * np.log((1 - share) / (1 - rate)) if share < 1 else 0.0
    return share * np.log(share / rate) + other
