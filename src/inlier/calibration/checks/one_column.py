"""Does all that is found rest on one column of each table? Then that is said.

An age that was asked twice, a weight in two units, rounded: the tables agree in nearly the same column, which makes
nearly any pair that was joined by it look real. Where other columns agree too, nobody need know. Given its column of X,
the other columns of X know nothing of y, and given that of y, the others of y know nothing of X (Bartlett's test, of
normal scores).
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, norm, rankdata

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.verdict import Verdict

_PER_COLUMN = 10  # likely pairs, from which a test would see what the others know
_KNOWS = 1e-4  # p-value up to which other columns know something; likely pairs were chosen, by all columns
_LIKELY, _DETECTED = 0.5, 0.05  # q-value up to which a pair is; detection p-value up to which there is something
WARNING = (
    "All that is found rests on column {} of X and column {} of y (counted from 0, as they are compared): the others "
    "agree no more than those of strangers. If the tables were joined by this column, or hold the same thing twice, "
    "that makes any pair look real, and says nothing of whether it is."
)


def one_column(X: Array, Y: Array, likely: Mask) -> tuple[int, int] | None:
    """Return the columns on which all agreement rests; None where there is more."""
    if not likely.any():
        return None
    some = [table[likely].astype(np.float64) for table in (X, Y)]
    vary = [np.flatnonzero(np.ptp(table, axis=0) > 0) for table in some]
    if min(map(len, vary)) < 2 or likely.sum() < _PER_COLUMN * sum(map(len, vary)):
        return None
    x, y = (_normal_scores(table[:, columns]) for table, columns in zip(some, vary, strict=True))
    a, b = np.unravel_index(np.argmax(np.abs(x.T @ y)), (x.shape[1], y.shape[1]))
    if min(_independent(x, y, int(a)), _independent(y, x, int(b))) <= _KNOWS:
        return None
    return int(vary[0][a]), int(vary[1][b])


def _normal_scores(table: Array) -> FloatArray:
    scores = norm.ppf((rankdata(table, axis=0) - 0.5) / len(table))
    scaled: FloatArray = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    return scaled


def _independent(x: FloatArray, y: FloatArray, column: int) -> float:
    """Chance of as much agreement between y and the other columns of x, given this one, if there were none."""
    given, others, n = x[:, column], np.delete(x, column, axis=1), len(x)
    bases = []
    for table in (others, y):
        left, spread, _ = np.linalg.svd(table - np.outer(given, given @ table / n), full_matrices=False)
        bases.append(left[:, spread > 1e-9 * spread[0]])
    p, q = (basis.shape[1] for basis in bases)
    shared = np.minimum(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False), 1 - 1e-12)
    return float(chi2.sf(-(n - 2 - (p + q + 1) / 2) * np.log1p(-(shared**2)).sum(), p * q))


def check(verdict: Verdict, X: Array, Y: Array) -> Verdict:
    """Say so, where pairs are found by one column alone."""
    if verdict.detection_p_value > _DETECTED:
        return verdict
    found = one_column(X, Y, verdict.q_values <= _LIKELY)
    return verdict if found is None else verdict.saying(WARNING.format(*found))
