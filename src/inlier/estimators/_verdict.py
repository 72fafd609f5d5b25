"""What a registration has to say, and how it says that it found nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from inlier._checks import warn
from inlier._typing import Array, FloatArray, Mask
from inlier.consensus.evidence import NearMisses
from inlier.consensus.freedoms import Freedom
from inlier.consensus.near_ties import NearTies, near_ties_of_motion
from inlier.consensus.refine import Certainty, Consensus
from inlier.exceptions import DependenceWarning
from inlier.rows.gaps import far_points
from inlier.rows.null_pairs import point_numbers
from inlier.rows.threads import row_blocks
from inlier.transforms import Transformation

GENEROUS = 1.5  # noise bounds: pairs beyond may not be there by chance, but do not agree as the others do
_TOO_FEW = 0.5  # of the pairs that agree beyond chance
_ASKED, _FEWEST_ASKED, _MOST_IN_A_TREE = 2_000, 6, 200_000  # pairs whose near ties are counted, and points y
_OF_ONE_SCALE = ("rotation", "orthogonal", "rigid")  # models
_FEWEST_SCALED, _EXPLAINED = 20, 1 / 3  # pairs, and share of their squared residuals that another scale explains
_OTHER_SCALE = 1e-4  # that it differs by from 1
NO_TIES = NearTies(0.0, 0.0, 1.0)
CHOSEN, PERHAPS_CHOSEN = 0.001, 0.02  # chance of so few ties lost, from which on nothing is claimed, or it is said
_LOW = 8  # columns up to which the nearest others are near
_NEAR_ANYWAY = 0.3  # share of wrong pairs within the bound: that some are near says nothing
_CURE = (
    "Check the pairing, the units and the order of the columns. If the scale differs use model='similarity'; "
    "if one side may be a mirror image, reflection=True."
)


@dataclass(frozen=True, eq=False)
class RunnerUp:
    """Another transformation, which pairs that do not follow the one that was found agree on.

    Attributes
    ----------
    transformation : SimilarityTransformation
        The transformation.
    n_places : float
        In how many places pairs agree with it, to be compared with ``n_places_``.
    """

    transformation: Transformation
    n_places: float


@dataclass(frozen=True, eq=False)
class Verdict:
    """The attributes that `Registration.fit` sets; see there. What is not given says that nothing was found."""

    scores_: FloatArray
    residuals_: FloatArray
    p_values_: FloatArray
    q_values_: FloatArray
    inlier_mask_: Mask
    near_miss_mask_: Mask
    detection_p_value_: float
    n_places_: float = 0.0
    clump_length_: float = 0.0
    runner_up_: RunnerUp | None = None
    best_guess_: Transformation | None = None
    free_: Freedom | None = None
    success_: bool = False
    transformation_: Transformation | None = None
    noise_bound_: float = np.nan
    threshold_: float = float(np.nextafter(0.0, 1.0))
    false_discovery_rate_: float = 0.0
    inlier_fraction_: float = 0.0
    inlier_fraction_error_: float = 0.0
    null_scores_: FloatArray = field(default_factory=lambda: np.empty(0))
    n_re_pairings_: int = 0

    @staticmethod
    def of_failure(n: int, found: Consensus, certainty: Certainty, p_value: float | None = None) -> Verdict:
        """That n pairs agree on nothing."""
        no_pair = np.zeros(n, dtype=bool)
        p_value = certainty.p_value if p_value is None else p_value
        return Verdict(
            *(np.zeros(n), np.full(n, np.nan), np.ones(n), np.ones(n), no_pair, no_pair, p_value)
        ).with_others(found, certainty)

    def with_others(self, found: Consensus, certainty: Certainty) -> Verdict:
        """The same with what else might be: the places, the map that was judged, another one, a freedom."""
        guess = self.transformation_
        if guess is None and certainty.map is not None:
            guess = found.as_transformation(certainty.map)
        second = certainty.runner_up and RunnerUp(
            found.as_transformation(certainty.runner_up[0]), certainty.runner_up[1]
        )
        free = certainty.free and replace(certainty.free, point=certainty.free.point + found.origin[1])
        return replace(
            self,
            n_places_=certainty.n_places,
            clump_length_=certainty.clump_length,
            best_guess_=guess,
            runner_up_=second,
            free_=free,
        )

    def told_from(self, near_misses: NearMisses) -> Verdict:
        """The same without near misses: no pair beyond the core counts as real."""
        n, limit = self.residuals_.size, min(GENEROUS * self.noise_bound_, near_misses.bound)
        core, misses, _ = near_misses.expected_within(limit) / n
        return replace(
            self,
            noise_bound_=min(self.noise_bound_, near_misses.bound),
            q_values_=np.maximum(self.q_values_, near_misses.doubt(self.residuals_)),
            near_miss_mask_=near_misses.among(self.residuals_, near_misses.bound),
            inlier_fraction_=float(core),
            # Which of the pairs within the bound are near misses cannot be seen: half of them are error.
            inlier_fraction_error_=float(np.hypot(np.sqrt(core * (1 - core) / n), misses / 2)),
        )

    def within_bound(self, share: float) -> Verdict:
        """The same where mistakes come in clumps, and lie nearer than re-pairings: real are those within a bound."""
        error = float(np.sqrt(share * (1 - share) / self.residuals_.size))
        return replace(self, inlier_fraction_=share, inlier_fraction_error_=error)

    def of_copies(self, numbers: Array) -> Verdict:
        """The same for a table in which pair k of this one stands wherever ``numbers`` is k."""
        per_pair = ("residuals_", "scores_", "p_values_", "q_values_", "inlier_mask_", "near_miss_mask_")
        return replace(self, **{name: getattr(self, name)[numbers] for name in per_pair})

    def with_far_points(self, far: Mask, X: Array, Y: Array) -> Verdict:
        """The same for a table in which pairs that were set aside, and are called wrong, stand among those judged."""
        residuals = np.full(np.count_nonzero(far), np.nan)
        if self.transformation_ is not None:
            residuals = self.transformation_.residuals(X[far], Y[far])
        below = np.minimum(np.nan_to_num(-residuals), np.nextafter(self.threshold_, -np.inf))

        def whole(judged: Array, others: Any) -> Array:
            values = np.empty(far.size, dtype=judged.dtype)
            values[~far], values[far] = judged, others
            return values

        return replace(
            self,
            residuals_=whole(self.residuals_, residuals),
            scores_=whole(self.scores_, below),
            p_values_=whole(self.p_values_, 1.0),
            q_values_=whole(self.q_values_, 1.0),
            inlier_mask_=whole(self.inlier_mask_, False),
            near_miss_mask_=whole(self.near_miss_mask_, False),
        )

    def decided(
        self, alpha: float, noise_bound: float | None, n_expected: float = 0.0, rate_within: float = 0.0
    ) -> Verdict:
        """Accept what is sure enough; where that leaves out most of the expected real pairs, all within the bound.

        Of these a share of ``rate_within`` or more is wrong, as ``false_discovery_rate_`` says. A ``noise_bound``
        that was given decides by itself.
        """
        if noise_bound is None:
            mask = (self.q_values_ <= alpha) & (self.residuals_ <= GENEROUS * self.noise_bound_)
        else:
            mask = self.residuals_ <= noise_bound
        unsure = noise_bound is None and np.count_nonzero(mask) < _TOO_FEW * n_expected
        if unsure:
            mask = self.residuals_ <= self.noise_bound_
        highest, n_accepted = self.scores_.max(), np.count_nonzero(mask)
        rate, threshold = 0.0, float(np.nextafter(highest, np.inf))
        if n_accepted:  # without picking out the accepted ones, which takes long where they are scattered
            blocks = [(rows, mask[rows].astype(np.float64)) for rows in row_blocks(mask.size, 3)]
            rate = min(float(max((self.q_values_[rows] * is_in).max() for rows, is_in in blocks)), 1.0)
            if highest <= 0:
                threshold = float(min((self.scores_[rows] * is_in).min() for rows, is_in in blocks))
            else:
                threshold = float(self.scores_[mask].min())
        if unsure:
            rate = max(rate, rate_within)
        return replace(self, inlier_mask_=mask, false_discovery_rate_=rate, threshold_=threshold)


def set_aside(X: Array, Y: Array, weights: FloatArray, lengths: tuple[float, float]) -> Mask | None:
    """Pairs with a point so far from all others that it would outweigh them: set aside, with a word about it.

    ``lengths`` are those of the ranges of all coordinates of X and of Y.
    """
    of_both = [far for far in map(far_points, (X, Y), lengths) if far is not None]
    far = np.logical_or.reduce(of_both) if of_both else None
    if far is None or not weights[~far].any():
        return None
    row = int(np.flatnonzero(far)[0])
    warn(
        f"{np.count_nonzero(far)} of the {far.size} pairs have a point over a thousand times as far from the "
        f"others as is typical, the first in row {row}: x = {np.array2string(X[row], precision=4, threshold=6)}, "
        f"y = {np.array2string(Y[row], precision=4, threshold=6)}. They are called wrong, and do not count in the "
        f"search. If they are codes for missing numbers, leave them out."
    )
    return far


def warn_about(found: Consensus, verdict: Verdict, X: Array, Y: Array) -> None:
    """Say what is odd about pairs that agree: a mirror image, another scale, a plane."""
    motion, accepted = verdict.transformation_, verdict.inlier_mask_
    if found.model.name in _OF_ONE_SCALE and motion is not None and X.shape[1] <= _LOW:
        scale = _better_scale(motion, X[accepted], Y[accepted])
        if scale is not None:
            warn(
                f"With a scale of {scale:.4g} the pairs that agree would fit far better. Use model='similarity' if "
                f"there may be one."
            )
    if found.better_mirrored:
        cure = "model='orthogonal'" if found.model.name == "rotation" else "reflection=True"
        warn(f"A mirror image would fit the pairs far better. Use {cure} if it may be one.")
    if found.is_flat:
        where = "in a plane" if X.shape[1] == 3 else "on a line"
        warn(
            f"The points that agree lie {where}, up to their noise: they support the mirror image of the motion as "
            f"much, and say nothing about what lies off it."
        )


def _better_scale(motion: Transformation, X: Array, Y: Array) -> float | None:
    """The scale with which pairs would fit far better: their residuals point away from the centre, or to it."""
    if len(X) < _FEWEST_SCALED:
        return None
    image = motion(X)
    left, arm = Y - image, image - image.mean(axis=0)
    left = left - left.mean(axis=0)
    along, lengths, rest = (float(np.vdot(a, b)) for a, b in ((left, arm), (arm, arm), (left, left)))
    is_better = along**2 > _EXPLAINED * lengths * rest and abs(along) > _OTHER_SCALE * lengths
    return 1 + along / lengths if is_better else None


def ties_of(motion: Transformation, X: Array, Y: Array, accepted: Mask) -> NearTies:
    """Near ties of pairs between their own y and the nearest other: of those accepted, of all where these are few."""
    rows = np.arange(len(X)) if len(X) <= _ASKED else np.flatnonzero(accepted)
    rows = rows[:: max(1, rows.size // _ASKED)]
    if np.count_nonzero(accepted) < _FEWEST_ASKED or X.shape[1] > _LOW or len(Y) > _MOST_IN_A_TREE:
        return NO_TIES
    all_images, everyone = motion(_different(X)), _different(Y)
    if min(len(all_images), len(everyone)) < _FEWEST_ASKED:
        return NO_TIES
    return near_ties_of_motion(motion(X[rows]), Y[rows], accepted[rows], all_images, everyone)


def _different(points: Array) -> Array:
    """Each point once."""
    return points[np.unique(point_numbers(points), return_index=True)[1]]


def chosen(ties: NearTies) -> str:
    """Say that pairs support whatever motion chose them."""
    return (
        f"The pairs seem to have been chosen because they are near each other after this motion, or one like it: of "
        f"those whose own y and the nearest other are about equally near then, {ties.won:.0f} are with the nearer and "
        f"{ties.lost:.0f} with the farther one (a chance of {ties.chance:.1g} for pairs that were not). Such pairs "
        f"support the motion that chose them, right or wrong. Match by something else than position."
    )


def warn_of_choice(ties: NearTies) -> None:
    """Say that pairs may have been chosen, where their ties are not clear."""
    warn(
        f"The pairs may have been chosen because they are near each other after some motion, and would support it, "
        f"right or wrong: of those whose own y and the nearest other are about equally near after one like this, "
        f"{ties.won:.0f} are with the nearer and {ties.lost:.0f} with the farther one (a chance of {ties.chance:.1g} "
        f"for pairs that were not).",
        DependenceWarning,
    )


def warn_of_others(verdict: Verdict, model: str) -> None:
    """Name another motion with support of the same order, and a freedom of the one that was found."""
    if verdict.runner_up_ is not None:
        warn(
            f"Another {model} transformation is supported in about {verdict.runner_up_.n_places:.0f} places, the one "
            f"that was found in {verdict.n_places_:.0f}: a second motion, a symmetry, a repeated pattern. See "
            f"runner_up_."
        )
    if verdict.free_ is not None:
        warn(f"The motion is not sure in {verdict.free_}: the other pairs follow it as well. See free_.")


def why_not(found: Consensus, certainty: Certainty, n: int, copies: Array | None) -> str:
    """Say of n pairs that they agree on nothing, how near they came, and what to try."""
    model, evidence, listed, cure = found.model, found.evidence, "", _CURE
    if copies is not None:
        listed = f" Of the {copies.size} pairs, {n} differ; one that is listed more than once counts once."
    if n <= model.fewest_pairs + 1:
        return (
            f"{n} pairs are too few to tell: any {model.fewest_pairs} fit some {model.name} transformation of "
            f"{model.dimension}-dimensional points. Give several more, to see whether they agree with it.{listed}"
        )
    if found.is_flat:
        flat = "in a plane: the motion within it" if model.dimension == 3 else "on a line: the motion along it"
        cure = f"The points that agree lie {flat} is not determined. {_CURE}"
    if certainty.is_tie and certainty.runner_up is not None:
        return (
            f"Two {model.name} transformations are supported alike, in {certainty.n_places:.0f} and "
            f"{certainty.runner_up[1]:.0f} places: two motions, a symmetry, a repeated pattern. Neither is sure; "
            f"with raise_on_failure=False they are in best_guess_ and runner_up_. Leave out the pairs of one.{listed}"
        )
    if certainty.free is not None:
        return (
            f"The {n} pairs leave {certainty.free}, open: the others follow the best {model.name} transformation up to "
            f"that, and nothing fixes it. With raise_on_failure=False it is in best_guess_, and free_ says what is "
            f"open. Add matches that tell, away from the axis or off the plane.{listed}"
        )
    if certainty.in_order:
        return (
            f"The {n} pairs do not agree on any {model.name} transformation beyond what the order of the rows "
            f"explains: each row resembles the next one in both tables, and pairs of rows so many lines apart "
            f"agree as well. Match by something else than the row.{listed}"
        )
    if certainty.clump_length > 0:
        return (
            f"The {n} pairs do not agree on any {model.name} transformation beyond what clumps of mistakes explain: "
            f"wrong pairs come together, neighbours here matched to neighbours there up to {certainty.clump_length:.3g}"
            f" apart. The best one found is supported in {certainty.n_places:.0f} places. {cure}{listed}"
        )
    how_near = "None that was found brings more of them together than it brings wrong pairs."
    if evidence.by_chance <= _NEAR_ANYWAY:
        alarms = np.exp(min(evidence.log_false_alarms, 50.0))
        how_near = (
            f"The best one found brings {evidence.n_supporting} of them within {evidence.bound:.3g}; among wrong "
            f"pairs one would expect {alarms:.2g} transformations with as much support."
        )
    return f"The {n} pairs do not agree on any {model.name} transformation. {how_near} {cure}{listed}"
