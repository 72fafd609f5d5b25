"""Cut rows into blocks that stay in cache and into ranges for threads; keep matrix products to one thread.

A *range* is what one thread does at a time; it is handled in *blocks*, which have room for temporaries.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

_BLOCK_BYTES = 256 * 1024  # both sides of a block and its temporaries stay in a second-level cache
_FEWEST_ROWS = 1024  # wide rows: enough of them that matrix products run at full speed ...
_LARGEST_BLOCK = 32 * 1024**2  # ... as long as a block stays within this many bytes
_MOST_ROWS = 32768
_LARGE = 2**22  # numbers of a temporary: the C library keeps none of more than 32 MiB for the next
_DEVICE_BLOCK_BYTES = 512 * 1024**2  # of temporaries; small enough to leave room, large enough to fill the device
_ROWS_PER_RANGE = 65_536  # fixed, so that sums do not depend on how many threads there are
_MOST_AT_ONCE = 16  # short ranges handed to a thread in one go: handing over takes a good part of the time of one
_TURNS = 4  # ... as long as every thread gets so many, for they do not all take equally long


def rows_per_block(row_width: int) -> int:
    """Rows of ``row_width`` float64 numbers that make one block."""
    row_bytes = 8 * max(row_width, 1)
    fewest = min(_FEWEST_ROWS, max(_LARGEST_BLOCK // row_bytes, 1))
    return min(max(_BLOCK_BYTES // row_bytes, fewest), _MOST_ROWS)


def row_blocks(n_rows: int, row_width: int) -> Iterator[slice]:
    """Consecutive slices that cover ``range(n_rows)``."""
    return _slices(n_rows, rows_per_block(row_width))


def pieces(*blocks: Any, n_rows: int | None = None) -> Iterator[slice]:
    """Slices that cover the rows of these blocks, with room for temporaries: in cache, or in part of a device's memory.

    With ``n_rows`` they cover so many rows of that width instead.
    """
    n = blocks[0].shape[0] if n_rows is None else n_rows
    width = sum(block.shape[1] if block.ndim > 1 else 1 for block in blocks)
    on_device = max(1, _DEVICE_BLOCK_BYTES // (8 * max(width, 1)))
    return _slices(n, rows_per_block(width) if isinstance(blocks[0], np.ndarray) else on_device)


def pieces_of_many(table: Any, n_rows: int | None = None) -> Iterator[slice]:
    """Slices that cover the rows of a table in memory: one, or where a copy of it were large, pieces that fit in cache.

    Large copies come from the system, page by page, and go back to it at once: that takes longer than a product.
    On a device there is one slice.
    """
    n = table.shape[0] if n_rows is None else n_rows
    large = isinstance(table, np.ndarray) and n * table.shape[1] > _LARGE
    return pieces(table, n_rows=n) if large else iter([slice(0, n)])


def _slices(n_rows: int, step: int) -> Iterator[slice]:
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def rows_per_narrow_range() -> int:
    """Length of a range unless told otherwise."""
    return _ROWS_PER_RANGE


def row_ranges(n_rows: int, rows_per_range: int | None = None) -> list[slice]:
    """Ranges of fixed length that cover all rows; one empty range where there is none."""
    step = rows_per_range or _ROWS_PER_RANGE
    return [slice(start, min(start + step, n_rows)) for start in range(0, max(n_rows, 1), step)]


def run_in_threads(n_rows: int, work: Callable[[slice], Any], rows_per_range: int | None = None) -> list[Any]:
    """Call ``work`` on ranges that cover all rows, in threads; the results come in the order of the ranges."""
    if n_rows <= (rows_per_range or _ROWS_PER_RANGE):  # no more than a call: many of them are short
        return [work(slice(0, n_rows))]
    return list(results_in_threads(n_rows, work, rows_per_range))


def results_in_threads(n_rows: int, work: Callable[[slice], Any], rows_per_range: int | None = None) -> Iterator[Any]:
    """Do the same, and give each result as soon as it and those before it are there."""
    ranges = row_ranges(n_rows, rows_per_range)
    if len(ranges) == 1 or thread_count() == 1:
        return map(work, ranges)
    size = 1 if rows_per_range else min(max(len(ranges) // (_TURNS * thread_count()), 1), _MOST_AT_ONCE)
    handfuls = [ranges[k : k + size] for k in range(0, len(ranges), size)]
    return chain.from_iterable(_pool().map(lambda some: [work(rows) for rows in some], handfuls))


def one_ahead(function: Callable[[int], Any], count: int) -> Iterator[Any]:
    """Yield function(0), function(1), ...; each is computed in another thread while the one before it is in use."""
    following = _reader().submit(function, 0) if count else None
    for number in range(count):
        assert following is not None
        result = following.result()
        following = _reader().submit(function, number + 1) if number + 1 < count else None
        yield result


@cache
def thread_count() -> int:
    """How many threads work at a time."""
    try:
        return int(import_module("numba").config.NUMBA_NUM_THREADS)  # what the user and joblib allow
    except ImportError:
        return os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count(), thread_name_prefix="inlier")


@cache
def _reader() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="inlier-reader")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_reader.cache_clear)


@contextmanager
def single_threaded_blas(unless: bool = False) -> Iterator[None]:
    """Keep matrix products to one thread: small ones are faster so, and sums come out the same on any machine.

    Not where it says ``unless``: products of wide rows are worth their threads. The limit is one for the whole
    process. Side by side, threads would lift each other's, or leave it behind; so only the main thread sets it.
    """
    if unless or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _thread_pools().limit(limits=1, user_api="blas"):
        yield


@cache
def _thread_pools() -> ThreadpoolController:
    """The libraries that have threads of their own; looking for them takes a hundred times as long as a limit."""
    import_module("scipy.linalg")  # SciPy brings a BLAS of its own, which must be there to be found
    return ThreadpoolController()
