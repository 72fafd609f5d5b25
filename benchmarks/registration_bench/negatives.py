"""Who claims a motion where there is none, and who is wrong where there is one: real feature matches, made clumps.

Real: ../shared/data/matches (feature matches of scans, 46 problems with a motion, 60 without), turned at random.
Made: mistakes that come together though no rigid motion relates the two sides (`MADE`). A method with a bound gets one
and a half spacings of the scans, or 0.03 of the made sets, whose extent is about 1.
"""

from __future__ import annotations

import warnings
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from registration_bench.methods import METHODS

DEGREES, SPACINGS = 5.0, 5.0  # what counts as right, at the centroid
BOUND_SPACINGS, MADE_BOUND = 1.5, 0.03


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
    "independent": shuffled,
}


def run(data: Path, methods: list[str], draws: int, seeds: int, jobs: int = 1) -> str:
    """Both tables as text."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return "\n".join(_tables(pool, data, methods, draws, seeds)) + "\n"


def _tables(pool: Executor, data: Path, methods: list[str], draws: int, seeds: int) -> list[str]:
    lines = []
    for name in methods:
        try:
            METHODS[name].fit(*spots(np.random.default_rng(0), 10), MADE_BOUND, 0)
        except ImportError:
            lines.append(f"{name}: not installed (pip install '.[peers]')")
            continue
        lines += [*on_made(pool, name, draws), *on_scans(pool, name, data / "matches", seeds), ""]
    return lines


def on_made(pool: Executor, name: str, draws: int) -> list[str]:
    """Claims among mistakes that were made."""
    lines = [f"{name}: no rigid motion relates the sets{'claims':>22}{'of':>6}"]
    for kind in MADE:
        claims = sum(pool.map(partial(claims_a_motion, name, kind), range(draws)))
        print(f"{name}: {kind}: {claims}", flush=True)
        lines.append(f"    {kind:<50}{claims:>12}{draws:>6}")
    return lines


def claims_a_motion(name: str, kind: str, seed: int) -> bool:
    """Whether a method has an answer to mistakes alone."""
    return answer(name, *MADE[kind](np.random.default_rng(1000 + seed)), MADE_BOUND, seed) is not None


def on_scans(pool: Executor, name: str, folder: Path, seeds: int) -> list[str]:
    """Claims and errors on feature matches of scans."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        return [f"    feature matches of scans are not there ({folder.name} beside the project)"]
    turns = [(path, seed) for path in paths for seed in range(seeds)]
    counts = Counter(pool.map(partial(verdict, name), *zip(*turns, strict=True)))
    with_motion, without = (sum(path.name.startswith(kind) for path in paths) * seeds for kind in ("pos_", "neg_"))
    return [
        f"    feature matches of scans with a motion: {counts['right']} right, {counts['wrong']} wrong and claimed, "
        f"{counts['refused']} refused, of {with_motion}",
        f"    feature matches of scans without: {counts['claimed']} claimed of {without}",
    ]


def verdict(name: str, path: Path, seed: int) -> str:
    """Turn one problem at random, and say what the answer was."""
    rng = np.random.default_rng(100 + seed)
    with np.load(path) as arrays:
        X, Y, truth, spacing = (arrays[key].astype(float) for key in ("X", "Y", "transformation", "spacing"))
    turned = turn(rng)
    found = answer(name, X, Y @ turned.T, BOUND_SPACINGS * float(spacing), seed)
    if np.isnan(truth).any():
        return "not claimed" if found is None else "claimed"
    if found is None:
        return "refused"
    rotation, shift = turned @ truth[:3, :3], turned @ truth[:3, 3]
    angle = np.degrees(np.arccos(np.clip((np.trace(found.rotation @ rotation.T) - 1) / 2, -1, 1)))
    centre = X.mean(axis=0)
    off = np.linalg.norm(found.rotation @ centre + found.translation - rotation @ centre - shift)
    return "right" if angle < DEGREES and off < SPACINGS * spacing else "wrong"


def answer(name: str, X, Y, bound: float, seed: int):
    """The answer of a method, its warnings aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[name].fit(X, Y, bound, seed)
