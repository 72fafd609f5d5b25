"""Regions that changed: where they end, in which order they are listed, and which are too small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage
from scipy.spatial import ConvexHull

from inlier._typing import Mask
from inlier.images.rasters import Field, resample

Labels = NDArray[np.int32]  # 0 where there is nothing, else the number of a part

_EDGE_SHARE = 0.55  # of the highest evidence nearby, at which a region ends: about half way down
_NEARBY = 0.1  # of the longer side: how far that highest evidence is looked for
_SOLID = 0.5  # of its convex hull: a region that fills so much of it is one thing, and its gaps are part of it
_RESOLVED = 6  # working pixels: the smoothed evidence resolves no less, neither gaps nor things
MOST_LISTED = 500  # regions: nobody reads more


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


def each_with_a_peak(mask: Mask, peaks: Mask) -> Labels:
    """Number the parts of a mask that are nearest to a peak: the others are crumbs, which no peak speaks for."""
    labels, count = ndimage.label(mask, np.ones((3, 3)))
    is_nearest = np.zeros(count + 1, bool)
    if count and peaks.any():
        rows, columns = ndimage.distance_transform_edt(~mask, return_distances=False, return_indices=True)
        is_nearest[labels[rows[peaks], columns[peaks]]] = True
    return _renumbered(labels, is_nearest)


def enlarged(labels: Labels, height: int, width: int) -> Labels:
    """Carry numbered parts to another size; their borders are interpolated."""
    mask = resample((labels > 0).astype(np.float32), height, width) >= 0.5
    if not mask.any():
        return np.zeros((height, width), np.int32)
    rows, columns = ndimage.distance_transform_edt(labels == 0, return_distances=False, return_indices=True)
    nearest = labels[rows, columns]
    down, across = (
        ((np.arange(size) + 0.5) * old / size).astype(int)
        for size, old in zip((height, width), labels.shape, strict=True)
    )
    whole = np.where(mask, nearest[down[:, None], across], 0)
    return _renumbered(whole, np.bincount(whole.ravel(), minlength=labels.max() + 1) > 0)


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


def describe(labels: Labels, evidence: Field) -> list[Region]:
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


def without_specks(mask: Mask, least_area: int) -> Labels:
    """Number the connected parts of a mask that have at least ``least_area`` pixels; 0 elsewhere."""
    labels, _ = ndimage.label(mask)
    areas = np.bincount(labels.ravel())
    return _renumbered(labels, areas >= least_area)


def _renumbered(labels: Labels, kept: Mask) -> Labels:
    """Number the parts that are kept from 1 on; 0 elsewhere."""
    kept[0] = False
    return np.where(kept, np.cumsum(kept), 0)[labels].astype(np.int32)
