"""What a fitted matcher does with rows that come later: predict y, judge new pairs, find partners.

What a calibrated fit keeps for it is in `_learned`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from inlier._checks import check_count, check_paired, warn
from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.new_pairs import FEWEST_NEW, null_of_few, null_of_new_pairs
from inlier.calibration.p_values import calibrate
from inlier.calibration.verdict import Verdict
from inlier.estimators._base import PairMatcher, RowNames, as_named, column_names, row_labels
from inlier.estimators._judging import judge_of
from inlier.estimators._learned import Learned
from inlier.estimators._mixed import Mixed
from inlier.exceptions import DependenceWarning, ParameterError
from inlier.judge import Judge
from inlier.result import MatchResult
from inlier.rows import as_table
from inlier.rows.backend import from_host, to_host
from inlier.rows.mixed import ColumnUse

_FEW_UNLIKE = 0.25  # share of rows looked up of which nothing can be said, up to which that needs no word
_UNLIKE = (
    "{} of the {} rows looked up are unlike the pairs that were learned from: they, or the candidates near them, stand "
    "closer together or farther out, as in another cluster or batch. Nothing is said of their names (q = 1). Fit pairs "
    "that are like them, too."
)


def in_kind(values: FloatArray, like: Any, columns: tuple[str, ...]) -> Any:
    """Values as a frame of the kind of ``like``, with its row labels; as an array where it is none."""
    like = like.to_frame() if getattr(like, "ndim", 2) == 1 and hasattr(like, "to_frame") else like  # vectors
    if row_labels(like) is not None:
        frame = getattr(like, "obs", like)  # that of an AnnData
        return type(frame)(values, index=row_labels(like), columns=list(columns))
    if column_names(like) is not None and hasattr(like, "schema"):
        return type(like)(values, schema=list(columns))
    return from_host(values, like)


class NewPairs(TransformerMixin, PairMatcher, ABC):
    """Carries rows to the space of y, and judges pairs that were not in the fit beside re-pairings."""

    alpha: float
    n_outputs_: int
    _names_y: RowNames

    @abstractmethod
    def _score_new(self, X: Array, Y: Array) -> FloatArray:
        """Score checked tables of new pairs."""

    @abstractmethod
    def _kept_null(self) -> FloatArray:
        """Scores of re-pairings, on the scale of `_score_new`, in rising order."""

    @property
    def _output_names(self) -> tuple[str, ...]:
        return self._names_y.columns or tuple(f"y{k}" for k in range(self.n_outputs_))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` gives: those of y.

        Parameters
        ----------
        input_features : Any
            Of no account: the columns are those of y.
        """
        check_is_fitted(self, "inlier_mask_")
        return np.asarray(self._output_names, dtype=object)

    def fit_predict(self, X: Any, y: Any, **params: Any) -> Mask:
        """Fit, and return which pairs are real: ``inlier_mask_``.

        Parameters
        ----------
        X, y : array-like
            The two sides of the pairs, see `fit`.
        **params : Any
            What else `fit` takes.

        Returns
        -------
        ndarray of bool, shape (n,)
            True where the pair is called real. `predict`, of other rows of ``X`` alone, is another thing: their y.
        """
        self.fit(X, y, **params)
        return self.inlier_mask_

    def score_samples(self, X: Any, y: Any) -> FloatArray:
        """Score pairs that were not in the fit; larger means more like a real pair.

        Parameters
        ----------
        X : array-like of shape (m, d_x)
            One side.
        y : array-like of shape (m, d_y) or (m,)
            The other side: row i is the partner of row i of ``X``.

        Returns
        -------
        ndarray of shape (m,)
            On the scale of ``scores_`` and ``null_scores_``.
        """
        return self._score_new(*self._read_new_pairs(X, y))

    def predict_pairs(self, X: Any, y: Any) -> MatchResult:
        """Tell which pairs that were not in the fit are real, with p- and q-values against their own re-pairings.

        The false discovery rate is that among these pairs, whether they are wrong as often as those of the fit or not,
        and whether they are like those or not: of another batch, or with more gaps. Fewer than 20 pairs tell too little
        of each other. They are compared with rows of the fit, and have to be like these. Pairs of the fit itself are
        not new: for them see ``result_``.

        Parameters
        ----------
        X, y : array-like
            The two sides of the new pairs.

        Returns
        -------
        MatchResult
        """
        table_x, table_y = self._read_new_pairs(X, y)
        scores = self._score_new(table_x, table_y)
        judged = calibrate(scores, self._null_beside(table_x, table_y, scores))
        accepted = judged.accepted(self.alpha)
        threshold = float(scores[accepted].min()) if accepted.any() else float(np.nextafter(scores.max(), np.inf))
        labels = row_labels(X)
        return MatchResult(
            type(self).__name__, accepted, scores, threshold, judged.p_values, judged.q_values, labels=labels
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Chance that a new pair scores higher than a re-pairing: 1 where all are real and clear, 1/2 by chance.

        The area under the ROC curve. Wrong pairs among the new ones lower it, by as much for every matcher.

        Parameters
        ----------
        X, y : array-like
            The two sides of pairs that were not in the fit.
        sample_weight : array-like of shape (m,), optional
            What each of them counts for.

        Returns
        -------
        float
        """
        table_x, table_y = self._read_new_pairs(X, y)
        scores = self._score_new(table_x, table_y)
        null = self._null_beside(table_x, table_y, scores)
        below, upto = (np.searchsorted(null, scores, side=side) for side in ("left", "right"))
        return float(np.average((below + upto) / (2 * null.size), weights=sample_weight))

    def _null_beside(self, X: Array, Y: Array, scores: FloatArray) -> FloatArray:
        """Scores that these new pairs would have if they were wrong, in rising order."""
        if scores.size < FEWEST_NEW:
            return self._null_of_few(X, Y)
        rng = check_random_state(getattr(self, "random_state", None))
        return null_of_new_pairs(self._score_new, X, Y, rng)

    def _null_of_few(self, X: Array, Y: Array) -> FloatArray:
        """The same of few pairs, which have to be like those of the fit."""
        return self._kept_null()

    def _read_new_pairs(self, X: Any, y: Any) -> tuple[Array, Array]:
        check_is_fitted(self, "inlier_mask_")
        table_x, table_y = self._read_new_x(X), to_host(as_table(self._y_as_numbers(y), "y", one_column=True))
        check_paired(table_x, table_y, fewest=1)
        if table_y.shape[1] != self.n_outputs_:
            raise ParameterError(
                "y", f"has {table_y.shape[1]} columns, and had {self.n_outputs_} when the matcher was fitted."
            )
        return table_x, table_y

    def _x_as_numbers(self, X: Any) -> Any:
        return X

    def _y_as_numbers(self, y: Any) -> Any:
        return y

    def _read_new_x(self, X: Any) -> Array:
        X = self._x_as_numbers(X)
        table = as_table(X, "X")
        validate_data(self, as_named(X, table), reset=False, skip_check_array=True)
        return to_host(table)


@dataclass(frozen=True, eq=False, repr=False)
class Partners:
    """Partners that were found for rows of x, the best first.

    Attributes
    ----------
    rows : ndarray of int, shape (n, k)
        Rows of the candidates: of y in `fit`, and behind them those of ``unpaired``; or of ``among``. -1 where nothing
        was learned that could name one.
    scores : ndarray of shape (n, k)
        By how much the CSLS of the two (twice the cosine, less how crowded it is around both) is above that of the
        nearest rival: another candidate for x, or another x for the candidate.
    p_values : ndarray of shape (n, k)
        Chance that a name is wrong and scores as high.
    q_values : ndarray of shape (n, k)
        Share of wrong names among those of at least this score.
    """

    rows: Array
    scores: FloatArray
    p_values: FloatArray
    q_values: FloatArray
    labels_x: Any = None
    labels_y: Any = None

    def __repr__(self) -> str:
        n_sure = int((self.q_values[:, 0] <= 0.1).sum()) if self.rows.size else 0
        return f"<partners for {len(self.rows):,} rows: {n_sure:,} with at most 10 % wrong among them>"

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per proposal: x, its rank, partner, score, p- and q-value."""
        import pandas

        n, k = self.rows.shape
        flat = self.rows.ravel()
        x = np.repeat(np.arange(n) if self.labels_x is None else np.asarray(self.labels_x), k)
        partner = flat if self.labels_y is None else np.asarray(self.labels_y)[flat]
        columns = {"x": x, "rank": np.tile(np.arange(1, k + 1), n), "partner": partner, "row": flat}
        values = {"score": self.scores, "p_value": self.p_values, "q_value": self.q_values}
        return pandas.DataFrame(columns | {name: table.ravel() for name, table in values.items()})


class LearnedMap(NewPairs):
    """What `CalibratedMatcher` can do once it has learned: the map, new pairs, partners."""

    _learned: Learned
    _mixed: Mixed = Mixed()
    verdict_: Verdict

    def _as_numbers(self, X: Any, y: Any, unpaired: Any) -> tuple[Any, Any, Any]:
        """Tables of a fit with mixed columns as numbers, and rows without a partner in the same way."""
        self._mixed = Mixed.of(X, y)
        return self._mixed.x(X), self._mixed.y(y), self._rest_as_numbers(unpaired)

    def _rest_as_numbers(self, unpaired: Any) -> Any:
        if not isinstance(unpaired, (tuple, list)) or len(unpaired) != 2:  # which is refused where it is read
            return unpaired
        return self._mixed.x(unpaired[0], "unpaired X"), self._mixed.y(unpaired[1], "unpaired y")

    def _x_as_numbers(self, X: Any) -> Any:
        return self._mixed.x(X)

    def _y_as_numbers(self, y: Any) -> Any:
        return self._mixed.y(y)

    @property
    def columns_(self) -> tuple[ColumnUse, ...]:
        """What was made of each column of frames with more than numbers; empty for tables of numbers."""
        check_is_fitted(self, "inlier_mask_")
        return self._mixed.uses

    @property
    def map_(self) -> Any:
        """The map y = offset + x matrix that the pairs agree on: ``kind``, ``rank``, ``matrix``, ``offset``."""
        check_is_fitted(self, "inlier_mask_")
        return self._learned.map

    @property
    def judge_(self) -> Judge:
        """What was learned, with its null frozen: a small `Judge` of new pairs, to be sent where these are."""
        check_is_fitted(self, "inlier_mask_")
        if self._learned.judge is None:
            names = getattr(self, "feature_names_in_", None)
            names_x = None if names is None else tuple(map(str, names))
            self._learned.judge = judge_of(self._learned, self.verdict_, self.alpha, (names_x, self._names_y.columns))
        return self._learned.judge

    @property
    def left_out_(self) -> Mask:
        """Rows of which nothing can be said, because they hold no value."""
        check_is_fitted(self, "inlier_mask_")
        left_out = np.zeros(self.inlier_mask_.shape[0], dtype=bool)
        if self._learned.numbers is not None:
            left_out[:] = True
            left_out[self._learned.numbers] = False
        return left_out

    def transform(self, X: Any) -> Any:
        """Carry rows of ``X`` to the space of ``y``; a frame comes back as one, with its row labels.

        Parameters
        ----------
        X : array-like of shape (m, d_x)
            Rows, paired in the fit or not. A missing value counts as the mean of its column.

        Returns
        -------
        array or frame of shape (m, d_y)
        """
        check_is_fitted(self, "inlier_mask_")
        return in_kind(self.map_(self._read_new_x(X)), X, self._output_names)

    def predict(self, X: Any) -> Any:
        """Predict y for rows of ``X``: what `transform` says, in one dimension where y had one in `fit`."""
        predicted = self.transform(X)
        if not self._names_y.is_flat:
            return predicted
        return predicted.iloc[:, 0] if row_labels(X) is not None else to_host(np.asarray(predicted))[:, 0]

    def find_partners(self, X: Any, k: int = 1, among: Any = None) -> Partners:
        """Look for the partners of rows of ``X`` among all rows of y, with a q-value for every name.

        Parameters
        ----------
        X : array-like of shape (m, d_x)
            Rows whose partners are looked for.
        k : int, default=1
            How many to name for each.
        among : array-like of shape (c, d_y), optional
            The candidates. By default the rows of y of `fit`, and behind them those of ``unpaired``.

        Returns
        -------
        Partners
            ``rows``, ``scores``, ``p_values``, ``q_values``, ``to_frame()``.
        """
        check_is_fitted(self, "inlier_mask_")
        check_count(k, "k")
        x: FloatArray = np.asarray(self._read_new_x(X), dtype=np.float64)
        if among is None:
            candidates, names = self._learned.candidates, _joined(self._names_y)
        else:
            among = self._mixed.y(among, "among")
            candidates, names = np.asarray(to_host(as_table(among, "among", one_column=True)), float), row_labels(among)
        proposer = self._learned.proposer
        if proposer is None:
            none = np.ones((len(x), k))
            return Partners(-none.astype(np.int64), 0 * none, none, none, row_labels(X))
        x, candidates = _without_nan(x, proposer.sides[0].mean), _without_nan(candidates, proposer.sides[1].mean)
        found = proposer.find(x, candidates, k)
        if (~found.alike).sum() > _FEW_UNLIKE * len(x):
            warn(_UNLIKE.format((~found.alike).sum(), len(x)), DependenceWarning)
        rows = found.rows if among is not None else self._learned.as_given(found.rows)
        return Partners(rows, found.scores, found.p_values, found.q_values, row_labels(X), names)

    def _score_new(self, X: Array, Y: Array) -> FloatArray:
        return self._learned.scores(X, Y)

    def _kept_null(self) -> FloatArray:
        return self._learned.judges.null_scores

    def _null_of_few(self, X: Array, Y: Array) -> FloatArray:
        if not self._learned.judges.folds or self._learned.pairs is None:
            return self._kept_null()
        return null_of_few(self._score_new, X, Y, *self._learned.some_rows())

    def _read_again(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Read the tables of the fit once more, as they are wherever they live; refuse others, or another order."""
        X, y = self._mixed.x(X), self._mixed.y(y)
        table_x = as_table(X, "X", in_place=self._in_any_store)
        table_y = as_table(y, "y", one_column=True, in_place=self._in_any_store)
        n = self.inlier_mask_.shape[0]
        if table_x.shape[0] != n or table_y.shape[0] != n:
            seen = f"X has {table_x.shape[0]:,} rows and y has {table_y.shape[0]:,}"
            raise ValueError(f"The matcher was fitted to {n:,} pairs, but {seen}. Give the tables of the fit.")
        validate_data(self, as_named(X, table_x), reset=False, skip_check_array=True)
        names, was = column_names(y), self._names_y.columns
        same_names = names is None or was is None or names == was
        if table_y.shape[1] != self.n_outputs_ or not same_names:
            raise ValueError("y has other columns than in fit, or in another order. Give the table of the fit.")
        labels = ("X", row_labels(X), self._labels), ("y", row_labels(y), self._names_y.labels)
        for name, (now, before) in ((name, pair) for name, *pair in labels):
            if now is not None and before is not None and not now.equals(before):
                raise ValueError(f"{name} has other rows than in fit, or in another order. Give the table of the fit.")
        changed = self._learned.changed_row(table_x, table_y)
        if changed is not None:
            name, row = changed
            raise ValueError(f"Row {row} of {name} is not what it was in fit. Give the tables of the fit as they were.")
        return table_x, table_y


def _without_nan(table: FloatArray, mean: FloatArray) -> FloatArray:
    return np.where(np.isnan(table), mean, table) if np.isnan(table).any() else table


def _joined(names: RowNames) -> Any:
    """Labels of all candidates, where every one of them has one."""
    if names.labels is None or (names.has_rest and names.labels_rest is None):
        return None
    return np.concatenate([np.asarray(names.labels), np.asarray(names.labels_rest)]) if names.has_rest else names.labels
