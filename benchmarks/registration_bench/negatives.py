"""Who claims a motion where there is none, and who is wrong where there is one: real feature matches, made clumps.

Real: ../shared/data/matches (feature matches of scans, 46 problems with a motion, 60 without), turned at random.
Made: mistakes that come together though no rigid motion relates the two sides (`MADE`). A method with a bound gets one
and a half spacings of the scans, or 0.03 of the made sets, whose extent is about 1. Peers offer a score to judge an
answer by (Open3D a fitness, KISS-Matcher a number of inliers, here as a share of the pairs): lowest, median and highest
are printed, and how often one where there is nothing exceeds the median of those that are right.

Pairs of nearest neighbours under a random motion support that motion, whatever it is: there is nothing to claim either.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from registration_bench.methods import METHODS, OURS, Answer

DEGREES, SPACINGS = 5.0, 5.0  # what counts as right, at the centroid
BOUND_SPACINGS, MADE_BOUND = 1.5, 0.03
PARTS = "made", "nearest", "scans"


def turn(rng):
    """Draw a rotation."""
    matrix = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return matrix * np.sign(np.linalg.det(matrix))


def spots(rng, n_spots, n=400, radius=0.02):
    """Join one spot here to one spot there."""
    spot = rng.integers(n_spots, size=n)
    return tuple(rng.random((n_spots, 3))[spot] + radius * rng.normal(size=(n, 3)) for _ in range(2))


def half_spots(rng, n_spots, n=400):
    """Half of the pairs spot to spot, half of them anywhere."""
    X, Y = spots(rng, n_spots, n)
    X[: n // 2], Y[: n // 2] = rng.random((2, n // 2, 3))
    return X, Y


def parts(rng, n_parts, radius, n=400):
    """Rigid parts, each turned and put elsewhere."""
    part, offset = rng.integers(n_parts, size=n), radius * rng.normal(size=(n, 3))
    turns = np.stack([turn(rng) for _ in range(n_parts)])
    moved = rng.random((n_parts, 3))[part] + np.einsum("nij,nj->ni", turns[part], offset)
    return rng.random((n_parts, 3))[part] + offset, moved + 0.002 * rng.normal(size=(n, 3))


def trajectories(rng, n=400):
    """Two smooth curves with the same time stamps."""
    time = np.linspace(0, 2 * np.pi, n)[:, None]
    waves = [wave(k * time) / k for k in range(1, 6) for wave in (np.cos, np.sin)]
    return tuple(0.3 * sum(wave * rng.normal(size=3) for wave in waves) for _ in range(2))


def walks(rng, n=400):
    """Two random walks."""
    return tuple(0.03 * np.cumsum(rng.normal(size=(n, 3)), axis=0) for _ in range(2))


def facade(rng, n=400, columns=8, rows=5):
    """The same corner of another window."""
    corner = rng.integers(4, size=n)

    def corners():
        window = rng.integers(columns * rows, size=n)
        x, y = window % columns + 0.5 * (corner % 2), 1.3 * (window // columns) + 0.8 * (corner // 2)
        return np.stack([x, y, np.zeros(n)], axis=1) / columns

    return corners() + 0.00125 * rng.normal(size=(n, 3)), corners() @ turn(rng).T + 0.00125 * rng.normal(size=(n, 3))


def wall(rng, n=400):
    """Anywhere on a wall with anywhere on a wall."""
    X, Y = rng.random((2, n, 3)) * [1, 1, 0.004]
    return X, Y @ turn(rng).T


def wall_patches(rng, n_patches, n=400, radius=0.05):
    """Patches of a wall, each slid along it."""
    patch, offset = rng.integers(n_patches, size=n), radius * rng.normal(size=(n, 2))
    X, Y = (np.hstack([rng.random((n_patches, 2))[patch] + offset, np.zeros((n, 1))]) for _ in range(2))
    return X + 0.002 * rng.normal(size=(n, 3)), Y @ turn(rng).T + 0.002 * rng.normal(size=(n, 3))


def shuffled(rng, n=400):
    """Independent mistakes."""
    X = rng.random((n, 3))
    return X, rng.permutation(X)


MADE = {
    "spot to spot, 4 spots": lambda rng: spots(rng, 4),
    "spot to spot, 10 spots": lambda rng: spots(rng, 10),
    "spot to spot, 30 spots": lambda rng: spots(rng, 30),
    "half of them, 10 spots": lambda rng: half_spots(rng, 10),
    "half of them, 30 spots": lambda rng: half_spots(rng, 30),
    "8 parts re-arranged, radius 0.1": lambda rng: parts(rng, 8, 0.1),
    "8 parts re-arranged, radius 0.02": lambda rng: parts(rng, 8, 0.02),
    "20 parts re-arranged, radius 0.05": lambda rng: parts(rng, 20, 0.05),
    "smooth trajectories": trajectories,
    "random walks": walks,
    "windows of a facade": facade,
    "wall on wall": wall,
    "8 patches of a wall, slid along it": lambda rng: wall_patches(rng, 8),
    "20 patches of a wall, slid along it": lambda rng: wall_patches(rng, 20),
    "independent": shuffled,
}


def shape(rng, kind, n):
    """A sphere, a solid box, a torus, the faces of a cube, a wavy sheet."""
    if kind == 0:
        points = rng.normal(size=(n, 3))
        return points / np.linalg.norm(points, axis=1, keepdims=True)
    if kind == 1:
        return rng.random((n, 3)) * [3, 2, 1]
    if kind == 2:
        u, v = 2 * np.pi * rng.random((2, n))
        return np.stack([(2 + 0.7 * np.cos(v)) * np.cos(u), (2 + 0.7 * np.cos(v)) * np.sin(u), 0.7 * np.sin(v)], axis=1)
    points = rng.random((n, 3))
    if kind == 3:
        points[np.arange(n), rng.integers(3, size=n)] = rng.integers(2, size=n)
        return points
    return np.stack([3 * points[:, 0], 3 * points[:, 1], 0.2 * np.sin(6 * points[:, 2])], axis=1)


def nearest(rng, number, n):
    """Each point of one shape with the nearest of another, after a random turn about the means."""
    X, points = shape(rng, number % 5, n), shape(rng, (number + number // 5) % 5, n)
    moved = (X - X.mean(axis=0)) @ turn(rng).T + points.mean(axis=0)
    return X, points[cKDTree(points).query(moved)[1]]


@dataclass(frozen=True)
class Outcome:
    """What a method made of one problem: right, wrong, refused, claimed or not claimed; and its score."""

    verdict: str
    score: float | None


def run(data: Path, methods: list[str], draws: int, seeds: int, jobs: int = 1, parts: Sequence[str] = PARTS) -> str:
    """The tables as text."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return "\n".join(_tables(pool, data, methods, draws, seeds, parts)) + "\n"


def _tables(pool: Executor, data: Path, methods: list[str], draws: int, seeds: int, chosen: Sequence[str]) -> list[str]:
    lines = []
    for name in methods:
        try:
            METHODS[name].fit(*spots(np.random.default_rng(0), 10), MADE_BOUND, 0)
        except ImportError:
            lines.append(f"{name}: not installed (pip install '.[peers]')")
            continue
        lines += on_made(pool, name, draws) if "made" in chosen else [f"{name}:"]
        lines += on_nearest(pool, name, draws) if "nearest" in chosen and name == OURS else []
        lines += on_scans(pool, name, data / "matches", seeds) if "scans" in chosen else []
        lines.append("")
    return lines


def on_made(pool: Executor, name: str, draws: int) -> list[str]:
    """Claims among mistakes that were made, and the scores of the claims."""
    lines = [f"{name}: no rigid motion relates the sets{'claims':>22}{'of':>6}"]
    for kind in MADE:
        found = list(pool.map(partial(on_one_made, name, kind), range(draws)))
        claims = [outcome for outcome in found if outcome.verdict == "claimed"]
        lines.append(f"    {kind:<50}{len(claims):>12}{draws:>6}{_scores(claims)}")
        print(lines[-1], flush=True)
    return lines


def on_nearest(pool: Executor, name: str, draws: int) -> list[str]:
    """Claims among pairs of nearest neighbours."""
    lines = []
    for n in (300, 1000, 3000):
        found = list(pool.map(partial(on_one_nearest, name, n), range(draws)))
        claims = [outcome for outcome in found if outcome.verdict == "claimed"]
        what = f"nearest neighbours of {n} points, random motion"
        lines.append(f"    {what:<50}{len(claims):>12}{draws:>6}")
        print(lines[-1], flush=True)
    return lines


def _scores(found: list[Outcome]) -> str:
    """Lowest, median and highest score, where there are any."""
    scores = [outcome.score for outcome in found if outcome.score is not None]
    return f"  score {min(scores):.2f} {np.median(scores):.2f} {max(scores):.2f}" if scores else ""


def on_one_made(name: str, kind: str, seed: int) -> Outcome:
    """Whether a method has an answer to mistakes alone."""
    return _without_motion(name, *MADE[kind](np.random.default_rng(1000 + seed)), MADE_BOUND, seed)


def on_one_nearest(name: str, n: int, seed: int) -> Outcome:
    """The same for nearest neighbours."""
    return _without_motion(name, *nearest(np.random.default_rng([7, n, seed]), seed, n), MADE_BOUND, seed)


def _without_motion(name: str, X, Y, bound: float, seed: int) -> Outcome:
    found = answer(name, X, Y, bound, seed)
    return Outcome("not claimed", None) if found is None else Outcome("claimed", found.score)


def on_scans(pool: Executor, name: str, folder: Path, seeds: int) -> list[str]:
    """Claims and errors on feature matches of scans."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        return [f"    feature matches of scans are not there ({folder.name} beside the project)"]
    turns = [(path, seed) for path in paths for seed in range(seeds)]
    found: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in pool.map(partial(on_one_scan, name), *zip(*turns, strict=True)):
        found[outcome.verdict].append(outcome)
    with_motion, without = (sum(path.name.startswith(kind) for path in paths) * seeds for kind in ("pos_", "neg_"))
    right, wrong, refused, claimed = (found[verdict] for verdict in ("right", "wrong", "refused", "claimed"))
    lines = [
        f"    feature matches of scans with a motion: {len(right)} right, {len(wrong)} wrong and claimed, "
        f"{len(refused)} refused, of {with_motion}{_scores(right)}",
        f"    feature matches of scans without: {len(claimed)} claimed of {without}{_scores(claimed)}",
    ]
    if right and right[0].score is not None:
        usual = np.median([outcome.score for outcome in right])
        above = sum(outcome.score > usual for outcome in claimed)
        lines.append(f"    of those without, {above} have a higher score than half of the right ones")
    return lines


def on_one_scan(name: str, path: Path, seed: int) -> Outcome:
    """Turn one problem at random, and say what the answer was."""
    rng = np.random.default_rng(100 + seed)
    with np.load(path) as arrays:
        X, Y, truth, spacing = (arrays[key].astype(float) for key in ("X", "Y", "transformation", "spacing"))
    turned, bound = turn(rng), BOUND_SPACINGS * float(spacing)
    if np.isnan(truth).any():
        return _without_motion(name, X, Y @ turned.T, bound, seed)
    found = answer(name, X, Y @ turned.T, bound, seed)
    if found is None:
        return Outcome("refused", None)
    rotation, shift = turned @ truth[:3, :3], turned @ truth[:3, 3]
    angle = np.degrees(np.arccos(np.clip((np.trace(found.rotation @ rotation.T) - 1) / 2, -1, 1)))
    centre = X.mean(axis=0)
    off = np.linalg.norm(found.rotation @ centre + found.translation - rotation @ centre - shift)
    return Outcome("right" if angle < DEGREES and off < SPACINGS * spacing else "wrong", found.score)


def answer(name: str, X, Y, bound: float, seed: int) -> Answer | None:
    """The answer of a method, if it has one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[name].fit(X, Y, bound, seed)
