"""Draw the pictures of docs/registration.md and print the numbers in them.

python docs/make_registration_figures.py
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from inlier import Registration
from inlier.consensus.find import find_consensus
from inlier.plotting import QUIET, REAL, WRONG, as_png, new_figure
from inlier.transforms.least_squares import MapModel

IMAGES = Path(__file__).parent / "images"


def spots(rng, n=400, n_spots=12):
    """Patch to patch: each match joins one spot here to one spot there."""
    spot = rng.integers(n_spots, size=n)
    return tuple(rng.random((n_spots, 2))[spot] + 0.012 * rng.normal(size=(n, 2)) for _ in range(2))


def trajectories(rng, n=400):
    """Two smooth curves with the same time stamps."""
    time = np.linspace(0, 2 * np.pi, n)[:, None]
    waves = [wave(k * time) / k for k in range(1, 6) for wave in (np.cos, np.sin)]
    return tuple(0.3 * sum(wave * rng.normal(size=2) for wave in waves) for _ in range(2))


def walls(rng, n=400, n_patches=8):
    """Plane on plane, in space: patches of a wall, each slid along it."""
    patch, offset = rng.integers(n_patches, size=n), 0.05 * rng.normal(size=(n, 2))
    X, Y = (np.hstack([rng.random((n_patches, 2))[patch] + offset, np.zeros((n, 1))]) for _ in range(2))
    return tuple(side + 0.002 * rng.normal(size=(n, 3)) for side in (X, Y))


def motion_among_spots(rng, n=700, n_right=250):
    """A true motion, and mistakes that join spots to spots."""
    X, Y = spots(rng, n)
    angle = np.radians(35)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    X[:n_right] = rng.random((n_right, 2))
    Y[:n_right] = X[:n_right] @ turn.T + 0.01 * rng.normal(size=(n_right, 2))
    return X, Y


def in_words(p_value):
    """A p-value that may be nothing or all."""
    return "1" if p_value > 0.95 else "below 1e-300" if p_value < 1e-300 else f"{p_value:.0e}"


def clumps():
    """Four sets of matches, the map that most matches support, what is made of it; walls are seen from the front."""
    figure = new_figure(figsize=(14, 4))
    cases = (
        ("patch on patch", spots, 0),
        ("plane on plane", walls, 0),
        ("two trajectories", trajectories, 1),
        ("a motion among patches", motion_among_spots, 0),
    )
    for ax, (name, make, seed) in zip(figure.subplots(1, 4), cases, strict=True):
        X, Y = make(np.random.default_rng(seed))
        found = find_consensus(MapModel("rigid", X.shape[1], False), X, Y, np.ones(len(X)), None, 0.01, seed)
        motion = found.as_transformation(found.map)
        near = motion.residuals(X, Y) <= found.evidence.bound
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit = Registration(random_state=seed, raise_on_failure=False).fit(X, Y)
        moved, Y = motion(X)[:, :2], Y[:, :2]
        ax.scatter(*Y.T, s=6, color=QUIET, label="y")
        ax.scatter(*moved[~near].T, s=6, facecolors="none", edgecolors=QUIET, linewidths=0.6, label="x, carried")
        ax.scatter(*moved[near].T, s=12, color=REAL if fit.success_ else WRONG, label="x within the bound of its y")
        words = (
            f"{np.count_nonzero(near)} of {len(X)} matches agree\n"
            f"false alarms, counting matches: {in_words(found.evidence.p_value)}\n"
            f"p-value, counting places: {in_words(fit.detection_p_value_)}"
        )
        ax.set_title(f"{name}: {'sure' if fit.success_ else 'refused'}", fontsize=10)
        ax.set_xlabel(words, fontsize=8)
        ax.set(xticks=[], yticks=[], aspect="equal")
        print(f"{name}: {words.replace(chr(10), '; ')}; places {fit.n_places_:.0f}; l {fit.clump_length_:.2g}")
    figure.axes[0].legend(frameon=False, fontsize=7, loc="lower left")
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "clumps.png").write_bytes(as_png(figure, dpi=110))


if __name__ == "__main__":
    clumps()
