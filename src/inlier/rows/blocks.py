"""Cut rows into blocks that stay in cache, and choose the precision to compute them in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike

_BLOCK_BYTES = 256 * 1024  # both sides of a block and its temporaries stay in a second-level cache
_FEWEST_ROWS = 1024  # wide rows: enough of them that matrix products run at full speed ...
_LARGEST_BLOCK = 32 * 1024**2  # ... as long as a block stays within this many bytes
_MOST_ROWS = 32768


_DEVICE_BLOCK_BYTES = 512 * 1024**2  # of temporaries; small enough to leave room, large enough to fill the device


def rows_per_block(row_width: int) -> int:
    """Rows of ``row_width`` float64 numbers that make one block."""
    row_bytes = 8 * max(row_width, 1)
    fewest = min(_FEWEST_ROWS, max(_LARGEST_BLOCK // row_bytes, 1))
    return int(np.clip(_BLOCK_BYTES // row_bytes, fewest, _MOST_ROWS))


def row_blocks(n_rows: int, row_width: int) -> Iterator[slice]:
    """Consecutive slices that cover ``range(n_rows)``."""
    step = rows_per_block(row_width)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def device_blocks(n_rows: int, row_width: int) -> Iterator[slice]:
    """Consecutive slices that cover ``range(n_rows)``, as large as an accelerator likes them."""
    step = max(1, _DEVICE_BLOCK_BYTES // (8 * max(row_width, 1)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def compute_dtype(dtype: DTypeLike) -> np.dtype[np.floating]:
    """Return float32 where it holds every value of ``dtype`` exactly (float32, uint8, ...), else float64."""
    if dtype == "bfloat16" or np.result_type(dtype, np.float32) == np.float32:
        return np.dtype(np.float32)
    return np.dtype(np.float64)
