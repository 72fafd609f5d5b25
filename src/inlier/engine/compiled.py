"""Compile a loop with numba, and keep the compiled code between runs where there is a folder for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz", "arcp"}}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for speed: releases the interpreter, may reorder sums; NaN and infinity keep their meaning."""
    try:
        return njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # no folder that compiled code could be kept in: compile anew in each process
        return njit(**_OPTIONS)(function)
