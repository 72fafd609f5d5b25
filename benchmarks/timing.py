"""How benchmarks measure: the shortest of several timings, what the work takes when nothing else interferes."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest of several timings."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return min(times)
