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

from inlier._typing import Array, FloatArray, Mask
from inlier.estimators.paper import SplitMatcher
from inlier.repair.answer import KINDS, SLIPPED
from inlier.report.repair_summary import repair_to_dict
from inlier.report.tally import DOUBTFUL, MORE_LIKELY_WRONG, N_WORST, VERDICTS, WRONG, Tally, verdicts_of
from inlier.report.words import certain_in_words, pairs_in_words, percent, rounded_up, share_in_words
from inlier.result import MatchResult

if TYPE_CHECKING:
    from inlier.estimators._base import PairMatcher
    from inlier.estimators.streaming import FittedFiles
    from inlier.repair.answer import Repair

_CONFIDENCE = 0.95  # of the bounds on the number of wrong pairs, and on the share of real ones
_MANY_NEEDED = 0.1  # share of the pairs that must be real for alpha to be in reach, from which it is worth a word
_PLAIN = (bool, int, float, str)  # settings that stay what they are
_PACKAGES = ("inlier", "numpy", "scipy", "scikit-learn", "numba")  # that compute
_METHODS = {"CalibratedMatcher": "calibrated", "RowSumMatcher": "row-sum", "EigenvectorMatcher": "eigenvector"}


@dataclass(frozen=True)
class Origin:
    """Where the pairs came from, as far as it is known."""

    sources: tuple[str, ...] = ()  # names of the two files
    command: str | None = None  # what to type to get the same again
    notes: tuple[str, ...] = ()  # what was left out or noticed on the way, in sentences


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
    inlier_fraction_at_least: float | None = None
    wrong_at_most: int | None = None  # of the accepted, with 95 % confidence
    detection_p_value: float | None = None
    null_scores: FloatArray | None = None
    n_re_pairings: int | None = None
    n_parts: int = 1
    left_out: Mask | None = None  # pairs of which nothing can be said
    refusals: tuple[tuple[Mask, str], ...] = ()  # pairs for which no promise holds, and why
    why_not: Array | None = None  # what refused each pair, where there are such
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
        return f"{found:,} of {n:,} {pairs} real, with at most {percent(self.alpha)} wrong among them."

    @property
    def details(self) -> list[str]:
        """What else there is to say, a sentence each."""
        sentences = [*self._about_the_found(), *self._about_the_share()]
        sentences += [f"{pairs_in_words(int(rows.sum()), 'were')} refused: {why}." for rows, why in self.refusals]
        if self.alpha is not None and self.repair is None:
            sentences.append(self._about_the_others())
        if self.repair is not None:
            sentences.append(self.repair.answer)
            taken = int((self.result.inlier_mask & self.repair.suspects[: self.n_pairs]).sum())
            if taken and not self.repair.slips:
                which = "One of these rows is" if taken == 1 else f"{taken:,} of these rows are"
                sentences.append(f"{which} among the {self.n_inliers:,} pairs called real, and said to be wrong now.")
        sentences += self.findings
        sentences += [sentence for sentence in (self.out_of_reach, self._what_alpha_would_do()) if sentence]
        return sentences

    @property
    def tells_wrong(self) -> bool:
        """Whether pairs that score as re-pairings do are more likely wrong than real.

        The paper's methods have nothing to go by but their cut.
        """
        if self.repair is not None or self.alpha is None or self.inlier_fraction is None:
            return True  # a repair has looked at each row
        if self.tally.counts[-1] == self.n_pairs:
            return False
        from inlier.calibration.p_values import tells_wrong

        return tells_wrong(self.tally.n_on_their_way, self.n_pairs, self.inlier_fraction)

    @property
    def n_certain(self) -> int | None:
        """Number of pairs that no other row would replace; None where others were not compared."""
        return self.tally.n_certain

    def _about_the_found(self) -> Iterator[str]:
        """Of the accepted pairs: how many of them are wrong in this table, and of how many it can be no other row."""
        if not self.n_inliers:
            return
        if self.wrong_at_most is not None:
            wrong = self.wrong_at_most
            some = "none" if wrong == 0 else "at most one" if wrong == 1 else f"at most {wrong:,}"
            are = "is" if wrong <= 1 else "are"
            yield f"In this table {some} of them {are} wrong, with {percent(_CONFIDENCE)} confidence."
        if self.n_certain is not None:
            n_others, fit = self.n_inliers - self.n_certain, self.tally.rows_that_fit or (1, 1)
            yield certain_in_words(self.n_certain, n_others, fit, self.alpha or 0.0)
        elif self.alpha is not None:
            yield f"Whether another row would fit as well was not looked at: {self._why_not_compared()}."

    def _why_not_compared(self) -> str:
        """Why nothing is known of other rows that would fit."""
        from inlier.estimators.calibrated import MOST_ONE_BY_ONE

        if self.n_parts > 1:
            return "a part does not see the rows of the others"
        if self.n_pairs > MOST_ONE_BY_ONE:
            return f"there are more than {MOST_ONE_BY_ONE:,} pairs"
        return "it is not sure enough that the two sets have anything in common"

    def _about_the_share(self) -> list[str]:
        """The share of real pairs, found or not, as far as it is known."""
        if self.inlier_fraction is None:
            return []
        return [share_in_words(self.inlier_fraction, self.inlier_fraction_at_least, found=self.n_inliers > 0)]

    def _about_the_others(self) -> str:
        """How many pairs are wrong or doubtful; where nobody can be called wrong, why."""
        wrong, doubtful, like_wrong = self.counts[WRONG], self.counts[DOUBTFUL], int(self.tally.counts[-1])
        if self.tells_wrong or not like_wrong:
            return f"{pairs_in_words(wrong)} more likely wrong than real; {pairs_in_words(doubtful).lower()} doubtful."
        why = "right pairs may score as low as re-paired rows here, so a low score alone is no sign of a mistake"
        if like_wrong == self.n_pairs:
            why = "no pair stands out from re-paired rows, so a low score is no sign of a mistake"
        elif self.ends is None:
            why += "; a repair (--suspects, or repair() in Python) looks at who else would fit, and says who is wrong"
        return f"{pairs_in_words(doubtful)} doubtful. None is called wrong: {why}."

    def _what_alpha_would_do(self) -> str | None:
        """Where nothing was found: from which alpha on something would be."""
        least, n = self.tally.lowest_q
        if self.n_inliers or least > MORE_LIKELY_WRONG:
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
    def verdict_names(self) -> tuple[str, ...]:
        """What may be said of a pair: by a repair, or else by its score alone."""
        if self.repair is None:
            return VERDICTS
        return (*KINDS, SLIPPED) if self.repair.slips else KINDS

    @property
    def verdicts(self) -> Array:
        """Per pair the place of its verdict in `verdict_names`; without q-values nothing is doubtful."""
        if self.repair is not None:
            kinds = self.repair.kind[: self.result.n_pairs]
            return np.array([self.verdict_names.index(kind) for kind in kinds], dtype=np.int8)
        return self._verdicts if self.tells_wrong else np.minimum(self._verdicts, VERDICTS.index(DOUBTFUL))

    @property
    def _verdicts(self) -> Array:
        """The place in `VERDICTS`, as if it could be told who is wrong: what was refused is not, nor what is empty."""
        if self.repair is not None:
            suspects = self.repair.suspects[: self.result.n_pairs]
            return np.where(self.result.inlier_mask, 0, np.where(suspects, 2, 1)).astype(np.int8)
        verdicts = verdicts_of(self.result.inlier_mask, self.result.q_values)
        for undecided in (*(rows for rows, _ in self.refusals), *([] if self.left_out is None else [self.left_out])):
            verdicts[undecided] = np.minimum(verdicts[undecided], VERDICTS.index(DOUBTFUL))
        return verdicts

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs have which verdict."""
        if self.repair is not None:
            counts = np.bincount(self.verdicts, minlength=len(self.verdict_names))
            return dict(zip(self.verdict_names, counts.tolist(), strict=True))
        real, between, like_wrong = self.tally.counts.tolist()
        told = (between, like_wrong) if self.tells_wrong else (between + like_wrong, 0)
        return dict(zip(VERDICTS, (real, *told), strict=True))

    def columns(self) -> dict[str, Array]:
        """Everything there is per pair: row, row in Y where it is another, key, ends, and what `MatchResult` has."""
        names = {"row": self.rows, "row_y": self.rows_y, "key": self.keys}
        names |= {} if self.ends is None else dict(zip(("source", "target"), self.ends, strict=True))
        return {name: column for name, column in names.items() if column is not None} | self.result.columns()

    def worst(self, k: int = N_WORST) -> list[dict[str, Any]]:
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
            "n_certain": self.n_certain,
            "alpha": self.alpha,
            "wrong_at_most": self.wrong_at_most,
            "inlier_fraction": self.inlier_fraction,
            "inlier_fraction_at_least": self.inlier_fraction_at_least,
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

    def json_parts(self, indent: int | None = None, *, pairs: bool = True) -> Iterator[str]:
        """The text of ``json.dumps({**to_dict(), "pairs": columns}, indent=indent)``, a block of a column at a time.

        Or without the pairs.
        """
        if not pairs:
            yield json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)
            return
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
    '30... of 500 pairs are real, with at most 1 % wrong among them.'
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
    facts["left_out"] = getattr(matcher, "left_out_", None)
    verdict = getattr(matcher, "verdict_", None)
    if verdict is not None and verdict.refusals:
        facts |= {"refusals": verdict.refusals, "why_not": verdict.why_not(facts["alpha"])}
    return MatchSummary(result=result, rows=rows, **facts)


def facts_of(matcher: PairMatcher, *, calibrated: bool) -> dict[str, Any]:
    """What a fitted matcher says of all pairs together, and how it was set."""
    inner, n_parts = (matcher.matcher, matcher.n_splits) if isinstance(matcher, SplitMatcher) else (matcher, 1)
    settings = inner.get_params(deep=False) | {"n_splits": n_parts}
    if n_parts > 1:
        settings["random_state"] = matcher.random_state
    names = ("inlier_fraction", "inlier_fraction_at_least", "detection_p_value", "null_scores", "n_re_pairings")
    verdict = getattr(matcher, "verdict_", None)
    return {
        "wrong_at_most": None if verdict is None else verdict.wrong_at_most(inner.alpha, _CONFIDENCE),
        "method": _METHODS.get(type(inner).__name__, type(inner).__name__),
        "settings": {name: value if isinstance(value, _PLAIN) else str(value) for name, value in settings.items()},
        "alpha": float(inner.alpha) if calibrated else None,
        "n_parts": n_parts,
        **{name: getattr(matcher, f"{name}_", None) for name in names},
    }


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
