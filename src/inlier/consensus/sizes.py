"""Coordinates so large or so small that what a search computes of them is infinite or zero."""

from __future__ import annotations

import numpy as np

from inlier.engine.blocks import Array

_SMALLEST, _LARGEST = 1e-75, 1e75  # coordinates whose fourth powers are numbers still
_GLANCE = 64  # rows that tell of what size coordinates are, usually


def glance_at_size(table: Array, name: str) -> None:
    """`check_size`, if some of the rows give reason to: takes no time in a long table, and may miss single values."""
    if not _is_usual(table[:: len(table) // _GLANCE + 1]):
        check_size(table, name)


def check_size(table: Array, name: str) -> None:
    """Refuse numbers so large or so small that their powers are infinite or zero."""
    if not _is_usual(table):
        largest = float(np.abs(table).max())
        raise ValueError(
            f"The largest value of {name} is {largest:.3g}, and powers of such numbers cannot be told from "
            f"{'infinity' if largest > 1 else 'zero'}. Divide X and y by a number of that size first."
        )


def _is_usual(table: Array) -> bool:
    return _SMALLEST <= max(float(table.max()), -float(table.min())) <= _LARGEST
