"""From evidence to decisions: which regions stand out of the photo's own noise.

Where nothing has changed the evidence has a tail that falls exponentially or faster. Its rate is read off the part
between the median and the upper quartile, which changes of less than a quarter of the photo hardly touch:
P(evidence > median + t) = exp(-t / beta) / 2, with beta = (upper quartile - median) / log 2. The evidence is smooth,
so a photo holds only about as many independent places as smoothing windows; a region's p-value is the tail at its
peak times their number (Bonferroni), the chance that noise shows such a peak anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from inlier._typing import Mask
from inlier.images.filters import Field

_PLACES_ACROSS = 48.0  # independent places along the longer side: a smoothing window is 1/48 of it
_EDGE_CHANCE = 0.001  # tail at which a region ends at the latest
_EDGE_SHARE = 0.5  # of the highest evidence nearby, above the median, at which a region ends: half way down
_NEARBY = 0.1  # of the longer side: how far that highest evidence is looked for
MOST_LISTED = 500
_LEAST_RATE = 0.05  # of beta: photos without noise have no spread
_CAUTION = 1.15  # beta is read off the middle; the tail may fall a little slower


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
        Chance that noise alone shows such a peak anywhere in the photo; None for the paper's methods.
    """

    left: int
    top: int
    right: int
    bottom: int
    area: int
    score: float
    p_value: float | None


@dataclass(frozen=True, eq=False)
class NoiseTail:
    """The exponential tail of the evidence where nothing has changed."""

    median: float
    rate: float
    places: float

    def p_value(self, evidence: float) -> float:
        """Chance that noise reaches this evidence anywhere in the photo."""
        return float(min(1.0, 0.5 * self.places * np.exp(-(evidence - self.median) / self.rate)))

    def level(self, chance: float) -> float:
        """Return the evidence that noise exceeds at one place with this chance."""
        return self.median + self.rate * float(np.log(0.5 / chance))


def noise_tail(evidence: Field, valid: Field) -> NoiseTail:
    """Read the tail off the lower three quarters of the evidence."""
    height, width = evidence.shape
    seen = evidence[valid > 0]
    median, upper = (float(value) for value in np.quantile(seen, (0.5, 0.75)))
    places = seen.size / max(height, width) ** 2 * _PLACES_ACROSS**2
    return NoiseTail(median, max(_CAUTION * (upper - median) / float(np.log(2)), _LEAST_RATE), max(places, 1.0))


def significant_peaks(evidence: Field, tail: NoiseTail, alpha: float) -> tuple[Field, Field]:
    """Find the peaks that noise would show with a chance of at most ``alpha``.

    Return, in and just around each region, the evidence at which it ends (infinite elsewhere) and that of its peak (0
    elsewhere).
    """
    labels, count = ndimage.label(evidence > tail.level(_EDGE_CHANCE))
    peaks = np.zeros(count + 1)
    if count:
        peaks[1:] = ndimage.maximum(evidence, labels, np.arange(1, count + 1))
    kept = np.array([tail.p_value(float(peak)) <= alpha for peak in peaks], bool)
    kept[0] = False
    # One pixel around the regions counts too: interpolation to full size looks there.
    peak = ndimage.maximum_filter(np.where(kept, peaks, 0.0)[labels], 3)
    highest = ndimage.maximum_filter(evidence, max(3, round(_NEARBY * max(evidence.shape))))
    level = np.maximum(tail.median + _EDGE_SHARE * (highest - tail.median), tail.level(_EDGE_CHANCE))
    return np.where(peak > 0, level, np.inf).astype(np.float32), peak.astype(np.float32)


def describe(labels: NDArray[np.int32], evidence: Field, tail: NoiseTail | None) -> list[Region]:
    """List at most 500 regions, the strongest first (the largest, where evidence has no tail)."""
    boxes = ndimage.find_objects(labels)
    areas = np.bincount(labels.ravel(), minlength=len(boxes) + 1)[1:]
    order = np.argsort(-areas, kind="stable")[:MOST_LISTED]
    regions = []
    for number in order:
        rows, columns = boxes[number]
        inside = labels[rows, columns] == number + 1
        score = float(evidence[rows, columns][inside].max())
        p_value = None if tail is None else tail.p_value(score)
        box = int(columns.start), int(rows.start), int(columns.stop), int(rows.stop)
        regions.append(Region(*box, int(areas[number]), score, p_value))
    return regions if tail is None else sorted(regions, key=lambda region: -region.score)


def without_specks(mask: Mask, least_area: int) -> NDArray[np.int32]:
    """Number the connected parts of a mask that have at least ``least_area`` pixels; 0 elsewhere."""
    labels, _ = ndimage.label(mask)
    areas = np.bincount(labels.ravel())
    kept = areas >= least_area
    kept[0] = False
    renumber = np.where(kept, np.cumsum(kept), 0)
    return renumber[labels].astype(np.int32)
