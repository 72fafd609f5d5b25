"""Libraries that read one family of files are optional; a missing one names the command that brings it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(module: str, what: str) -> Any:
    """Import a module of the ``io`` extra."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        raise ImportError(f"{what} files need {library}; install it with: pip install 'inlier[io]'") from error
