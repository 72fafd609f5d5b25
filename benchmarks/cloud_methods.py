"""Who takes part in clouds.py: two clouds and a voxel size in, a motion out, and whether it is sure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def inlier(source: np.ndarray, target: np.ndarray, voxel: float = np.nan) -> tuple[np.ndarray | None, bool]:
    """Our motion, or None, and whether it is sure."""
    from inlier import CloudRegistration

    found = CloudRegistration(random_state=0, raise_on_failure=False).fit(source, target)
    return None if found.transformation_ is None else found.transformation_.matrix, found.success_


def _open3d_features(points: np.ndarray, voxel: float) -> tuple[Any, Any]:
    import open3d as o3d

    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points)).voxel_down_sample(voxel)
    cloud.estimate_normals(o3d.geometry.KDTreeSearchParamHybrid(radius=2 * voxel, max_nn=30))
    search = o3d.geometry.KDTreeSearchParamHybrid(radius=5 * voxel, max_nn=100)
    return cloud, o3d.pipelines.registration.compute_fpfh_feature(cloud, search)


def open3d_ransac(source: np.ndarray, target: np.ndarray, voxel: float) -> tuple[np.ndarray | None, bool]:
    """FPFH and RANSAC, as in Open3D's tutorial."""
    import open3d as o3d

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


def open3d_fgr(source: np.ndarray, target: np.ndarray, voxel: float) -> tuple[np.ndarray | None, bool]:
    """FPFH and fast global registration, as in Open3D's tutorial."""
    import open3d as o3d

    reg = o3d.pipelines.registration
    (a, of_a), (b, of_b) = (_open3d_features(cloud, voxel) for cloud in (source, target))
    option = reg.FastGlobalRegistrationOption(maximum_correspondence_distance=0.5 * voxel)
    found = reg.registration_fgr_based_on_feature_matching(a, b, of_a, of_b, option)
    return np.array(found.transformation), True


def kiss_matcher(source: np.ndarray, target: np.ndarray, voxel: float) -> tuple[np.ndarray | None, bool]:
    """KISS-Matcher, as in its example, in units of the voxel: it refuses small ones."""
    import kiss_matcher

    matcher = kiss_matcher.KISSMatcher(kiss_matcher.KISSMatcherConfig(1.0))
    found = matcher.estimate(*((cloud / voxel).astype(np.float32) for cloud in (source, target)))
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = np.array(found.rotation), voxel * np.array(found.translation).ravel()
    return matrix, True


METHODS: dict[str, tuple[Callable[..., tuple[np.ndarray | None, bool]], bool]] = {  # and whether it takes a voxel size
    "inlier": (inlier, False),
    "ransac": (open3d_ransac, True),
    "fgr": (open3d_fgr, True),
    "kiss": (kiss_matcher, True),
}
