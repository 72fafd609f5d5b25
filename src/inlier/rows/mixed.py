"""Columns of all kinds as numbers: dates, yes and no, categories and free text, each in its own way, and said so.

What is made of a column is learned from that column alone, never from the other table: so it costs power at most, and
no promise. Every column counts alike, whatever its unit: what is made of it has a variance of 1 altogether, of a free
text more, as one text says more than one number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.rows.frames import entries_of
from inlier.rows.gaps import odd_values
from inlier.rows.vectors import NotVectorsError, is_missing, is_vector, stacked

_MOST_LEVELS, _FEWEST_ROWS = 30, 2  # of a category that have a column each; that such a level occurs in
_ONCE = 0.95  # share of the texts that occur once from which they are ids, if they hold no blanks
_NUMBERED = 0.5  # share of different texts that are left without their digits, up to which these number the rows
_WORDS = 0.3  # share of the texts with a blank from which they are free text
_GRAMS, _BUCKETS = (2, 4), 2**18  # letters in a row; numbers that they are hashed to
_MOST_DIRECTIONS, _ROWS_A_DIRECTION = 200, 5  # of texts that are kept; texts for each
_BESIDE_OTHERS = 50  # directions of a text that are kept where there are other columns
_WEAKEST = 1e-3  # variance of a direction beside that of the strongest
_TEXT_COUNTS = 4.0  # variance of a text, where a number has 1
_DAY, _YEAR, _WEEK = 86_400.0, 365.2425 * 86_400.0, 7 * 86_400.0  # seconds
_DIGITS = re.compile(r"\d+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?Z?")


class ColumnUse(NamedTuple):
    """What was done to a column: what it holds, how many columns it became, and how or why not."""

    side: str
    column: str
    kind: str
    n: int
    how: str


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column that has been learned: what makes numbers of it, and their names."""

    label: str
    kind: str
    how: str
    numbers: Callable[[Array], FloatArray]
    names: tuple[str, ...]
    scale: float


class MixedColumns:
    """What was learned of the columns of one table."""

    def __init__(self, side: str, coded: list[_Coded], left_out: list[ColumnUse], as_they_are: bool) -> None:
        self.side, self._coded, self._left_out, self.as_they_are = side, coded, left_out, as_they_are

    @staticmethod
    def of(columns: Iterable[tuple[Any, Any]], side: str, without: Iterable[str] = ()) -> MixedColumns:
        """Learn from columns by their labels; those named in ``without`` say nothing of a pair, being in both."""
        coded, left_out, without = [], list[ColumnUse](), set(without)
        known = [(label, *_kind_of(column)) for label, column in columns]
        is_alone = sum(kind != "id" and str(label) not in without for label, kind, _ in known) == 1
        for label, kind, values in known:
            if str(label) in without:
                found: _Coded | str = "the same on both sides"
            elif kind == "text":
                found = _as_text(str(label), values, _MOST_DIRECTIONS if is_alone else _BESIDE_OTHERS)
            else:
                found = _KINDS[kind](str(label), values)
            if isinstance(found, str):
                left_out.append(ColumnUse(side, str(label), kind, 0, f"left out: {found}"))
            else:
                coded.append(found)
        return MixedColumns(side, coded, left_out, all(of.kind in ("number", "yes or no", "vector") for of in coded))

    @property
    def uses(self) -> tuple[ColumnUse, ...]:
        """What was done to each column."""
        coded = (ColumnUse(self.side, of.label, of.kind, len(of.names), of.how) for of in self._coded)
        return (*coded, *self._left_out)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that come out."""
        return tuple(name for of in self._coded for name in of.names)

    def __call__(self, columns: Iterable[tuple[Any, Any]], n: int) -> FloatArray:
        """Numbers for n rows of these columns, or of others with the same labels."""
        by_label = {str(label): column for label, column in columns}
        missing = next((of.label for of in self._coded if of.label not in by_label), None)
        if missing is not None:
            raise KeyError(missing)
        parts = [of.numbers(_kind_of(by_label[of.label])[1]) * of.scale for of in self._coded]
        return np.column_stack(parts) if parts else np.empty((n, 0))


def has_words(columns: Iterable[tuple[Any, Any]]) -> bool:
    """Whether a column holds text, dates, or categories."""
    return any(kind_of(column) not in ("number", "yes or no", "vector") for _, column in columns)


def equal_columns(
    first: Iterable[tuple[Any, Any]], second: Iterable[tuple[Any, Any]], share: float
) -> dict[str, tuple[str, float]]:
    """Columns of texts, dates and categories of the first table that one of the second repeats, in so many rows.

    Rows that are equal by chance do not count. With its label there, and the share of rows in which the two are equal.
    """
    words = [
        {str(label): values for label, (kind, values) in _by_kind(columns) if kind not in ("number", "vector")}
        for columns in (first, second)
    ]
    found = {}
    for label, values in words[0].items():
        copies = {other: _agreement(values, theirs) for other, theirs in words[1].items()}
        best = max(copies, key=lambda other: copies[other][0], default=None)
        if best is not None and copies[best][0] >= share:
            found[label] = (best, copies[best][1])
    return found


def _agreement(x: Array, y: Array) -> tuple[float, float]:
    """Cohen's kappa of two columns, and the share of rows in which they are equal."""
    if len(x) != len(y) or x.dtype.kind != y.dtype.kind:
        return 0.0, 0.0
    equal = float(np.mean(np.asarray(x == y, dtype=bool)))
    counts = Counter(x.tolist()), Counter(y.tolist())
    by_chance = sum(times * counts[1][word] for word, times in counts[0].items()) / len(x) ** 2
    return ((equal - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0), equal


def _by_kind(columns: Iterable[tuple[Any, Any]]) -> Iterable[tuple[Any, tuple[str, Array]]]:
    return ((label, _kind_of(column)) for label, column in columns)


# ---- what a column holds


def kind_of(column: Any) -> str:
    """What a column holds: "number", "yes or no", "date", "category", "text", "vector", or "id".

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.rows.mixed import kind_of
    >>> [kind_of(np.array(of)) for of in (["2024-05-01"], ["a1", "a2", "a3"], ["red", "blue", "red", "red"])]
    ['date', 'id', 'category']
    """
    try:
        return _kind_of(column)[0]
    except NotVectorsError:  # of which whoever reads them says what is wrong
        return "vector"


def _kind_of(column: Any) -> tuple[str, Array]:
    """The kind of a column, and its entries: numbers, dates as datetime64, or texts, empty where missing."""
    values = column if isinstance(column, np.ndarray) else entries_of(column)
    if isinstance(values, list) or values.ndim > 1:
        return "vector", np.asarray(stacked(list(values)), dtype=np.float64)
    if values.dtype.kind in "biuf":
        return ("yes or no" if values.dtype.kind == "b" else "number"), values.astype(np.float64)
    if values.dtype.kind == "M":
        return "date", values.astype("datetime64[ms]")
    if values.dtype.kind == "m":
        return "number", np.where(np.isnat(values), np.nan, values / np.timedelta64(1, "s"))
    entries = values.tolist() if values.dtype.kind in "UT" else list(values)
    present = [entry for entry in entries if not is_missing(entry) and not (isinstance(entry, str) and not entry)]
    if present and is_vector(present[0]):
        return "vector", np.asarray(stacked(entries), dtype=np.float64)
    if present and all(isinstance(entry, (bool, np.bool_)) for entry in present):
        return "yes or no", _numbers(entries)
    if present and not any(isinstance(entry, (str, bytes)) for entry in present) and _are_numbers(present):
        return "number", _numbers(entries)
    if present and all(hasattr(entry, "year") and hasattr(entry, "month") for entry in present):
        return "date", np.array([None if is_missing(of) else str(of)[:23] for of in entries], dtype="datetime64[ms]")
    stripped = ["" if is_missing(entry) else str(entry).strip() for entry in entries]
    words = [text for text in stripped if text]
    texts = np.array([*stripped, None], dtype=object)[:-1]  # not as wide as the longest
    if words and all(map(_DATE.fullmatch, words)):
        dates = [text.rstrip("Z").replace(" ", "T") or "NaT" for text in texts.tolist()]
        return "date", np.array(dates, dtype="datetime64[ms]")
    if words and _are_numbers(words):
        return "number", _numbers([text or None for text in texts.tolist()])
    return _kind_of_words(words), texts


def _kind_of_words(words: list[str]) -> str:
    different = len(set(words))
    if different <= _MOST_LEVELS and different <= max(len(words) / 2, 2):
        return "category"
    has_blanks = np.mean([" " in word or not word.isascii() for word in words]) >= _WORDS if words else False
    without_numbers = {_DIGITS.sub("", word) for word in words}
    are_numbered = len(without_numbers) <= _NUMBERED * different
    return "id" if different >= _ONCE * len(words) and (are_numbered or not has_blanks) else "text"


def _are_numbers(entries: list[Any]) -> bool:
    try:
        _numbers(entries)
    except (TypeError, ValueError):
        return False
    return True


def _numbers(entries: list[Any]) -> FloatArray:
    return np.array([np.nan if is_missing(entry) else float(entry) for entry in entries])


# ---- what is made of it


def _as_number(label: str, values: Array) -> _Coded | str:
    spread = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0
    if not spread > 0:
        return "it holds a single value"
    return _Coded(label, "number", "as it is", lambda values: values[:, None], (label,), 1 / spread)


def _as_flag(label: str, values: Array) -> _Coded | str:
    found = _as_number(label, values)
    return found if isinstance(found, str) else replace(found, kind="yes or no", how="0 and 1")


def _as_vectors(label: str, values: Array) -> _Coded | str:
    variance = float(np.nansum(np.nanvar(values, axis=0)))
    names = tuple(f"{label}[{k}]" for k in range(values.shape[1]))
    if not variance > 0:
        return "it holds a single value"
    scale = (values.shape[1] / variance) ** 0.5
    return _Coded(label, "vector", "as they are", lambda values: values, names, scale)


def _as_dates(label: str, values: Array) -> _Coded | str:
    """Days, and where the dates span it the time of year, of the week and of the day, on circles."""
    valid = values[~np.isnat(values)]
    if np.unique(valid).size < 2:
        return "it holds a single value"
    seconds = _seconds(valid)
    start, span = float(np.median(seconds)), float(np.ptp(seconds))
    cycles = [(name, length) for name, length in (("year", _YEAR), ("week", _WEEK), ("day", _DAY)) if span > length]
    cycles = [(name, length) for name, length in cycles if np.unique(np.round(seconds % length)).size > 1]
    spread = float(seconds.std())

    def numbers(values: Array) -> FloatArray:
        seconds = np.where(np.isnat(values), np.nan, _seconds(values))
        turns = [2 * np.pi * seconds / length for _, length in cycles]
        circles = [wave(turn) for turn in turns for wave in (np.sin, np.cos)]
        return np.column_stack([(seconds - start) / spread, *circles])

    names = (f"{label} (days)", *(f"{label} ({wave} of {name})" for name, _ in cycles for wave in ("sine", "cosine")))
    how = "days" + "".join(f", time of {name}" for name, _ in cycles)
    return _Coded(label, "date", how, numbers, names, (1 + len(cycles)) ** -0.5)


def _seconds(dates: Array) -> FloatArray:
    return (dates - np.datetime64("2000-01-01")) / np.timedelta64(1, "s")


def _as_category(label: str, texts: Array) -> _Coded | str:
    """A column of 0 and 1 for each word that occurs more than once; of two words one column."""
    counts = Counter(texts.tolist())
    levels = [word for word, times in counts.most_common(_MOST_LEVELS) if word and times >= _FEWEST_ROWS]
    if len(levels) == 2 and set(counts) <= set(levels):
        levels = sorted(levels)[1:]
    if len(counts) < 2 or not levels:
        return "it holds a single value" if len(counts) < 2 else "none of its words occurs twice"

    def numbers(texts: Array) -> FloatArray:
        return (texts[:, None] == np.array(levels, dtype=np.str_)).astype(np.float64)

    scale = float(numbers(texts).var(axis=0).sum()) ** -0.5
    names = tuple(f"{label}={word}" for word in levels)
    return _Coded(label, "category", "0 and 1 for each word", numbers, names, scale)


def _as_text(label: str, texts: Array, most: int) -> _Coded | str:
    """Letters in a row, hashed, by how rare they are; and of these the strongest directions."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    hashed = HashingVectorizer(
        analyzer="char_wb", ngram_range=_GRAMS, n_features=_BUCKETS, alternate_sign=False, norm=None
    )
    counts = hashed.transform(texts)
    met = np.unique(counts.indices)  # of the others nothing is learned
    weigh = TfidfTransformer(sublinear_tf=True)
    table = weigh.fit_transform(counts[:, met])
    k = min(most, np.unique(texts).size // _ROWS_A_DIRECTION)
    if k < 1:
        return f"fewer than {_ROWS_A_DIRECTION} different texts"
    directions = TruncatedSVD(k, random_state=0).fit(table)
    strong = directions.explained_variance_ > _WEAKEST * directions.explained_variance_.max()
    odd = odd_values(directions.transform(table))
    strong &= True if odd is None else ~odd.any(axis=0)  # those of a few texts alone: they would count as mistakes
    k = int(strong.sum())

    def numbers(texts: Array) -> FloatArray:
        found: FloatArray = directions.transform(weigh.transform(hashed.transform(texts)[:, met]))[:, strong]
        return found

    variance = float(numbers(texts).var(axis=0).sum())
    names = tuple(f"{label}~{number}" for number in range(k))
    how = f"{_GRAMS[0]} to {_GRAMS[1]} letters in a row, their {k} strongest directions"
    return _Coded(label, "text", how, numbers, names, (_TEXT_COUNTS / variance) ** 0.5)


def _as_id(label: str, texts: Array) -> _Coded | str:
    return "every row has another word, or number, as ids have"


_KINDS: dict[str, Callable[[str, Array], _Coded | str]] = {
    "number": _as_number,
    "yes or no": _as_flag,
    "vector": _as_vectors,
    "date": _as_dates,
    "category": _as_category,
    "id": _as_id,
}
