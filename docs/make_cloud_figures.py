"""Draw the picture of docs/clouds.md: python docs/make_cloud_figures.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.spatial import cKDTree

mpl.use("Agg")
import matplotlib.pyplot as plt

from inlier import CloudRegistration
from inlier.datasets import make_scans

IMAGES = Path(__file__).parent / "images"
SOURCE, TARGET = "#1E88D0", "#888888"


def main() -> None:
    """Two scans as they came, their matches, and one on top of the other."""
    scans = make_scans(rng=0)
    found = CloudRegistration(random_state=0).fit(scans.source, scans.target)
    moved = found.transformation_(scans.source)
    beside = scans.source - scans.source.mean(axis=0) + scans.target.mean(axis=0) + [0, 170, 0]
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for axis in axes:
        axis.set_aspect("equal")
        axis.set_axis_off()
    for axis in axes[:2]:
        axis.plot(*scans.target[:, 1:].T, ",", color=TARGET)
        axis.plot(*beside[:, 1:].T, ",", color=SOURCE)
    x, y = found.matches_
    x = x - scans.source.mean(axis=0) + scans.target.mean(axis=0) + [0, 170, 0]
    right = found.transformation_.residuals(*found.matches_) <= 1.5 * found.spacing_
    some = np.random.default_rng(0).permutation(len(x))[:250]
    for k in some:
        axes[1].plot(*np.stack([x[k], y[k]])[:, 1:].T, color="#2E9E73" if right[k] else "#C2410C", lw=0.4, alpha=0.6)
    distance = cKDTree(scans.target).query(moved)[0] / found.spacing_
    axes[2].plot(*scans.target[:, 1:].T, ",", color=TARGET)
    axes[2].scatter(*moved[:, 1:].T, c=np.clip(distance, 0, 4), s=0.6, cmap="viridis", lw=0)
    titles = (
        "two clouds, nothing else",
        f"what looks alike: {right.mean():.0%} of {right.size:,} matches right",
        "on top of each other; colour: distance",
    )
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=10)
    figure.savefig(IMAGES / "clouds.png", dpi=110)


if __name__ == "__main__":
    main()
