"""The summary of pairs that are in files: counted and compared as they pass by, never held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from inlier._typing import Array
from inlier.estimators.streaming import FittedFiles
from inlier.report.match_summary import MatchSummary, Origin, Tally, facts_of
from inlier.result import MatchResult

_NONE = np.empty(0)


@dataclass(frozen=True, eq=False)
class _Counted(MatchResult):
    """The result without what there is per pair."""

    tally: Tally = field(default_factory=Tally)

    @property
    def n_pairs(self) -> int:
        return int(self.tally.counts.sum())

    @property
    def n_inliers(self) -> int:
        return int(self.tally.counts[0])


@dataclass(frozen=True, eq=False)
class StreamedSummary(MatchSummary):
    """As `MatchSummary`, of pairs that stay in their files. Made by `summarise_streamed`."""

    result: _Counted
    fitted: FittedFiles | None = None

    @property
    def tally(self) -> Tally:
        """What was counted while the pairs passed by."""
        return self.result.tally

    def _column_blocks(self) -> Iterator[tuple[str, Iterable[Array]]]:
        """The columns, block by block: the files are read once for each column."""
        assert self.fitted is not None
        for name in self.fitted.columns:
            yield name, (block[name] for block in self.fitted.blocks(name))


def summarise_streamed(fitted: FittedFiles, tally: Tally, origin: Origin) -> StreamedSummary:
    """Summarise what was found in files, once all pairs were counted."""
    matcher = fitted.matcher
    result = _Counted(type(matcher).__name__, _NONE.astype(bool), _NONE, matcher.threshold_, tally=tally)
    facts = facts_of(matcher, calibrated="q_value" in fitted.columns)
    return StreamedSummary(result=result, rows=_NONE.astype(np.int64), origin=origin, fitted=fitted, **facts)
