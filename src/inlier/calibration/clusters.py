"""Do rows form clusters, inside which swaps would be accepted?

Looked at are the strongest directions of each table and those that both share: is there a valley between two modes
along one of them? Silverman's test: h is the smallest bandwidth with which a Gaussian kernel density estimate has k
modes. If that takes much smoothing, samples from the smoothed density, which has k modes, seldom need as much. Rows at
both ends are left out, for single far ones are modes of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh

from inlier._checks import warn
from inlier._typing import Array, FloatArray, Mask
from inlier.exceptions import DependenceWarning
from inlier.rows.backend import take_rows
from inlier.rows.null_pairs import n_shifts, pair_labels, re_pairings

_MOST_ROWS, _FEWEST_ROWS = 2_000, 30  # that are looked at
_PRINCIPAL, _ROWS_PER_DIRECTION = 10, 8  # directions of each table; with fewer rows for each, noise is what they share
_SHARED, _STRONGEST = 5, 3  # directions that are looked at: those that both share, and of each table
_TRIMMED = 0.05  # of the rows at each end of a direction
_BINS, _MARGIN = 128, 1.0  # of a density; beyond both ends, in standard deviations
_WIDEST, _HALVINGS = 3.0, 12  # bandwidth, in standard deviations, of which the smallest is found by bisection
_SAMPLES, _AT_ONCE = 1_000, 50  # from the smoothed density
# samples with one more mode than this, at most: of one mode the test is cautious, of more less so
_BY_CHANCE = {1: 10, 2: 1, 3: 1}
_FLAT = 1e-9  # slope, relative to the highest density, that is rounding
_MOST_CUT = 4  # directions, those with the widest valleys, that clusters are told apart by
_SMALL = 1e-12  # spread that counts as none, relative to the largest
_SWAPPED = 0.2  # of the pairs, inside clusters: if then more than alpha of the accepted were wrong, there is a warning
_RE_PAIRINGS = 2_000  # about, that tell how many would be


def warn_of_clusters(
    tables: tuple[Any, Any],
    prepared: tuple[Any, Any],
    accept: Callable[[Any, Any], Mask],
    found: float,
    alpha: float,
    rng: np.random.RandomState,
) -> bool:
    """Say so where rows form clusters and too many swaps inside of these would be accepted; return whether they would.

    ``accept`` says which prepared pairs would be, and ``found`` is the share of the real pairs that are accepted.
    """
    if not all(isinstance(table, np.ndarray) for table in tables):
        return False
    n = len(tables[0])
    rows = rng.choice(n, min(n, _MOST_ROWS), replace=False)
    x, y = (table[rows] for table in tables)
    cluster = find_clusters(x, y, rng)
    if cluster is None:
        return False
    shifts = re_pairings(pair_labels(x, y, strata=cluster), n_shifts(rows.size, _RE_PAIRINGS), rng)
    i, j = np.concatenate([np.stack(shift) for shift in shifts], axis=1)
    if not i.size:  # all rows of a cluster are equal
        return False
    x, y = (take_rows(side, rows[of]) for side, of in zip(prepared, (i, j), strict=True))
    wrong = _SWAPPED * float(np.mean(accept(x, y)))
    wrong /= max(wrong + (1 - _SWAPPED) * found, _SMALL)
    if wrong <= alpha:
        return False
    warn(
        f"Rows form clusters. If a fifth of the pairs were swapped inside of them (a plate, a tissue), {wrong:.0%} of "
        f"the accepted would be wrong, not at most {alpha:.2g}. If that may be, say what the clusters are: "
        f"fit(X, y, strata=...), or --stratum COLUMN.",
        DependenceWarning,
    )
    return True


def find_clusters(x: Array, y: Array, rng: np.random.RandomState) -> Array | None:
    """Return the cluster of each pair, by the valleys between modes of its rows; None where there are none."""
    if len(x) < _FEWEST_ROWS:
        return None
    found = []
    for along in _directions(x, y).T:
        bandwidth, valleys = find_valleys(along, rng)
        if valleys.size:
            found.append((bandwidth, np.searchsorted(valleys, along)))
    if not found:
        return None
    widest = sorted(found, key=lambda cut: -cut[0])[:_MOST_CUT]
    return np.unique(np.stack([side for _, side in widest]), axis=1, return_inverse=True)[1].reshape(-1)


def find_valleys(values: FloatArray, rng: np.random.RandomState) -> tuple[float, FloatArray]:
    """Bandwidth, in standard deviations, that hides a mode although it is there; and where the valleys are beside it.

    Many clusters side by side are hidden at once, and look like one wide mode: so two and three modes are tried too.
    """
    low, high = np.quantile(values, (_TRIMMED, 1 - _TRIMMED))
    inside = values[(values >= low) & (values <= high)]
    spread = float(inside.std())
    if spread > 0:
        width = ((high - low) / spread + 2 * _MARGIN) / _BINS
        edges = low / spread - _MARGIN + width * np.arange(_BINS + 1)
        counts = np.histogram(inside / spread, edges)[0]
        for n_modes in _BY_CHANCE:
            bandwidth = _narrowest(counts, n_modes, width)
            if _is_rare(counts, n_modes, bandwidth / width, 1 / width, rng):
                slope = np.diff(_smoothed(counts, bandwidth / width / 2))
                rises = np.flatnonzero((slope[1:] > 0) & (slope[:-1] <= 0)) + 1
                valleys = spread * (edges[rises] + width / 2)
                return bandwidth, valleys[(valleys > low) & (valleys < high)]
    return 0.0, np.empty(0)


def _narrowest(counts: Array, n_modes: int, width: float) -> float:
    """Return the smallest bandwidth with which the density has no more modes than these."""
    narrow, wide = width / 2, _WIDEST
    for _ in range(_HALVINGS):
        middle = (narrow * wide) ** 0.5
        too_many = _n_modes(_smoothed(counts, middle / width)) > n_modes
        narrow, wide = (middle, wide) if too_many else (narrow, middle)
    return wide


def _is_rare(counts: Array, n_modes: int, bandwidth: float, spread: float, rng: np.random.RandomState) -> bool:
    """Whether samples from the density with so many modes hardly ever show more with this bandwidth (all in bins)."""
    density = np.maximum(_smoothed(counts, bandwidth), 0.0)
    widened = bandwidth * (1 + (bandwidth / spread) ** 2) ** 0.5  # samples from the estimate are wider than the rows
    n_more, n_drawn, size = 0, 0, int(counts.sum())
    while n_drawn < _SAMPLES and n_more <= _BY_CHANCE[n_modes]:
        drawn = rng.multinomial(size, density / density.sum(), size=_AT_ONCE)
        n_more, n_drawn = n_more + int((_n_modes(_smoothed(drawn, widened)) > n_modes).sum()), n_drawn + _AT_ONCE
    return n_more <= _BY_CHANCE[n_modes]


def _smoothed(counts: Array, bandwidth: float) -> FloatArray:
    """Counts of bins, convolved with a Gaussian of this bandwidth in bins; by Fourier, with room at the end."""
    kernel = np.exp(-2 * (np.pi * bandwidth * np.fft.rfftfreq(2 * _BINS)) ** 2)
    smooth = np.fft.irfft(np.fft.rfft(counts, 2 * _BINS, axis=-1) * kernel, axis=-1)[..., :_BINS]
    return np.asarray(smooth)


def _n_modes(density: FloatArray) -> Array:
    """How often a density turns from rising to falling."""
    slope = np.diff(density, axis=-1)
    flat = _FLAT * density.max(axis=-1, keepdims=True)
    ends_a_rise = (slope[..., :-1] > flat) & (slope[..., 1:] <= flat)
    return np.asarray(ends_a_rise.sum(axis=-1))


def _directions(x: Array, y: Array) -> FloatArray:
    """Rows along the strongest directions of each table, and along those in which both agree."""
    of_x, of_y = _principal(x), _principal(y)
    left, _, right = np.linalg.svd(of_x.T @ of_y, full_matrices=False)
    shared = of_x @ left + of_y @ right.T
    return np.hstack([shared[:, :_SHARED], of_x[:, :_STRONGEST], of_y[:, :_STRONGEST]])


def _principal(table: Array) -> FloatArray:
    """Rows in the first principal directions of the standardised columns, the strongest first, of unit spread."""
    columns = np.asarray(table, dtype=np.float64) / (np.abs(table).max(initial=0.0) or 1.0)  # squares are finite
    columns = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    varies = spread > _SMALL * spread.max(initial=0.0)
    columns = columns[:, varies] / spread[varies]
    n, d = columns.shape
    gram = columns @ columns.T if n < d else columns.T @ columns
    some = min(_PRINCIPAL, n // _ROWS_PER_DIRECTION, d)
    if not some:
        return np.empty((n, 0))
    value, vector = eigh(gram, subset_by_index=(min(n, d) - some, min(n, d) - 1))
    kept = value > _SMALL * value[-1]
    rows = vector[:, kept] if n < d else columns @ vector[:, kept]
    return np.asarray((rows / rows.std(axis=0))[:, ::-1])
