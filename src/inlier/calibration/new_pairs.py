"""What would new pairs score if they were wrong? Re-pairings of the new rows, by what was learned before.

New rows may be unlike those of the fit: of one of its clusters, measured on another scale, with more gaps; and where
there were more columns than rows, whatever was learned knows the rows that it was learned from. So re-pairings of the
fit are no null for them. Their own are: x_i with y_j of another new pair, scored in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.null_pairs import are_re_pairings, n_shifts, pair_labels, re_pairings

FEWEST_NEW = 20  # pairs that are re-paired among each other; fewer are re-paired with rows of the fit
_MOST_COMPARED = 500  # pairs of which each x is scored with each y; of more, some
_RE_PAIRINGS = 250_000  # about
_OF_THE_FIT = 1_000  # rows of the fit beside which few new rows are scored

Score = Callable[[Array, Array], FloatArray]


def null_of_new_pairs(score: Score, x: Array, y: Array, rng: np.random.RandomState) -> FloatArray:
    """Scores of re-pairings of new pairs, in rising order."""
    labels, n = pair_labels(x, y), len(x)
    if n > _MOST_COMPARED:
        found = [score(x[i], y[j]) for i, j in re_pairings(labels, n_shifts(n, _RE_PAIRINGS), rng)]
        return np.sort(np.concatenate(found))
    everyone = np.arange(n)
    allowed = are_re_pairings(labels, np.broadcast_to(everyone, (n, n)), rng)
    all_scores = np.stack([score(x, np.broadcast_to(row, y.shape)) for row in y], axis=1)
    return np.sort(all_scores[allowed])


def null_of_few(score: Score, x: Array, y: Array, fit_x: Array, fit_y: Array) -> FloatArray:
    """Scores of few new rows with rows of the fit, of either side, in rising order."""
    fit_x, fit_y = (rows[:: max(1, len(rows) // _OF_THE_FIT)] for rows in (fit_x, fit_y))
    with_y = [score(np.broadcast_to(row, (len(fit_y), row.size)), fit_y) for row in x]
    with_x = [score(fit_x, np.broadcast_to(row, (len(fit_x), row.size))) for row in y]
    return np.sort(np.concatenate([*with_y, *with_x]))
