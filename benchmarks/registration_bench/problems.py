"""Registration problems with a known motion: drawn on the spot, or read from real putative matches.

A drawn problem: n points of a smooth closed surface in a unit cube, turned and moved at random, noise 0.01 in each
coordinate; a share of the partners is replaced:

uniform     anywhere in a ball as large as that around the cube, about the mean of the true points
shifted     in a ball of that size whose centre lies one cube side off that mean
re-paired   another true point: the partners change places in a cycle
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import special_ortho_group

NOISE = 0.01
BOUND = 0.055  # a residual of three coordinates is above 5.5 sigma once in a million
PLACEMENTS = ("uniform", "shifted", "re-paired")
DEGREES, SHIFT = 5.0, 0.05  # success: rotation and translation errors below
DEGREES_2D = 2.0


@dataclass(frozen=True, eq=False)
class Problem:
    """Pairs, how they were made, and the noise bound for those who need one."""

    X: np.ndarray
    Y: np.ndarray
    real: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray
    bound: float

    @property
    def agrees(self) -> np.ndarray:
        """Pairs that nobody can call wrong: real ones, and those within the bound of the true motion by chance."""
        residuals = np.linalg.norm(self.Y - self.X @ self.rotation.T - self.translation, axis=1)
        return self.real | (residuals <= self.bound)


@dataclass(frozen=True)
class Cell:
    """One drawn problem, as what it takes to draw it again."""

    n: int
    rate: float
    placement: str
    draw: int

    def make(self) -> Problem:
        """Draw the problem."""
        seed = [self.draw, self.n, round(1000 * self.rate), PLACEMENTS.index(self.placement)]
        rng = np.random.default_rng(seed)
        X = surface(self.n, rng)
        rotation, translation = special_ortho_group.rvs(3, random_state=rng), rng.uniform(-1, 1, 3)
        Y = X @ rotation.T + translation + NOISE * rng.standard_normal(X.shape)
        wrong = rng.permutation(self.n)[: self.n - self.n_real]
        if self.placement == "re-paired":
            Y[wrong] = Y[np.roll(wrong, 1)]
        else:
            away = 0.0 if self.placement == "uniform" else special_ortho_group.rvs(3, random_state=rng)[0]
            Y[wrong] = in_ball(wrong.size, rng) + translation + away
        real = np.ones(self.n, dtype=bool)
        real[wrong] = False
        return Problem(X, Y, real, rotation, translation, BOUND)

    @property
    def n_real(self) -> int:
        """How many pairs are real."""
        return round((1 - self.rate) * self.n)


@dataclass(frozen=True)
class RealCell:
    """Putative matches from a file, their target turned at random so that a small motion helps nobody."""

    path: Path
    draw: int
    bound_factor: float = 1.0
    thinned_to: float = 1.0

    def make(self) -> Problem:
        """Read the problem, leave out real pairs until they are no more than the share asked for, and turn it."""
        with np.load(self.path) as arrays:
            X, Y, real = arrays["X"].astype(float), arrays["Y"].astype(float), arrays["inlier"].astype(bool)
            rotation, translation, bound = arrays["R"], arrays["t"], float(arrays["tau"])
        rng = np.random.default_rng([self.draw, len(X)])
        turn = special_ortho_group.rvs(X.shape[1], random_state=rng)
        if self.thinned_to < 1:
            kept = self._thinned(np.linalg.norm(Y - X @ rotation.T - translation, axis=1) / bound, rng)
            X, Y, real = X[kept], Y[kept], real[kept]
        return Problem(X, Y @ turn.T, real, turn @ rotation, turn @ translation, self.bound_factor * bound)

    def _thinned(self, residual: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Keep some of the pairs up to four bounds: near misses go in proportion, or they would stand for real ones."""
        near, wrong = np.flatnonzero(residual <= 4), np.flatnonzero(residual > 4)
        wanted = self.thinned_to / (1 - self.thinned_to) * wrong.size
        share = min(1.0, wanted / max(np.count_nonzero(residual <= 1), 1))
        return rng.permutation(np.concatenate([rng.permutation(near)[: round(share * near.size)], wrong]))


def surface(count: int, rng: np.random.Generator) -> np.ndarray:
    """Points on the surface of a body with a head and two ears; longest side 1, mean 0."""
    centre, size = _extent()
    return (_body(_directions(count, rng)) - centre) / size


def in_ball(count: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform in a ball with the radius of that through the corners of the unit cube."""
    radii = np.sqrt(3) / 2 * rng.uniform(size=(count, 1)) ** (1 / 3)
    return radii * _directions(count, rng)


def _directions(count: int, rng: np.random.Generator) -> np.ndarray:
    vectors = rng.standard_normal((count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _body(directions: np.ndarray) -> np.ndarray:
    """Radius 1, raised by bumps of the given direction, height and sharpness."""
    bumps = (
        ((0.8, 0.1, 0.6), 0.8, 6.0),  # head
        ((0.6, 0.35, 0.9), 1.1, 40.0),  # ears
        ((0.5, -0.25, 1.0), 1.3, 40.0),
        ((-1.0, 0.1, -0.2), 0.3, 30.0),  # tail
        ((0.1, 0.2, -1.0), -0.3, 1.5),  # a flat foot
    )
    radius = np.ones((len(directions), 1))
    for towards, height, sharpness in bumps:
        cosine = directions @ (np.array(towards) / np.linalg.norm(towards))
        radius[:, 0] += height * np.exp(sharpness * (cosine - 1))
    return radius * directions


@cache
def _extent() -> tuple[np.ndarray, float]:
    """Mean of the body's points, and the longest side of its box."""
    points = _body(_directions(100_000, np.random.default_rng(0)))
    return points.mean(axis=0), float(np.ptp(points, axis=0).max())
