"""How many of the pairs are wrong, at most: bounds that hold for all cuts at once.

Wrong pairs have uniform p-values. Of n_0 of them, a binomial number lies below any t, whatever real pairs do: these can
only add. So the number of pairs above t bounds n_0, and with it the share of real pairs from below; and n_0 t, with
what chance adds, bounds how many wrong ones any cut lets pass. There is no bound from the other side: real pairs with
much noise look like strangers.

Both bounds hold for all t of a grid together (Bonferroni), so that the cut may be chosen after looking. P-values share
their re-pairings, and units of pairs stand or fall together: variances are multiplied by ``alike``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, norm

from inlier._typing import Array, FloatArray

_SPLITS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # p-values above which pairs are counted
_CUTS = 2.0 ** -np.arange(1, 25)  # p-values up to which wrong ones are bounded
_SHARED_RE_PAIRINGS = 2.0  # times the variance that independent p-values have


@dataclass(frozen=True, eq=False)
class WrongAtMost:
    """Bounds on the number of wrong pairs, from p-values."""

    p_values: FloatArray  # one of each pair, or of each level
    counts: Array  # how many pairs have each
    n_above: FloatArray  # how many pairs have a p-value above each of the splits
    alike: float = 1.0

    @staticmethod
    def of(
        p_values: FloatArray, counts: Array | None = None, of_deals: FloatArray | None = None, alike: float = 1.0
    ) -> WrongAtMost:
        """Count them; ``of_deals`` are p-values of single deals, which are uniform where medians over them are not."""
        counts = np.ones(p_values.size, np.int64) if counts is None else counts
        if of_deals is None:
            n_above = np.array([float(counts[p_values > split].sum()) for split in _SPLITS])
        else:  # a deal in which nothing was learned of a pair says nothing against it
            scored = np.isfinite(of_deals)
            share = [np.mean(of_deals[scored] > split) if scored.any() else 1.0 for split in _SPLITS]
            n_above = np.array(share) * p_values.size
        return WrongAtMost(p_values, counts, n_above, alike)

    @property
    def n_pairs(self) -> int:
        """How many pairs there are."""
        return int(self.counts.sum())

    def of_all(self, error: float = 0.05) -> float:
        """Upper bound on the number of wrong pairs, which fails with a chance of at most ``error``."""
        above = 1 - np.asarray(_SPLITS)
        z = norm.isf(error / above.size)
        spread = z * np.sqrt(_SHARED_RE_PAIRINGS * self.alike * above * (1 - above))
        root = (spread + np.sqrt(spread**2 + 4 * above * self.n_above)) / (2 * above)  # n_0 above - z sd = n_above
        return float(min(np.min(root**2), self.n_pairs))

    def up_to(self, p: float, confidence: float = 0.95) -> int:
        """Upper bound on the number of wrong pairs among those with p-values up to this one."""
        error = (1 - confidence) / 2
        n_wrong, n_found = self.of_all(error), self._n_up_to(p)
        z, level = norm.isf(error / _CUTS.size), error / _CUTS.size
        best = float(n_found)
        for cut in _CUTS[min(p, _CUTS.max()) <= _CUTS].tolist()[-1:] + _CUTS[p >= _CUTS].tolist():
            spread = np.sqrt(_SHARED_RE_PAIRINGS * self.alike * n_wrong * cut * (1 - cut))
            wrong = max(float(binom.isf(level, int(np.ceil(n_wrong)), cut)), n_wrong * cut + z * spread)
            best = min(best, wrong + max(n_found - self._n_up_to(cut), 0))
        return int(best)

    def _n_up_to(self, p: float) -> int:
        return int(self.counts[self.p_values <= p].sum())
