"""What a matcher found, in words and numbers: the same for the terminal, for JSON and for the page."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from importlib.metadata import version
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.estimators.paper import SplitMatcher
from inlier.result import MatchResult, places_of_lowest

if TYPE_CHECKING:
    from inlier.estimators._base import PairMatcher
    from inlier.estimators.repair import Repair
    from inlier.estimators.streaming import FittedFiles

REAL, DOUBTFUL, WRONG = VERDICTS = ("real", "doubtful", "wrong")
_MORE_LIKELY_WRONG = 0.5  # q-values above it
_SMALL_ERROR = 0.1  # per cent, below which another digit is worth printing
_MANY_NEEDED = 0.1  # share of the pairs that must be real for alpha to be in reach, from which it is worth a word
_WORST = 10  # pairs, as many as anything shows
_RAISED = str.maketrans("0123456789-", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b")
_PLAIN = (bool, int, float, str)  # settings that stay what they are
_PACKAGES = ("inlier", "numpy", "scipy", "scikit-learn", "numba")  # that compute
_METHODS = {"CalibratedMatcher": "calibrated", "RowSumMatcher": "row-sum", "EigenvectorMatcher": "eigenvector"}


@dataclass(frozen=True)
class Origin:
    """Where the pairs came from, as far as it is known."""

    sources: tuple[str, ...] = ()  # names of the two files
    command: str | None = None  # what to type to get the same again
    notes: tuple[str, ...] = ()  # what was left out or noticed on the way, in sentences


@dataclass
class Tally:
    """What is counted of the pairs, all at once or block by block; none is held but the worst.

    Attributes
    ----------
    counts : ndarray of int
        How many pairs have each of the `VERDICTS`.
    lowest_q : tuple of float and int
        The lowest q-value, and how many pairs have it.
    lowest_score, highest_score : float
        The scores lie between them.
    worst : dict of ndarrays
        The columns of the ten pairs with the lowest scores, the lowest first, of equal ones the first.
    """

    counts: Array = field(default_factory=lambda: np.zeros(len(VERDICTS), dtype=np.int64))
    lowest_q: tuple[float, int] = (np.inf, 0)
    lowest_score: float = np.inf
    highest_score: float = -np.inf
    worst: dict[str, Array] = field(default_factory=dict)
    _worst_scores: Array = field(default_factory=lambda: np.empty(0))

    def add(self, block: Mapping[str, Array], scores: Array) -> None:
        """Count a block of pairs: its columns by name, and the scores that they are ordered by."""
        q = block.get("q_value")
        self.counts += np.bincount(verdicts_of(block["inlier"], q), minlength=len(VERDICTS))
        self.lowest_score = min(self.lowest_score, float(scores.min()))
        self.highest_score = max(self.highest_score, float(scores.max()))
        if q is not None and float(q.min()) <= self.lowest_q[0]:
            least = float(q.min())
            before = self.lowest_q[1] if self.lowest_q[0] == least else 0
            self.lowest_q = least, before + int((q == least).sum())
        low = places_of_lowest(scores, _WORST)
        both = np.concatenate([self._worst_scores, scores[low]])
        order = np.argsort(both, kind="stable")[:_WORST]
        kept = self.worst or {name: column[:0] for name, column in block.items()}
        self.worst = {name: np.concatenate([kept[name], column[low]])[order] for name, column in block.items()}
        self._worst_scores = both[order]


@dataclass(frozen=True, eq=False)
class MatchSummary:
    """The answer, the evidence, and how it was obtained. Made by `summarise`."""

    result: MatchResult
    method: str
    settings: Mapping[str, Any]
    rows: Array
    keys: Array | None = None
    rows_y: Array | None = None
    alpha: float | None = None
    inlier_fraction: float | None = None
    inlier_fraction_error: float | None = None
    detection_p_value: float | None = None
    null_scores: FloatArray | None = None
    n_re_pairings: int | None = None
    n_parts: int = 1
    origin: Origin = field(default_factory=Origin)
    repair: Repair | None = None

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        n, found = self.n_pairs, self.n_inliers
        if self.alpha is None:
            return f"{found:,} of {n:,} pairs are called real; this method promises nothing about how many are wrong."
        if found == 0:
            return f"None of the {n:,} pairs can be called real at alpha = {self.alpha:g}."
        pairs = "pair is" if n == 1 else "pairs are"
        return f"{found:,} of {n:,} {pairs} real, with at most {percent(self.alpha)} wrong among them."

    @property
    def details(self) -> list[str]:
        """What else there is to say, a sentence each."""
        sentences = []
        if self.inlier_fraction is not None:
            share, error = 100 * self.inlier_fraction, self.inlier_fraction_error
            digits = 2 if error is not None and 100 * error < _SMALL_ERROR else 1
            spread = "" if error is None else f" \N{PLUS-MINUS SIGN} {100 * error:.{digits}f}"
            sentences.append(f"Estimated share of real pairs, found or not: {share:.{digits}f}{spread} %.")
        if self.alpha is not None:
            wrong, doubtful = (_in_words(self.counts[verdict]) for verdict in (WRONG, DOUBTFUL))
            sentences.append(f"{wrong} more likely wrong than real; {doubtful.lower()} doubtful.")
        if self.repair is not None:
            sentences.append(self.repair.answer)
        sentences += [sentence for sentence in (self.out_of_reach, self._what_alpha_would_do()) if sentence]
        return sentences

    def _what_alpha_would_do(self) -> str | None:
        """Where nothing was found: from which alpha on something would be."""
        least, n = self.tally.lowest_q
        if self.n_inliers or least > _MORE_LIKELY_WRONG:
            return None
        pairs = "pair" if n == 1 else "pairs"
        return f"The {n:,} most convincing {pairs} would be accepted from alpha = {_rounded_up(least):g} on."

    @cached_property
    def tally(self) -> Tally:
        """What was counted of the pairs."""
        tally = Tally()
        tally.add(self.columns(), self.result.columns()["score"])
        return tally

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self.tally.counts.sum())

    @property
    def n_inliers(self) -> int:
        """Number of pairs called real."""
        return int(self.tally.counts[0])

    @property
    def scores_differ(self) -> bool:
        """Whether there is a worst pair."""
        return self.tally.highest_score > self.tally.lowest_score

    @property
    def out_of_reach(self) -> str | None:
        """Whether so few pairs can show anything at this alpha: re-pairings are few, and ranks among them coarse."""
        if self.alpha is None or self.n_re_pairings is None:
            return None
        if self.n_re_pairings <= self.n_parts:
            return "No relation between the two sets was found that pairs could be compared by."
        n, re_pairings = self.n_pairs / self.n_parts, self.n_re_pairings / self.n_parts
        # k pairs that beat every re-pairing have p = 1 / (m + 1), hence q = n p / k.
        lowest = 1 / (re_pairings + 1)
        needed = ceil(n * lowest / self.alpha) if self.alpha > 0 else n + 1
        pairs = f"{self.n_pairs:,} pairs" + (f" in {self.n_parts} parts" if self.n_parts > 1 else "")
        if needed > n:
            return (
                f"With {pairs} alpha = {self.alpha:g} is out of reach: they can be re-paired in so few ways that no "
                f"q-value falls below {lowest:.2g}. Use more pairs, or a larger alpha."
            )
        if needed >= max(2, _MANY_NEEDED * n):
            return f"With {pairs} alpha = {self.alpha:g} is in reach only if {needed:,} of them or more are real."
        return None

    @property
    def verdicts(self) -> Array:
        """Per pair the place of its verdict in `VERDICTS`; without q-values nothing is doubtful."""
        return verdicts_of(self.result.inlier_mask, self.result.q_values)

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs have which verdict."""
        return dict(zip(VERDICTS, self.tally.counts.tolist(), strict=True))

    def columns(self) -> dict[str, Array]:
        """Everything there is per pair: row, row in Y where it is another, key, score, p- and q-value, inlier."""
        names = {"row": self.rows, "row_y": self.rows_y, "key": self.keys}
        return {name: column for name, column in names.items() if column is not None} | self.result.columns()

    def worst(self, k: int = _WORST) -> list[dict[str, Any]]:
        """The ``k`` pairs with the lowest scores, the lowest first, a dictionary each; at most ten."""
        columns = {name: column[:k].tolist() for name, column in self.tally.worst.items()}
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pairs."""
        return {
            "answer": self.answer,
            "details": self.details,
            "notes": list(self.origin.notes),
            "n_pairs": self.n_pairs,
            "n_inliers": self.n_inliers,
            "alpha": self.alpha,
            "inlier_fraction": self.inlier_fraction,
            "inlier_fraction_error": self.inlier_fraction_error,
            "detection_p_value": self.detection_p_value,
            "threshold": np.asarray(self.result.threshold).tolist(),
            "verdicts": self.counts,
            "worst": self.worst(),
            "sources": list(self.origin.sources),
            "method": self.method,
            "settings": dict(self.settings),
            "versions": versions(),
            "command": self.origin.command,
        }

    def json(self, indent: int | None = None) -> str:
        """Everything, the pairs as a list per column with it."""
        return "".join(self.json_parts(indent))

    def json_parts(self, indent: int | None = None) -> Iterator[str]:
        """The text of ``json.dumps({**to_dict(), "pairs": columns}, indent=indent)``, a block of a column at a time."""
        dumps = partial(json.dumps, allow_nan=False, ensure_ascii=False)
        outer, inner, deep = ("" if indent is None else "\n" + " " * (indent * depth) for depth in (1, 2, 3))
        comma = ", " if indent is None else ","
        yield "{"
        for key, value in self.to_dict().items():
            text = dumps(value, indent=indent).replace("\n", outer)  # within a text, JSON writes \\n
            yield f"{outer}{dumps(key)}: {text}{comma}"
        yield f'{outer}"pairs": {{'
        for number, (name, blocks) in enumerate(self._column_blocks()):
            yield f"{comma if number else ''}{inner}{dumps(name)}: ["
            for place, block in enumerate(blocks):
                values = dumps(block.tolist(), separators=(comma + deep, ": "))
                yield (comma if place else "") + deep + values.removeprefix("[").removesuffix("]")
            yield f"{inner}]"
        yield f"{outer}}}" + ("}" if indent is None else "\n}")

    def _column_blocks(self) -> Iterator[tuple[str, Iterable[Array]]]:
        """What there is per pair: a name, and the column in one block or in several."""
        return ((name, [column]) for name, column in self.columns().items())


def summarise(
    matcher: PairMatcher,
    *,
    rows: Array | None = None,
    rows_y: Array | None = None,
    keys: Sequence[str] | Array | None = None,
    origin: Origin | None = None,
    repair: Repair | None = None,
) -> MatchSummary:
    """Summarise what a fitted matcher found.

    Parameters
    ----------
    matcher : PairMatcher
        After ``fit``.
    rows : ndarray of int, optional
        Where each pair stands in the user's own table; 0, 1, 2, ... by default.
    rows_y : ndarray of int, optional
        Where its partner stands, if that is in another row.
    keys : sequence of str, optional
        A name for each pair.
    origin : Origin, optional
        Files, command and notes.
    repair : Repair, optional
        With whom the wrong ones belong, from ``matcher.repair``.

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> from inlier.report import summarise
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=0.6, noise=0.1, rng=0)
    >>> summarise(CalibratedMatcher(random_state=0).fit(data.X, data.Y)).answer
    '301 of 500 pairs are real, with at most 1 % wrong among them.'
    """
    result = matcher.result_
    names = None if keys is None else np.asarray(keys, dtype=np.str_)
    for given, what in ((rows, "rows"), (rows_y, "rows_y"), (names, "keys")):
        if given is not None and given.shape != (result.n_pairs,):
            raise ValueError(f"{what} must name each of the {result.n_pairs} pairs; got shape {given.shape}.")
    facts = facts_of(matcher, calibrated=result.q_values is not None)
    rows = np.arange(result.n_pairs) if rows is None else rows
    facts |= {"rows_y": rows_y, "keys": names, "origin": origin or Origin(), "repair": repair}
    return MatchSummary(result=result, rows=rows, **facts)


def facts_of(matcher: PairMatcher, *, calibrated: bool) -> dict[str, Any]:
    """What a fitted matcher says of all pairs together, and how it was set."""
    inner, n_parts = (matcher.matcher, matcher.n_splits) if isinstance(matcher, SplitMatcher) else (matcher, 1)
    settings = inner.get_params(deep=False) | {"n_splits": n_parts}
    if n_parts > 1:
        settings["random_state"] = matcher.random_state
    names = ("inlier_fraction", "inlier_fraction_error", "detection_p_value", "null_scores", "n_re_pairings")
    return {
        "method": _METHODS.get(type(inner).__name__, type(inner).__name__),
        "settings": {name: value if isinstance(value, _PLAIN) else str(value) for name, value in settings.items()},
        "alpha": float(inner.alpha) if calibrated else None,
        "n_parts": n_parts,
        **{name: getattr(matcher, f"{name}_", None) for name in names},
    }


def verdicts_of(mask: Array, q_values: Array | None) -> Array:
    """Per pair the place of its verdict in `VERDICTS`: what is neither accepted nor likely wrong is doubtful."""
    is_wrong = True if q_values is None else q_values > _MORE_LIKELY_WRONG
    return np.where(mask, 0, np.where(is_wrong, 2, 1)).astype(np.int8)


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def percent(share: float) -> str:
    """A share in per cent, with as many digits as it has to show: 1 %, 49.6 %, 0.05 %."""
    value = 100 * share
    if value == 0 or value >= 10:
        return f"{value:.1f}".removesuffix(".0") + " %"
    return f"{value:.2g} %"


def power_of_ten(value: float, digits: int = 1) -> str:
    """A number far from 1 as people write it: 2.9 x 10^13, with signs and raised figures of their own."""
    mantissa, power = f"{value:.{digits}e}".split("e")
    raised, sign = str(int(power)).translate(_RAISED), "-" if value < 0 else ""
    factor = sign if abs(float(mantissa)) == 1 else f"{mantissa}\N{DOT OPERATOR}"
    return f"{factor}10{raised}".replace("-", "\N{MINUS SIGN}")


def _rounded_up(value: float) -> float:
    """Two digits, and not below: what is printed as enough must be enough."""
    step = 10.0 ** (floor(log10(value)) - 1)
    return ceil(value / step) * step


def _in_words(n_pairs: int) -> str:
    return "No pair is" if n_pairs == 0 else "One pair is" if n_pairs == 1 else f"{n_pairs:,} pairs are"


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamedSummary(MatchSummary):
    """As `MatchSummary`, of pairs that stay in their files. Made by `summarise_streamed`."""

    fitted: FittedFiles
    counted: Tally

    @property
    def tally(self) -> Tally:
        """What was counted while the pairs passed by."""
        return self.counted

    def _column_blocks(self) -> Iterator[tuple[str, Iterable[Array]]]:
        """The columns, block by block: the files are read once for each column."""
        for name in self.fitted.columns:
            yield name, (block[name] for block in self.fitted.blocks(name))


def summarise_streamed(fitted: FittedFiles, tally: Tally, origin: Origin) -> StreamedSummary:
    """Summarise what was found in files, once all pairs were counted."""
    matcher, none = fitted.matcher, np.empty(0)
    result = MatchResult(type(matcher).__name__, none.astype(bool), none, matcher.threshold_)
    facts = facts_of(matcher, calibrated="q_value" in fitted.columns)
    return StreamedSummary(result, rows=none, origin=origin, fitted=fitted, counted=tally, **facts)
