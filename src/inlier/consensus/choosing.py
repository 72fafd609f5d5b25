"""Pairs that were chosen because they are near: after which motion, near the one that was fitted to them?

A motion that is fitted to chosen pairs is not the one that chose them, and after it some lose their ties. So it is
moved a little, to where as many as possible win: each row i with another point z that is nearer than its own y is
beyond the plane half-way between the two, by

    s_i = (|x_i - z|^2 - |x_i - y_i|^2) / (2 |z - y_i|) < 0,

and the sum of these squares is made as small as it gets, by Newton's method (planes and neighbours anew in each round).
Where pairs were chosen, nothing is left: all win, or nearly all. Right pairs with a noise of the order of their spacing
lose as many as before but for some, since a motion has few freedoms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm
from scipy.spatial import cKDTree

from inlier._typing import FloatArray

_ROUNDS = 12
_RIDGE = 1e-3  # of the mean curvature: what nothing tells does not move
_SAME = 1e-9
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Move:
    """A turn about a centre, and a shift."""

    turn: FloatArray
    shift: FloatArray
    centre: FloatArray

    def __call__(self, points: FloatArray) -> FloatArray:
        """Move points."""
        moved: FloatArray = (points - self.centre) @ self.turn.T + (self.centre + self.shift)
        return moved


def choosing_move(
    images: FloatArray, own: FloatArray, all_images: FloatArray, everyone: FloatArray, *, is_mutual: bool
) -> Move:
    """The small move of images after which most have their own partner nearest of everyone, and also the reverse."""
    d, centre = images.shape[1], images.mean(axis=0)
    size = max(float(np.sqrt(((images - centre) ** 2).sum(axis=1).mean())), _TINY)
    turns = _generators(d) / size
    move, best, least = Move(np.eye(d), np.zeros(d), centre), None, np.inf
    tree = cKDTree(everyone)
    for _ in range(_ROUNDS):
        here = move(images)
        margins = [_margins(here, own, tree)]
        if is_mutual:
            margins.append(_margins_of_images(own, here, cKDTree(move(all_images))))
        beyond = np.concatenate([margin for margin, _ in margins])
        loses = beyond < 0
        left = float((beyond[loses] ** 2).sum())
        if best is None or left < least:
            best, least = move, left
        if not loses.any():
            break
        slopes = np.vstack([_slopes(parts, turns, centre) for _, parts in margins])[loses]
        curvature = slopes.T @ slopes
        curvature += _RIDGE * np.trace(curvature) / len(curvature) * np.eye(len(curvature))
        step = np.linalg.solve(curvature, -slopes.T @ beyond[loses])
        turn = expm(np.tensordot(step[: len(turns)], turns, axes=1))
        move = Move(turn @ move.turn, turn @ move.shift + step[len(turns) :], centre)
    assert best is not None
    return best


def _generators(d: int) -> FloatArray:
    """The turns of each plane of axes, infinitely small."""
    i, j = np.triu_indices(d, 1)
    found = np.zeros((len(i), d, d))
    found[np.arange(len(i)), i, j], found[np.arange(len(i)), j, i] = -1.0, 1.0
    return found


_Parts = list[tuple[FloatArray, FloatArray]]  # points that move, and how the margin changes with them


def _margins(x: FloatArray, own: FloatArray, others: cKDTree) -> tuple[FloatArray, _Parts]:
    """How far x lies on the side of its own, of the plane between that and the nearest other; x moves."""
    to_own, to_other, other = _nearest_other(x, own, others)
    apart = np.maximum(np.linalg.norm(other - own, axis=1), _TINY)
    return (to_other**2 - to_own**2) / (2 * apart), [(x, (own - other) / apart[:, None])]


def _margins_of_images(y: FloatArray, own: FloatArray, others: cKDTree) -> tuple[FloatArray, _Parts]:
    """The same of y among images, which move."""
    to_own, to_other, other = _nearest_other(y, own, others)
    apart = np.maximum(np.linalg.norm(other - own, axis=1), _TINY)
    parts = [(other, (other - y) / apart[:, None]), (own, (y - own) / apart[:, None])]
    return (to_other**2 - to_own**2) / (2 * apart), parts


def _nearest_other(x: FloatArray, own: FloatArray, others: cKDTree) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distances to the own and to the nearest other point, and that point."""
    distances, rows = others.query(x, k=2)
    to_own = np.linalg.norm(x - own, axis=1)
    is_own = np.abs(distances[:, 0] - to_own) <= _SAME * (1 + to_own)
    return to_own, np.where(is_own, *distances.T[::-1]), others.data[np.where(is_own, *rows.T[::-1])]


def _slopes(parts: _Parts, turns: FloatArray, centre: FloatArray) -> FloatArray:
    """How margins change as the points that move are turned and shifted."""
    by_turn = sum(np.einsum("ni,gij,nj->ng", change, turns, points - centre, optimize=True) for points, change in parts)
    by_shift = sum(change for _, change in parts)
    return np.hstack([np.asarray(by_turn), np.asarray(by_shift)])
