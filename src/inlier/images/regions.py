"""From evidence to decisions: which regions show more than accident does.

A photo holds about as many independent places as its evidence has local maxima, the peaks. Peaks of pairs in which
nothing has changed (`inlier.images.self_pairs`) say how high accident reaches. Their highest fifth is fitted by a
generalised Pareto distribution whose scale is its shape times its start, that is P(peak > z) = share (z / start)^(-1 /
shape). If the photos' own lower peaks are higher than those of the twins, as they are where photos differ in ways that
twins do not, the tail is stretched by as much. A peak's p-value is that tail; q-values over all peaks of the photo
(Benjamini and Hochberg) bound the share of accidents among the regions that are reported.
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
_LOWER_PEAKS = (0.5, 0.65)  # quantiles that are compared: untouched while less than a third of the photo has changed
_SHAPE = 0.25  # of the tail. Twins alone have about 0.2; real photos differ in more ways than twins do
_EDGE_SHARE = 0.5  # of the highest evidence nearby, at which a region ends: half way down
_NEARBY = 0.1  # of the longer side: how far that highest evidence is looked for
_SOLID = 0.5  # of its convex hull: a region that fills so much of it is one thing, and its gaps are part of it
_SPILL = 2  # working pixels by which the filters carry evidence over an outline
_NO_NOISE = 0.05  # evidence where there is nothing, not even noise
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
    """How high peaks are where nothing has changed: a fifth of them above ``start``, generalised Pareto."""

    start: float
    shape: float

    def p_values(self, peaks: FloatArray) -> FloatArray:
        """Chance that a peak is as high by accident; below ``start`` no better than the share above it."""
        above = np.maximum(peaks - self.start, 0)
        return np.asarray(_TAIL_SHARE * genpareto.sf(above, self.shape, scale=self.shape * self.start))


def find_peaks(evidence: Field, valid: Field) -> FloatArray:
    """Return the evidence of the places that have the highest around them.

    About every second square holds a peak. Where the evidence is level, as in photos without noise, there are fewer;
    such places count with the least evidence there is.
    """
    width = max(3, round(_PLACE * max(evidence.shape)))
    highest = ndimage.maximum_filter(evidence, width)
    peaks = evidence[(evidence == highest) & (evidence > _NO_NOISE) & (valid > 0)].astype(np.float64)
    level = round(float((valid > 0).sum()) / width**2 / 4) - peaks.size
    return np.append(peaks, np.full(max(1, level), _NO_NOISE))


def fit_tail(by_accident: FloatArray, peaks: FloatArray) -> AccidentTail:
    """Fit where the tail starts to peaks of unchanged pairs, stretched to the photos' own lower peaks."""
    stretch = float((np.quantile(peaks, _LOWER_PEAKS) / np.quantile(by_accident, _LOWER_PEAKS)).max())
    start = max(1.0, stretch) * float(np.quantile(by_accident, 1 - _TAIL_SHARE))
    return AccidentTail(start, _SHAPE)


def q_values(p_values: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's, over all peaks of the photo."""
    return np.asarray(false_discovery_control(p_values))


def outline(evidence: Field, fine: Field, least: float) -> Mask:
    """Cut out the regions in which the evidence reaches ``least``, half way down the fine evidence nearby."""
    nearby = max(3, round(_NEARBY * max(fine.shape)))
    highest = ndimage.maximum_filter(fine, nearby)
    inside = (fine >= _EDGE_SHARE * highest) & (fine >= _EDGE_SHARE * least)
    labels, count = ndimage.label(_closed(inside))
    reached = np.zeros(count + 1, bool)
    reached[1:] = ndimage.maximum(evidence, labels, np.arange(1, count + 1)) >= least
    return with_gaps_closed(reached[labels] if reached.any() else evidence >= least)


def with_gaps_closed(mask: Mask) -> Mask:
    """Fill holes, and the convex hull of regions that fill most of it; then take off what the filters have added."""
    filled = np.asarray(ndimage.binary_fill_holes(mask))
    labels, _ = ndimage.label(filled)
    closed = np.zeros_like(filled)
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        part = labels[rows, columns] == number
        hull = _hull(part)
        if part.sum() >= _SOLID * hull.sum():
            inner = ndimage.binary_erosion(hull, iterations=_SPILL)
            part = inner if inner.sum() >= _SOLID * hull.sum() else hull  # small things are all border
        closed[rows, columns] |= part
    return closed


def _closed(mask: Mask) -> Mask:
    """Join what is no farther apart than the filters reach from both sides."""
    around = np.pad(mask, _SPILL)
    return np.asarray(ndimage.binary_closing(around, iterations=_SPILL))[_SPILL:-_SPILL, _SPILL:-_SPILL]


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
