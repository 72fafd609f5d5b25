"""What the numbers were computed with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version

_PACKAGES = ("inlier", "numpy", "scipy", "scikit-learn", "numba")


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
