"""Scenes that repeat or are alike by construction: is any motion between them called sure?

    python benchmarks/cloud_scenes.py                      # ten rooms, ten staircases, ten racks; ten furnished rooms

Rooms: two bare boxes of different sizes up to a tenth, each seen whole from inside. Staircases: one flight, seen at
steps that overlap by half. Racks: two ends of one row, boxes in other places. Nothing of them can be told, and no
motion should be sure. Furnished rooms are scanned twice from two places and should be found. Sizes, noise, numbers of
steps and bays are drawn anew for each; none of these scenes took part in setting a constant.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

from inlier import CloudRegistration  # noqa: E402

N = 25_000
Scene = tuple[np.ndarray, np.ndarray, bool]  # source, target, and whether the identity is right


def box(rng: np.random.Generator, n: int, size: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Points on the faces of a box, by their areas."""
    areas = np.repeat([size[1] * size[2], size[0] * size[2], size[0] * size[1]], 2)
    face, points = rng.choice(6, n, p=areas / areas.sum()), rng.uniform(-0.5, 0.5, (n, 3))
    points[np.arange(n), face // 2] = face % 2 - 0.5
    return points * size + centre


def noisy(rng: np.random.Generator, points: np.ndarray) -> np.ndarray:
    """With noise of nothing to a centimetre."""
    return points + rng.choice([0.0, 0.003, 0.01]) * rng.normal(size=points.shape)


def rooms(rng: np.random.Generator) -> Scene:
    """Two bare boxes of nearly one size."""
    size = rng.uniform([3, 4, 2.3], [5, 7, 3])
    other = size * rng.uniform(0.95, 1.05, 3)
    first, second = (box(rng, N, one, np.zeros(3)) for one in (size, other))
    return noisy(rng, first - rng.uniform(-1, 1, 3)), noisy(rng, second - rng.uniform(-1, 1, 3)), False


def staircases(rng: np.random.Generator) -> Scene:
    """One flight of equal steps between two cheeks, at two stretches that overlap by half."""
    n, (depth, rise, width) = int(rng.integers(8, 14)), rng.uniform([0.24, 0.15, 0.9], [0.34, 0.2, 1.4])

    def stretch(first: int) -> np.ndarray:
        step, u, v = rng.integers(first, first + n, N), rng.random(N), rng.random(N)
        is_flat = rng.random(N) < depth / (depth + rise)
        return np.c_[width * u, depth * (step + is_flat * v), rise * (step - ~is_flat * v)]

    return noisy(rng, stretch(0)), noisy(rng, stretch(n // 2)), False


def racks(rng: np.random.Generator) -> Scene:
    """Two ends of one row of shelves, boxes on them wherever they stand."""
    n, bay, height = int(rng.integers(4, 8)), rng.uniform(1.2, 2.5), rng.uniform(1.8, 2.6)

    def end() -> np.ndarray:
        parts = []
        for i in range(n):
            parts += [box(rng, 700, np.array([0.1, 1.0, height]), np.array([bay * i, 0, height / 2]))]
            for level in (0.1, 0.5, 0.9):
                shelf = np.array([bay * (i + 0.5), 0, level * height])
                parts += [box(rng, 700, np.array([bay - 0.1, 1.0, 0.04]), shelf)]
                place = shelf + np.array([rng.uniform(-0.3, 0.3) * bay, 0, 0.2])
                parts += [box(rng, 300, rng.uniform(0.2, 0.4, 3), place)]
        return np.vstack(parts)

    return noisy(rng, end()), noisy(rng, end()), False


def furnished(rng: np.random.Generator) -> Scene:
    """One room with six things in it, scanned twice; each scan misses a corner."""
    size = rng.uniform([3, 4, 2.3], [5, 7, 3])
    things = [(rng.uniform(0.3, 1.2, 3), rng.uniform(-0.4, 0.4, 2) * size[:2], rng.uniform(0, np.pi)) for _ in range(6)]

    def scan() -> np.ndarray:
        parts = [box(rng, N, size, np.zeros(3))]
        for thing, place, angle in things:
            turn = Rotation.from_euler("z", angle).as_matrix()
            parts.append(box(rng, 1500, thing, np.zeros(3)) @ turn.T + [*place, (thing[2] - size[2]) / 2])
        points = np.vstack(parts)
        corner = rng.choice([-1, 1], 2) * size[:2] / 2
        return points[np.linalg.norm(points[:, :2] - corner, axis=1) > 0.3 * size[0]]

    return noisy(rng, scan()), noisy(rng, scan()), True


SCENES: dict[str, Callable[[np.random.Generator], Scene]] = {
    "rooms": rooms,
    "staircases": staircases,
    "racks": racks,
    "furnished": furnished,
}


def main() -> None:
    """Fit all scenes, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(SCENES), default=list(SCENES))
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'scene':14s}{'sure':>6s}{'right':>7s}{'of':>4s}   p-values that were not refused by a rival")
    for name in options.only:
        sure = right = 0
        p_values = []
        for seed in range(options.seeds):
            rng = np.random.default_rng([seed, *name.encode()])
            source, target, is_there = SCENES[name](rng)
            turn, shift = Rotation.random(rng=rng).as_matrix(), rng.normal(size=3)
            found = CloudRegistration(random_state=seed, raise_on_failure=False).fit(source, target @ turn.T + shift)
            sure += found.success_
            if found.success_ and is_there:
                off = found.transformation_(source) - (source @ turn.T + shift)
                right += bool(np.sqrt((off**2).sum(axis=1).mean()) < 0.05 * np.ptp(source, axis=0).max())
            if found.success_ or "No motion is sure" in (found.why_not_ or ""):
                p_values.append(f"{found.detection_p_value_:.2g}")
        print(f"{name:14s}{sure:6d}{right:7d}{options.seeds:4d}   {' '.join(p_values)}", flush=True)


if __name__ == "__main__":
    main()
