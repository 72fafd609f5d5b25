"""What is going on, told to one callback: bars in notebooks, in scripts and on the command line, and lines in a log."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeVar

Item = TypeVar("Item")
Callback = Callable[[str, int, int | None], None]

_LOG = logging.getLogger("inlier")
_LOG.addHandler(logging.NullHandler())
_callback: Callback | None = None


def set_progress(how: str | Callback | None) -> None:
    """Choose how long fits show how far they are.

    Parameters
    ----------
    how : {"rich", "tqdm"}, callable or None
        Bars of rich (in terminals and notebooks), bars of tqdm (which must be installed), or nothing, as at first. A
        function is called with the name of a step, how much of it is done, and how much there is to do (None where
        that is not known), once at the start and after each part; a step is over when both numbers are equal. It is
        called from the thread that fits; what it raises ends the fit.

    Notes
    -----
    The setting is one of the process, as those of ``sklearn.set_config`` are: estimators can be cloned, searched over
    and put in pipelines without carrying it along. Worker processes (``SplitMatcher(n_jobs=...)``) stay silent. The
    same steps go to the logger named ``inlier``, with the time that they took, at the level ``DEBUG``.

    Examples
    --------
    >>> import inlier
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=2000, d=5, inlier_fraction=0.6, rng=0)
    >>> inlier.set_progress(lambda step, done, total: print(f"{step}: {done} of {total}"))
    >>> matcher = inlier.CalibratedMatcher(n_folds=3, random_state=0).fit(data.X, data.Y)
    folds: 0 of 3
    folds: 1 of 3
    folds: 2 of 3
    folds: 3 of 3
    >>> inlier.set_progress(None)
    """
    global _callback
    if how is None or callable(how):
        _callback = how
    elif how in _BARS:
        _callback = _BARS[how]()
    else:
        raise ValueError(f'how must be "rich", "tqdm", a function or None; got {how!r}.')


@contextmanager
def shown_by(callback: Callback | None) -> Iterator[None]:
    """Let a callback hear of all steps inside, instead of the one that was set."""
    global _callback
    before, _callback = _callback, callback
    try:
        yield
    finally:
        _callback = before


def track(step: str, items: Iterable[Item], total: int | None = None) -> Iterator[Item]:
    """Yield the items, and tell how many of them are done."""
    callback, start = _callback, perf_counter()
    if total is None and isinstance(items, Sized):
        total = len(items)
    tell = callback or _ignore
    tell(step, 0, total)
    done = 0
    try:
        for item in items:
            yield item
            done += 1
            if done != total:
                tell(step, done, total)
    finally:
        tell(step, done if total is None else total, done if total is None else total)
        _LOG.debug("%s: %d of them in %.3f s", step, done, perf_counter() - start)


def _ignore(step: str, done: int, total: int | None) -> None:
    """Tell nobody."""


class _Bars(ABC):
    """A bar for each step that is under way; gone when it is over."""

    def __init__(self) -> None:
        self._bars: dict[str, Any] = {}

    def __call__(self, step: str, done: int, total: int | None) -> None:
        if done == total:
            if step in self._bars:
                self._remove(self._bars.pop(step))
            return
        if step not in self._bars:
            self._bars[step] = self._add(step, total)
        self._update(self._bars[step], done)

    @abstractmethod
    def _add(self, step: str, total: int | None) -> Any:
        """Show a bar for a step."""

    @abstractmethod
    def _update(self, bar: Any, done: int) -> None:
        """Move a bar."""

    @abstractmethod
    def _remove(self, bar: Any) -> None:
        """Take a bar away."""


class _RichBars(_Bars):
    def __init__(self) -> None:
        super().__init__()
        self._display: Any = None

    def _add(self, step: str, total: int | None) -> Any:
        from rich.console import Console
        from rich.progress import Progress

        if self._display is None:
            self._display = Progress(console=Console(stderr=True), transient=True)
            self._display.start()
        return self._display.add_task(step, total=total)

    def _update(self, bar: Any, done: int) -> None:
        self._display.update(bar, completed=done)

    def _remove(self, bar: Any) -> None:
        self._display.remove_task(bar)
        if not self._bars:
            self._display.stop()
            self._display = None


class _TqdmBars(_Bars):
    def __init__(self) -> None:
        super().__init__()
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("tqdm is not installed: pip install tqdm, or use set_progress('rich').") from error
        self._tqdm: Any = tqdm

    def _add(self, step: str, total: int | None) -> Any:
        return self._tqdm(desc=step, total=total, leave=False)

    def _update(self, bar: Any, done: int) -> None:
        bar.update(done - bar.n)

    def _remove(self, bar: Any) -> None:
        bar.close()


_BARS: dict[str, Callable[[], Callback]] = {"rich": _RichBars, "tqdm": _TqdmBars}
