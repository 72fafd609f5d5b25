"""Rooms with things in them, and scans of parts of them, turned and moved at random."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from inlier.transforms import SimilarityTransformation


def _box(centre, size, rng, n):
    """Points on the sides of a box, as many on each as it is large."""
    size = np.asarray(size, dtype=float)
    areas = np.array([size[1] * size[2], size[0] * size[2], size[0] * size[1]])
    axis = rng.choice(3, n, p=areas / areas.sum())
    points = rng.uniform(-0.5, 0.5, (n, 3))
    points[np.arange(n), axis] = rng.choice([-0.5, 0.5], n)
    return points * size + centre


def room(rng, n_things=25):
    """A room of about 8 by 6 metres, with boxes at any angle and a few balls."""
    parts = [_box([0, 0, 1.3], [8, 6, 2.6], rng, 60_000)]
    for _ in range(n_things):
        size = rng.uniform(0.2, 1.0, 3)
        turned = Rotation.from_euler("z", rng.uniform(0, np.pi)).as_matrix()
        place = [*rng.uniform([-3.5, -2.5], [3.5, 2.5]), size[2] / 2 + rng.choice([0, 0, 0.8])]
        parts.append(_box(np.zeros(3), size, rng, int(3_000 * (size**2).sum())) @ turned.T + place)
    for _ in range(4):
        ball = rng.normal(size=(1_500, 3))
        parts.append(rng.uniform(0.2, 0.5) * ball / np.linalg.norm(ball, axis=1, keepdims=True) + rng.uniform(-2, 2, 3))
    return np.vstack(parts)


def scan(points, spot, rng, n=6_000, reach=3.2, noise=0.004):
    """What lies about a spot, in the axes of a scanner that was turned anyhow; and where that stood."""
    near = points[np.linalg.norm(points[:, :2] - spot, axis=1) < reach]
    some = near[rng.permutation(len(near))[:n]] + noise * rng.normal(size=(min(n, len(near)), 3))
    pose = SimilarityTransformation(Rotation.random(rng=rng).as_matrix(), [*spot, 1.4], model="rigid")
    return pose.inverse(some), pose


def scans_of_room(seed, n_scans, **settings):
    """Scans along a way through a room, and their poses."""
    rng = np.random.default_rng(seed)
    points = room(rng)
    angles = np.linspace(0, 2 * np.pi, n_scans, endpoint=False)
    spots = [(2.2 * np.cos(angle), 1.5 * np.sin(angle)) for angle in angles]
    return [scan(points, spot, rng, **settings) for spot in spots]


def worst_errors(model, poses, part):
    """The largest turn (degrees) and shift of the poses of a part, beside its first scan."""
    first, turns, shifts = part[0], [], []
    for k in part[1:]:
        truth = poses[first].inverse @ poses[k]
        found = model.poses[k]
        turns.append(np.degrees(Rotation.from_matrix(found.rotation @ truth.rotation.T).magnitude()))
        shifts.append(np.linalg.norm(found.translation - truth.translation))
    return max(turns), max(shifts)
