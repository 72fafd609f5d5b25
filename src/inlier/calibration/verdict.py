"""What is said of every pair, and why: one frozen value, which checks may only make smaller.

`Verdict.by_chance` is the theorem: p-values beside re-pairings, q-values, the share of real pairs. `with_partners` adds
the second promise. A check (see `inlier.calibration.checks`) takes a verdict and returns one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.bounds import WrongAtMost
from inlier.calibration.cross_fit import CrossFit
from inlier.calibration.folds import mean_size
from inlier.calibration.p_values import calibrate

NOT_ASKED = -1  # number of rivals where no other rows were compared
LIKE_STRANGERS = "no better than strangers"


@dataclass(frozen=True, eq=False)
class Verdict:
    """Of each pair, or of each level of scores where many are counted.

    Attributes
    ----------
    p_values, q_values : ndarray
        Beside strangers.
    certain_q_values : ndarray
        Smallest rate at which it is this one and no other; 1 where that cannot be said.
    n_rivals : ndarray of int
        Other rows that fit as a partner would; -1 where none were compared.
    inlier_fraction, inlier_fraction_at_least, detection_p_value : float
        The share of real pairs, estimated; from below, with 95 % confidence; whether there is any.
    bounds : WrongAtMost
        How many of the pairs that any cut accepts are wrong.
    refusals : tuple of (Mask, str)
        What took pairs back, and why.
    """

    p_values: FloatArray
    q_values: FloatArray
    certain_q_values: FloatArray
    n_rivals: Array
    inlier_fraction: float
    inlier_fraction_at_least: float
    detection_p_value: float
    bounds: WrongAtMost
    sets: Any = None  # PartnerSets, where they were looked for
    refusals: tuple[tuple[Mask, str], ...] = ()
    said: tuple[str, ...] = ()  # what a user should know of these data

    @staticmethod
    def by_chance(fit: CrossFit) -> Verdict:
        """Judge the scores of pairs beside those of re-pairings."""
        judged = calibrate(fit.levels, fit.null_scores, fit.null_fraction, fit.counts)
        bounds = WrongAtMost.of(judged.p_values, fit.counts, fit.p_of_deals, mean_size(fit.units))
        share, n = judged.inlier_fraction, judged.p_values.size
        at_least = min(1 - bounds.of_all() / bounds.n_pairs, share)
        return Verdict(
            judged.p_values,
            judged.q_values,
            np.ones(n),
            np.full(n, NOT_ASKED),
            share,
            at_least,
            judged.detection_p_value,
            bounds,
        )

    def with_partners(self, certain_q_values: FloatArray, n_rivals: Array, sets: Any) -> Verdict:
        """The same, and whether others would fit; nothing is certain that is not better than strangers."""
        certain = np.maximum(certain_q_values, self.q_values)
        return replace(self, certain_q_values=certain, n_rivals=n_rivals, sets=sets)

    def saying(self, sentence: str) -> Verdict:
        """The same, with one more thing to say."""
        return replace(self, said=(*self.said, sentence))

    def refused(self, rows: Mask, why: str) -> Verdict:
        """The same without some pairs, for which no promise holds."""
        return replace(
            self,
            q_values=np.where(rows, 1.0, self.q_values),
            certain_q_values=np.where(rows, 1.0, self.certain_q_values),
            inlier_fraction_at_least=min(self.inlier_fraction_at_least, float(np.mean(~rows))),
            refusals=(*self.refusals, (rows, why)),
        )

    def among(self, kept: Mask) -> Verdict:
        """The same where these are some of the pairs that were given: nothing is said of the others."""

        def spread(values: Array, fill: float) -> Array:
            whole = np.full(kept.size, fill, dtype=values.dtype)
            whole[kept] = values
            return whole

        share = float(kept.mean())
        return replace(
            self,
            p_values=spread(self.p_values, 1.0),
            q_values=spread(self.q_values, 1.0),
            certain_q_values=spread(self.certain_q_values, 1.0),
            n_rivals=spread(self.n_rivals, NOT_ASKED),
            sets=None if self.sets is None else self.sets.among(kept),
            inlier_fraction=share * self.inlier_fraction,
            inlier_fraction_at_least=share * self.inlier_fraction_at_least,
            refusals=tuple((spread(rows, False), why) for rows, why in self.refusals),
        )

    def accepted(self, alpha: float) -> Mask:
        """Pairs called real, with a false discovery rate of at most ``alpha``."""
        return self.q_values <= alpha

    def certain(self, alpha: float) -> Mask:
        """Pairs that no other would replace, of which at most a share ``alpha`` is expected to be wrong."""
        return self.certain_q_values <= alpha

    def wrong_at_most(self, alpha: float, confidence: float) -> int:
        """Bound on the number of wrong pairs among those accepted at ``alpha``, for all of these at once."""
        accepted = self.accepted(alpha)
        return self.bounds.up_to(float(self.p_values[accepted].max()), confidence) if accepted.any() else 0

    def why_not(self, alpha: float) -> Array:
        """What refused each pair, in words; empty where nothing did."""
        words = np.where(self.accepted(alpha), "", LIKE_STRANGERS).astype(object)
        for rows, why in self.refusals:
            words[rows] = why
        return words
