"""Try something in a copy of this process first, where a library may crash or not come to an end on a damaged file."""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path

try:
    import resource
except ImportError:  # not on Windows, where nothing can be copied either
    resource = None  # type: ignore[assignment]

_STATM = Path("/proc/self/statm")  # on Linux: its first number is the pages in use
_NAP = 0.002  # seconds between two looks at the copy
_WAITING = 10  # times the seconds of work


def survives(act: Callable[[], object], seconds: float, n_bytes: int | None = None) -> bool:
    """Whether ``act`` comes to an end in a copy of this process, within so many seconds of work, also by an exception.

    With ``n_bytes`` it may take no more memory than that in addition. True where no copy can be made.

    Examples
    --------
    >>> import os
    >>> from inlier.io.apart import survives
    >>> survives(lambda: 1 / 0, 5), survives(lambda: os.kill(os.getpid(), 9), 5)
    (True, False)
    """
    if not hasattr(os, "fork"):
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # on threads: the copy uses none, and ends soon
        copy = os.fork()
    if copy == 0:
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)  # what a library says as it dies
            os.dup2(nowhere, 2)
            _limit(resource.RLIMIT_CPU, math.ceil(seconds))
            _limit(resource.RLIMIT_CORE, 0)
            if n_bytes is not None and _STATM.exists():
                _limit(resource.RLIMIT_AS, int(_STATM.read_text().split()[0]) * resource.getpagesize() + n_bytes)
            act()
            os._exit(0)
        except BaseException as error:  # a panic of Rust is no Exception
            os._exit(0 if isinstance(error, Exception) and not isinstance(error, MemoryError) else 1)
    until = time.monotonic() + _WAITING * seconds  # the machine may be busy; and what waits for ever does not work
    while True:
        ended, status = os.waitpid(copy, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        if time.monotonic() > until:
            os.kill(copy, signal.SIGKILL)
            os.waitpid(copy, 0)
            return False
        time.sleep(_NAP)


def _limit(what: int, most: int) -> None:
    """Allow this process no more than that; what it was allowed before may be less, and cannot be raised."""
    allowed = [limit for limit in resource.getrlimit(what) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(what, (min([most, *allowed]), resource.getrlimit(what)[1]))
