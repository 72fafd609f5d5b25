"""The summary of pairs that are in files: counted and compared as they pass by, never held."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.estimators.streaming import FittedFiles
from inlier.report.match_summary import VERDICTS, MatchSummary, Origin, counts_of, facts_of
from inlier.result import MatchResult

_WORST = 10  # as many as anything shows
_NONE = np.empty(0)


@dataclass
class Tally:
    """What is counted while the pairs pass by."""

    n_pairs: int = 0
    n_inliers: int = 0
    counts: Array = field(default_factory=lambda: np.zeros(len(VERDICTS), dtype=np.int64))
    lowest_q: tuple[float, int] = (np.inf, 0)  # and how many pairs have it
    lowest_score: float = np.inf
    highest_score: float = -np.inf
    worst: dict[str, Array] = field(default_factory=dict)

    def add(self, block: dict[str, Array]) -> None:
        """Count a block of pairs, the columns by name."""
        mask, q, scores = block["inlier"], block.get("q_value"), block["score"]
        self.n_pairs += mask.size
        self.n_inliers += int(np.count_nonzero(mask))
        self.counts += counts_of(mask, q)
        self.lowest_score = min(self.lowest_score, float(scores.min()))
        self.highest_score = max(self.highest_score, float(scores.max()))
        if q is not None:
            least = float(q.min())
            before = self.lowest_q[1] if self.lowest_q[0] == least else 0
            if least <= self.lowest_q[0]:
                self.lowest_q = least, before + int((q == least).sum())
        self._keep_worst(block)

    def _keep_worst(self, block: dict[str, Array]) -> None:
        """Keep the lowest scores, of equal ones the first."""
        scores = block["score"]
        kept = self.worst or {name: column[:0] for name, column in block.items()}
        if kept["score"].size == _WORST:
            low = np.flatnonzero(scores < kept["score"][-1])
        else:
            few = min(_WORST, scores.size)
            low = np.flatnonzero(scores <= np.partition(scores, few - 1)[few - 1])  # ties included
        low = low[np.argsort(scores[low], kind="stable")[:_WORST]]
        both = {name: np.concatenate([kept[name], column[low]]) for name, column in block.items()}
        order = np.argsort(both["score"], kind="stable")[:_WORST]
        self.worst = {name: column[order] for name, column in both.items()}


@dataclass(frozen=True, eq=False)
class _Counted(MatchResult):
    """The result without what there is per pair."""

    tally: Tally = field(default_factory=Tally)

    @property
    def n_pairs(self) -> int:
        return self.tally.n_pairs

    @property
    def n_inliers(self) -> int:
        return self.tally.n_inliers


@dataclass(frozen=True, eq=False)
class StreamedSummary(MatchSummary):
    """As `MatchSummary`, of pairs that stay in their files. Made by `summarise_streamed`."""

    fitted: FittedFiles | None = None
    tally: Tally = field(default_factory=Tally)

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs have which verdict."""
        return dict(zip(VERDICTS, self.tally.counts.tolist(), strict=True))

    @property
    def scores_differ(self) -> bool:
        """Whether there is a worst pair."""
        return self.tally.highest_score > self.tally.lowest_score

    @property
    def lowest_q(self) -> tuple[float, int] | None:
        """The lowest q-value, and how many pairs have it."""
        return self.tally.lowest_q if self.tally.lowest_q[1] else None

    def worst(self, k: int) -> list[dict[str, Any]]:
        """The ``k`` pairs with the lowest scores, of the ten that were kept."""
        columns = {name: column[:k].tolist() for name, column in self.tally.worst.items()}
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def json(self, indent: int | None = None) -> str:
        """Everything, the pairs as a list per column with it, as one text: see `json_parts`."""
        return "".join(self.json_parts(indent))

    def json_parts(self, indent: int | None = None) -> Iterator[str]:
        """The same text bit by bit, reading the files once for each column."""
        assert self.fitted is not None
        whole = {**self.to_dict(), "pairs": {name: [0] for name in self.fitted.columns}}
        text = json.dumps(whole, indent=indent, allow_nan=False, ensure_ascii=False)
        before, *places = text.rsplit("0", len(self.fitted.columns))  # where each column's numbers go
        comma = ", " if indent is None else f",\n{' ' * 3 * indent}"
        yield before
        for name, after in zip(self.fitted.columns, places, strict=True):
            for number, block in enumerate(self.fitted.blocks(name)):
                values = json.dumps(block[name].tolist(), separators=(comma, ": "), allow_nan=False)
                yield (comma if number else "") + values[1:-1]
            yield after


def summarise_streamed(fitted: FittedFiles, tally: Tally, origin: Origin) -> StreamedSummary:
    """Summarise what was found in files, once all pairs were counted."""
    matcher = fitted.matcher
    result = _Counted(type(matcher).__name__, _NONE.astype(bool), _NONE, matcher.threshold_, tally=tally)
    facts = facts_of(matcher, calibrated="q_value" in fitted.columns)
    return StreamedSummary(
        result=result, rows=_NONE.astype(np.int64), origin=origin, fitted=fitted, tally=tally, **facts
    )
