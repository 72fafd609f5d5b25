"""Try something in a copy of this process first, where a library may crash or not come to an end on a damaged file."""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections.abc import Callable

try:
    import resource
except ImportError:  # not on Windows, where nothing can be copied either
    resource = None  # type: ignore[assignment]

_NAP = 0.002  # seconds between two looks at the copy
_WAITING = 10  # times the seconds of work


def survives(act: Callable[[], object], seconds: float) -> bool:
    """Whether ``act`` comes to an end in a copy of this process, within so many seconds of work, also by an exception.

    True where no copy can be made.

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
            limit = math.ceil(seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            act()
        finally:
            os._exit(0)
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
