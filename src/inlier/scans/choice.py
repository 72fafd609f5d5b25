"""Which pairs of scans are asked next: n scans take about n log n searches, not n^2.

Each scan may ask about 1 + log n others, the most alike first. Who is connected to the largest part asks no more; who
is alone asks on, and so does a smaller part, others than its own. Where the poses are known that edges make, an edge in
no loop is checked by a pair across it that overlaps most by those poses, if one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from inlier._typing import FloatArray
from inlier.scans.graph import bridges, parts_of, poses_of
from inlier.scans.joint import overlap_between
from inlier.scans.pairs import Edge
from inlier.scans.prepared import Prepared

_FIRST = 2  # scans that each asks before anything is known
_OVERLAPS = 0.2  # share by known poses from which on a pair is worth asking
_TRIES = 3  # checks of one edge

Pair = tuple[int, int]  # numbers of two scans


@dataclass(eq=False)
class Choice:
    """What was asked, and by whom."""

    alike: FloatArray
    asked: set[Pair] = field(default_factory=set)
    checks: dict[Pair, int] = field(default_factory=dict)  # of each edge

    def __post_init__(self) -> None:
        n = len(self.alike)
        self.allowance = np.full(n, round(1 + np.log(max(n, 1))))

    def first(self) -> list[Pair]:
        """Each scan asks the scans most like it."""
        return self._all_ask([(scan, set()) for scan in range(len(self.alike)) for _ in range(_FIRST)])

    def next(self, scans: Sequence[Prepared], edges: Sequence[Edge], centres: FloatArray) -> list[Pair]:
        """Who does not belong to the largest part asks on; edges in no loop are checked; empty where all is said."""
        parts = parts_of(edges, len(scans))
        asking = [(scan, set(part)) for part in parts[1:] for scan in self._first_to_ask(part)]
        return self._all_ask(asking) + self._across_bridges(scans, edges, centres, parts)

    def _first_to_ask(self, part: list[int]) -> list[int]:
        """Of a part one scan, the one with most questions left."""
        left = [scan for scan in part if self.allowance[scan] > 0]
        return sorted(left, key=lambda scan: -self.allowance[scan])[:1]

    def _all_ask(self, asking: Sequence[tuple[int, set[int]]]) -> list[Pair]:
        found = []
        for scan, own in asking:
            for other in np.argsort(-self.alike[scan], kind="stable").tolist():
                pair = min(scan, other), max(scan, other)
                if pair not in self.asked and other not in own and np.isfinite(self.alike[pair]):
                    self.asked.add(pair)
                    self.allowance[scan] -= 1
                    found.append(pair)
                    break
            else:
                self.allowance[scan] = 0
        return found

    def _across_bridges(
        self, scans: Sequence[Prepared], edges: Sequence[Edge], centres: FloatArray, parts: list[list[int]]
    ) -> list[Pair]:
        found = []
        for edge, hanging in bridges(edges, len(scans)):
            part = next(part for part in parts if edge.target in part)
            if self.checks.get(edge.ends, 0) >= _TRIES or len(part) < 3:
                continue
            poses = poses_of(part, edges, centres)
            shares = {}
            for a in hanging:
                for b in set(part) - set(hanging):
                    pair = min(a, b), max(a, b)
                    if pair not in self.asked:
                        shares[pair] = overlap_between(scans, poses, *pair)
            best = max(shares, key=lambda pair: shares[pair], default=None)
            self.checks[edge.ends] = self.checks.get(edge.ends, 0) + 1
            if best is not None and shares[best] >= _OVERLAPS:
                self.asked.add(best)
                found.append(best)
        return found
