"""The same by loops, as slow and obvious as can be; and a cross-fit whose judges look scores up in a table."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


def fit_of(scores, n_folds=3):
    """A stand-in for a cross-fit: any x_i with any y_j has the score that stands in a matrix."""
    n = len(scores)
    judge = SimpleNamespace(
        scores=lambda x, y: scores[x[:, 0].astype(int), y[:, 0].astype(int)],
        scores_of_all_pairings=lambda x, y, single=False: scores[np.ix_(x[:, 0].astype(int), y[:, 0].astype(int))],
    )
    deal = np.arange(n) % n_folds
    folds = tuple(
        SimpleNamespace(rows=np.flatnonzero(deal == fold), deal=0, judge=judge, standardised=lambda values: values)
        for fold in range(n_folds)
    )
    return SimpleNamespace(folds=folds, judges_of_a_deal=folds, levels=np.zeros(n), ridges=None)


def numbered(n):
    """Two tables whose only column is the number of the row."""
    rows = np.arange(n, dtype=float)[:, None]
    return rows, rows.copy()


def slow_odds(scores, unit, strata=None, rivals=None):
    """r_ij, one by one."""
    n = len(scores)
    strata = np.zeros(n, dtype=int) if strata is None else strata
    rivals = range(n) if rivals is None else rivals
    scale, odds = n / len(rivals), np.full((n, n), -np.inf)
    size = [np.count_nonzero(strata == strata[i]) for i in range(n)]
    beside_x, beside_y = np.zeros((2, n))
    for i in range(n):
        mates = [k for k in rivals if strata[k] == strata[i] and k != i]
        own = np.exp(unit * scores[i, i])
        beside_x[i] = np.log(size[i] + own + scale * sum(np.exp(unit * scores[i, k]) for k in mates))
        beside_y[i] = np.log(size[i] + own + scale * sum(np.exp(unit * scores[k, i]) for k in mates))
    for i in range(n):
        for j in range(n):
            if strata[i] == strata[j]:
                odds[i, j] = min(unit * scores[i, j] - beside_x[i], unit * scores[i, j] - beside_y[j])
    return odds


def slow_log_ratio(pairs, weights, strangers, n_steps=500, lowest=-60.0, slope=1e-3):
    """lambda(r): neighbours that fall are pooled until the ratio rises; between steps that were met it is straight."""
    top = max(pairs.max(), strangers.max())
    step = lambda r: int(min(max((max(r, lowest) - lowest) / (top - lowest) * n_steps, 0), n_steps - 1))  # noqa: E731
    real, wrong = np.zeros((2, n_steps))
    for r, weight in zip(pairs, weights, strict=True):
        real[step(r)] += weight / weights.sum()
    for r in strangers:
        wrong[step(r)] += 1 / strangers.size
    wrong[-1] += 1 / strangers.size
    met = [k for k in range(n_steps) if real[k] + wrong[k] > 0]
    pools = []
    for k in met:
        pools.append([real[k], real[k] + wrong[k], [k]])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] >= pools[-1][0] / pools[-1][1]:
            last = pools.pop()
            pools[-1] = [pools[-1][0] + last[0], pools[-1][1] + last[1], pools[-1][2] + last[2]]
    share = {k: min(max(pool[0] / pool[1], 1e-9), 1 - 1e-9) for pool in pools for k in pool[2]}
    rising = np.interp(np.arange(n_steps), met, [share[k] for k in met])
    return lambda r: np.log(rising[step(r)] / (1 - rising[step(r)])) + slope * min(max(r, lowest), -lowest)


def slow_evidence(odds, log_ratio, rows, exchanged):
    """t_ij of each tried x with each other candidate y; -inf for its own."""
    m, evidence = len(rows), np.full((len(rows), len(rows)), -np.inf)
    for a, i in enumerate(rows):
        for b, j in enumerate(rows):
            if i != j:
                back = 1 / (1 + np.exp(-(log_ratio(odds[j, i]) - np.log(m))))
                evidence[a, b] = log_ratio(odds[i, j]) + np.log(1 - exchanged + exchanged * m * back)
    return evidence


def slow_chances(odds, log_ratio, rows):
    """Evidence, and the chance of each candidate of each row, with the shares that make the rows likeliest.

    One share is that of partners that are here, the other that of exchanges.
    """
    shares, found = np.linspace(1e-6, 1 - 1e-6, 2_001), []
    for exchanged in np.linspace(0.05, 0.95, 181):
        evidence = slow_evidence(odds, log_ratio, rows, exchanged)
        likelihood = np.exp(np.minimum(evidence, 50)) / len(rows)
        heights = sum(np.log(1 - shares + shares * row.sum()) for row in likelihood)
        best = shares[np.argmax(heights)]
        chances = best * likelihood / (1 - best + best * likelihood.sum(axis=1, keepdims=True))
        found.append((heights.max(), evidence, chances))
    return max(found, key=lambda one: one[0])[1:]
