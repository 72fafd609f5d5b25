"""Bad input is answered here, in sentences that say what was seen and what to do."""

from __future__ import annotations

import re
import sys
import warnings
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from inlier._typing import Array, FloatArray
from inlier.exceptions import ParameterError, ParameterWarning
from inlier.rows import ColumnSummary, as_elsewhere, place_of, summarise_columns
from inlier.rows.blocks import device_blocks, row_blocks
from inlier.rows.files import blocks_of
from inlier.rows.namespaces import dtype_name, to_host

_PACKAGE = str(Path(__file__).parent)
_SMALLEST, _LARGEST = 1e-75, 1e75  # of the largest of all coordinates: fourth powers are numbers still
_USUAL_SIZES = tuple(np.array([_SMALLEST, _LARGEST]).view(np.int64))


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the first caller outside of this package, however many helpers lie between."""
    frame, level = sys._getframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level + 1)


def as_table(data: Any, name: str, *, one_column: bool = False, in_place: bool = False) -> Any:
    """Return ``data`` as a two-dimensional array of real numbers, without a copy where it is one already.

    With ``one_column`` a one-dimensional array counts as a table of one column. With ``in_place``, arrays that are not
    NumPy's (Dask, torch, CuPy, zarr, HDF5) stay what and where they are; otherwise they are brought here.
    """
    table = as_elsewhere(data)
    if table is None:
        table = _as_numbers(data, name)
    elif not in_place:
        table = _as_numbers(to_host(table) if not hasattr(table, "keep_vectors") else table[0 : len(table)], name)
    elif isinstance(getattr(table, "_meta", None), np.ma.MaskedArray):  # Dask's; what is masked is not known yet
        raise ParameterError(name, "is a Dask array of masked values. Fill them first, with dask.array.ma.filled.")
    elif any(np.isnan(size) for size in table.shape):
        raise ParameterError(name, "does not know how long its chunks are. Call its compute_chunk_sizes() first.")
    elif not re.match(r"bool|u?int|b?float", dtype_name(table)):
        raise ParameterError(name, f"holds {dtype_name(table)} values; convert them to real numbers first.")
    if table.ndim == 1 and one_column and hasattr(table, "reshape"):
        table = table.reshape(-1, 1)
    elif table.ndim == 1 and one_column:
        table = table[:, None]
    if table.ndim != 2:
        raise ParameterError(
            name,
            f"must be a table of shape (pairs, dimensions), but has {table.ndim} dimension(s), "
            f"shape {table.shape}. Reshape your data: {name}.reshape(-1, 1) for pairs of one number each, "
            f"or {name}.reshape(len({name}), -1) to flatten each entry.",
        )
    return table


def _as_numbers(data: Any, name: str) -> Array:
    if type(data) is np.ndarray and data.dtype.kind in "biuf":
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
            message = f"{name} could not be read as a table of numbers: {error}"
        raise type(error)(message) from error
    if array.dtype.kind not in "biuf":
        raise ParameterError(name, f"holds {array.dtype} values; convert them to numbers first.")
    return array


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


def check_coordinates(table: Array, name: str) -> None:
    """Refuse NaN, infinity, equal rows and numbers whose powers overflow; warn about columns that say nothing."""
    from inlier.rows.soundness import is_sound  # numba, which takes a while to load and not all need

    in_one_piece = table.dtype == np.float64 and table.flags.c_contiguous
    if in_one_piece and is_sound(table.reshape(-1).view(np.int64), table.shape[1], *_USUAL_SIZES):
        return  # one look says so; what is wrong takes a closer one
    summary = summarise_columns(table)
    check_finite(table, summary, name)
    check_varies(summary, name)
    check_size(summary, name)


def check_size(summary: ColumnSummary, name: str) -> None:
    """Refuse numbers so large or so small that their fourth powers are infinite or zero."""
    largest = float(summary.magnitude.max())
    if not _SMALLEST <= largest <= _LARGEST:
        limit, or_else = (
            ("infinity", ", or leave out the rows if only some are so large") if largest > 1 else ("zero", "")
        )
        raise ParameterError(
            name,
            f"is {largest:.3g}, and powers of such numbers cannot be told from {limit}. "
            f"Divide X and y by a number of that size first{or_else}.",
            before="The largest value of ",
        )


def check_finite(table: Any, summary: ColumnSummary, name: str) -> None:
    """Refuse NaN, infinity and numbers whose sum overflows, and say where the first one is."""
    largest = float(summary.magnitude.max())
    if sys.float_info.max / summary.n_rows < largest < np.inf:
        raise ParameterError(name, f"has values as large as {largest:g}, whose sum overflows. Divide it by that first.")
    if not summary.is_finite:
        row, column, count, value = _locate_non_finite(table)
        raise ParameterError(
            name,
            f"contains NaN or infinity: {count} value(s), the first ({value}) in row {row}, column {column}. "
            f"Drop or fill those rows in both sets.",
        )


def check_varies(summary: ColumnSummary, name: str) -> None:
    """Refuse a table of equal rows; warn about columns that say nothing."""
    if (summary.minimum < summary.maximum).all():
        return
    constant, total = summary.constant_columns, summary.mean.size
    if constant.size == total:
        raise ParameterError(
            name,
            f"is constant: all {summary.n_rows} rows are the same (n_features = {total}), so no row has a "
            f"direction from their mean and no pair can be told from another. Check that the right columns were read.",
        )
    if constant.size:
        shown = ", ".join(map(str, constant[:5])) + (", ..." if constant.size > 5 else "")
        warn(
            ParameterWarning(
                name,
                f"hold a single value (column {shown}). "
                f"They say nothing about which pairs match and are ignored; drop them to silence this.",
                before=f"{constant.size} of the {total} columns of ",
            )
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
    """Warn when two data frames name their rows differently: rows are paired by position, not by label."""
    indexes: list[Any] = [getattr(table, "index", None) for table in (X, y)]
    if not all(hasattr(index, "equals") for index in indexes) or indexes[0].equals(indexes[1]):
        return
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
    values = _as_numbers(weights, "weights")
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


def _locate_non_finite(table: Any) -> tuple[int, int, int, float]:
    """Row and column of the first value that is not finite, how many there are, and that first value."""
    first: tuple[int, int, float] | None = None
    count = 0
    place = place_of(table)
    if place.name == "files":
        blocks = ((rows, block) for rows, (block,) in blocks_of(table))
    else:
        cut = row_blocks if place.name == "memory" else device_blocks
        blocks = ((rows, place.take(table, rows)) for rows in cut(*table.shape))
    for rows, block in blocks:
        bad = np.argwhere(~np.isfinite(block))
        if len(bad) and first is None:
            first = rows.start + int(bad[0, 0]), int(bad[0, 1]), block[tuple(bad[0])]
        count += len(bad)
    assert first is not None
    return *first[:2], count, first[2]
