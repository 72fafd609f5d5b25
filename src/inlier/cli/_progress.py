"""What is going on, on the terminal, where it takes longer than a second; nothing where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from time import time
from typing import TYPE_CHECKING, Any

from inlier.cli._outputs import plain, say
from inlier.progress import shown_by

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, Task

_PATIENCE = 1.0  # seconds
_COMPILING = "compiling once for this machine ..."


@contextmanager
def stages(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Yield a function to be told each step; from the second second on, the terminal shows step and time."""
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    console = _terminal()
    if quiet or console is None:
        yield lambda what: None
        return
    bar = Progress(SpinnerColumn("line"), _step_column(), TimeElapsedColumn(), console=console, transient=True)
    task, stage = bar.add_task("", total=None), [""]

    def begin(what: str) -> None:
        stage[0] = what
        bar.update(task, description=what)

    def within(step: str, done: int, total: int | None) -> None:
        over = done == total
        bar.update(task, description=stage[0] if over else f"{stage[0]}: {step}, {done + 1} of {total}")

    with _shown_after_a_while(bar), shown_by(within):
        yield begin


@contextmanager
def bytes_read(expected: int, *, quiet: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Yield a function to be told how many bytes were read; the terminal shows them beside those still expected."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    console = _terminal()
    if quiet or console is None:
        yield None
        return
    columns = (_step_column(), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    # What is written to standard output meanwhile is the answer: the bar must not touch it.
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    task = bar.add_task("reading", total=expected)

    def show(n_bytes: int) -> None:
        done = bar.tasks[0].completed + n_bytes
        bar.update(task, completed=done, total=max(done, expected))  # how often files are read depends on the data

    with _shown_after_a_while(bar):
        yield show


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function to be told what begins; a bar on a terminal, a line each elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    console = _terminal()
    if console is None:
        yield say
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), _step_column())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, completed=-1)  # what begins is not yet done
        yield lambda what: bar.update(task, description=what, advance=1)


def _terminal() -> Console | None:
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_terminal else None


def _step_column() -> Any:
    """A column of a bar: the step, and beside it that numba compiles, where it has for more than a second in all."""
    from rich.progress import ProgressColumn
    from rich.text import Text

    compiler = _CompilerWatch()

    class StepColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            is_long = compiler.seconds() > _PATIENCE
            return Text(plain(f"{task.description}: {_COMPILING}" if is_long else task.description))

    return StepColumn()


class _CompilerWatch:
    """Listens to numba's events, once the work has imported it: whoever does not need it does not wait for it."""

    def __init__(self) -> None:
        self._record: Any = None

    def seconds(self) -> float:
        """How long numba has compiled up to now, all functions together; 0 if it does not compile just now."""
        events = sys.modules.get("numba.core.event")
        if self._record is None and hasattr(events, "register"):
            self._record = events.RecordingListener()  # type: ignore[union-attr]
            events.register("numba:compile", self._record)  # type: ignore[union-attr]
        depth, spent, since = 0, 0.0, 0.0
        for moment, event in list(self._record.buffer) if self._record is not None else ():
            if event.is_start:  # one function may have others compiled that it calls
                depth, since = depth + 1, since if depth else moment
            elif depth:  # others began before anyone listened
                depth, spent = depth - 1, spent if depth > 1 else spent + moment - since
        return spent + time() - since if depth else 0.0


@contextmanager
def _shown_after_a_while(bar: Progress) -> Iterator[None]:
    timer = Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be about to start the bar
        bar.stop()
