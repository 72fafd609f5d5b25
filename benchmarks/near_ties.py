"""Pairs that were chosen because they are near are refused, or it is said: how often, and of how many right ones?

    python benchmarks/near_ties.py                      # 60 draws of each kind
    python benchmarks/near_ties.py --first 1000         # others

Right: points on one of six shapes, some or all of which follow a motion, with noise of a twentieth of the median
spacing to all of it (or ten times more at one end than at the other), and the rest paired at random. Chosen: two
unrelated clouds of one shape, each point of the one with the nearest of the other after some motion, if that is mutual;
or one way, three tenths paired at random. A right motion should be found without a word; of chosen pairs no motion
should be claimed without one.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from scipy.spatial import cKDTree  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

from inlier import Registration  # noqa: E402
from inlier.exceptions import DependenceWarning, NoConsensusError  # noqa: E402

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # X, Y, and where X belongs, if anywhere
SHAPES = ("blob", "sphere", "terrain", "room", "grid", "drive")
SHARES, NOISES = (1.0, 0.5, 0.2), (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
OF_EXTENT = 0.05  # what is right
ANSWERS = ("silent", "warned", "chosen", "not sure", "wrong")  # two kinds of refusals: as chosen, for something else


def shape(rng: np.random.Generator, name: str, n: int) -> np.ndarray:
    """Points of a shape of size one or so."""
    if name == "blob":
        return rng.normal(size=(n, 3))
    if name == "terrain":
        x, y = rng.uniform(-3, 3, (2, n))
        return np.c_[x, y, 0.4 * np.sin(2 * x) * np.cos(1.5 * y)]
    if name == "grid":
        side = int(np.ceil(n ** (1 / 3)))
        lattice = np.stack(np.meshgrid(*[np.linspace(-1, 1, side)] * 3), -1).reshape(-1, 3)
        return rng.permutation(lattice)[:n]
    if name == "drive":
        heading = np.cumsum(rng.normal(scale=0.1, size=n))
        return np.c_[np.cumsum(np.c_[np.cos(heading), np.sin(heading)], axis=0), 0.01 * rng.normal(size=n)]
    points = rng.normal(size=(n, 3)) if name == "sphere" else rng.uniform(-1, 1, (n, 3))
    length = np.linalg.norm(points, axis=1) if name == "sphere" else np.abs(points).max(axis=1)
    return points / length[:, None] * (1.0 if name == "sphere" else np.array([2, 1.5, 1]))


def right(rng: np.random.Generator, name: str, uneven: bool = False) -> Pairs:
    """Pairs of which a share follows a motion."""
    n, share, noise = int(rng.integers(100, 600)), rng.choice(SHARES), rng.choice(NOISES)
    X, turn = shape(rng, name, n), Rotation.random(rng=rng).as_matrix()
    image = X @ turn.T + rng.normal(size=3)
    noise *= np.median(cKDTree(X).query(X, k=2)[0][:, 1])
    size = 10.0 ** rng.permutation(np.argsort(np.argsort(X[:, 0])) / n)[:, None] if uneven else 1.0
    Y, is_wrong = image + noise * size * rng.normal(size=X.shape), rng.random(n) > share
    Y[is_wrong] = rng.permutation(Y)[: is_wrong.sum()]
    return X, Y, image


def chosen(rng: np.random.Generator, name: str, is_mutual: bool = True) -> Pairs:
    """Nearest neighbours of unrelated clouds after some motion."""
    X, Y = shape(rng, name, 400), shape(rng, name, 500)
    moved = X @ Rotation.random(rng=rng).as_matrix().T + 0.1 * rng.normal(size=3)
    there, rows = cKDTree(Y).query(moved)[1], np.arange(len(X))
    if is_mutual:
        rows = rows[cKDTree(moved).query(Y)[1][there] == rows]
        return X[rows], Y[there[rows]], None
    other = rng.random(len(X)) < 0.3
    return X, Y[np.where(other, rng.integers(0, len(Y), len(X)), there)], None


def verdict(pairs: Pairs, seed: int) -> str:
    """What a fit comes to."""
    X, Y, image = pairs
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = Registration(random_state=seed).fit(X, Y)
        except NoConsensusError as error:
            return "chosen" if "chosen because" in str(error) else "not sure"
    if any(issubclass(one.category, DependenceWarning) for one in said):
        return "warned"
    if image is None:
        return "silent"
    off = np.sqrt(((found.transformation_(X) - image) ** 2).sum(axis=1).mean())
    return "silent" if off < OF_EXTENT * np.ptp(X, axis=0).max() else "wrong"


def show(kind: str, make: Callable[[np.random.Generator], Pairs], seeds: range) -> None:
    """Fit all draws of a kind, and print a line."""
    found = [verdict(make(np.random.default_rng([seed, *kind.encode()])), seed) for seed in seeds]
    counts = "".join(f"{found.count(one):9d}" for one in ANSWERS)
    print(f"{kind:28s}{len(found):7d}{counts}", flush=True)


def main() -> None:
    """Read the command line, and print a line a kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    print(f"{'':28s}{'draws':>7s}" + "".join(f"{one:>9s}" for one in ANSWERS))
    for name in SHAPES:
        show(f"right, {name}", lambda rng, name=name: right(rng, name), seeds)
    show("right, uneven noise", lambda rng: right(rng, str(rng.choice(SHAPES)), uneven=True), seeds)
    for name in SHAPES[:-1]:
        show(f"mutual nearest, {name}", lambda rng, name=name: chosen(rng, name), seeds)
    for name in ("room", "blob"):
        show(f"nearest, some not, {name}", lambda rng, name=name: chosen(rng, name, is_mutual=False), seeds)


if __name__ == "__main__":
    main()
