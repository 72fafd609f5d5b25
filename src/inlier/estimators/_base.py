"""What all matchers share: checked input, step 1 of every algorithm, and a result."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from inlier._checks import check_paired, check_same_index, warn, warn_if_transposed
from inlier._typing import Array, FloatArray, Mask
from inlier.exceptions import ParameterWarning
from inlier.result import MatchResult
from inlier.rows import (
    ColumnSummary,
    PairedRows,
    RowMap,
    as_table,
    check_finite,
    check_varies,
    effective_dimension,
    model_rows,
    store_of,
    summarise_columns,
    unit_rows,
    whitened_rows,
)
from inlier.rows.frames import holds_vectors

if TYPE_CHECKING:
    from inlier.report import MatchReport

_ROWS_PER_DIRECTION = 8  # whitening more directions than this allows would amplify noise


class PairMatcher(BaseEstimator):
    """What all matchers share: checked input, and a result."""

    scores_: FloatArray
    threshold_: float | FloatArray
    inlier_mask_: Mask

    is_calibrated = False  # whether it gives p- and q-values
    _fewest_pairs = 2
    _works_in_parts = True  # whether SplitMatcher may fit it to parts of the pairs
    _labels: Any = None  # of the rows of X, where it was a frame
    _labels_y: Any = None  # of the rows of y, where they are others
    _in_any_store = False  # whether rows in files, Dask arrays and device arrays are matched where they are

    def fit(self, X: Any, y: Any) -> Self:
        """Decide which rows of ``X`` and ``y`` are real pairs.

        Parameters
        ----------
        X : array-like of shape (n, d_x)
            One side of the pairs.
        y : array-like of shape (n, d_y) or (n,)
            The other side: row i is the partner of row i of ``X``.

        Returns
        -------
        self
        """
        X, y = self._read_pairs(X, y)
        warn_if_transposed(X, y)
        self._fit(X, y)
        return self

    @abstractmethod
    def _fit(self, X: Array, Y: Array) -> None:
        """Set the attributes that end in an underscore, from checked tables."""

    @abstractmethod
    def prepare(self, X: Array, Y: Array) -> PairedRows:
        """Step 1: the pairs as they will be compared."""

    @property
    def result_(self) -> MatchResult:
        """The answer as one frozen object, with tables and JSON."""
        check_is_fitted(self, "inlier_mask_")
        certain = ("certain_q_values_", "certain_mask_", "n_rivals_")
        names = ("inlier_mask_", "scores_", "threshold_", "p_values_", "q_values_", *certain, "_labels", "_labels_y")
        return MatchResult(type(self).__name__, *(_read_only(getattr(self, name, None)) for name in names))

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per pair, with the labels of the rows of ``X``; see `MatchResult`."""
        return self.result_.to_frame()

    def report(self, path: Any = None, keys: Any = None, repair: Any = None) -> MatchReport:
        """Return a report to look at: shown by notebooks, and written to a file where one is named.

        Parameters
        ----------
        path : path, optional
            Where to write the page, such as ``"report.html"``.
        keys : sequence of str, optional
            A name for each pair, for the table of pairs; by default the labels of the rows of ``X``, if it was a frame.
        repair : Repair, optional
            What `CalibratedMatcher.repair` said of the same pairs: the page then says who belongs to whom.

        Returns
        -------
        MatchReport
        """
        from inlier.report import report_on  # the page knows the matchers, and they need it only here

        report = report_on(self, self._keys(keys), repair=repair)
        if path is not None:
            report.write_html(path)
        return report

    def _keys(self, keys: Any) -> Any:
        return [str(label) for label in self._labels] if keys is None and self._labels is not None else keys

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What notebooks show: scikit-learn's diagram, and once it is fitted the answer."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._answer_card()
        return bundle

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._answer_card()

    def _answer_card(self) -> str:
        """The answer as a small table, and the transformation if there is one; nothing before the fit."""
        answers = (
            getattr(self, name, None) for name in ("result_", "transformation_") if hasattr(self, "inlier_mask_")
        )
        return "".join(answer._repr_html_() for answer in answers if answer is not None)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def _read_pairs(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Check shapes and types; a one-dimensional ``y`` counts as one column."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. "
                f"y holds the partners of the rows of X."
            )
        table_x = as_table(X, "X", in_place=self._in_any_store)
        table_y = as_table(y, "y", one_column=True, in_place=self._in_any_store)
        check_paired(table_x, table_y, fewest=self._fewest_pairs)
        self._labels, self._labels_y = row_labels(X), row_labels(y)
        if self._labels_y is not None and self._labels_y.equals(self._labels):
            self._labels_y = None
        if type(X) is np.ndarray and type(y) is np.ndarray:  # no labels to compare, no names to look for
            self.n_features_in_ = table_x.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return table_x, table_y
        check_same_index(X, y)
        validate_data(self, as_named(X, table_x), skip_check_array=True)  # n_features_in_ and feature_names_in_
        return table_x, table_y


def as_named(data: Any, table: Array) -> Any:
    """What names of columns are read off: what was given, if its columns are those of the table it became."""
    is_as_given = isinstance(table, np.ndarray) and getattr(data, "shape", table.shape) == table.shape
    return data if is_as_given else table


def column_names(table: Any) -> tuple[str, ...] | None:
    """Names of a frame's columns, if all of them are texts and each is a column of the table."""
    names = getattr(table, "columns", None)
    if names is None or getattr(table, "ndim", 2) != 2 or holds_vectors(table):
        return None
    names = tuple(names)
    return names if all(isinstance(name, str) for name in names) else None


def row_labels(table: Any) -> Any:
    """Return the index of a frame, or the names of the cells of an AnnData; None for anything else."""
    index = getattr(table, "index", getattr(table, "obs_names", None))
    return index if hasattr(index, "equals") else None


@dataclass(frozen=True)
class RowNames:
    """Names that tables came with: columns, rows, and whether y was one column without a table."""

    columns: tuple[str, ...] | None = None
    labels: Any = None
    is_flat: bool = False
    labels_rest: Any = None
    has_rest: bool = False

    @staticmethod
    def of(y: Any, rest: Any = None) -> RowNames:
        """Names of y, and of the rows without a partner."""
        flat = getattr(y, "ndim", 2) == 1 and not holds_vectors(y)
        columns = column_names(y)
        if flat and getattr(y, "name", None) is not None:
            columns = (str(y.name),)
        return RowNames(columns, row_labels(y), flat, row_labels(rest), rest is not None)


def prepare_pairs(X: Array, Y: Array, *, whiten: bool = False) -> PairedRows:
    """Step 1 of Algorithms 1-3: centre the columns, scale the rows to unit length; optionally whiten between."""
    return PairedRows(X, Y, _unit_rows(X, "X", whiten), _unit_rows(Y, "y", whiten))


@dataclass(frozen=True, eq=False)
class Preparation:
    """How rows that come later are prepared as those of the fit were; first to unit length, where that was done."""

    map_x: RowMap
    map_y: RowMap
    first_x: RowMap | None
    first_y: RowMap | None

    def x(self, rows: Any) -> Any:
        """Prepare rows of x."""
        return _prepared(rows, self.first_x, self.map_x)

    def y(self, rows: Any) -> Any:
        """Prepare rows of y."""
        return _prepared(rows, self.first_y, self.map_y)


def _prepared(rows: Any, first: RowMap | None, row_map: RowMap) -> Any:
    """Prepare rows; a missing value counts as the mean of its column."""
    if isinstance(rows, np.ndarray) and rows.dtype.kind == "f" and np.isnan(rows).any():
        mean = (first or row_map).mean
        assert mean is not None
        rows = np.where(np.isnan(rows), mean, rows)
    return row_map(rows if first is None else first(rows))


class ModelPairs(PairedRows):
    """Pairs prepared for a linear model, and the preparation for rows that come later."""

    later: Preparation


def prepare_model_pairs(X: Array, Y: Array, *, whiten: bool) -> ModelPairs:
    """Centre, whiten as far as the number of pairs allows, and scale to unit mean square: rows of a linear model.

    Few pairs in very many directions are first scaled to unit length, as in the paper: there the length of a row
    says little of its partner, and one long row would count for many.
    """
    (X, map_x, first_x), (Y, map_y, first_y) = _model_rows(X, "X", whiten), _model_rows(Y, "y", whiten)
    pairs = ModelPairs(X, Y, map_x, map_y)
    pairs.later = Preparation(map_x, map_y, first_x, first_y)
    return pairs


def _unit_rows(table: Array, name: str, whiten: bool) -> RowMap:
    summary = _checked_summary(table, name)
    if not whiten:
        return unit_rows(summary)
    row_map = whitened_rows(summary, table)
    if row_map.n_columns >= summary.n_rows - 1:
        warn(
            ParameterWarning(
                name,
                f"span {row_map.n_columns} dimensions, so after whitening all of them are equally far apart. "
                f"Use whiten=False, fewer columns or more pairs.",
                before=f"whiten=True has nothing to compare: the {summary.n_rows} rows of ",
            )
        )
    return row_map


def _model_rows(table: Array, name: str, whiten: bool) -> tuple[Array, RowMap, RowMap | None]:
    summary, first = _checked_summary(table, name), None
    most_directions = max(1, summary.n_rows // _ROWS_PER_DIRECTION)
    few = store_of(table).at_hand and summary.mean.size > most_directions  # rows elsewhere are many
    if few and effective_dimension(table, summary) > most_directions:
        first = unit_rows(summary)
        table = first(table)  # a copy, of fewer than _ROWS_PER_DIRECTION rows a column
        summary = summarise_columns(table)
    return table, model_rows(summary, table, whiten=whiten, most_directions=most_directions), first


def linear_rows(table: Array, *, whiten: bool) -> RowMap:
    """Return the map to a linear model's rows without their being scaled to unit length first: it can be undone."""
    summary = summarise_columns(table)
    return model_rows(summary, table, whiten=whiten, most_directions=max(1, summary.n_rows // _ROWS_PER_DIRECTION))


def _checked_summary(table: Array, name: str) -> ColumnSummary:
    summary = summarise_columns(table)
    check_finite(table, summary, name)
    check_varies(summary, name)
    return summary


def _read_only(value: Any) -> Any:
    """A view of an array that cannot be written through."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value
