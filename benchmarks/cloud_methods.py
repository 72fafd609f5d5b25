"""What clouds.py compares: pairs of clouds, and who takes part.

A method takes two clouds, a voxel size and a seed; out comes a motion, and whether it is sure.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

# What the authors of fast global registration publish beside these clouds: root mean square distance of true pairs, of
# their method (output_eval.txt; of the third pair that file counts other true pairs, and is left out) and of Choi, Zhou
# and Koltun (choi_eval.txt), and the share of the source that has one.
PUBLISHED = {
    "synthetic_object_01_clean": (0.006938, 0.004805, 0.8825),
    "synthetic_object_05_clean": (0.005892, 0.005898, 0.7580),
    "synthetic_object_10_noise1": (np.nan, 0.008505, 0.8383),
}
TRUE_PAIRS = 0.0125  # largest distance of a true pair at the true motion, in the unit of the clouds


def index(data: Path) -> list[dict[str, Any]]:
    """What is known of each pair."""
    rows: list[dict[str, Any]] = json.loads((data / "index.json").read_text())
    for expected in ("yes", "no"):
        for place, row in enumerate([row for row in rows if row["expected"] == expected]):
            row["half"] = "set" if place % 2 == 0 else "aside"
    return rows


def turned(data: Path, row: dict[str, Any], turn: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A pair with its target turned and moved at random, and the motion between them."""
    with np.load(data / f"{row['name']}.npz") as file:
        source, target, truth = (file[name].astype(float) for name in ("source", "target", "transformation"))
    rng, motion = np.random.default_rng(1000 + turn), np.eye(4)
    motion[:3, :3] = Rotation.random(rng=rng).as_matrix()
    motion[:3, 3] = rng.normal(size=3) * np.ptp(target, axis=0).max()
    return source, target @ motion[:3, :3].T + motion[:3, 3], motion @ truth


def errors(found: np.ndarray, truth: np.ndarray, source: np.ndarray) -> tuple[float, float]:
    """Degrees, and distance at the centre of the source as a share of its extent."""
    centre, extent = source.mean(axis=0), float(np.linalg.norm(np.ptp(source, axis=0)))
    turn = np.degrees(np.arccos(np.clip((np.trace(found[:3, :3] @ truth[:3, :3].T) - 1) / 2, -1, 1)))
    step = (found[:3, :3] - truth[:3, :3]) @ centre + found[:3, 3] - truth[:3, 3]
    return float(turn), float(np.linalg.norm(step)) / extent


def distance_of_true_pairs(
    motion: np.ndarray, truth: np.ndarray, source: np.ndarray, target: np.ndarray
) -> tuple[float, float]:
    """Root mean square distance of true pairs after a motion, and the share of the source that has one."""
    distance, nearest = cKDTree(target).query(source @ truth[:3, :3].T + truth[:3, 3])
    rows = np.flatnonzero(distance < TRUE_PAIRS)
    step = source[rows] @ motion[:3, :3].T + motion[:3, 3] - target[nearest[rows]]
    return float(np.sqrt((step**2).sum(axis=1).mean())), rows.size / len(source)


def place_of(name: str) -> str:
    """Clouds of one place have the same word in their names."""
    return next((word for word in ("kitchen", "facade", "dragon", "kitti", "bunny", "webots") if word in name), name)


def different_places(data: Path, count: int, seed: int) -> list[tuple[str, str, str, str]]:
    """Some pairs of clouds of different places, at random."""
    names = [row["name"] for row in index(data)]
    ends = ("source", "target")
    pairs = [
        (a, end, b, other)
        for a in names
        for b in names
        if a < b and place_of(a) != place_of(b) and "no_tls_facade_kitchen" not in (a, b)
        for end in ends
        for other in ends
    ]
    return [pairs[k] for k in np.random.default_rng(seed).permutation(len(pairs))[:count]]


Answer = tuple[np.ndarray | None, bool]


def inlier(source: np.ndarray, target: np.ndarray, voxel: float = np.nan, seed: int = 0) -> Answer:
    """Our motion, or None, and whether it is sure; it needs no voxel size, and its own seed is always 0."""
    from inlier import CloudRegistration

    found = CloudRegistration(random_state=0, raise_on_failure=False).fit(source, target)
    return None if found.transformation_ is None else found.transformation_.matrix, found.success_


def _open3d_features(points: np.ndarray, voxel: float) -> tuple[Any, Any]:
    import open3d as o3d

    o3d.utility.set_verbosity_level(o3d.utility.VerbosityLevel.Error)
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points)).voxel_down_sample(voxel)
    cloud.estimate_normals(o3d.geometry.KDTreeSearchParamHybrid(radius=2 * voxel, max_nn=30))
    search = o3d.geometry.KDTreeSearchParamHybrid(radius=5 * voxel, max_nn=100)
    return cloud, o3d.pipelines.registration.compute_fpfh_feature(cloud, search)


def open3d_ransac(source: np.ndarray, target: np.ndarray, voxel: float, seed: int) -> Answer:
    """FPFH and RANSAC, as in Open3D's tutorial."""
    import open3d as o3d

    o3d.utility.random.seed(seed)
    reg = o3d.pipelines.registration
    (a, of_a), (b, of_b) = (_open3d_features(cloud, voxel) for cloud in (source, target))
    checkers = [reg.CorrespondenceCheckerBasedOnEdgeLength(0.9), reg.CorrespondenceCheckerBasedOnDistance(1.5 * voxel)]
    found = reg.registration_ransac_based_on_feature_matching(
        a,
        b,
        of_a,
        of_b,
        True,
        1.5 * voxel,
        reg.TransformationEstimationPointToPoint(False),
        3,
        checkers,
        reg.RANSACConvergenceCriteria(100_000, 0.999),
    )
    return np.array(found.transformation), True


def open3d_fgr(source: np.ndarray, target: np.ndarray, voxel: float, seed: int) -> Answer:
    """FPFH and fast global registration, as in Open3D's tutorial."""
    import open3d as o3d

    o3d.utility.random.seed(seed)
    reg = o3d.pipelines.registration
    (a, of_a), (b, of_b) = (_open3d_features(cloud, voxel) for cloud in (source, target))
    option = reg.FastGlobalRegistrationOption(maximum_correspondence_distance=0.5 * voxel)
    found = reg.registration_fgr_based_on_feature_matching(a, b, of_a, of_b, option)
    return np.array(found.transformation), True


def kiss_matcher(source: np.ndarray, target: np.ndarray, voxel: float, seed: int) -> Answer:
    """KISS-Matcher, as in its example, in units of the voxel: it refuses small ones. It takes no seed."""
    import kiss_matcher

    matcher = kiss_matcher.KISSMatcher(kiss_matcher.KISSMatcherConfig(1.0))
    found = matcher.estimate(*((cloud / voxel).astype(np.float32) for cloud in (source, target)))
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = np.array(found.rotation), voxel * np.array(found.translation).ravel()
    return matrix, True


METHODS: dict[str, tuple[Callable[..., Answer], bool]] = {  # and whether it takes a voxel size
    "inlier": (inlier, False),
    "ransac": (open3d_ransac, True),
    "fgr": (open3d_fgr, True),
    "kiss": (kiss_matcher, True),
}
