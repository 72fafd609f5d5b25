"""Bad input is answered here, in sentences that say what was seen and what to do."""

from __future__ import annotations

import sys
import warnings
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from inlier._typing import Array, FloatArray
from inlier.exceptions import ParameterError

_LARGEST_NUMBER = 8  # bytes; linear algebra knows no longer ones
_MANY_COLUMNS, _TIMES_WIDER = 50, 4  # from which a table is asked about; wide ones are common
_PACKAGE = str(Path(__file__).parent)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the first caller outside of this package, however many helpers lie between."""
    frame, level = sys._getframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level + 1)


def as_numbers(data: Any, name: str) -> Array:
    """Return ``data`` as a NumPy array of real numbers, of any shape, without a copy where it is one already."""
    if type(data) is np.ndarray and data.dtype.kind in "biuf" and data.dtype.itemsize <= _LARGEST_NUMBER:
        return data
    _check_not_masked(data, name)
    try:
        array = check_array(
            data,
            dtype="numeric",
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )
    except (TypeError, ValueError) as error:
        if "Complex data" in str(error):
            message = (
                f"Complex data not supported: {name} holds complex numbers. "
                f"Pass its real and imaginary parts as separate columns."
            )
        else:
            _check_no_words(data, name)
            message = f"{name} could not be read as a table of numbers: {error}"
        raise type(error)(message) from error
    if array.dtype.kind not in "biuf":
        raise ParameterError(name, f"holds {array.dtype} values; convert them to numbers first.")
    return array.astype(np.float64) if array.dtype.itemsize > _LARGEST_NUMBER else array


def _check_no_words(data: Any, name: str) -> None:
    """Refuse words in a table by their column."""
    table = np.array(data, dtype=object)
    if table.ndim != 2:
        return
    for number, column in enumerate(table.T):
        word = next((entry for entry in column if isinstance(entry, str) and not _is_number(entry)), None)
        if word is not None:
            raise ParameterError(
                name,
                f"does not hold numbers (for example {word[:40]!r}). Give a data frame, whose columns may hold words, "
                f"leave the column out, or make numbers of it first.",
                before=f"column {number} of ",
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_not_masked(data: Any, name: str) -> None:
    """Refuse masked values: as a plain array they would count as the numbers beneath the mask."""
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        masked = np.argwhere(np.ma.getmaskarray(data))
        axes = ("row", "column") if data.ndim <= 2 else ("index",) * data.ndim
        where = ", ".join(f"{axis} {place}" for axis, place in zip(axes, masked[0], strict=False))
        raise ParameterError(
            name, f": {len(masked)} value(s) are masked, the first in {where}. Drop or fill those rows in both sets."
        )


def check_paired(X: Any, Y: Any, *, fewest: int = 2) -> None:
    """Row i of X belongs with row i of Y, so there must be as many of one as of the other, and some."""
    n_x, n_y = X.shape[0], Y.shape[0]
    if n_x != n_y:
        raise ValueError(
            f"X and y must have one row per pair, but X has {n_x} rows and y has {n_y}. "
            f"Put the two sets in the same order and drop the rows without a partner."
        )
    for table, name in ((X, "X"), (Y, "y")):
        if table.shape[1] == 0:
            raise ParameterError(
                name, f"has no columns: 0 feature(s) (shape={table.shape}) while a minimum of 1 is required."
            )
    if n_x < fewest:
        needed, seen = "pair is" if fewest == 1 else "pairs are", "is" if n_x == 1 else "are"
        raise ValueError(
            f"At least {fewest} {needed} needed to compare, but there {seen} {n_x} (n_samples = {n_x}, shape "
            f"{X.shape}). Each row is one pair: give more rows, or transpose both tables if each of their columns is "
            f"one."
        )


def warn_if_transposed(X: Any, Y: Any) -> None:
    """Ask whether columns are pairs, as in the paper: two such tables have equally many, and these are many."""
    n, d = X.shape
    if tuple(Y.shape) == (n, d) and _TIMES_WIDER * n <= d and d > _MANY_COLUMNS:
        warn(
            f"There are {n:,} pairs of {d:,} numbers each, far fewer pairs than numbers. If each column is a pair and "
            f"each row a dimension, transpose both tables."
        )


def check_choice(value: Any, choices: tuple[str, ...], name: str) -> None:
    """Refuse a word that is not one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(name, f"must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_flag(value: Any, name: str) -> None:
    """Refuse what is not True or False: ``"no"`` would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(name, f"must be True or False; got {value!r}.")


def check_same_index(X: Any, y: Any) -> None:
    """Warn when two data frames name the same rows in another order: rows are paired by position, not by label."""
    indexes: list[Any] = [getattr(table, "index", getattr(table, "obs_names", None)) for table in (X, y)]
    if not all(hasattr(index, "equals") for index in indexes) or indexes[0].equals(indexes[1]):
        return
    if not len(indexes[0].intersection(indexes[1])):
        return  # other names altogether, as of words in two languages
    warn(
        "X and y are frames whose indexes differ. Rows are paired by position; if the labels say who belongs to whom, "
        "align them first, for example with y = y.loc[X.index].",
    )


def check_number(value: Any, name: str, *, low: float = -np.inf, high: float = np.inf) -> float:
    """Return ``value`` as a float if it is a real number in [low, high]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ParameterError(name, f"must be a finite number; got {value!r}.")
    if not low <= float(value) <= high:
        raise ParameterError(name, f"must lie between {low:g} and {high:g}; got {value!r}.")
    return float(value)


def check_count(value: Any, name: str, *, low: int = 1) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``low``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < low:
        raise ParameterError(name, f"must be a whole number of at least {low}; got {value!r}.")
    return int(value)


def check_weights(weights: Any, n_pairs: int) -> FloatArray:
    """Return one finite weight per pair as float64, none negative; masks count as 0 and 1."""
    values = as_numbers(weights, "weights")
    if values.shape != (n_pairs,):
        raise ParameterError("weights", f"must hold one number per pair, {n_pairs} in all; got shape {values.shape}.")
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ParameterError(
            "weights", f"contain NaN or infinity, first in row {row}. Give such pairs weight 0, or drop them."
        )
    if (values < 0).any():
        raise ParameterError(
            "weights",
            f"must not be negative: {int((values < 0).sum())} of {n_pairs} are, the least is {values.min():g}. "
            f"Give pairs that are not to count weight 0.",
        )
    return values


def relative_weights(sample_weight: Any, n_pairs: int) -> FloatArray | None:
    """Return what pairs count for, 1 for those that count most, so that the unit does not matter; None for None."""
    if sample_weight is None:
        return None
    weights = check_weights(sample_weight, n_pairs)
    if not weights.any():
        raise ParameterError(
            "sample_weight", "are zero, so no pair counts. Some must be positive.", before=f"All {n_pairs} entries of "
        )
    return weights / weights.max()


def check_labels(values: Any, name: str, n_pairs: int) -> Array | None:
    """Return one whole number per pair, equal where the labels are; None for None. Labels may be of any kind."""
    if values is None:
        return None
    labels = np.asarray(values)
    if labels.shape != (n_pairs,):
        raise ParameterError(name, f"must hold one label per pair, {n_pairs} in all; got shape {labels.shape}.")
    missing = np.flatnonzero(labels != labels) if labels.dtype.kind in "fcmMO" else np.empty(0, dtype=int)
    if labels.dtype.kind == "O":
        missing = np.union1d(missing, [row for row, label in enumerate(labels) if label is None]).astype(int)
    if missing.size:
        raise ParameterError(
            name,
            f"has no label for {missing.size} of the {n_pairs} pairs, the first in row {missing[0]}. "
            f"Give such pairs a label of their own.",
        )
    numbers: Array = np.unique(labels_as_one_kind(labels), return_inverse=True)[1].reshape(-1)
    return numbers


def labels_as_one_kind(values: Any) -> Array:
    """Labels that can be sorted: those of several kinds as text."""
    labels = np.asarray(values)
    return labels.astype(str) if labels.dtype.kind == "O" else labels
