"""Compile a loop with numba, and keep the compiled code between runs where there is a folder for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}  # nothing calls them from C
_REORDERED = {**_OPTIONS, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for speed: releases the interpreter, may reorder sums; NaN and infinity keep their meaning."""
    return _compiled(function, _REORDERED)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile as a part of the loop that calls it, and on its own only where Python does: for texts with one caller."""
    return _compiled(function, {**_REORDERED, "inline": "always"})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that compiled code could be kept in: compile anew in each process
        return njit(**options)(function)
