"""Rows that are not independent, although nobody said so: replicates, copies, failed samples, neighbours.

Let r_1 < r_2 < ... be the distances of a row to the others. Where rows are drawn independently from any smooth
distribution in D dimensions, k D log(r_{k+1} / r_k) is an exponential variable of mean 1, whatever the density.
Replicates are far nearer to each other than to anyone else: with m of them, the gap at k = m - 1 is many times as
large. Only gaps that *both* tables have count: such pairs tell each other's answer. There is a gap around the mean if
some rows carry nothing but noise: wrong pairs of such rows are not like re-pairings with anyone.

*Clusters.* Do rows form some, inside which swaps would be accepted? Looked at are the strongest directions of each
table and those that both share: is there a valley between two modes along one of them? Silverman's test: h is the
smallest bandwidth with which a Gaussian kernel density estimate has k modes. If that takes much smoothing, samples from
the smoothed density, which has k modes, seldom need as much. Rows at both ends are left out, for single far ones are
modes of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from inlier._checks import warn
from inlier._typing import Array, FloatArray, Mask
from inlier.exceptions import DependenceWarning
from inlier.rows import PairedRows
from inlier.rows.backend import namespace, take_rows, to_host
from inlier.rows.null_pairs import n_shifts, pair_labels, re_pairings
from inlier.rows.threads import pieces_of_many

_LOOKED_AT, _MOST_LOOKED_AT = 100, 20_000  # rows whose neighbours are looked for, and rows that these may be
_MOST_REPLICATES, _FARTHEST = 10, 21  # neighbours: at whose gap replicates are looked for, and up to which D is told by
_TYPICAL_GAP = 3.0  # mean gap over rows, 1 for independent ones, that tells replicates on both sides
_SMALL = 1e-12  # distance that counts as none, relative to a typical one
_LARGEST_GAP = 5.0  # times log n: the largest of n exponential variables is about log n
_FARTHER = 1.5  # times as far from the mean is the next row, at the least
_FEWEST_FAILED = 3
_FEWEST_DIMENSIONS = 2.5  # in one or two, levels of whole numbers leave such a gap
_BESIDE, _SURE = 5, 5.0  # rows before and after that count as near in order; standard errors above chance
_MIDDLE = 0.5  # p-value beyond which hardly any real pair lies
_REACHES, _MOST_OF_IT = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5), 0.8  # of small p-values; part of their surplus
_FEWEST_IN_SURPLUS, _FEWEST_ALIKE = 50.0, 20.0  # pairs; pairs of a cluster
_EVENLY = 0.2  # part of the surplus in the lowest tenth of its range; a tenth if it is spread evenly
_HALF = (0.3, 0.9)  # part in the lower half; otherwise all of them lie together, where few re-pairings let them
_NEARLY = 0.5  # of the distance that only a hundredth of right rows have to their nearest: then rows are nearly equal
_RARE = 0.01
_MOST_RIGHT = 2_000  # right rows whose nearest neighbours are looked for
_ROWS_AT_ONCE = 500
NONE_STANDS_OUT = (
    "The pairs score higher than strangers do, but no higher than pairs like them: rows resemble each other in "
    "clusters, and inside of these nothing tells who belongs to whom. The share of real pairs is only bounded from "
    "above. Say what the clusters are: fit(X, y, strata=...), or --stratum COLUMN."
)
_MOST_ROWS, _FEWEST_ROWS = 2_000, 30  # that are looked at for clusters
_PRINCIPAL, _ROWS_PER_DIRECTION = 10, 8  # directions of each table; with fewer rows for each, noise is what they share
_SHARED, _STRONGEST = 5, 3  # directions that are looked at: those that both share, and of each table
_TRIMMED = 0.05  # of the rows at each end of a direction
_BINS, _MARGIN = 128, 1.0  # of a density; beyond both ends, in standard deviations
_WIDEST, _HALVINGS = 3.0, 12  # bandwidth, in standard deviations, of which the smallest is found by bisection
_SAMPLES, _AT_ONCE = 1_000, 50  # from the smoothed density
# samples with one more mode than this, at most: of one mode the test is cautious, of more less so
_BY_CHANCE = {1: 10, 2: 1, 3: 1}
_MOST_CUT = 4  # directions, those with the widest valleys, that clusters are told apart by
_SWAPPED = 0.2  # of the pairs, inside clusters: if then more than alpha of the accepted were wrong, there is a warning
_RE_PAIRINGS = 2_000  # about, that tell how many would be
_ROWS_OF_A_BAND, _FEWEST_AMOUNTS = 20, 5  # of about the same size; columns
_TOGETHER = 0.3  # correlation of two columns that share a factor
_THAN_STRANGERS = 2.5  # times as many swaps inside bands are accepted, at the least, as swaps with anyone


@dataclass(frozen=True)
class Dependence:
    """What was seen."""

    replicates: int = 0  # how many rows resemble each other as replicates do, including the row itself; 0 if none do
    in_order: bool = False  # whether rows that follow each other resemble each other in both tables

    @staticmethod
    def between(x: FloatArray, y: FloatArray, equal: Array, rng: np.random.RandomState) -> Dependence:
        """Look at prepared rows; ``equal`` are numbers that pairs which are known to go together share."""
        n = min(len(x), _MOST_LOOKED_AT)
        if n <= 2 * _FARTHEST:
            return Dependence()
        rows = np.sort(rng.choice(n, min(n, _LOOKED_AT), replace=False))
        together = equal[rows][:, None] == equal[:n][None, :]
        gaps, n_beside = zip(*(_neighbours(side[:n], rows, together) for side in (x, y)), strict=True)
        smaller = np.minimum(*gaps)
        k = int(np.argmax(smaller))
        by_chance = rows.size * 2 * _BESIDE / n
        in_order = min(n_beside) > by_chance + _SURE * (by_chance + 1) ** 0.5
        return Dependence(k + 2 if smaller[k] > _TYPICAL_GAP else 0, in_order)


def _neighbours(table: FloatArray, rows: Array, together: Mask) -> tuple[FloatArray, int]:
    """Mean over some rows of k D log(r_{k+1} / r_k), k = 1, 2, ..., with D from farther neighbours.

    Also, how many of the rows have their nearest neighbour among the next few in the order of the table.
    """
    squares = np.einsum("ij,ij->i", table, table)
    distances = squares[rows][:, None] + squares[None, :] - 2 * table[rows] @ table.T
    distances[together] = np.inf  # oneself, and what is known to go together
    n_beside = int((np.abs(np.argmin(distances, axis=1) - rows) <= _BESIDE).sum())
    nearest = np.sort(np.partition(distances, _FARTHEST, axis=1)[:, : _FARTHEST + 1], axis=1)
    logarithms = np.log(np.maximum(nearest, _SMALL * float(np.mean(squares)))) / 2
    far = logarithms[:, _MOST_REPLICATES:]
    steps = np.diff(far, axis=1) * np.arange(_MOST_REPLICATES + 1, _FARTHEST + 1)  # each of mean 1 / D
    dimension = 1 / max(float(np.mean(steps)), _SMALL)
    k = np.arange(1, _MOST_REPLICATES + 1)
    return k * dimension * np.mean(np.diff(logarithms[:, : _MOST_REPLICATES + 1], axis=1), axis=0), n_beside


def blanks(x: Any, y: Any) -> tuple[Mask, Mask]:
    """Which prepared rows of each table lie near its mean, with a gap to all others: samples that failed."""
    inside = [_inside_a_gap(side) for side in (x, y)]
    first, second = (side if side.sum() >= _FEWEST_FAILED else np.zeros_like(side) for side in inside)
    return first, second


def _inside_a_gap(table: Any) -> Mask:
    n, lengths = int(table.shape[0]), to_host(namespace(table).vecdot(table, table))
    squares = [to_host(namespace(table).sum(take_rows(table, rows) ** 2, axis=0)) for rows in pieces_of_many(table)]
    variances = np.sum(squares, axis=0) / n
    dimension = float(np.sum(variances) ** 2 / np.sum(variances**2))
    if n <= 2 * _FARTHEST or dimension < _FEWEST_DIMENSIONS:
        return np.zeros(n, dtype=bool)
    rising = np.log(np.maximum(np.sort(lengths), _SMALL * float(np.mean(lengths)))) / 2
    half = np.arange(1, n // 2)
    steps = np.diff(rising)[: half.size]
    gaps = np.where(steps > np.log(_FARTHER), half * dimension * steps, 0.0)
    if not gaps.size or gaps.max() < _LARGEST_GAP * np.log(n):
        return np.zeros(n, dtype=bool)
    inside: Mask = lengths <= np.sort(lengths)[int(np.argmax(gaps))]
    return inside


def warn_of_dependence(x: Any, y: Any, labels: Array, rng: np.random.RandomState) -> bool:
    """Look for rows that tell each other's answer, and say so; return whether there are any."""
    rows = slice(0, min(labels.shape[1], _MOST_LOOKED_AT))
    x, y = (to_host(take_rows(side, rows)) for side in (x, y))
    seen = Dependence.between(x, y, np.unique(labels[:2, rows], axis=1, return_inverse=True)[1].reshape(-1), rng)
    if seen.replicates:
        warn(
            f"In both tables rows resemble each other in groups of about {seen.replicates}, far more than independent "
            f"rows do: replicates, or repeated visits? They tell each other's answer, and the share of wrong pairs "
            f"among the accepted is not bounded. Say which rows belong together: fit(X, y, groups=...), or "
            f"--group COLUMN.",
            DependenceWarning,
        )
    elif seen.in_order:
        warn(
            "In both tables rows that follow each other resemble each other: a time series, a scan, sorted rows? If a "
            "row may be paired with the partner of its neighbour, the share of wrong pairs among the accepted is not "
            "bounded. Say which rows are neighbours: fit(X, y, strata=...), or --stratum COLUMN.",
            DependenceWarning,
        )
    return bool(seen.replicates or seen.in_order)


def blank_rows(x: Any, y: Any) -> Mask | None:
    """Which pairs have a blank among their prepared rows, with a warning; None where none has, or on a device."""
    of_x, of_y = blanks(x, y) if isinstance(x, np.ndarray) else (np.zeros(1, bool), np.zeros(1, bool))
    if not of_x.any() and not of_y.any():
        return None
    counted = [f"{int(side.sum())} rows of {name}" for side, name in ((of_x, "X"), (of_y, "y")) if side.any()]
    warn(
        f"{' and '.join(counted)} lie near the mean, apart from all others: blanks, failed samples? Nothing is said of "
        f"their pairs, and they are not accepted. If they are sound, set them apart: fit(X, y, strata=...), or "
        f"--stratum COLUMN.",
        DependenceWarning,
    )
    return of_x | of_y


def some_stand_out(p: FloatArray, counts: Array | None = None) -> bool:
    """Whether small p-values crowd near 0, as those of real pairs do, or are spread evenly over a short range.

    The latter is what pairs have that resemble each other in clusters: each is as good as any other of its cluster, and
    better than all strangers. Looked at is the shortest range that holds most of the surplus; True if there is little.
    """
    times = np.ones(p.size) if counts is None else np.asarray(counts, dtype=np.float64)
    n, share_wrong = float(times.sum()), min(1.0, 2 * float(times @ (p > _MIDDLE)) / float(times.sum()))

    def surplus(below: float) -> float:
        return float(times @ (p <= below)) - share_wrong * below * n

    whole = surplus(_MIDDLE)
    if whole < max(_FEWEST_IN_SURPLUS, _MIDDLE * n):
        return True
    reach = next(below for below in _REACHES if surplus(below) >= _MOST_OF_IT * whole)
    if reach * n < _FEWEST_ALIKE:
        return True  # where wrong pairs were swapped, re-pairings meet a true partner now and then
    lowest, half = surplus(reach / 10) / surplus(reach), surplus(reach / 2) / surplus(reach)
    return lowest > _EVENLY or not _HALF[0] < half < _HALF[1]


def most_alike(table: Array, rows: Array, group: Array | None = None) -> Array:
    """Return for each of some rows the one that is nearest to it, of another group, in standardised columns; -1: none.

    Equal rows are the same point, and do not count.
    """
    columns = np.asarray(table, dtype=np.float64) / (np.abs(table).max(initial=0.0) or 1.0)  # squares are finite
    columns = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    columns = columns / np.where(spread > _SMALL * spread.max(initial=0.0), spread, np.inf)
    squares = np.einsum("ij,ij->i", columns, columns)
    apart = squares[rows][:, None] - 2 * columns[rows] @ columns.T + squares
    apart[apart <= _SMALL * float(np.mean(squares))] = np.inf
    if group is not None:
        apart[group[rows][:, None] == group] = np.inf
    nearest = apart.argmin(axis=1)
    return np.where(np.isfinite(apart[np.arange(rows.size), nearest]), nearest, -1)


def nearly_equal(pairs: PairedRows, rows: Array, is_right: Mask) -> Array:
    """Return for each row the right pair whose y is nearly equal to its own, -1 where there is none."""
    none, right = np.full(rows.size, -1), np.flatnonzero(is_right)
    some = right[:: max(1, right.size // _MOST_RIGHT)]
    if some.size < 2 or not rows.size:
        return none
    y = np.asarray(pairs.take(np.arange(pairs.n_pairs))[1], dtype=np.float64)
    typical = np.quantile(_nearest(y[some], y[some], skip_own=True)[0], _RARE)
    distance, nearest = _nearest(y[rows], y[right])
    return np.where(distance < _NEARLY * typical, right[nearest], none)


def _nearest(rows: FloatArray, others: FloatArray, *, skip_own: bool = False) -> tuple[FloatArray, Array]:
    """Distance to the nearest of the others, and which it is."""
    distance, nearest = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
    squares = np.einsum("ij,ij->i", others, others)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE]
        apart = np.einsum("ij,ij->i", block, block)[:, None] - 2 * block @ others.T + squares
        if skip_own:
            apart[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        nearest[start : start + len(block)] = apart.argmin(axis=1)
        distance[start : start + len(block)] = np.sqrt(np.maximum(apart.min(axis=1), 0.0))
    return distance, nearest


# ---- clusters


def warn_of_clusters(
    tables: tuple[Any, Any],
    prepared: tuple[Any, Any],
    accept: Callable[[Any, Any], Mask],
    found: float,
    alpha: float,
    rng: np.random.RandomState,
) -> bool:
    """Say so where rows form clusters and too many swaps inside of these would be accepted; return whether they would.

    Likewise where rows of about the same size resemble each other so much more than others do: small ones are alike
    where all columns share a factor, and noise is the same for all. Then one mode is left, and no valley.

    ``accept`` says which prepared pairs would be, and ``found`` is the share of the real pairs that are accepted.
    """
    if not all(isinstance(table, np.ndarray) for table in tables):
        return False
    n = len(tables[0])
    rows = rng.choice(n, min(n, _MOST_ROWS), replace=False)
    x, y = (table[rows] for table in tables)

    def accepted_inside(strata: Array) -> float:
        """Share of re-pairings inside of strata that would be accepted; 0 where all rows of a stratum are equal."""
        shifts = re_pairings(pair_labels(x, y, strata=strata), n_shifts(rows.size, _RE_PAIRINGS), rng)
        i, j = np.concatenate([np.stack(shift) for shift in shifts], axis=1)
        own, others = (take_rows(side, rows[of]) for side, of in zip(prepared, (i, j), strict=True))
        return float(np.mean(accept(own, others))) if i.size else 0.0

    def wrong_if(accepted: float) -> float:
        """Share of the accepted that would be wrong."""
        wrong = _SWAPPED * accepted
        return wrong / max(wrong + (1 - _SWAPPED) * found, _SMALL)

    cluster = find_clusters(x, y, rng)
    wrong = 0.0 if cluster is None else wrong_if(accepted_inside(cluster))
    if wrong > alpha:
        warn(_swaps_would_be_accepted("Rows form clusters.", "a plate, a tissue", "clusters", wrong, alpha))
        return True
    if rows.size < _FEWEST_ROWS or not _have_sizes(x, y):
        return False
    inside = accepted_inside(bands_of_size(x, y))
    wrong, surely = wrong_if(inside), inside - 2 * (inside / _RE_PAIRINGS) ** 0.5  # a count, less its error
    if wrong <= alpha or surely < _THAN_STRANGERS * accepted_inside(np.zeros(rows.size, dtype=int)):
        return False
    reason = "Rows of a size resemble each other, far more than others: amounts, depths, brightness?"
    warn(_swaps_would_be_accepted(reason, "samples sorted by yield", "bands of a size", wrong, alpha))
    return True


def _swaps_would_be_accepted(reason: str, example: str, strata: str, wrong: float, alpha: float) -> DependenceWarning:
    return DependenceWarning(
        f"{reason} If a fifth of the pairs were swapped inside of them ({example}), {100 * wrong:.2g} % of "
        f"the accepted would be wrong, not at most {100 * alpha:g} %. If that may be, say what the {strata} are: "
        f"fit(X, y, strata=...), or --stratum COLUMN."
    )


def _have_sizes(x: Array, y: Array) -> bool:
    """Whether rows may have a size: a table of amounts, none negative, whose columns rise and fall together.

    In few columns a size is a place.
    """
    if min(x.shape[1], y.shape[1]) < _FEWEST_AMOUNTS:
        return False
    amounts = [table[:, table.std(axis=0) > 0] for table in (x, y) if table.min() >= 0]
    return bool(amounts) and all(_mean_correlation(table) >= _TOGETHER for table in amounts)


def _mean_correlation(table: Array) -> float:
    """Mean correlation of two columns: the variance of their sum beyond their own."""
    d = table.shape[1]
    total = float(np.sum(table / table.std(axis=0), axis=1).var())
    return (total - d) / max(d * (d - 1), 1)


def bands_of_size(x: Array, y: Array) -> Array:
    """Number the bands of rows with about the same size in both tables: root mean squares of columns of unit spread."""
    total = np.zeros(len(x))
    for table in (x, y):
        columns = np.asarray(table, dtype=np.float64) / (np.abs(table).max(initial=0.0) or 1.0)  # squares are finite
        spread = columns.std(axis=0)
        varies = spread > _SMALL * spread.max(initial=0.0)
        squares = np.sum((columns[:, varies] / spread[varies]) ** 2, axis=1)
        total += np.log(np.maximum(squares, _SMALL))
    band = np.empty(len(x), dtype=int)
    band[np.argsort(total)] = np.arange(len(x)) // _ROWS_OF_A_BAND
    return band


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
    flat = 1e-9 * density.max(axis=-1, keepdims=True)  # a slope that is rounding
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
