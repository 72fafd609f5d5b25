"""From evidence to decisions: which regions show more than accident does.

A photo holds about as many independent places as its evidence has local maxima, the peaks. Peaks of pairs in which
nothing has changed (`inlier.images.self_pairs`) say how high accident reaches: the highest fifth of them is fitted by a
generalised Pareto distribution, stretched if the photos' own median peak is higher than theirs. A peak's p-value is
that tail; q-values over all peaks of the photo (Benjamini and Hochberg) bound the share of accidents among the regions
reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage
from scipy.spatial import ConvexHull
from scipy.stats import false_discovery_control, genpareto

from inlier._typing import FloatArray, Mask
from inlier.images.filters import Field

_PLACE = 0.05  # of the longer side: the highest evidence within such a square is a peak
_TAIL_SHARE = 0.2  # of the peaks, to which the tail is fitted
_SHAPES = (-0.5, 0.0)  # of the tail: evidence is a logarithm, so that it falls exponentially or faster
_CAUTION = 2.0  # standard errors, about 1 / sqrt(n) each, by which the tail is taken to be longer than it looks
_EDGE_SHARE = 0.5  # of the highest evidence nearby, at which a region ends: half way down
_NEARBY = 0.1  # of the longer side: how far that highest evidence is looked for
_SOLID = 0.5  # of its convex hull: a region that fills so much of it is one thing, and its gaps are part of it
MOST_LISTED = 500


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


@dataclass(frozen=True, eq=False)
class AccidentTail:
    """How high peaks are where nothing has changed: a share of them is above ``start``, generalised Pareto."""

    start: float
    share: float
    scale: float
    shape: float

    def p_values(self, peaks: FloatArray) -> FloatArray:
        """Chance that a peak is as high by accident; below ``start`` no better than the share above it."""
        above = np.maximum(peaks - self.start, 0)
        return np.asarray(self.share * genpareto.sf(above, self.shape, scale=self.scale))


def find_peaks(evidence: Field, valid: Field) -> FloatArray:
    """Return the evidence of the places that have the highest around them."""
    width = max(3, round(_PLACE * max(evidence.shape)))
    highest = ndimage.maximum_filter(evidence, width)
    return evidence[(evidence == highest) & (evidence > 0) & (valid > 0)].astype(np.float64)


def fit_tail(by_accident: FloatArray, peaks: FloatArray) -> AccidentTail:
    """Fit the tail to peaks of unchanged pairs by probability-weighted moments (Hosking and Wallis 1987)."""
    if not by_accident.size:
        return AccidentTail(0.0, 1.0, np.finfo(float).tiny, 0.0)
    stretch = max(1.0, float(np.median(peaks) / np.median(by_accident))) if peaks.size else 1.0
    null = np.sort(stretch * by_accident)
    start = float(np.quantile(null, 1 - _TAIL_SHARE))
    above = null[null > start] - start
    if above.size < 2:
        return AccidentTail(start, _TAIL_SHARE, max(start, np.finfo(float).tiny), 0.0)
    ranks = np.arange(above.size)
    mean, weighted = above.mean(), (above * (above.size - 1 - ranks)).sum() / (above.size * (above.size - 1))
    shape = 2 - mean / (mean - 2 * weighted) if mean > 2 * weighted else 0.0
    shape = float(np.clip(shape + _CAUTION / np.sqrt(above.size), *_SHAPES))
    # The scale that has the same mean with that shape.
    return AccidentTail(start, _TAIL_SHARE, float(mean * (1 - shape)), shape)


def q_values(p_values: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's, over all peaks of the photo."""
    return np.asarray(false_discovery_control(p_values)) if p_values.size else p_values


def outline(evidence: Field, fine: Field, least: float) -> Mask:
    """Cut out the regions in which the evidence reaches ``least``, half way down the fine evidence nearby."""
    nearby = max(3, round(_NEARBY * max(fine.shape)))
    highest = ndimage.maximum_filter(fine, nearby)
    inside = (fine >= _EDGE_SHARE * highest) & (fine >= _EDGE_SHARE * least) | (evidence >= least)
    labels, count = ndimage.label(inside)
    reached = ndimage.maximum(evidence, labels, np.arange(count + 1)) >= least
    reached[0] = False
    return with_gaps_closed(reached[labels])


def with_gaps_closed(mask: Mask) -> Mask:
    """Fill holes, and the convex hull of regions that fill most of it: things change, not their textures."""
    filled = np.asarray(ndimage.binary_fill_holes(mask))
    labels, _ = ndimage.label(filled)
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        part = labels[rows, columns] == number
        hull = _hull(part)
        if part.sum() >= _SOLID * hull.sum():
            filled[rows, columns] |= hull
    return filled


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
