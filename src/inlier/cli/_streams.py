"""Standard streams that are closed, full or left by their reader: none of them may change what an exit code means."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast


def let_go_of(stream: TextIO | None) -> None:
    """Send what is still to be printed nowhere: what could not be written would fail again as Python ends."""
    if stream is None:
        return
    with suppress(OSError, ValueError):  # no file behind it, as under a test
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class _Words:
    """Standard error: what cannot be said there is not said, and the work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            let_go_of(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            let_go_of(self._stream)


@contextmanager
def usable_streams() -> Iterator[None]:
    """Keep the numbers of closed streams from files, which would get what libraries print; let no word be fatal.

    What libraries log, of themselves or of a damaged file, is said nowhere: sentences are ours to find.
    """
    if not os.environ.get("COLUMNS", "1").strip("0"):  # a terminal of no width, in which nothing would be shown
        del os.environ["COLUMNS"]
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # where it cannot hold an id or a sign, as stderr does
    logging.basicConfig(handlers=[logging.NullHandler()])
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:  # the lowest number that is free is that of the first of them
            os.open(os.devnull, os.O_RDWR)
    with redirect_stderr(cast(TextIO, _Words(sys.stderr or Path(os.devnull).open("w", encoding="utf-8")))):
        yield
