"""All scans of a part refined at once: walls come together."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.scans.graph import Pose
from inlier.scans.joint import Joint
from inlier.scans.merging import merged, thin_columns
from inlier.scans.prepared import Prepared, alikeness
from tests.scans.rooms import scans_of_room


@pytest.fixture(scope="module")
def room():
    made = scans_of_room(0, 4)
    return [Prepared.of(points) for points, _ in made], [pose for _, pose in made], made


def placed(scans, truth, rng, turn=0.0, shift=0.0):
    """The right poses beside the first, off by some turn and shift."""
    poses = {}
    for k, (scan, pose) in enumerate(zip(scans, truth, strict=True)):
        right = truth[0].inverse @ pose
        exact = Pose(right.rotation, right(scan.origin[None])[0], scan.origin, np.zeros((6, 6)))
        off = np.concatenate([turn * rng.normal(size=3), shift * rng.normal(size=3)])
        poses[k] = exact if k == 0 else exact.moved(off)
    return poses


def worst(poses, right):
    return max(np.linalg.norm(poses[k].place - right[k].place) for k in poses)


def test_walls_that_are_doubled_come_together(room):
    scans, truth, _ = room
    rng = np.random.default_rng(0)
    right = placed(scans, truth, rng)
    off = placed(scans, truth, rng, np.radians(0.4), 0.02)
    poses, before, after, by_scan = Joint(scans, off).refined()
    assert worst(off, right) > 0.02
    assert worst(poses, right) < 0.006
    assert after.median < 0.7 * before.median
    assert set(by_scan) == {0, 1, 2, 3}
    np.testing.assert_array_equal(poses[0].rotation, off[0].rotation)


def test_right_poses_stay_right(room):
    scans, truth, _ = room
    right = placed(scans, truth, np.random.default_rng(0))
    poses, before, after, _ = Joint(scans, right).refined()
    assert worst(poses, right) < 0.006
    assert after.median <= before.median


def test_scans_of_one_room_look_more_alike_than_those_of_others(room):
    others = [Prepared.of(points) for points, _ in scans_of_room(7, 4)]
    ball = np.random.default_rng(0).normal(size=(3_000, 3))
    ball = Prepared.of(2 * ball / np.linalg.norm(ball, axis=1, keepdims=True))
    alike = alikeness([*room[0], *others, ball])
    assert all(alike[k].argmax() != 8 for k in range(8))
    assert sum(alike[k].argmax() // 4 == k // 4 for k in range(8)) >= 6
    assert alike[:8, :8][~np.eye(8, dtype=bool)].mean() > alike[:8, 8].max()
    assert not np.isfinite(alike.diagonal()).any()


def test_what_is_merged_is_thinned_evenly_and_keeps_what_all_have():
    rng = np.random.default_rng(0)
    flat = rng.random((20_000, 3)) * [4, 4, 0]
    columns = dict(zip("xyz", flat.T, strict=True))
    normals = {"nx": 0.0 * flat[:, 0], "ny": 0.0 * flat[:, 0], "nz": rng.choice([-1.0, 1.0], len(flat))}
    turn = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    pose = Pose(turn, np.zeros(3), np.zeros(3), np.zeros((6, 6)))
    cloud = merged([({**columns, **normals, "red": np.full(20_000, 200.0)}, pose), ({**columns, **normals}, pose)], 0.1)
    assert set(cloud) == {"x", "y", "z", "nx", "ny", "nz"}
    assert 1_600 <= len(cloud["x"]) <= 1_800
    assert np.abs(cloud["y"]).max() < 1e-9  # the floor became a wall
    np.testing.assert_allclose(np.abs(cloud["ny"]), 1, atol=1e-6)
    red = merged([({**columns, "red": np.full(20_000, 200.0)}, pose)], 0.1)["red"]
    assert red.dtype == np.uint8
    assert (red == 200).all()
    assert thin_columns({"x": np.ones(3), "y": np.ones(3), "z": np.ones(3)}, 1.0)["x"].tolist() == [1.0]
