"""Where to begin when most rows are wrong: with the shift, or the turn, by which the whole table agrees best.

The sum of all row sums of the paper, |X^T Y|^2, says how far two tables agree in the order in which they stand. For y
shifted by any number of rows it comes from the correlations of their columns at all lags at once, by the fast Fourier
transform: linear in the rows but for a logarithm, with nothing learned. It is only a place to begin: what is learned
there is judged like everything else.
"""

from __future__ import annotations

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.repair.slips.lanes import REVERSED, SHIFTED, Lane, Lanes

_DIRECTIONS = 10  # of each table, the strongest
_STANDS_OUT = 5.0  # median absolute deviations above all lanes, from which a lane is worth learning from
MOST_LAGS = 30  # rows out of place that are looked at, where there are many slips
_ABOVE_NOISE = 1.2  # leading eigenvalue, beside that of lags that have nothing in common
_SHARE_OF_MOST = 0.3  # of the rows that the commonest lag has, from which a lag is learned from
_FEWEST_SHARE = 0.25  # of the rows that a lane must hold


def agreeing_lanes(X: FloatArray, Y: FloatArray, lanes: Lanes, most: int = 2) -> list[Lane]:
    """Lanes but home in which the whole tables agree more than elsewhere, the best first."""
    x, y = _directions(X), _directions(Y)
    found: list[tuple[float, Lane]] = []
    shifts = np.arange(-lanes.most, lanes.most + 1)
    found += [(z, Lane(SHIFTED, int(d))) for d, z in _outstanding(shifts, *_at_all_lags(x, y)) if d != 0]
    if lanes.reversals:
        ends = np.arange(len(x) + len(y) - 1)
        of_ends, rows = _at_all_lags(x, y[::-1])
        found += [(z, Lane(REVERSED, int(len(y) - 1 - d))) for d, z in _outstanding(len(y) - 1 - ends, of_ends, rows)]
    spread = (2.0 * x.shape[1] * y.shape[1]) ** 0.5
    for name, columns in lanes.maps.items():
        here = np.flatnonzero(columns >= 0)
        agreement = float(np.square(x[here].T @ y[columns[here]]).sum()) * len(x) * len(y) / max(here.size, 1)
        z = (agreement - x.shape[1] * y.shape[1]) / spread
        if z > _STANDS_OUT and here.size:
            found.append((z, Lane(name, 0)))
    return [lane for _, lane in sorted(found, key=lambda one: -one[0])[:most]]


def agreeing_lags(X: FloatArray, Y: FloatArray, beside: Array, stretches: tuple[Array, Array], most: int) -> Array:
    """Lags, one of which many rows are from their place, where rows have been lost here and there; nothing if none are.

    With the true partners a share p_d of all rows at lag d, the moments M_d = X^T Y_d are p_d M and noise, so that the
    shares are the leading eigenvector of <M_d, M_e>, d != e: the overlap of the lags. ``beside`` are places of y beside
    those of x, ``stretches`` numbers on both sides, inside of which partners are.
    """
    x, y, lags, rows = _directions(X), _directions(Y), np.arange(-most, most + 1), np.arange(len(X))
    moments = []
    for lag in lags:
        j = beside + lag
        here = rows[(j >= 0) & (j < len(y))]
        here = here[stretches[0][here] == stretches[1][j[here]]]
        moments.append((x[here].T @ y[j[here]]).ravel() / np.sqrt(max(here.size, 1)))
    overlap = np.array(moments) @ np.array(moments).T
    np.fill_diagonal(overlap, 0.0)
    noise = 1.48 * float(np.median(np.abs(overlap[~np.eye(lags.size, dtype=bool)]))) * 2 * np.sqrt(lags.size)
    values, vectors = np.linalg.eigh(overlap)
    shares = vectors[:, -1] * np.sign(vectors[:, -1].sum())
    if values[-1] < _ABOVE_NOISE * noise:
        return np.empty(0, dtype=np.int64)
    found: Array = lags[shares > _SHARE_OF_MOST * shares.max()]
    return found


def _directions(table: FloatArray) -> FloatArray:
    """The strongest directions of a table, each of length 1."""
    centred = table - table.mean(axis=0)
    spread = centred.std(axis=0)
    centred = centred / np.where(spread > 0, spread, 1.0)
    if len(centred) > centred.shape[1]:
        values, turned = np.linalg.eigh(centred.T @ centred)
        strongest = np.argsort(-values)[:_DIRECTIONS]
        strongest = strongest[values[strongest] > 1e-9 * max(values.max(), 1e-300)]
        return centred @ turned[:, strongest] / np.sqrt(values[strongest])
    values, rows = np.linalg.eigh(centred @ centred.T)
    strongest = np.argsort(-values)[: min(_DIRECTIONS, len(centred) - 1)]
    return rows[:, strongest[values[strongest] > 1e-9 * max(values.max(), 1e-300)]]


def _at_all_lags(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """|X^T Y|^2 with y_{i+d} beside x_i, by d modulo the length; and how many rows there are then."""
    size = 1 << (len(x) + len(y) - 1).bit_length()
    of_x, of_y = np.fft.rfft(x, size, axis=0), np.fft.rfft(y, size, axis=0)
    agreement = np.zeros(size)
    for column in of_x.T:
        agreement += np.square(np.fft.irfft(np.conj(column)[:, None] * of_y, size, axis=0)).sum(axis=1)
    lag = np.where(np.arange(size) < len(y), np.arange(size), np.arange(size) - size)
    rows = np.minimum(len(x), len(y) - lag) - np.maximum(0, -lag)
    return agreement, rows.astype(np.float64)


def _outstanding(lags: Array, agreement: FloatArray, rows: FloatArray) -> list[tuple[int, float]]:
    """Lags at which the tables agree more than at nearly all others, and at those beside them."""
    lags = lags[rows[lags] >= _FEWEST_SHARE * rows.max()]
    if lags.size < 3:
        return []
    of_rows = agreement[lags] / rows[lags]
    middle = np.median(of_rows)
    z = (of_rows - middle) / max(1.48 * float(np.median(np.abs(of_rows - middle))), 1e-300)
    beside = np.concatenate([[-np.inf], z, [-np.inf]])
    is_peak = (z > _STANDS_OUT) & (z >= beside[:-2]) & (z >= beside[2:])
    return [(int(lag), float(value)) for lag, value in zip(lags[is_peak], z[is_peak], strict=True)]
