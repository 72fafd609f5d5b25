"""How benchmarks measure: the shortest of several timings; many draws at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from multiprocessing import get_context
from time import perf_counter
from typing import Any


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest of several timings."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return min(times)


_WORK: dict[str, Any] = {}  # what the processes of `of_each` do, which have it from where they were forked


def of_each(function: Callable[[Any], Any], items: Iterable[Any], jobs: int) -> list[Any]:
    """What a function returns for each of the items, by so many processes."""
    if jobs == 1:
        return [function(item) for item in items]
    _WORK["function"] = function
    with get_context("fork").Pool(jobs) as pool:
        return pool.map(_of_one, list(items), chunksize=1)


def _of_one(item: Any) -> Any:
    return _WORK["function"](item)
