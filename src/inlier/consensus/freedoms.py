"""Freedoms of a motion: turns and slides that the matches which do not follow it would support as well.

Matches of a vase have the right height and any angle; those of a corridor the right wall and any place along it. A
search finds the angle, or the place, that happens to have the most of them. Yet the others are no strangers: they
follow the motion T up to a slide along one line or in one plane, or up to a turn about one axis. With p_i = T x_i,

    along a line     y_i - p_i is parallel to u
    in a plane       n . (y_i - p_i) = 0
    about an axis    u . (y_i - p_i) = 0,  and y_i and p_i are equally far from the axis through c along u,

up to the noise bound. One pair suggests a line, two suggest a plane (its normal is the cross product of both steps) and
an axis along its normal (c is where their planes of symmetry meet). The freedom that most places follow beyond chance
is the one that is asked about: of K places that follow T up to it, k follow T itself. If chance, which knows of the
freedom, has a place there as often as re-paired places that follow it, are k of K a wonder? And has no other turn or
slide as many? Else the motion is not sure in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.consensus.evidence import MOST_FALSE_ALARMS
from inlier.consensus.places import Places, Support, log_binomial_tail

_TRIED = 40  # lines, planes and axes, each, and other turns and slides
_AT_ONCE = 8  # of these, so that what is worked out stays in the cache
_LOOKED_AT = 800  # pairs
_RE_PAIRED, _RE_PAIRED_AGAIN = 4_000, 40_000  # pairs that show what strangers do, for each and for the one asked about
_FEWEST = 40  # pairs that do not follow the motion
_CLEARLY = -20.0  # logarithm of the chance of so many followers, for a freedom to be asked about
_AHEAD = 3.0  # standard deviations by which a motion must be ahead of another turn or slide of it
_ELSEWHERE = 3.0  # bounds beyond which another turn or slide begins
_OPEN = 0.5  # of the range that strangers have, from which on nothing is known in a freedom
_MOST = 95  # per cent of the followers, whose range it is
_TINY = 1e-300

_Pairs = tuple[FloatArray, FloatArray]  # images of points, and their partners


@dataclass(frozen=True, eq=False)
class Freedom:
    """A turn or a slide of a motion that other pairs follow as well.

    Attributes
    ----------
    kind : {"slide along a line", "slide in a plane", "turn about an axis"}
        What is free.
    direction : ndarray of shape (d,)
        Of the line, of the plane's normal, or of the axis, in the space of y.
    point : ndarray of shape (d,)
        That an axis goes through, in the space of y.
    reach : float
        How far the pairs that follow it go either way: degrees of a turn, units of y of a slide.
    is_open : bool
        Whether that is about as far as strangers go, so that nothing is known.
    """

    kind: str
    direction: FloatArray
    point: FloatArray
    reach: float
    is_open: bool

    def __str__(self) -> str:
        along = ", ".join(f"{part:.2f}" for part in self.direction)
        where = {"slide in a plane": "across"}.get(self.kind, "along")
        unit = " degrees" if self.kind.startswith("turn") else ""
        return f"a {self.kind} {where} ({along}), by up to {self.reach:.3g}{unit}"


@dataclass(frozen=True, eq=False)
class _Family:
    """All motions that differ from one by one kind of turn or slide."""

    kind: str
    direction: FloatArray
    point: FloatArray

    def off(self, images: FloatArray, partners: FloatArray) -> FloatArray:
        """How far each pair is from following one of them."""
        steps = partners - images
        along = steps @ self.direction
        if self.kind == "slide in a plane":
            return np.abs(along)
        if self.kind == "slide along a line":
            return np.sqrt(np.maximum(np.einsum("ij,ij->i", steps, steps) - along**2, 0.0))
        return np.hypot(along, self._from_axis(partners) - self._from_axis(images))

    def _from_axis(self, points: FloatArray) -> FloatArray:
        arms = points - self.point
        return np.sqrt(np.maximum(np.einsum("ij,ij->i", arms, arms) - (arms @ self.direction) ** 2, 0.0))

    def angles(self, images: FloatArray, partners: FloatArray) -> FloatArray:
        """By how much each pair is turned about the axis, in radians."""
        first, second = np.linalg.svd(self.direction[None])[2][1:]
        turns = [np.arctan2((p - self.point) @ second, (p - self.point) @ first) for p in (partners, images)]
        return np.angle(np.exp(1j * (turns[0] - turns[1])))

    def extents(self, images: FloatArray, partners: FloatArray) -> FloatArray:
        """How far each pair goes: lengths of slides, or angles in degrees."""
        if self.kind == "turn about an axis":
            return np.degrees(self.angles(images, partners))
        steps = partners - images
        return steps @ self.direction if self.kind == "slide along a line" else np.linalg.norm(steps, axis=1)

    def others(self, images: FloatArray, partners: FloatArray, tried: Array) -> Iterator[FloatArray]:
        """The images under motions of the family that bring one pair each together."""
        if self.kind != "turn about an axis":
            yield from (images + partners[i] - images[i] for i in tried)
            return
        arms = images - self.point
        along = np.outer(arms @ self.direction, self.direction)
        flat, aside = arms - along, np.cross(self.direction, arms)
        for angle in self.angles(images[tried], partners[tried]):
            yield self.point + along + np.cos(angle) * flat + np.sin(angle) * aside


def find_freedom(places: Places, support: Support, rng: np.random.Generator) -> Freedom | None:
    """The freedom in which a motion in space is not sure; None where it is sure in all."""
    bound, pairs = support.bound, places.one_a_place(2 * support.bound)
    images, partners = pairs.x.T @ support.map.linear[0].T + support.map.shift[0], pairs.y.T
    is_near = np.linalg.norm(partners - images, axis=1) <= bound
    far = np.flatnonzero(~is_near)
    if not len(pairs.x) == len(pairs.y) == 3 or far.size < max(_FEWEST, int(np.count_nonzero(is_near))):
        return None
    some = rng.permutation(far)[:_LOOKED_AT]
    asked = _most_followed((images[some], partners[some]), _re_paired(images, partners, _RE_PAIRED, rng), bound, rng)
    if asked is None:
        return None
    follows = asked.off(images, partners) <= bound
    followers = images[follows], partners[follows]
    strangers = _following(asked, _re_paired(images, partners, _RE_PAIRED_AGAIN, rng), bound)
    if _is_sure(places, support, asked, followers, strangers, rng):
        return None
    others = _far_ones(*followers, bound)
    reach, of_strangers = (float(np.percentile(np.abs(asked.extents(*pair)), _MOST)) for pair in (others, strangers))
    return Freedom(asked.kind, asked.direction, asked.point, reach, reach > _OPEN * of_strangers)


def _is_sure(
    places: Places,
    support: Support,
    asked: _Family,
    followers: _Pairs,
    strangers: _Pairs,
    rng: np.random.Generator,
) -> bool:
    """Whether so many followers are at one place of the freedom that chance, which knows it, would not have them."""
    bound, n = support.bound, len(followers[0])
    k = n - len(_far_ones(*followers, bound)[0])
    at_one = len(strangers[0]) - len(_far_ones(*strangers, bound)[0])
    by_chance = (at_one + 1) / (len(strangers[0]) + 1)
    s = places.model.fewest_pairs
    if math.log(n) + log_binomial_tail(k - s, n, by_chance) > math.log(MOST_FALSE_ALARMS):
        return False
    images, partners = _far_ones(*followers, bound)
    elsewhere = np.linalg.norm(partners - images, axis=1) > max(_ELSEWHERE * bound, places.length)
    tried = rng.permutation(np.flatnonzero(elsewhere))[:_TRIED]  # nearer ones are near misses of the motion itself
    most = max(
        (
            int(np.count_nonzero(np.linalg.norm(partners - others, axis=1) <= bound))
            for others in asked.others(images, partners, tried)
        ),
        default=0,
    )
    return k - most > _AHEAD * math.sqrt(k + most)


def _far_ones(images: FloatArray, partners: FloatArray, bound: float) -> _Pairs:
    far = np.linalg.norm(partners - images, axis=1) > bound
    return images[far], partners[far]


def _re_paired(images: FloatArray, partners: FloatArray, n: int, rng: np.random.Generator) -> _Pairs:
    i, j = rng.integers(len(images), size=(2, n))
    other = i != j
    return images[i[other]], partners[j[other]]


def _following(family: _Family, pairs: _Pairs, bound: float) -> _Pairs:
    follows = family.off(*pairs) <= bound
    return pairs[0][follows], pairs[1][follows]


def _most_followed(far: _Pairs, strangers: _Pairs, bound: float, rng: np.random.Generator) -> _Family | None:
    """The line, plane or axis that most pairs follow beyond chance, if they clearly do."""
    best, lowest, n, m = None, _CLEARLY, len(far[0]), len(strangers[0]) + 1
    families = list(_suggested(*far, rng))
    followed = zip(families, _count_followers(families, far, bound), strict=True)
    worth_asking = [one for one in followed if log_binomial_tail(one[1], n, 1 / m) < lowest]
    again = _count_followers([family for family, _ in worth_asking], strangers, bound)
    for (family, found), by_chance in zip(worth_asking, again, strict=True):
        log_chance = log_binomial_tail(found, n, (by_chance + 1) / m)
        if log_chance < lowest:
            best, lowest = family, log_chance
    return best


def _count_followers(families: list[_Family], pairs: _Pairs, bound: float) -> list[int]:
    """How many pairs follow each family: `_Family.off` of all, as far as that takes, a few at a time."""
    images, partners = pairs
    steps, counts = np.ascontiguousarray((partners - images).T), list[int]()
    squared = np.einsum("ij,ij->j", steps, steps)
    for start in range(0, len(families), _AT_ONCE):
        some = families[start : start + _AT_ONCE]
        off = np.array([one.direction for one in some]) @ steps
        off *= off
        for one, row in zip(some, off, strict=True):
            if one.kind == "slide along a line":
                np.subtract(squared, row, out=row)
            follow = row <= bound**2
            if one.kind == "turn about an axis":
                level = np.flatnonzero(follow)
                follow = one.off(images[level], partners[level]) <= bound
            counts.append(int(np.count_nonzero(follow)))
    return counts


def _suggested(images: FloatArray, partners: FloatArray, rng: np.random.Generator) -> Iterator[_Family]:
    """What one or two pairs suggest."""
    i, j = rng.integers(len(images), size=(2, _TRIED))
    steps, middle = partners - images, (partners + images) / 2
    across = np.cross(steps[i], steps[j])
    for a, b, normal in zip(i.tolist(), j.tolist(), across, strict=True):
        length, size = np.linalg.norm(steps[a]), np.linalg.norm(normal)
        yield _Family("slide along a line", steps[a] / max(length, _TINY), middle[a])
        if size <= 1e-3 * length * np.linalg.norm(steps[b]):
            continue
        normal = normal / size
        yield _Family("slide in a plane", normal, middle[a])
        planes = np.array([steps[a], steps[b], normal])
        reached = np.array([steps[a] @ middle[a], steps[b] @ middle[b], normal @ middle[a]])
        yield _Family("turn about an axis", normal, np.linalg.solve(planes, reached))
