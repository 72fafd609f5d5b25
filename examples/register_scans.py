"""Register two scans of a room from putative matches, most of them wrong.

A scanner looks at a room from two places. Each scan has its own points; a point is described by the colour around it,
and its match is the point of the other scan with the most similar colour. Colours repeat and are noisy, and the scans
overlap only in part, so most matches are wrong. No noise bound is given.

    python examples/register_scans.py [--out FOLDER]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from _picture import folder_for_pictures, write_picture
from inlier import Registration, SimilarityTransformation
from inlier.plotting import QUIET, REAL, WRONG, new_figure

TOLERANCE = 0.25  # metres; colours change slowly, so a right match is only near


@dataclass(frozen=True, eq=False)
class Scans:
    """Two scans, the matches between them (rows of source and target), and how the scanner moved."""

    source: np.ndarray
    target: np.ndarray
    matches: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray

    def true_matches(self) -> np.ndarray:
        """Matches that join the same place of the room, known only because the room is made up."""
        moved = self.source[self.matches[:, 0]] @ self.rotation.T + self.translation
        return np.linalg.norm(moved - self.target[self.matches[:, 1]], axis=1) < TOLERANCE


def make_scans(rng: np.random.Generator) -> Scans:
    """Scan the room twice, from two places, and match by colour."""
    paint = rng.normal(size=(3, 8), scale=5.0), rng.uniform(0, 2 * np.pi, 8)  # eight waves of colour through the room
    rotation = Rotation.from_euler("zyx", [130, 15, -10], degrees=True).as_matrix()
    translation = np.array([1.2, -0.8, 0.3])
    views = [room_points(4000, rng), room_points(4000, rng)]
    views = [views[0][views[0][:, 0] < 2.6], views[1][views[1][:, 0] > 1.0]]  # what each place sees
    colours = [np.sin(view @ paint[0] + paint[1]) + 0.45 * rng.standard_normal((len(view), 8)) for view in views]
    scans = [view + 0.01 * rng.standard_normal(view.shape) for view in views]
    nearest = cKDTree(colours[1]).query(colours[0])[1]
    matches = np.column_stack([np.arange(len(nearest)), nearest])
    return Scans(scans[0], scans[1] @ rotation.T + translation, matches, rotation, translation)


def room_points(count: int, rng: np.random.Generator) -> np.ndarray:
    """Points on the floor, two walls, a table and a ball of a room of 4 x 3 x 2.5 metres."""
    u, v = rng.uniform(size=(2, count))
    floor = np.column_stack([4 * u, 3 * v, 0 * u])
    back = np.column_stack([4 * u, 0 * u + 3, 2.5 * v])
    side = np.column_stack([0 * u, 3 * u, 2.5 * v])
    table = np.column_stack([1.2 + 1.4 * u, 0.8 + 0.9 * v, 0 * u + 0.75])
    upward = rng.standard_normal((count, 3))
    ball = np.array([1.9, 1.2, 1.05]) + 0.3 * upward / np.linalg.norm(upward, axis=1, keepdims=True)
    surfaces = np.stack([floor, back, side, table, ball])
    return surfaces[rng.choice(5, count, p=[0.3, 0.25, 0.15, 0.15, 0.15]), np.arange(count)]


def register(scans: Scans) -> Registration:
    """Find the motion from the matches alone."""
    source, target = scans.source[scans.matches[:, 0]], scans.target[scans.matches[:, 1]]
    # In a room, wrong matches lie near the right place by chance now and then: 1 % of those would be too strict.
    return Registration("rigid", alpha=0.05, random_state=0).fit(source, target)


def rotation_error(transformation: SimilarityTransformation, rotation: np.ndarray) -> float:
    """Angle between the found and the true rotation, in degrees."""
    return float(np.degrees(Rotation.from_matrix(transformation.rotation @ rotation.T).magnitude()))


def picture(scans: Scans, registration: Registration):
    """Both scans from above: as they came with some matches, and after the registration."""
    figure = new_figure(figsize=(11, 4.6))
    before, after = figure.subplots(1, 2)
    accepted = registration.inlier_mask_
    target = scans.target + np.array([7.0, 2.0, 0])
    for points, colour in ((scans.source, REAL), (target, WRONG)):
        before.scatter(*points[:, :2].T, s=1, color=colour, alpha=0.5, linewidths=0)
    for row in np.flatnonzero(~accepted)[::60]:
        before.plot(*_ends(scans, target, row), color=QUIET, linewidth=0.5, zorder=0)
    for row in np.flatnonzero(accepted)[::20]:
        before.plot(*_ends(scans, target, row), color="black", linewidth=0.7)
    before.set_title(f"two scans; grey: some rejected matches, black: some of {accepted.sum():,} accepted")
    moved = registration.transformation_(scans.source)
    for points, colour, label in ((moved, REAL, "first scan, moved"), (scans.target, WRONG, "second scan")):
        after.scatter(*points[:, :2].T, s=1, color=colour, alpha=0.5, linewidths=0, label=label)
    after.set_title("registered")
    after.legend(frameon=False, markerscale=6)
    for ax in (before, after):
        ax.set_aspect("equal")
        ax.axis("off")
        ax.title.set_fontsize(10)
    return figure


def _ends(scans: Scans, target: np.ndarray, row: int):
    first, second = scans.matches[row]
    return np.column_stack([scans.source[first, :2], target[second, :2]])


def main(folder: Path | None = None) -> None:
    """Make two scans, register them, say what came out."""
    scans = make_scans(np.random.default_rng(0))
    true = scans.true_matches()
    print(f"{len(scans.matches):,} matches between two scans; {true.mean():.1%} of them join the same place.")
    registration = register(scans)
    accepted, found = registration.inlier_mask_, registration.transformation_
    print(f"{accepted.sum():,} matches accepted; {true[accepted].mean():.1%} of those join the same place.")
    print(f"The rotation is off by {rotation_error(found, scans.rotation):.2f} degrees,")
    print(f"the translation by {100 * np.linalg.norm(found.translation - scans.translation):.1f} cm.")
    if folder:
        write_picture(picture(scans, registration), folder, "register_scans.png")


if __name__ == "__main__":
    main(folder_for_pictures(__doc__.splitlines()[0]))
