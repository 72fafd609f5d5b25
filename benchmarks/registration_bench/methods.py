"""The methods compared, each as one function from (X, Y, bound, seed) to an answer; packages are imported when used.

Where a method takes a number of trials it gets 100,000 at confidence 0.999 (scikit-image, a Python loop: 10,000;
OpenCV's 3-D estimator takes none); everything else is left as its package has it. A method that fits an affine map or
returns only a mask is followed by a least-squares rigid fit on its inliers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from registration_bench import reference

TRIALS, PYTHON_TRIALS, CONFIDENCE = 100_000, 10_000, 0.999


@dataclass(frozen=True)
class Answer:
    """A motion y = R x + t, which pairs the method accepts (None: those within the bound), and what it says for it.

    The score is what a package offers to judge an answer by: a fitness, a share of inliers; higher is better.
    """

    rotation: np.ndarray
    translation: np.ndarray
    mask: np.ndarray | None = None
    score: float | None = None


@dataclass(frozen=True)
class Method:
    """A competitor: its fit returns an answer, or None when it says itself that there is none."""

    name: str
    fit: Callable[[np.ndarray, np.ndarray, float, int], Answer | None]
    needs_bound: bool = True
    dimensions: tuple[int, ...] = (3,)
    largest: int | None = None  # pairs that it takes at most
    warm_up: tuple[int, ...] = (100, 1000)  # sizes of untimed first fits, for compilers and caches


def rigid_on(mask, X, Y):
    """Least-squares motion of the accepted pairs."""
    mask = np.asarray(mask, dtype=bool).ravel()
    if mask.sum() < X.shape[1]:
        return None
    return Answer(*reference.procrustes(X[mask], Y[mask]), mask)


def inlier_alone(X, Y, bound, seed):
    """Ours; the noise bound is not used."""
    return _inlier(X, Y, None, seed)


def inlier_with_bound(X, Y, bound, seed):
    """Ours, given the bound."""
    return _inlier(X, Y, bound, seed)


def _inlier(X, Y, bound, seed):
    from inlier import Registration

    fit = Registration("rigid", noise_bound=bound, random_state=seed, raise_on_failure=False).fit(X, Y)
    if not fit.success_:
        return None
    return Answer(fit.transformation_.rotation, fit.transformation_.translation, fit.inlier_mask_)


def least_squares(X, Y, bound, seed):
    """One Procrustes fit on all pairs."""
    return Answer(*reference.procrustes(X, Y))


def irls_l1(X, Y, bound, seed):
    """Reference IRLS-L1."""
    return _answer(reference.irls_l1(X, Y))


def gnc_tls(X, Y, bound, seed):
    """Reference GNC-TLS."""
    return _answer(reference.gnc_tls(X, Y, bound))


def sc2_pcr(X, Y, bound, seed):
    """Reference SC2-PCR."""
    return _answer(reference.sc2_pcr(X, Y, bound, np.random.default_rng(seed)))


def clipper(X, Y, bound, seed):
    """Reference CLIPPER."""
    return _answer(reference.clipper(X, Y, bound))


def _answer(found):
    return None if found is None else Answer(*found)


def _open3d_clouds(X, Y, seed):
    import open3d

    open3d.utility.set_verbosity_level(open3d.utility.VerbosityLevel.Error)
    open3d.utility.random.seed(seed)
    clouds = [open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points)) for points in (X, Y)]
    rows = np.arange(len(X), dtype=np.int32)
    pairs = open3d.utility.Vector2iVector(np.column_stack([rows, rows]))
    return open3d.pipelines.registration, clouds, pairs


def open3d_ransac(X, Y, bound, seed):
    """Open3D's RANSAC on given correspondences, with the two checks that its tutorial advises.

    Its set of correspondences is one of nearest neighbours, not of the given pairs: no mask.
    """
    registration, clouds, pairs = _open3d_clouds(X, Y, seed)
    checks = [
        registration.CorrespondenceCheckerBasedOnEdgeLength(0.9),
        registration.CorrespondenceCheckerBasedOnDistance(bound),
    ]
    criteria = registration.RANSACConvergenceCriteria(TRIALS, CONFIDENCE)
    found = registration.registration_ransac_based_on_correspondence(
        *clouds, pairs, bound, checkers=checks, criteria=criteria
    )
    if not found.fitness:
        return None
    return Answer(found.transformation[:3, :3], found.transformation[:3, 3], score=found.fitness)


def open3d_fgr(X, Y, bound, seed):
    """Open3D's fast global registration; distances in the data's own unit."""
    registration, clouds, pairs = _open3d_clouds(X, Y, seed)
    option = registration.FastGlobalRegistrationOption(
        use_absolute_scale=True, decrease_mu=True, maximum_correspondence_distance=bound
    )
    found = registration.registration_fgr_based_on_correspondence(*clouds, pairs, option)
    return Answer(found.transformation[:3, :3], found.transformation[:3, 3])


def kiss_matcher(X, Y, bound, seed):
    """KISS-Matcher's pruning and solver; the bound is that of both, and the unit of length: it refuses small ones."""
    import kiss_matcher as package

    config = package.KISSMatcherConfig(voxel_size=1.0, enable_noise_bound_clamping=False)
    config.robin_noise_bound = config.solver_noise_bound = 1.0
    matcher = package.KISSMatcher(config)
    found = matcher.prune_and_solve(*(list((side / bound).astype(np.float32)) for side in (X, Y)))
    if not found.valid:
        return None
    share = matcher.get_num_final_inliers() / len(X)
    return Answer(np.asarray(found.rotation), bound * np.asarray(found.translation).ravel(), score=share)


def magsac(X, Y, bound, seed):
    """MAGSAC++ of pymagsac; the matrix comes for row vectors."""
    import pymagsac

    matrix, mask = pymagsac.findRigidTransformation(
        np.hstack([X, Y]), np.ones(len(X)), sampler=0, sigma_th=bound, conf=CONFIDENCE, max_iters=TRIALS
    )
    return None if matrix is None else Answer(matrix[:3, :3].T, matrix[3, :3], np.asarray(mask, dtype=bool))


def gc_ransac(X, Y, bound, seed):
    """GC-RANSAC of pygcransac; the matrix comes for row vectors, and the mask does not fit it: not used."""
    import pygcransac

    matrix, _ = pygcransac.findRigidTransform(
        np.hstack([X, Y]),
        np.ones(len(X)),
        threshold=bound,
        conf=CONFIDENCE,
        max_iters=TRIALS,
        sampler=0,
        neighborhood=0,
    )
    return None if matrix is None else Answer(matrix[:3, :3].T, matrix[3, :3])


def scikit_image_ransac(X, Y, bound, seed):
    """scikit-image's RANSAC with its Euclidean transform, in two or three dimensions."""
    from skimage.measure import ransac
    from skimage.transform import EuclideanTransform

    d = X.shape[1]
    model, mask = ransac(
        (X, Y),
        EuclideanTransform,
        min_samples=d,
        residual_threshold=bound,
        max_trials=PYTHON_TRIALS,
        stop_probability=CONFIDENCE,
        rng=seed,
    )
    return None if mask is None else Answer(model.params[:d, :d], model.params[:d, d], mask)


def opencv(X, Y, bound, seed):
    """OpenCV: estimateAffine3D, or in the plane estimateAffinePartial2D; then a rigid fit on the inliers."""
    import cv2

    cv2.setRNGSeed(seed)
    if X.shape[1] == 3:
        found, _, mask = cv2.estimateAffine3D(X, Y, ransacThreshold=bound, confidence=CONFIDENCE)
    else:
        found, mask = cv2.estimateAffinePartial2D(
            X, Y, ransacReprojThreshold=bound, maxIters=TRIALS, confidence=CONFIDENCE
        )
    return None if found is None or mask is None or not np.any(found) else rigid_on(mask, X, Y)


OURS = "inlier"
BASELINE = "least squares"
METHODS = {
    method.name: method
    for method in (
        Method(OURS, inlier_alone, needs_bound=False, dimensions=(2, 3), warm_up=(100, 1000, 20_000)),
        Method("inlier, bound given", inlier_with_bound, dimensions=(2, 3), warm_up=(100, 1000, 20_000)),
        Method(BASELINE, least_squares, needs_bound=False, dimensions=(2, 3)),
        Method("IRLS-L1 (reference)", irls_l1, needs_bound=False, dimensions=(2, 3)),
        Method("GNC-TLS (reference)", gnc_tls, dimensions=(2, 3)),
        Method("SC2-PCR (reference)", sc2_pcr, dimensions=(2, 3)),
        Method("CLIPPER (reference)", clipper, dimensions=(2, 3), largest=10_000),
        Method("Open3D RANSAC", open3d_ransac),
        Method("Open3D FGR", open3d_fgr),
        Method("KISS-Matcher", kiss_matcher),
        Method("MAGSAC++ (pymagsac)", magsac),
        Method("GC-RANSAC (pygcransac)", gc_ransac),
        Method("scikit-image RANSAC", scikit_image_ransac, dimensions=(2, 3)),
        Method("OpenCV", opencv, dimensions=(2, 3)),
    )
}
