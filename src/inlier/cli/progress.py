"""A bar on the terminal for what takes longer than a second; nothing where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

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
    timer = Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda what: bar.update(task, description=what)
    finally:
        timer.cancel()
        timer.join()  # it may be about to start the bar
        bar.stop()
