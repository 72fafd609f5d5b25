"""What a calibrated fit keeps for rows that come later: the judges of its folds, and what map and partners come from.

The tables of the fit are kept as they are, not copied: the map and the dictionary are worked out when they are first
asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.checks.copied_columns import without_columns
from inlier.calibration.cross_fit import CrossFit
from inlier.calibration.models.neighbours import MOST_POOLED, Pools, learn_dictionary
from inlier.calibration.models.pair_map import PairMap, fit_pair_map
from inlier.calibration.models.significance import SHARP, Significance
from inlier.calibration.new_partners import Proposer
from inlier.calibration.p_values import evenly_spaced, p_values
from inlier.calibration.verdict import Verdict
from inlier.estimators._base import Preparation, linear_rows
from inlier.estimators._side_information import SideInformation
from inlier.repair.odds import Odds
from inlier.rows import PairedRows
from inlier.rows.backend import to_host
from inlier.rows.threads import single_threaded_blas

_MOST_LEARNED_FROM = 20_000  # pairs: more make no better map
_SAMPLED = 200_000  # pairs among which those are looked for
_KEPT_NULL = 100_000  # re-pairings of the fit, which tell which of many new pairs are clearly real
_ROWS_COMPARED = 50  # that tell whether tables are those of the fit
_CHANGED = 0.5  # share of a row's values that differ, from which it is another: odd values were filled in by the fit
_DETECTED = 0.05  # detection p-value up to which there is a map
_LEARNED_FROM = 0.5  # q-value below which a partner that was found counts in the map


@dataclass(frozen=True, eq=False)
class Compared:
    """What was found when any x was compared with any y, for whoever asks again."""

    unit: float
    scores: FloatArray | None  # where the judges that are kept, of one deal, could not say it again
    groups: Array | None
    strata: Array | None
    gaps: Array  # how many values of each pair were filled in

    @staticmethod
    def of(odds: Odds | None, fit: CrossFit, labels: tuple[Array | None, Array | None], gaps: Array) -> Compared:
        """What is kept of odds; where there are none, nothing was detected, or too many pairs to compare."""
        by_judges_kept = fit.ridges is None and len(fit.judges_of_a_deal) == len(fit.folds)
        scores = None if odds is None or by_judges_kept else odds.kept
        return Compared(odds.unit if odds else 1.0, scores, *labels, gaps)


@dataclass(eq=False)
class Learned:
    """Judges of new pairs, and what they were learned from."""

    pairs: PairedRows | None  # the tables of the fit, gaps filled
    preparation: Preparation
    judges: CrossFit  # without what is there per pair
    whiten: bool
    copied: tuple[Array, Array]  # columns of x and of y that were left out
    p_values: FloatArray | None  # all 1 where nothing was detected; None where there are too many to keep
    sure: Mask | None  # the pairs that were accepted, where they are kept
    trust: FloatArray | None
    unpaired: tuple[FloatArray, FloatArray] | None
    seed: int
    numbers: Array | None = None  # of the rows of the fit, where some were left out
    n_given: int = 0  # how many there were then
    compared: Compared | None = None  # any x with any y
    columns: tuple[Array, Array] | None = None  # that correspond
    judge: Any = None  # the small one, once it was asked for

    @staticmethod
    def of(
        pairs: PairedRows,
        preparation: Preparation,
        fit: CrossFit,
        verdict: Verdict,
        settings: Any,
        side: SideInformation,
        copied: tuple[Array, Array],
        kept: Mask | None,
        seed: int,
        compared: Compared,
    ) -> Learned:
        """What is kept of a cross-fit once its pairs are judged; the settings are those of the matcher."""
        null, nothing = evenly_spaced(fit.null_scores, _KEPT_NULL), np.empty(0)
        folds = tuple(replace(f, scores=nothing, null_scores=nothing) for f in fit.judges_of_a_deal)
        judges = CrossFit(nothing, null, folds=folds)
        p, sure = None, None
        if fit.counts is None:  # otherwise pairs are judged in bins
            found = verdict.detection_p_value <= _DETECTED
            p = verdict.p_values if found else np.ones(verdict.p_values.size)
            sure = verdict.accepted(settings.alpha)
        numbers, n_given = (None, 0) if kept is None else (np.flatnonzero(kept), kept.size)
        given = side.trust, side.unpaired
        return Learned(
            pairs,
            preparation,
            judges,
            settings.whiten,
            copied,
            p,
            sure,
            *given,
            seed,
            numbers,
            n_given,
            compared,
            side.columns,
        )

    @property
    def has_labels(self) -> bool:
        """Whether groups or strata were given."""
        return self.compared is not None and (self.compared.groups is not None or self.compared.strata is not None)

    def some_rows(self) -> tuple[FloatArray, FloatArray]:
        """Rows of x and of y of the fit, evenly chosen where there are many."""
        assert self.pairs is not None
        n = self.pairs.n_pairs
        return self.tables(np.unique(np.linspace(0, n - 1, min(n, _MOST_LEARNED_FROM)).astype(np.int64)))

    def changed_row(self, X: Any, Y: Any) -> tuple[str, int] | None:
        """A table and a row of it that is not as it was in the fit; None where none of some that are looked at is."""
        if self.pairs is None or not all(isinstance(table, np.ndarray) for table in (X, Y, self.pairs.X, self.pairs.Y)):
            return None
        some = np.unique(np.linspace(0, self.pairs.n_pairs - 1, _ROWS_COMPARED).astype(np.int64))
        given = some if self.numbers is None else self.numbers[some]
        for name, now, before in (("X", X[given], self.pairs.X[some]), ("y", Y[given], self.pairs.Y[some])):
            same = np.isclose(now, before, rtol=1e-5, atol=0) | ~np.isfinite(now)
            odd = _CHANGED * now.shape[1] < (~same).sum(axis=1)
            if odd.any():
                return name, int(given[np.argmax(odd)])
        return None

    def as_given(self, rows: Array) -> Array:
        """Numbers of candidates, counted among all rows that were given."""
        if self.numbers is None:
            return rows
        n = self.numbers.size
        return np.where(rows < n, self.numbers[np.minimum(rows, n - 1)], rows - n + self.n_given)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is stored: tables that are not in memory are not, so the map is made before."""
        if self.pairs is not None and not isinstance(self.pairs.X, np.ndarray):
            _ = self.map, self.proposer
            return self.__dict__ | {"pairs": None}
        return self.__dict__

    def scores(self, X: Any, Y: Any) -> FloatArray:
        """Score new pairs."""
        return self.judges.judge(*self.prepared(X, Y))

    def prepared(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Rows as those of the fit were prepared."""
        X, Y = (without_columns(table, some) for table, some in zip((X, Y), self.copied, strict=True))
        return self.preparation.x(X), self.preparation.y(Y)

    @cached_property
    def map(self) -> PairMap:
        """The map between the tables of the fit, learned from what is likely real and from partners that were found."""
        rng = np.random.RandomState(self.seed)
        rows, weights = self._likely
        x, y = self.tables(rows)
        if self.unpaired is not None and self.proposer is not None:
            candidates = self.candidates
            found = self.proposer.find(self.unpaired[0], candidates, 1)
            q = found.q_values[:, 0]
            likely = np.flatnonzero(q < _LEARNED_FROM)
            x = np.concatenate([x, self.unpaired[0][likely]])
            y = np.concatenate([y, candidates[found.rows[likely, 0]]])
            weights = np.concatenate([weights, 1 - q[likely]])
        rows_x, rows_y = (linear_rows(table, whiten=self.whiten) for table in (x, y))
        with single_threaded_blas():
            return fit_pair_map(rows_x, rows_y, rows_x(x), rows_y(y), weights, rng)

    @cached_property
    def proposer(self) -> Proposer | None:
        """What names partners; None where too little was learned."""
        rng = np.random.RandomState(self.seed)
        rows, weights = self._likely
        if not weights.any():
            return None
        if self.unpaired is None or self.sure is None:
            x, y = self.tables(rows)
            sure = np.flatnonzero(weights > 0 if self.sure is None else self.sure[rows])
            return Proposer.of(x, y, (np.arange(rows.size), np.arange(rows.size), weights), sure, rng)
        x, y = (np.concatenate(sides) for sides in zip(self.tables(), self.unpaired, strict=True))
        i, j = self._dictionary(x, y, rng)
        sure = np.flatnonzero(self.sure)
        return Proposer.of(x, y, (i, j, np.ones(i.size)), sure, rng)

    @property
    def candidates(self) -> FloatArray:
        """Rows of y among which partners are looked for: those of the fit, then those without a partner."""
        y = self.tables()[1]
        return y if self.unpaired is None else np.concatenate([y, self.unpaired[1]])

    def tables(self, rows: Array | None = None) -> tuple[FloatArray, FloatArray]:
        """Some rows of the tables, or all, as NumPy arrays."""
        if self.pairs is None:
            raise ValueError(
                "The tables of the fit were not in memory, and are not stored with the matcher. Name the candidates: "
                "find_partners(X, among=...)."
            )
        near = self.pairs.near(slice(0, self.pairs.n_pairs) if rows is None else rows)
        x, y = (np.asarray(to_host(table), dtype=np.float64) for table in (near.X, near.Y))
        return x, y

    def _dictionary(self, x: FloatArray, y: FloatArray, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Rows of the pools that belong together, of which the first are paired."""
        assert self.sure is not None
        n = self.sure.size
        paired = np.sort(rng.permutation(n)[:MOST_POOLED])
        k = paired.size
        of_x, of_y = (
            np.concatenate([paired, n + rng.permutation(len(pool) - n)[: MOST_POOLED - k]]) for pool in (x, y)
        )
        i, j = learn_dictionary(Pools.of(x[of_x[:k]], y[of_y[:k]], x[of_x[k:]], y[of_y[k:]]))
        return of_x[i], of_y[j]

    @cached_property
    def _likely(self) -> tuple[Array, FloatArray]:
        """Pairs that are more likely real than wrong, and what each counts for; of weight 0 where none is."""
        assert self.pairs is not None
        rng, n, p = np.random.RandomState(self.seed), self.pairs.n_pairs, self.p_values
        rows = np.arange(n)
        if p is None:
            rows = np.unique(rng.randint(n, size=_SAMPLED, dtype=np.int64))
            near = self.pairs.near(rows)
            p = p_values(self.scores(near.X, near.Y), self.judges.null_scores)
        weights = Significance(p, 0.0, 1.0, 0.0).weights(SHARP)
        if self.trust is not None:
            weights = weights * self.trust
        likely = np.sort(rng.permutation(np.flatnonzero(weights))[:_MOST_LEARNED_FROM])
        if likely.size < 2:
            likely, weights = rng.permutation(rows.size)[:_MOST_LEARNED_FROM], np.zeros(rows.size)
        return rows[likely], weights[likely]
