"""What a matcher found, in words and numbers: the same for the terminal, for JSON and for the page."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from importlib.metadata import version
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier._typing import Array, FloatArray
from inlier.estimators.paper import SplitMatcher
from inlier.report.repair_summary import repair_to_dict
from inlier.report.words import interval_in_words, pairs_in_words, percent, rounded_up
from inlier.result import MatchResult, places_of_lowest

if TYPE_CHECKING:
    from inlier.estimators._base import PairMatcher
    from inlier.estimators.repair import Repair
    from inlier.estimators.streaming import FittedFiles

REAL, DOUBTFUL, WRONG = VERDICTS = ("real", "doubtful", "wrong")
_MORE_LIKELY_WRONG = 0.5  # q-values above it
_TWO_SIDED = 1.96  # standard errors, where an error is known but no interval
_MANY_NEEDED = 0.1  # share of the pairs that must be real for alpha to be in reach, from which it is worth a word
_WORTH_A_WORD = 0.05  # share of swaps between look-alikes that would go unnoticed
_WORST = 10  # pairs, as many as anything shows
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
        How many pairs are accepted, neither accepted nor like wrong ones, like wrong ones.
    n_on_their_way : int
        How many have p-values that are neither small nor those of wrong pairs alone.
    lowest_q : tuple of float and int
        The lowest q-value, and how many pairs have it.
    lowest_score, highest_score : float
        The scores lie between them.
    worst : dict of ndarrays
        The columns of the ten pairs with the lowest scores, the lowest first, of equal ones the first.
    """

    counts: Array = field(default_factory=lambda: np.zeros(len(VERDICTS), dtype=np.int64))
    n_on_their_way: int = 0
    lowest_q: tuple[float, int] = (np.inf, 0)
    lowest_score: float = np.inf
    highest_score: float = -np.inf
    worst: dict[str, Array] = field(default_factory=dict)
    _worst_scores: Array = field(default_factory=lambda: np.empty(0))

    def add(self, block: Mapping[str, Array], scores: Array) -> None:
        """Count a block of pairs: its columns by name, and the scores that they are ordered by."""
        q = block.get("q_value")
        self.counts += np.bincount(verdicts_of(block["inlier"], q), minlength=len(VERDICTS))
        if "p_value" in block:
            from inlier.calibration.p_values import on_their_way  # the paper's methods need none of that

            self.n_on_their_way += int(np.count_nonzero(on_their_way(block["p_value"])))
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
    ends: tuple[Array, Array] | None = None  # what a table of pairs calls the two of them: ids, or rows
    alpha: float | None = None
    inlier_fraction: float | None = None
    inlier_fraction_error: float | None = None
    inlier_fraction_interval: tuple[float, float] | None = None
    look_alike_rate: float | None = None
    detection_p_value: float | None = None
    null_scores: FloatArray | None = None
    n_re_pairings: int | None = None
    n_parts: int = 1
    of_another_map: Array | None = None  # pairs that are no accident, but follow another map than those called real
    left_out: Array | None = None  # pairs of which nothing can be said
    origin: Origin = field(default_factory=Origin)
    repair: Repair | None = None
    findings: tuple[str, ...] = ()  # what else was found, in sentences

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        n, found = self.n_pairs, self.n_inliers
        if self.alpha is None:
            return f"{found:,} of {n:,} pairs are called real; this method promises nothing about how many are wrong."
        if found == 0:
            return f"None of the {n:,} pairs can be called real at alpha = {self.alpha:g}."
        pairs = "pair is" if n == 1 else "pairs are"
        unless = " unless similar rows were swapped" if self._swaps_may_be_unnoticed else ""
        return f"{found:,} of {n:,} {pairs} real, with at most {percent(self.alpha)} wrong among them{unless}."

    @property
    def details(self) -> list[str]:
        """What else there is to say, a sentence each."""
        sentences = []
        if self.share is not None:
            sentences.append(f"Share of real pairs, found or not: {self.share}.")
        if self.alpha is not None and self.repair is None:
            sentences.append(self._about_the_others())
        if self.look_alike_rate is not None and self.look_alike_rate >= _WORTH_A_WORD:
            rate = percent(round(self.look_alike_rate, 2))
            sentences.append(
                f"If similar rows may have been swapped: {rate} of the accepted pairs would be accepted with the most "
                f"similar other row, too."
            )
        if self.repair is not None:
            sentences.append(self.repair.answer)
        sentences += self.findings
        sentences += [sentence for sentence in (self.out_of_reach, self._what_alpha_would_do()) if sentence]
        return sentences

    @property
    def share(self) -> str | None:
        """The share of real pairs as far as it is known, in words."""
        if self.interval is None:
            return None
        words = interval_in_words(*self.interval)
        if not self._swaps_may_be_unnoticed:
            return words
        how_few = "; how few cannot be told" if self.interval[1] < 1 else ""
        return f"{words}{how_few}, since similar rows may have been swapped unnoticed"

    @property
    def _swaps_may_be_unnoticed(self) -> bool:
        """Whether the share has no lower end although pairs were accepted: these may be swaps between similar rows."""
        low = None if self.inlier_fraction_interval is None else self.inlier_fraction_interval[0]
        return low == 0 and self.n_inliers > 0

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the share of real pairs; where only an error is known, about two of them."""
        if self.inlier_fraction_interval is not None:
            return self.inlier_fraction_interval
        if self.inlier_fraction is None or self.inlier_fraction_error is None:
            return None
        spread = _TWO_SIDED * self.inlier_fraction_error
        return max(self.inlier_fraction - spread, 0.0), min(self.inlier_fraction + spread, 1.0)

    @property
    def tells_wrong(self) -> bool:
        """Whether pairs that score as re-pairings do are more likely wrong than real.

        A registration knows where pairs should lie, and the paper's methods have nothing to go by but their cut.
        """
        if self.repair is not None or self.inlier_fraction_interval is None or self.inlier_fraction is None:
            return True  # a repair has looked at each row
        if self.tally.counts[-1] == self.n_pairs:
            return False
        from inlier.calibration.p_values import tells_wrong

        others = 0.0 if self.of_another_map is None else float(self.of_another_map.mean())
        return tells_wrong(self.tally.n_on_their_way, self.n_pairs, min(self.inlier_fraction + others, 1.0))

    def _about_the_others(self) -> str:
        """How many pairs are wrong or doubtful; where nobody can be called wrong, why."""
        wrong, doubtful, like_wrong = self.counts[WRONG], self.counts[DOUBTFUL], int(self.tally.counts[-1])
        if self.tells_wrong or not like_wrong:
            return f"{pairs_in_words(wrong)} more likely wrong than real; {pairs_in_words(doubtful).lower()} doubtful."
        why = "right pairs may score as low as re-paired rows here, so a low score alone is no sign of a mistake"
        if like_wrong == self.n_pairs:
            why = "no pair stands out from re-paired rows, so a low score is no sign of a mistake"
        elif self.ends is None:
            why += "; a repair also looks at who else would fit"
        return f"{pairs_in_words(doubtful)} doubtful. None is called wrong: {why}."

    def _what_alpha_would_do(self) -> str | None:
        """Where nothing was found: from which alpha on something would be."""
        least, n = self.tally.lowest_q
        if self.n_inliers or least > _MORE_LIKELY_WRONG:
            return None
        pairs = "most convincing pair" if n == 1 else f"{n:,} most convincing pairs"
        return f"The {pairs} would be accepted from alpha = {rounded_up(least):g} on."

    @cached_property
    def tally(self) -> Tally:
        """What was counted of the pairs."""
        tally = Tally()
        tally.add(self.columns(), self.result.columns()["score"])
        tally.counts = np.bincount(self._verdicts, minlength=len(VERDICTS))
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
        return self._verdicts if self.tells_wrong else np.minimum(self._verdicts, VERDICTS.index(DOUBTFUL))

    @property
    def _verdicts(self) -> Array:
        """The same where it can be told who is wrong: what follows another map is not, nor what holds no values."""
        if self.repair is not None:
            suspects = self.repair.suspects[: self.result.n_pairs]
            return np.where(self.result.inlier_mask, 0, np.where(suspects, 2, 1)).astype(np.int8)
        verdicts = verdicts_of(self.result.inlier_mask, self.result.q_values)
        for undecided in (self.of_another_map, self.left_out):
            if undecided is not None:
                verdicts[undecided] = np.minimum(verdicts[undecided], VERDICTS.index(DOUBTFUL))
        return verdicts

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs have which verdict."""
        real, between, like_wrong = self.tally.counts.tolist()
        told = (between, like_wrong) if self.tells_wrong else (between + like_wrong, 0)
        return dict(zip(VERDICTS, (real, *told), strict=True))

    def columns(self) -> dict[str, Array]:
        """Everything there is per pair: row, row in Y where it is another, key, ends, score, p- and q-value, inlier."""
        names = {"row": self.rows, "row_y": self.rows_y, "key": self.keys}
        names |= {} if self.ends is None else dict(zip(("source", "target"), self.ends, strict=True))
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
            "inlier_fraction_interval": None if self.interval is None else list(self.interval),
            "look_alike_rate": self.look_alike_rate,
            "detection_p_value": self.detection_p_value,
            "threshold": np.asarray(self.result.threshold).tolist(),
            "verdicts": self.counts,
            "worst": self.worst(),
            "repair": None if self.repair is None else repair_to_dict(self.repair),
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
    ends: tuple[Array, Array] | None = None,
    origin: Origin | None = None,
    repair: Repair | None = None,
    findings: tuple[str, ...] = (),
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
    ends : tuple of two ndarrays, optional
        A name for each side of each pair, where they were named in a table of their own.
    origin : Origin, optional
        Files, command and notes.
    repair : Repair, optional
        With whom the wrong ones belong, from ``matcher.repair``.
    findings : tuple of str, optional
        What else was found, in sentences.

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
    if repair is not None and repair.labels is None:
        numbers = np.arange(repair.kind.size), np.arange(repair.n_rows_y)
        known = (rows if names is None else names,) * 2
        repair = replace(repair, labels=numbers if any(repair.n_unpaired) else known)
    facts |= {"rows_y": rows_y, "keys": names, "ends": ends, "origin": origin or Origin()}
    facts |= {"repair": repair, "findings": findings}
    labels = getattr(matcher, "map_labels_", None)
    facts["of_another_map"] = labels > 0 if isinstance(labels, np.ndarray) and (labels > 0).any() else None
    facts["left_out"] = getattr(matcher, "left_out_", None)
    return MatchSummary(result=result, rows=rows, **facts)


def facts_of(matcher: PairMatcher, *, calibrated: bool) -> dict[str, Any]:
    """What a fitted matcher says of all pairs together, and how it was set."""
    inner, n_parts = (matcher.matcher, matcher.n_splits) if isinstance(matcher, SplitMatcher) else (matcher, 1)
    settings = inner.get_params(deep=False) | {"n_splits": n_parts}
    if n_parts > 1:
        settings["random_state"] = matcher.random_state
    shares = ("inlier_fraction", "inlier_fraction_error", "inlier_fraction_interval")
    names = (*shares, "detection_p_value", "null_scores", "n_re_pairings")
    rate = getattr(matcher, "look_alike_rate_", np.nan)
    return {
        "look_alike_rate": None if np.isnan(rate) else rate,
        "method": _METHODS.get(type(inner).__name__, type(inner).__name__),
        "settings": {name: value if isinstance(value, _PLAIN) else str(value) for name, value in settings.items()},
        "alpha": float(inner.alpha) if calibrated else None,
        "n_parts": n_parts,
        **{name: getattr(matcher, f"{name}_", None) for name in names},
    }


def verdicts_of(mask: Array, q_values: Array | None) -> Array:
    """Per pair the place in `VERDICTS`: what is neither accepted nor like wrong pairs is doubtful."""
    is_wrong = True if q_values is None else q_values > _MORE_LIKELY_WRONG
    return np.where(mask, 0, np.where(is_wrong, 2, 1)).astype(np.int8)


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


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
