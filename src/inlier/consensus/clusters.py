"""Which pairs err alike: how far their errors correlate, and cells of neighbours that count as one.

Features look at a whole patch, so pairs that lie near each other are off in the same way. With u_i the residual vector
of pair i, times its say in the fit, what pairs up to a distance h have in common is

    S(h) = sum of u_i . u_j over all i < j with |x_i - x_j| <= h,

which is 0 on average where pairs err independently, with variance V(h) = sum of (u_i . u_j)^2: each term is as likely
to be negative. Where S rises to many times sqrt(V), errors do correlate. Then M = 1 + 2 S(h) / sum of |u_i|^2 pairs err
like one, and S may rise by some M sqrt(V) beyond h by luck. The correlation length is the shortest h beyond which it
rises no further than that.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from inlier._typing import Array, FloatArray

_COMPARED = 700  # pairs that are compared each with each; of more, every so many
_STEPS = 30  # distances that are tried, four an octave, down from the largest there is
_CLEARLY = 4.0  # sqrt(V): independent errors of a fit hardly get there (benchmarks/uncertainty.py)
_PERHAPS = 2.0  # M sqrt(V): a further rise of S may be luck
_CELL = 5.0  # correlation lengths: then about four in five of the pairs that err alike share a cell


def cell_side(points: FloatArray, errors: FloatArray) -> float:
    """Side of cells that hold most of what errors have in common, 0 where they have nothing."""
    return _CELL * correlation_length(points, errors)


def correlation_length(points: FloatArray, errors: FloatArray) -> float:
    """Distance up to which neighbouring points err alike, 0 where that might be chance."""
    step = -(-len(points) // _COMPARED)
    points, errors = points[::step], errors[::step]
    longest = np.abs(errors).max(initial=0.0)
    if len(points) < 2 or longest == 0:
        return 0.0
    errors = errors / longest  # so that no unit matters
    in_common = (errors @ errors.T)[~np.tri(len(points), dtype=bool)]
    distances = pdist(points)
    farthest = distances.max()
    if farthest == 0:
        return 0.0
    with np.errstate(divide="ignore"):  # points may coincide
        steps_down = np.minimum(-4 * np.log2(distances / farthest), _STEPS)
    bins = _STEPS - steps_down.astype(np.intp)
    together = np.cumsum(np.bincount(bins, in_common, minlength=_STEPS + 1))
    by_chance = np.cumsum(np.bincount(bins, in_common**2, minlength=_STEPS + 1))
    if not (together > _CLEARLY * np.sqrt(by_chance)).any():
        return 0.0
    like_each = np.maximum(1 + 2 * together / np.sum(errors**2), 1.0)  # M
    rise = np.triu(together - together[:, None])
    luck = like_each[:, None] * np.sqrt(np.maximum(by_chance - by_chance[:, None], 0.0))
    reached = int(np.argmax((rise <= _PERHAPS * luck).all(axis=1)))
    return float(farthest * 2.0 ** ((reached - _STEPS) / 4))


def cells(points: FloatArray, side: float, rng: np.random.Generator) -> Array:
    """Number of the cell that each point lies in, in a grid of random turn and origin."""
    d = points.shape[1]
    turned = points @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    corners = np.floor(turned / side + rng.random(d))
    numbers: Array = np.unique(corners, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers
