"""How far the found motion may be off: its covariance, from the residuals of the pairs that made it.

The motion is y = scale R x + t. Small changes of it are a turn w about axes of the target space (one angle in the
plane), a shift of the image of the centroid, and a relative change of scale; they move a point by J_i (w, shift,
change). The fit solves sum_i s_i = 0, s_i = weight_i J_i^T r_i. Pairs that lie near each other err alike (`clumps`),
so they are dealt to cells; where errors do not correlate, each pair is its own. With s_g and S_g the sums over cell g
of s_i and of S_i = weight_i J_i^T J_i, S that of all S_i, and A the derivative of sum_i s_i, the covariance is

    C = A^-1 (sum_g q_g q_g^T) A^-1,   q_g = (I - S_g S^-1)^-1 s_g.

The fit draws each cell to itself, so its residuals are too short; q_g is about the pull of its pairs on a fit without
them: a jackknife that leaves out one cell after the other (CR3, Bell and McCaffrey 2002; for single pairs HC3,
MacKinnon and White 1985). Nothing is assumed of the noise but that cells err independently.

Few cells tell how large the errors are, but not in which directions. In units where S = I (where C would be a multiple
of I if all pairs erred alike and in all directions), C is drawn to its mean as if that were known from as many errors
as a covariance has entries:

    C* = (nu C + kappa trace(C)/p I) / (nu + kappa),   kappa = p (p + 1) / 2,   nu = G/2,

with p parameters and G = (sum_g weight_g)^2 / sum_g weight_g^2 cells. Half of it, since A is a sum over as many noisy
terms as the other. Where hardly more pairs count than it takes to fix the motion, or one cell holds most of them,
residuals say nothing about the noise, and no covariance is given.

What all pairs err alike, the fit takes for motion, and no residual shows it: where two views see a surface cut off at
other places, features slide along it to one side. Another estimate that has no such errors does (`widened`). With d the
small change to it and T^2 = d^T C*^-1 d, about p where C* says all, the rest is what the pairs have in common:

    C* + (1 - p / T^2) d d^T   where T^2 > p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.special import fdtri

from inlier._checks import check_choice, check_number
from inlier._typing import Array, FloatArray
from inlier.consensus.clumps import cell_side, cells
from inlier.consensus.refine import NearPairs, closeness, closeness_slope
from inlier.exceptions import ParameterError
from inlier.transforms import SimilarityTransformation

_SPARE = 2.0  # pairs that must count beyond those that fix the motion
_FEWEST_CELLS = 2.0  # by their weights: with fewer, one holds most of what is known
_SINGULAR = 1e12  # condition number
_GRIDS = 4  # that are averaged, so that the luck of one matters less
_CONVENTIONS = ("gtsam", "g2o", "open3d")
_PLACES = ("origin", "centre")
_ALONE = 1e-6  # 1 - leverage: below, a cell fixes a part of the motion alone, and nothing tells how far it is off


@dataclass(frozen=True, eq=False)
class MotionUncertainty:
    """Standard errors of a motion in the plane or in space, their covariance, and the region where the motion lies.

    Attributes
    ----------
    rotation : ndarray
        In degrees: of the angle in the plane, of turns about the three axes of the target space.
    translation : ndarray of shape (d,)
        In the units of y.
    scale : float
        0 where the scale is fixed.
    covariance : ndarray
        Of rotation (degrees), translation and, for similarities, scale, in that order.
    degrees_of_freedom : float
        Of the covariance: how many independent errors it is as good as estimated from.
    cluster_side : float
        Side of the cells whose pairs count as one, in the units of y; 0 where each pair counts for itself.
    motion : SimilarityTransformation
        What was found.
    centre : ndarray of shape (d,)
        Centroid of the pairs, in the space of x.
    covariance_at_centre : ndarray
        Of a turn (radians), a shift of the image of the centre, and a relative change of scale: far from the centre
        a turn is a long way, and translations are no longer normal; these are.

    Notes
    -----
    A single number lies within `rotation` and so on times the usual 1.96 in about 95 % of cases, in fewer where the
    degrees of freedom are few. For all of them at once take `covers`.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier import Registration, SimilarityTransformation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = X + [5, 0, 0] + rng.normal(scale=0.02, size=X.shape)
    >>> errors = Registration(random_state=0).fit(X, y).uncertainty_
    >>> errors.covers(SimilarityTransformation(np.eye(3), [5, 0, 0], model="rigid"))
    True
    >>> errors.covers(SimilarityTransformation(np.eye(3), [5.1, 0, 0], model="rigid"))
    False
    """

    rotation: FloatArray
    translation: FloatArray
    scale: float
    covariance: FloatArray
    degrees_of_freedom: float
    cluster_side: float
    motion: SimilarityTransformation
    centre: FloatArray
    covariance_at_centre: FloatArray

    @property
    def shift_at_centre(self) -> FloatArray:
        """Standard errors of where the centre is moved to, in the units of y."""
        turns, d = self.rotation.size, self.centre.size
        return np.sqrt(np.maximum(np.diag(self.covariance_at_centre)[turns : turns + d], 0.0))

    def information(self, convention: str = "gtsam", about: str = "origin") -> FloatArray:
        """The 6 x 6 information matrix of a rigid motion in space, as a pose graph takes it: inverse covariance.

        Turns are in radians, shifts in the units of y. Of the motion T from source to target the true one is
        T exp(e): e is a small turn and shift of the source, in the axes of the source, *before* the motion (a
        perturbation from the right). Only the order and the measure of e differ:

        - ``"gtsam"``: (turn, shift), for ``BetweenFactorPose3(target, source, Pose3(T), Gaussian.Information(...))``;
        - ``"open3d"``: the same, for ``PoseGraphEdge(source, target, T, ...)``;
        - ``"g2o"``: (shift, vector part of the quaternion, that is half the turn), for the measurement T of
          ``EDGE_SE3:QUAT target source``; the file takes the upper half, row by row.

        Parameters
        ----------
        convention : {"gtsam", "g2o", "open3d"}, default="gtsam"
            Of which program.
        about : {"origin", "centre"}, default="origin"
            Where the source is turned about: the origin of its coordinates, which goes with ``motion.matrix`` as it is;
            or `centre`, which goes with the motion of a source whose coordinates were moved there:
            T [[I, centre], [0, 1]]. Far from the origin (maps, UTM) only the second has numbers that can be used.

        Returns
        -------
        ndarray of shape (6, 6)

        Examples
        --------
        >>> import numpy as np
        >>> from inlier import Registration
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 3))
        >>> errors = Registration(random_state=0).fit(X, X + 0.02 * rng.normal(size=X.shape)).uncertainty_
        >>> errors.information("g2o").shape
        (6, 6)
        """
        check_choice(convention, _CONVENTIONS, "convention")
        check_choice(about, _PLACES, "about")
        if self.motion.model != "rigid" or self.centre.size != 3:
            raise ParameterError("convention", "is of rigid motions in space; take `covariance` for others.")
        # (turn, shift of the image of the centre) in the axes of y = change @ (turn, shift) of the source, in its axes
        R, change = self.motion.rotation, np.zeros((6, 6))
        change[:3, :3] = change[3:, 3:] = R
        if about == "origin":  # w x centre + s
            change[3:, :3] = R @ -_cross(self.centre)
        information = change.T @ np.linalg.inv(self.covariance_at_centre) @ change
        if convention == "g2o":
            measure = np.diag([2.0, 2.0, 2.0, 1.0, 1.0, 1.0])
            order = [3, 4, 5, 0, 1, 2]
            information = (measure @ information @ measure)[np.ix_(order, order)]
        symmetric: FloatArray = (information + information.T) / 2
        return symmetric

    def region(self, level: float = 0.95) -> float:
        """Squared Mahalanobis distance from `motion` within which the true one lies with this probability.

        By Hotelling's T^2, with nu degrees of freedom and p parameters: p nu / (nu - p + 1) F, F the quantile of the F
        distribution with p and nu - p + 1 degrees of freedom.

        Parameters
        ----------
        level : float, default=0.95
            Between 0 and 1.

        Returns
        -------
        float
        """
        level = check_number(level, "level", low=0, high=1)
        p, nu = len(self.covariance_at_centre), self.degrees_of_freedom
        return float(p * nu / (nu - p + 1) * fdtri(p, nu - p + 1, level)) if level < 1 else np.inf

    def distance(self, transformation: SimilarityTransformation) -> float:
        """Squared Mahalanobis distance of another motion: of its turn, shift at the centre and scale from `motion`.

        Parameters
        ----------
        transformation : SimilarityTransformation
            Of as many dimensions.

        Returns
        -------
        float
            Infinite for what the model cannot be: mirrored, of another scale, shifted where it has no shift.
        """
        d = self.centre.size
        if not isinstance(transformation, SimilarityTransformation) or transformation.rotation.shape != (d, d):
            raise ParameterError("transformation", f"must be a SimilarityTransformation in {d} dimensions.")
        difference = self._difference(transformation)
        if difference is None:
            return np.inf
        variances, axes = np.linalg.eigh(self.covariance_at_centre)
        along = axes.T @ difference
        if not along.any():
            return 0.0
        return float(np.sum(along**2 / variances)) if variances[0] > 0 else np.inf

    def covers(self, transformation: SimilarityTransformation, level: float = 0.95) -> bool:
        """Whether another motion lies in the region where the true one is with this probability.

        Parameters
        ----------
        transformation : SimilarityTransformation
            Of as many dimensions.
        level : float, default=0.95
            Between 0 and 1.

        Returns
        -------
        bool
        """
        return self.distance(transformation) <= self.region(level)

    def _difference(self, other: SimilarityTransformation) -> FloatArray | None:
        """Turn, shift at the centre and relative change of scale; None for what the model cannot be."""
        found, has_shift, has_scale = self.motion, *_parts(self.motion)
        turned = other.rotation @ found.rotation.T
        stretch, shift = other.scale / found.scale - 1, other.translation - found.translation
        may_be = np.linalg.det(turned) > 0 and (has_scale or stretch == 0) and (has_shift or not shift.any())
        if not may_be:
            return None
        if self.centre.size == 2:
            turn = np.array([np.arctan2(turned[1, 0], turned[0, 0])])
        else:
            turn = Rotation.from_matrix(turned).as_rotvec()
        at_centre = (other.linear - found.linear) @ self.centre + shift
        return np.concatenate([turn, at_centre if has_shift else [], [stretch] * has_scale])


def motion_uncertainty(motion: SimilarityTransformation, near: NearPairs) -> MotionUncertainty | None:
    """Covariance of a motion in 2 or 3 dimensions fitted with `closeness` weights; None where too few pairs tell."""
    if not near.weights.size:
        return None
    x, y = (np.asarray(table, dtype=np.float64) for table in (near.X, near.Y))
    residual = y - x @ motion.linear.T - motion.translation
    say = near.weights * closeness(np.einsum("ij,ij->i", residual, residual), near.bound)
    total = near.stands_for * say
    has_shift, has_scale = _parts(motion)
    centre = total @ x / total.sum() if has_shift else np.zeros(x.shape[1])
    arm = (x - centre) @ motion.linear.T
    moves = _movements(arm, has_shift, has_scale)
    unit = _unit(moves, total)
    if unit is None or total.sum() ** 2 / (total @ say) < moves.shape[2] / moves.shape[1] + _SPARE:
        return None
    pairs = _PairScores.of(moves @ unit, residual, near, say)
    side = max(near.cluster_side, cell_side(arm, say[:, None] * residual))
    found = pairs.covariance() if side == 0 else pairs.covariance_by_cells(arm, side)
    if found is None:
        return None
    covariance, degrees_of_freedom = _drawn_to_its_mean(*found)
    return _in_units(unit @ covariance @ unit.T, degrees_of_freedom, side, motion, centre)


def widened(errors: MotionUncertainty, other: SimilarityTransformation) -> MotionUncertainty:
    """Errors that reach to another estimate of the same motion, as far as it is farther away than they explain."""
    step, squared, p = errors._difference(other), errors.distance(other), len(errors.covariance_at_centre)
    if step is None or not p < squared < np.inf:
        return errors
    spread = errors.covariance_at_centre + (1 - p / squared) * np.outer(step, step)
    return _in_units(spread, errors.degrees_of_freedom, errors.cluster_side, errors.motion, errors.centre)


def _parts(motion: SimilarityTransformation) -> tuple[bool, bool]:
    """Whether the motion has a shift, and a scale."""
    return motion.model in ("rigid", "similarity"), motion.model == "similarity"


def _unit(moves: FloatArray, total: FloatArray) -> FloatArray | None:
    """Coordinates of small changes, as columns, in which S = I; None where some changes move no pair."""
    size = np.sqrt(np.einsum("n,nap,nap->p", total, moves, moves))  # so that no unit matters
    if not size.all():
        return None
    squares = np.einsum("n,nap,naq->pq", total, moves / size, moves / size)
    if np.linalg.cond(squares) > _SINGULAR:
        return None
    unit: FloatArray = np.linalg.cholesky(np.linalg.inv(squares)) / size[:, None]
    return unit


@dataclass(frozen=True, eq=False)
class _PairScores:
    """What each pair adds to the sums, in coordinates where S = I."""

    scores: FloatArray  # s_i, (n, p)
    squares: FloatArray  # S_i, (n, p, p)
    say: FloatArray  # weight_i
    stands_for: FloatArray
    inverse: FloatArray | None  # A^-1

    @staticmethod
    def of(moves: FloatArray, residual: FloatArray, near: NearPairs, say: FloatArray) -> _PairScores:
        along = np.einsum("nap,na->np", moves, residual)  # J_i^T r_i
        squares = np.einsum("n,nap,naq->npq", say, moves, moves)
        # psi'(r) = weight I + 2 weight' r r^T, so that A needs only J^T J and J^T r.
        squared = np.einsum("ij,ij->i", residual, residual)
        slope = 2 * near.stands_for * near.weights * closeness_slope(squared, near.bound)
        bread = np.einsum("n,npq->pq", near.stands_for, squares) + (slope * along.T) @ along
        inverse = np.linalg.inv(bread) if np.linalg.cond(bread) <= _SINGULAR else None
        return _PairScores(say[:, None] * along, squares, say, near.stands_for, inverse)

    def covariance(self) -> tuple[FloatArray, float] | None:
        """C where each pair errs for itself, those that it stands for too, and how many there are."""
        number = float((self.stands_for @ self.say) ** 2 / (self.stands_for @ self.say**2))
        return self._sandwich(self.scores, self.squares, self.stands_for, number)

    def covariance_by_cells(self, points: FloatArray, side: float) -> tuple[FloatArray, float] | None:
        """C and the number of cells, the mean of several grids; pairs err like those that they stand for."""
        rng = np.random.default_rng(0)
        total, grids = self.stands_for * self.say, []
        for _ in range(_GRIDS):
            cell = cells(points, side, rng)
            scores, squares = (_sums(cell, self.stands_for, part) for part in (self.scores, self.squares))
            number = float(total.sum() ** 2 / np.sum(np.bincount(cell, total) ** 2))
            found = self._sandwich(scores, squares, np.ones(len(scores)), number)
            if found is None or number < _FEWEST_CELLS:
                return None
            grids.append(found)
        covariances, numbers = zip(*grids, strict=True)
        return np.mean(covariances, axis=0), float(np.mean(numbers))

    def _sandwich(
        self, scores: FloatArray, squares: FloatArray, times: FloatArray, number: float
    ) -> tuple[FloatArray, float] | None:
        apart = np.eye(scores.shape[1]) - squares
        holds_much = np.einsum("npp->n", squares) > 0.5  # no leverage is larger than the sum of them
        if self.inverse is None or np.linalg.eigvalsh(apart[holds_much]).min(initial=1.0) < _ALONE:
            return None
        pulls = np.linalg.solve(apart, scores[:, :, None])[:, :, 0] @ self.inverse.T  # A^-1 q_g
        return (times * pulls.T) @ pulls, number


def _sums(cell: Array, times: FloatArray, parts: FloatArray) -> FloatArray:
    """Sums of the parts in each cell, each as many times."""
    order = np.argsort(cell, kind="stable")
    starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
    return np.add.reduceat((times * parts.T).T[order], starts)


def _drawn_to_its_mean(covariance: FloatArray, number: float) -> tuple[FloatArray, float]:
    """C* and its degrees of freedom, nu + kappa."""
    p, nu = len(covariance), number / 2
    kappa = p * (p + 1) / 2
    return (nu * covariance + kappa * np.trace(covariance) / p * np.eye(p)) / (nu + kappa), nu + kappa


def _cross(a: FloatArray) -> FloatArray:
    """The matrix of b -> a x b."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def _movements(arm: FloatArray, has_shift: bool, has_scale: bool) -> FloatArray:
    """J_i, as (n, d, parameters): how a turn, a shift and a stretch move points that lie at these arms."""
    n, d = arm.shape
    if d == 2:
        turn = np.stack([-arm[:, 1], arm[:, 0]], axis=1)[:, :, None]
    else:  # the columns of w -> w x arm
        (x, y, z), zero = arm.T, np.zeros(n)
        turn = np.array([[zero, z, -y], [-z, zero, x], [y, -x, zero]]).transpose(2, 0, 1)
    shift = [np.broadcast_to(np.eye(d), (n, d, d))] * has_shift
    return np.concatenate([turn, *shift, *[arm[:, :, None]] * has_scale], axis=2)


def _in_units(
    spread: FloatArray,
    degrees_of_freedom: float,
    side: float,
    motion: SimilarityTransformation,
    centre: FloatArray,
) -> MotionUncertainty:
    """From turn, shift of the centroid and stretch to rotation in degrees, translation and scale."""
    has_shift, has_scale = _parts(motion)
    d, turns = centre.size, 1 if centre.size == 2 else 3
    change = np.zeros((turns + d + has_scale, len(spread)))
    change[range(turns), range(turns)] = np.degrees(1.0)
    if has_shift:  # t = image of the centroid - scale R centroid: it moves with all three
        change[turns : turns + d] = _movements(-(motion.linear @ centre)[None], True, has_scale)[0]
    if has_scale:
        change[-1, -1] = motion.scale
    covariance = change @ spread @ change.T
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return MotionUncertainty(
        rotation=errors[:turns],
        translation=errors[turns : turns + d],
        scale=float(errors[-1]) if has_scale else 0.0,
        covariance=covariance,
        degrees_of_freedom=degrees_of_freedom,
        cluster_side=side,
        motion=motion,
        centre=centre,
        covariance_at_centre=spread,
    )
