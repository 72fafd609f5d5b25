"""What has changed between two photos of one scene: the answer as one object, and its regions, where they end."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage
from scipy.spatial import ConvexHull

from inlier._checks import check_choice, check_flag, check_number
from inlier._typing import FloatArray, Mask
from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher
from inlier.images.alignment import Alignment, align_photos, as_they_are
from inlier.images.change_evidence import (
    AccidentTail,
    compare,
    edge_evidence,
    find_peaks,
    fit_tail,
    q_values,
    surface_evidence,
    unchanged_pairs,
    with_gaps_filled,
)
from inlier.images.rasters import Field, Photo, comparable, gaussian, resample, shrunk

METHODS = ("calibrated", "row-sum", "eigenvector")
_SMOOTHING = 0.012  # Gaussian over the evidence, as a share of the longer side: things, not pixels, change
_EDGES_IN_SCORES = 0.25  # weight beside the surfaces: with more real rooms gain, and pasted things lose
_SPECK = 2e-5  # share of the photo under which the paper's methods' regions are not listed
_EDGE_SHARE = 0.55  # of the highest evidence nearby, at which a region ends: about half way down
_NEARBY = 0.1  # of the longer side: how far that highest evidence is looked for
_SOLID = 0.5  # of its convex hull: a region that fills so much of it is one thing, and its gaps are part of it
_RESOLVED = 6  # working pixels: the smoothed evidence resolves no less, neither gaps nor things
MOST_LISTED = 500  # regions: nobody reads more


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

    @property
    def changed_share(self) -> float:
        """Share of the pixels that changed."""
        return float(self.mask.mean())

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if not self.alignment.same_scene:
            correlation = f"their brightness correlates by {abs(self.alignment.agreement):.2f} at best"
            return f"The photos do not show the same scene ({correlation}): there is nothing to compare."
        if not self.mask.any():
            return "Nothing has changed that noise and light do not explain."
        count = len(self.regions)
        most = f"{100 * self.alpha:.2g} %"
        share = f"{self.changed_share:.2%} of the photo"
        if self.method != "calibrated":
            return f"{count:,}{' or more' if count == MOST_LISTED else ''} regions have changed: {share}."
        if count == 1:
            return f"1 region has changed, by accident in at most {most} of such cases: {share}."
        return f"{count:,} regions have changed, at most {most} of them by accident: {share}."

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the pictures, ready for JSON."""
        height, width = self.mask.shape
        return {
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
            },
            "regions": [asdict(region) for region in self.regions],
        }


def detect_changes(
    before: Any, after: Any, method: str = "calibrated", alpha: float = 0.05, align: bool = True, random_state: int = 0
) -> Changes:
    """Find what has changed between two photos of one scene.

    Other light, shadows, noise and small movements of the camera are no change: the default method learns how the
    colours of one photo follow from the other's, everywhere and around each pixel, and judges what does not follow
    against the photo's own noise. "row-sum" and "eigenvector" are the paper's case study: every pixel is a pair of
    colours, and k-means parts the scores in two.

    Parameters
    ----------
    before, after : array-like of shape (height, width, 3) or (height, width)
        The photos, of one size or at least of one shape.
    method : {"calibrated", "row-sum", "eigenvector"}, default="calibrated"
        How change is judged.
    alpha : float, default=0.05
        Largest expected share of regions that are there by accident (the false discovery rate), as far as unchanged
        photos look like those of `inlier.images.change_evidence`; the calibrated method only.
    align : bool, default=True
        First lay ``before`` over ``after``.
    random_state : int, default=0
        Draws the pixels that maps and noise are fitted to.

    Returns
    -------
    Changes

    Examples
    --------
    >>> from inlier.datasets import make_scenes
    >>> from inlier.images import detect_changes
    >>> scene, with_box, _ = make_scenes().photos
    >>> changes = detect_changes(scene, with_box)
    >>> print(changes.sentence)
    1 region has changed, by accident in at most 5 % of such cases: ... of the photo.
    """
    check_choice(method, METHODS, "method")
    alpha = check_number(alpha, "alpha", low=0, high=1)
    check_flag(align, "align")
    before, after = comparable(before, after)
    alignment = align_photos(before, after, random_state) if align else as_they_are(before, after)
    moved = alignment.apply(before)
    valid = alignment.inside(*after.shape[:2])
    if not alignment.same_scene:
        nothing = np.zeros(after.shape[:2])
        scores, mask, regions = nothing.astype(np.float32), nothing.astype(bool), list[Region]()
    elif method == "calibrated":
        scores, mask, regions = _calibrated(moved, after, valid, alpha, random_state)
    else:
        scores, mask, regions = _of_the_paper(moved, after, valid, method)
    return Changes(moved, after, scores, mask, regions, alignment, method, alpha)


def _calibrated(before: Photo, after: Photo, valid: Field, alpha: float, seed: int) -> tuple[Field, Mask, list[Region]]:
    """Judge at working size, against the photos' own twins; then carry the answer to every pixel."""
    height, width = after.shape[:2]
    rng = np.random.default_rng(seed)
    y = shrunk(after)
    seen = np.floor(resample(valid, *y.shape[:2]) + 1e-3).astype(np.float32)
    if seen.mean() < 0.05:
        raise ValueError("The two photos do not overlap: check that they show one scene, or pass align=False.")
    x = np.where(seen[..., None] > 0, shrunk(before), y)  # outside of the frame nothing is to be compared
    pair = compare(x, y, seen, rng)
    outlines = edge_evidence(pair, rng)
    edges = _smooth(outlines)
    peaks = find_peaks(edges, seen)
    by_accident = []
    for photo, twin in unchanged_pairs(x, y, pair.light, rng):
        by_accident += [find_peaks(_smooth(edge_evidence(compare(photo, twin, seen, rng), rng)), seen)]
    tail = fit_tail(np.concatenate(by_accident), peaks)
    q = q_values(tail.p_values(peaks))
    least = float(peaks[q <= alpha].min(initial=np.inf))
    surfaces = surface_evidence(pair, rng)
    mask = outline(edges, (surfaces + outlines) / np.float32(2), least)
    scores = resample(with_gaps_filled(_smooth(surfaces) + _EDGES_IN_SCORES * edges), height, width)
    whole = resample(mask.astype(np.float32), height, width) >= 0.5
    regions = describe(without_specks(whole, least_area=1), resample(edges, height, width))
    judged = [_judged(region, tail, peaks, q) for region in regions]
    return scores, whole, sorted(judged, key=lambda region: -region.score)


def _smooth(evidence: Field) -> Field:
    return gaussian(evidence, _SMOOTHING * max(evidence.shape))


def _judged(region: Region, tail: AccidentTail, peaks: FloatArray, q: FloatArray) -> Region:
    """Add the region's p-value, and its q-value among all peaks of the photo."""
    order = np.argsort(peaks)
    q_value = float(np.interp(region.score, peaks[order], q[order]))
    return replace(region, p_value=float(tail.p_values(np.array(region.score))), q_value=q_value)


def _of_the_paper(before: Photo, after: Photo, valid: Field, method: str) -> tuple[Field, Mask, list[Region]]:
    """Every pixel is a pair of colours; all of them are judged."""
    matcher = (RowSumMatcher if method == "row-sum" else EigenvectorMatcher)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pixels of the mean colour have no direction; they are outliers
        matcher.fit(before.reshape(-1, 3), after.reshape(-1, 3))
    shape = after.shape[:2]
    scores = -matcher.scores_.reshape(shape).astype(np.float32)
    mask = ~matcher.inlier_mask_.reshape(shape) & (valid > 0)
    labels = without_specks(mask, least_area=max(2, round(_SPECK * mask.size)))
    return scores, mask, describe(labels, scores)


@dataclass(frozen=True)
class Region:
    """A connected region that changed.

    Attributes
    ----------
    left, top, right, bottom : int
        Its box in pixels of ``after``; right and bottom are the first pixels outside.
    area : int
        Number of pixels.
    score : float
        Largest evidence in it.
    p_value : float or None
        Chance that a peak is as high where nothing has changed; None for the paper's methods.
    q_value : float or None
        Smallest alpha at which the region is reported; None for the paper's methods.
    """

    left: int
    top: int
    right: int
    bottom: int
    area: int
    score: float
    p_value: float | None
    q_value: float | None


def outline(evidence: Field, fine: Field, least: float) -> Mask:
    """Cut out the regions in which the smoothed evidence reaches ``least``, about half way down the fine evidence.

    Parts too small to be resolved are drawn as wide as the smoothed evidence has them.
    """
    labels, count = ndimage.label(_bridged((fine >= least) & _upper_half(fine)))
    reached = np.zeros(count + 1, bool)
    reached[1:] = ndimage.maximum(evidence, labels, np.arange(1, count + 1)) >= least
    if not reached.any():
        return with_gaps_closed(evidence >= least)
    mask = with_gaps_closed(reached[labels])
    around = ndimage.binary_dilation(_small_parts(mask), np.ones((3, 3)), iterations=_RESOLVED)
    return mask | (around & (evidence >= _EDGE_SHARE * least) & _upper_half(evidence))


def _upper_half(evidence: Field) -> Mask:
    nearby = max(3, round(_NEARBY * max(evidence.shape)))
    return np.asarray(evidence >= _EDGE_SHARE * ndimage.maximum_filter(evidence, nearby))


def _small_parts(mask: Mask) -> Mask:
    labels, count = ndimage.label(mask)
    depth = ndimage.maximum(ndimage.distance_transform_edt(mask), labels, np.arange(1, count + 1))
    return np.append(False, np.asarray(depth) <= _RESOLVED)[labels]


def with_gaps_closed(mask: Mask) -> Mask:
    """Fill holes, and the convex hull of regions that fill most of it."""
    closed = np.asarray(ndimage.binary_fill_holes(mask))
    labels, _ = ndimage.label(closed)
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        part = labels[rows, columns] == number
        hull = _hull(part)
        if part.sum() >= _SOLID * hull.sum():
            closed[rows, columns] |= hull
    return closed


def _bridged(mask: Mask) -> Mask:
    around = np.pad(mask, _RESOLVED)  # or the border of the photo would count as empty
    return np.asarray(ndimage.binary_closing(around, iterations=_RESOLVED))[_RESOLVED:-_RESOLVED, _RESOLVED:-_RESOLVED]


def _hull(part: Mask) -> Mask:
    places = np.argwhere(part)[:, ::-1]
    if min(np.ptp(places, axis=0)) == 0 or np.linalg.matrix_rank(places - places[0]) < 2:
        return part
    corners = places[ConvexHull(places).vertices]
    picture = Image.new("1", part.shape[::-1])
    ImageDraw.Draw(picture).polygon([(int(column), int(row)) for column, row in corners], fill=1, outline=1)
    return np.asarray(picture)


def describe(labels: NDArray[np.int32], evidence: Field) -> list[Region]:
    """List at most 500 regions, the largest first, without p- and q-values."""
    boxes = ndimage.find_objects(labels)
    areas = np.bincount(labels.ravel(), minlength=len(boxes) + 1)[1:]
    regions = []
    for number in np.argsort(-areas, kind="stable")[:MOST_LISTED]:
        rows, columns = boxes[number]
        inside = labels[rows, columns] == number + 1
        score = float(evidence[rows, columns][inside].max())
        box = int(columns.start), int(rows.start), int(columns.stop), int(rows.stop)
        regions.append(Region(*box, int(areas[number]), score, None, None))
    return regions


def without_specks(mask: Mask, least_area: int) -> NDArray[np.int32]:
    """Number the connected parts of a mask that have at least ``least_area`` pixels; 0 elsewhere."""
    labels, _ = ndimage.label(mask)
    areas = np.bincount(labels.ravel())
    kept = areas >= least_area
    kept[0] = False
    renumber = np.where(kept, np.cumsum(kept), 0)
    return renumber[labels].astype(np.int32)
