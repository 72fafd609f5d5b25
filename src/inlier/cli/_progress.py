"""A bar on the terminal for what takes longer than a second; nothing where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 1.0  # seconds


@contextmanager
def stages(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Yield a function to be told each step; from the second second on, the terminal shows step and time."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda what: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("", total=None)
    with _shown_after_a_while(bar):
        yield lambda what: bar.update(task, description=what)


@contextmanager
def bytes_read(expected: int, *, quiet: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Yield a function to be told how many bytes were read; the terminal shows them beside those still expected."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    # What is written to standard output meanwhile is the answer: the bar must not touch it.
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    task = bar.add_task("", total=expected)

    def show(n_bytes: int) -> None:
        bar.advance(task, n_bytes)
        done = bar.tasks[0].completed
        if done > expected:  # how often files are read depends on what is in them
            bar.update(task, total=done)

    with _shown_after_a_while(bar):
        yield show


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function to be told what begins; a bar on a terminal, a line each elsewhere."""
    import click
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda what: click.echo(what, err=True)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, completed=-1)  # what begins is not yet done
        yield lambda what: bar.update(task, description=what, advance=1)


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
