"""What has changed between two photos of one scene: the answer as one object, and its regions, where they end."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from inlier._checks import check_choice, check_count, check_flag, check_number, warn
from inlier._typing import FloatArray, Mask
from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher
from inlier.images.accidents import (
    AccidentTail,
    find_peaks,
    fit_tail,
    is_peak,
    q_values,
    unchanged_pairs,
)
from inlier.images.alignment import STAY, Alignment, aligned, as_they_are
from inlier.images.change_evidence import (
    View,
    compare,
    edge_evidence,
    exposed_alike,
    surface_evidence,
    with_gaps_filled,
)
from inlier.images.rasters import WORKING_SIZE, Field, Frame, Photo, comparable, gaussian, resample, shrunk
from inlier.images.regions import MOST_LISTED, Region, describe, each_with_a_peak, enlarged, outline, without_specks

METHODS = ("calibrated", "row-sum", "eigenvector")
CHANGED, UNCHANGED, DIFFERENT_SCENES = "changed", "unchanged", "different scenes"
_ON_YOUR_WORD = (
    "The photos agree no better than strangers ({:.2f}); they are compared because you say that they show one scene. "
    "What differs may be the season as well as something that was built."
)
_AGREE_LITTLE = (
    "The photos agree little ({:.2f} of 1): if they do not show one scene, what is said of changes means nothing."
)
_SMOOTHING = 0.012  # Gaussian over the evidence, as a share of the longer side: things, not pixels, change
_EDGES_IN_SCORES = 0.25  # weight beside the surfaces: with more real rooms gain, and pasted things lose
_SPECK = 2e-5  # share of the photo under which the paper's methods' regions are not listed


@dataclass(frozen=True, eq=False)
class Changes:
    """What differs between two photos, in pixels of the second.

    Attributes
    ----------
    before, after : ndarray of uint8, shape (height, width, 3)
        The photos as compared: ``before`` is moved onto ``after``.
    scores : ndarray of float32, shape (height, width)
        Evidence of change, larger is more; gaps in things are filled in part. The mask is cut before that.
    mask : ndarray of bool, shape (height, width)
        True where something changed.
    regions : list of Region
        The connected parts of the mask, the strongest first; for the paper's methods the largest, without specks.
    alignment : Alignment
        How ``before`` was moved.
    method : str
        "calibrated", "row-sum" or "eigenvector".
    alpha : float
        Largest expected share of accidents among the regions.
    verdict : str
        "changed", "unchanged" or "different scenes".
    identical : bool
        Whether no pixel differs.
    notes : tuple of str
        What was found or assumed on the way: bits, sizes.

    Examples
    --------
    >>> from inlier.datasets import make_scenes
    >>> from inlier.images import detect_changes
    >>> scene, with_box, _ = make_scenes().photos
    >>> changes = detect_changes(scene, with_box)
    >>> len(changes.regions), changes.mask.shape, round(changes.changed_share, 2)
    (1, (427, 640), 0.03)
    """

    before: Photo
    after: Photo
    scores: Field
    mask: Mask
    regions: list[Region]
    alignment: Alignment
    method: str
    alpha: float
    verdict: str
    identical: bool = False
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """The answer, without the pictures."""
        return f"<Changes: {self.sentence}>"

    @property
    def changed_share(self) -> float:
        """Share of the pixels that changed."""
        return float(self.mask.mean())

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.verdict == DIFFERENT_SCENES:
            return "The photos do not show the same scene."
        if self.identical:
            return "The photos are identical: no pixel differs."
        if self.verdict == UNCHANGED and self.alignment.agrees_little:
            return "No region stands out; but the photos agree too little to say that nothing has changed."
        if self.verdict == UNCHANGED:
            return "Nothing has changed that noise and light do not explain."
        count, share = len(self.regions), f"{_percent(self.changed_share)} of the photo"
        what = "1 region has changed" if count == 1 else f"{count:,} regions have changed"
        return f"{what}{' or more' if count == MOST_LISTED else ''}: {share}."

    @property
    def caution(self) -> str:
        """How far the answer is to be trusted, or what to do about it; often nothing."""
        if self.verdict == DIFFERENT_SCENES:
            return (
                f"Their brightness correlates by {abs(self.alignment.agreement):.2f} at best: nothing was compared. If "
                f"they do show one scene, pass --same-scene (same_scene=True)."
            )
        if self.method != "calibrated" or not self.regions:
            return ""
        also = "a sharp new shadow or a reflection"
        if self.alignment.moved:
            also = "a sharp new shadow, a reflection, or the edge of a near thing that is seen from elsewhere,"
        return (
            f"Of regions listed so, at most {_percent(self.alpha)} are expected to be accidents of noise and light; "
            f"{also} may be listed, too."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the pictures, ready for JSON."""
        height, width = self.mask.shape
        return {
            "verdict": self.verdict,
            "identical": self.identical,
            "sentence": self.sentence,
            "caution": self.caution,
            "notes": list(self.notes),
            "method": self.method,
            "alpha": self.alpha if self.method == "calibrated" else None,
            "width": width,
            "height": height,
            "changed_share": self.changed_share,
            "alignment": {
                "method": self.alignment.method,
                "matrix_after_to_before": np.round(self.alignment.matrix, 9).tolist(),
                "largest_shift_pixels": round(self.alignment.shift(height, width), 3),
                "agreement": round(self.alignment.agreement, 4),
                "same_scene": self.alignment.same_scene,
            },
            "regions": [asdict(region) for region in self.regions],
        }


def detect_changes(
    before: Any,
    after: Any,
    method: str = "calibrated",
    alpha: float = 0.05,
    align: bool = True,
    random_state: int = 0,
    *,
    same_scene: bool = False,
    bits: int | None = None,
) -> Changes:
    """Find what has changed between two photos of one scene.

    Other light, shadows, noise and small movements of the camera are no change: the default method learns how the
    colours of one photo follow from the other's, everywhere and around each pixel, and judges what does not follow
    against the photo's own noise. "row-sum" and "eigenvector" are the paper's case study: every pixel is a pair of
    colours, and k-means parts the scores in two.

    Parameters
    ----------
    before, after : array-like of shape (height, width, 3) or (height, width)
        The photos, of one size or at least of one shape; a fourth channel, or a second, says how opaque they are.
        NaN is transparent, too. What is transparent is not compared.
    method : {"calibrated", "row-sum", "eigenvector"}, default="calibrated"
        How change is judged.
    alpha : float, default=0.05
        Largest expected share of regions that are there by accident (the false discovery rate), as far as unchanged
        photos look like those of `inlier.images.change_evidence`; the calibrated method only.
    align : bool, default=True
        First lay ``before`` over ``after``.
    random_state : int, default=0
        Draws the pixels that maps and noise are fitted to.
    same_scene : bool, default=False
        Promise that the photos show one scene: it is not asked whether they do.
    bits : int, optional
        Bits of whole numbers: white is 2^bits - 1. By default as many as the largest number in the photos needs, at
        least 8. Photos of one type share one range; fractions have the range 0 .. 1, or their own.

    Returns
    -------
    Changes

    Warns
    -----
    UserWarning
        If the photos do not show the same scene.

    Examples
    --------
    >>> from inlier.datasets import make_scenes
    >>> from inlier.images import detect_changes
    >>> scene, with_box, _ = make_scenes().photos
    >>> changes = detect_changes(scene, with_box)
    >>> print(changes.sentence)
    1 region has changed: ... of the photo.
    """
    check_choice(method, METHODS, "method")
    alpha = check_number(alpha, "alpha", low=0, high=1)
    check_flag(align, "align")
    check_flag(same_scene, "same_scene")
    bits = None if bits is None else check_count(bits, "bits", low=1)
    first, second, notes = comparable(before, after, bits)
    if are_equal(first, second):
        return _nothing_in(first, second, Alignment(STAY, 1.0, "none"), method, alpha, UNCHANGED, True, notes)
    alignment = aligned(first, second, random_state) if align else as_they_are(first, second)
    if not (alignment.same_scene or same_scene):
        changes = _nothing_in(first, second, alignment, method, alpha, DIFFERENT_SCENES, False, notes)
        warn(f"{changes.sentence} {changes.caution}")
        return changes
    if alignment.agrees_little:
        said = _AGREE_LITTLE if alignment.same_scene else _ON_YOUR_WORD
        notes = (*notes, said.format(abs(alignment.agreement)))
    valid = _shown_by_both(first, second, alignment)
    moved = replace(first, colours=alignment.apply(first.colours))
    if method == "calibrated":
        scores, mask, regions = _calibrated(moved, second, valid, alpha, random_state)
    else:
        scores, mask, regions = _of_the_paper(moved, second, valid, method)
    verdict = CHANGED if mask.any() else UNCHANGED
    photos = moved.picture, second.picture
    return Changes(*photos, scores, mask, regions, alignment, method, alpha, verdict, False, notes)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def are_equal(first: Frame, second: Frame) -> bool:
    """Whether no number differs where the photos are not transparent."""
    if not np.array_equal(first.there, second.there) or first.colours.dtype != second.colours.dtype:
        return False
    return bool(((first.colours == second.colours).all(axis=2) | ~first.there).all())


def _nothing_in(first: Frame, second: Frame, *answer: Any) -> Changes:
    nothing = np.zeros(second.there.shape, np.float32)
    return Changes(first.picture, second.picture, nothing, nothing > 0, [], *answer)


def _shown_by_both(first: Frame, second: Frame, alignment: Alignment) -> Field:
    """1 where both photos show something: within the frame of the moved one, and not transparent in either."""
    valid = alignment.inside(*second.there.shape) * second.there
    if not first.there.all():
        valid = valid * (alignment.apply(first.there * np.uint8(255)) == 255)
    return np.asarray(valid, np.float32)


def _calibrated(before: Frame, after: Frame, valid: Field, alpha: float, seed: int) -> tuple[Field, Mask, list[Region]]:
    """Judge at working size, against the photos' own twins; then carry the answer to every pixel."""
    height, width = after.there.shape
    rng = np.random.default_rng(seed)
    y = _view(after)
    seen = np.floor(resample(valid, *y.values.shape[:2]) + 1e-3).astype(np.float32)
    if seen.mean() < 0.05:
        raise ValueError(
            "Hardly a pixel is shown by both photos: check that they show one scene and are not transparent, or pass "
            "--no-align (align=False)."
        )
    x = _where_seen(seen, exposed_alike(_view(before), y, seen), y)
    pair = compare(x, y, seen, rng)
    outlines = edge_evidence(pair, rng)
    edges = _smooth(outlines)
    peaks = find_peaks(edges, seen)
    by_accident = []
    for photo, twin in unchanged_pairs(x, y, pair, rng):
        by_accident += [find_peaks(_smooth(edge_evidence(compare(photo, twin, seen, rng), rng)), seen)]
    tail = fit_tail(np.concatenate(by_accident), peaks)
    q = q_values(tail.p_values(peaks))
    least = float(peaks[q <= alpha].min(initial=np.inf))
    surfaces = surface_evidence(pair, rng)
    labels = each_with_a_peak(
        outline(edges, (surfaces + outlines) / np.float32(2), least), is_peak(edges) & (edges >= least)
    )
    scores = resample(with_gaps_filled(_smooth(surfaces) + _EDGES_IN_SCORES * edges), height, width)
    labels = enlarged(labels, height, width)
    regions = describe(labels, resample(edges, height, width))
    judged = [_judged(region, tail, peaks, q) for region in regions]
    return scores, labels > 0, sorted(judged, key=lambda region: -region.score)


def _view(photo: Frame) -> View:
    return View(shrunk(photo.colours, WORKING_SIZE), shrunk(photo.clipped, WORKING_SIZE), photo.step)


def _where_seen(seen: Field, view: View, other: View) -> View:
    """Outside of what both show there is nothing to compare: the other photo stands in."""
    values, clipped = (np.where(seen[..., None] > 0, *both) for both in zip(view[:2], other[:2], strict=True))
    return View(values, clipped, view.step)


def _smooth(evidence: Field) -> Field:
    return gaussian(evidence, _SMOOTHING * max(evidence.shape))


def _judged(region: Region, tail: AccidentTail, peaks: FloatArray, q: FloatArray) -> Region:
    """Add the region's p-value, and its q-value among all peaks of the photo."""
    order = np.argsort(peaks)
    q_value = float(np.interp(region.score, peaks[order], q[order]))
    return replace(region, p_value=float(tail.p_values(np.array(region.score))), q_value=q_value)


def _of_the_paper(before: Frame, after: Frame, valid: Field, method: str) -> tuple[Field, Mask, list[Region]]:
    """Every pixel is a pair of colours; all of them are judged."""
    matcher = (RowSumMatcher if method == "row-sum" else EigenvectorMatcher)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pixels of the mean colour have no direction; they are outliers
        matcher.fit(before.colours.reshape(-1, 3), after.colours.reshape(-1, 3))
    shape = after.there.shape
    scores = -matcher.scores_.reshape(shape).astype(np.float32)
    mask = ~matcher.inlier_mask_.reshape(shape) & (valid > 0)
    labels = without_specks(mask, least_area=max(2, round(_SPECK * mask.size)))
    return scores, mask, describe(labels, scores)
