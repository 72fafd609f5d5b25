"""The summary of pairs that are in files: counted and compared as they pass by, never held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from inlier._typing import Array
from inlier.estimators.streaming import FittedFiles
from inlier.report.match_summary import MatchSummary, Origin, Tally, facts_of
from inlier.result import MatchResult

_NONE = np.empty(0)


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
    matcher = fitted.matcher
    result = MatchResult(type(matcher).__name__, _NONE.astype(bool), _NONE, matcher.threshold_)
    facts = facts_of(matcher, calibrated="q_value" in fitted.columns)
    return StreamedSummary(result, rows=_NONE, origin=origin, fitted=fitted, counted=tally, **facts)
