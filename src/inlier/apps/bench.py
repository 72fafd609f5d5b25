"""``inlier bench``: how fast the matchers are on this machine, beside what it can do; compiling ahead of time.

A matcher cannot be faster than reading the data (*memory floor*: three reads of both arrays) nor than two products of
n d_x d_y multiply-adds each (*compute floor*: at the rate of a large float32 matrix product). Which of the two counts
depends on d. The dense method, which forms H, is timed at a size that it can bear and taken to grow as n^2.

What is heavy is imported where it is used, so that ``--help`` answers at once.
"""

from __future__ import annotations

import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._common import answering
from inlier.cli._outputs import BadInput, Output, check_outputs, force_option, is_picture, say

if TYPE_CHECKING:
    import numpy as np

    from inlier._typing import Array
    from inlier.estimators._base import PairMatcher

SIZES = ((100_000, 3), (1_000_000, 3), (6_489_600, 3), (1_000_000, 6), (100_000, 50), (50_000, 300))
QUICK_SIZES = ((20_000, 3), (100_000, 3), (5_000, 50))
_PRODUCT = 2048
LARGEST_DENSE = 3000
_ROUNDS = 5
_NOTICEABLE = 0.01  # seconds; what is shorter varies by itself
# Pairs, dimensions and share of real pairs of small problems that between them call every compiled loop: tables long
# enough for one, narrow and wide, and few pairs of which most are wrong.
_WARM_UP_PAIRS = ((5_000, 3, 0.6), (5_000, 6, 0.6), (5_000, 20, 0.6), (300, 10, 0.12))
_WARM_UP_SCANS = ((60, 0.3), (2_000, 0.05))
_WARM_UP_MODELS = ("rotation", "orthogonal", "rigid", "similarity", "affine")
_UNSTEADY = 1.5  # from which ratio of slowest to fastest it is worth a word


@click.command()
@click.option("--quick", is_flag=True, help="Smaller sizes: some seconds instead of a minute or two.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the picture to this file (.png)."
)
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "--warm-up",
    is_flag=True,
    help="Measure nothing: compile, for this machine, all that matchers and registrations need, and keep it.",
)
def bench(quick: bool, out: Path | None, force: bool, as_json: bool, warm_up: bool) -> None:
    """Measure how fast the matchers are on this machine.

    Prints pairs per second, how many times the time that reading the data (memory) or multiplying the matrices
    (compute) takes, and how many times faster than the dense method.

    A new installation compiles as it is first used. With --warm-up that is done ahead of time, as when an image of a
    container is built.

    \b
    Example:
      inlier bench --quick -o speed.png
      inlier bench --warm-up
    """
    from inlier.cli._progress import steps
    from inlier.io import write_file
    from inlier.plotting import as_png

    with answering():
        if warm_up:
            _warm_up(out, quick=quick, as_json=as_json)
            return
        if out is not None:
            _check_picture(out, force=force)
        with steps(len(jobs(quick=quick))) as step:
            report = measure_speed(quick=quick, on_job=step)
        if as_json:
            click.echo(json.dumps(report.to_dict(), indent=2))
        else:
            _print(report)
        if out is not None:
            write_file(out, as_png(report.figure()))
            say(f"Picture: {out}")


def _warm_up(out: Path | None, *, quick: bool, as_json: bool) -> None:
    from inlier.cli._progress import steps

    if quick or out is not None:
        raise BadInput(f"--warm-up measures nothing. Leave out {'--quick' if quick else '-o'}, or leave it out itself.")
    with steps(len(warm_up_jobs())) as step:
        done = warm_up(step)
    if as_json:
        click.echo(json.dumps(asdict(done), indent=2))
        return
    click.echo(f"{done.functions} compiled functions in {done.seconds:.1f} s; {done.compiled} of them were new.")
    for folder in done.folders:
        click.echo(f"Kept in {folder}")
    if not done.folders:
        say("They could not be kept: set NUMBA_CACHE_DIR to a folder that can be written to.")


def _check_picture(path: Path, *, force: bool) -> None:
    """Refuse, before the minutes of measuring, a picture that could not be written after them."""
    from inlier.plotting import new_figure

    if path.suffix.lower() != ".png":
        raise BadInput(f"{path} would hold a picture, which is PNG. Give it a name that ends in .png.")
    check_outputs([Output("-o", "Picture", path, is_picture)], [], force=force)
    new_figure()  # says what to install if nothing can be drawn


def _print(report: SpeedReport) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for heading in ("method", "pairs", "d", "pairs/s", "times its floor", "floor", "times faster than dense"):
        table.add_column(heading, justify="left" if heading in ("method", "floor") else "right")
    for timing in report.timings:
        table.add_row(
            timing.method, f"{timing.n:,}", str(timing.d), f"{timing.pairs_per_second:,.0f}",
            f"{timing.times_floor:.1f}", timing.floor, f"{timing.times_faster_than_dense:,.0f}",
        )  # fmt: skip
    console = Console()
    console.print(table)
    console.print(
        f"This machine reads {report.read_bytes_per_second / 1e9:.1f} GB/s in one thread and multiplies float32 "
        f"matrices at {report.product_flops / 1e9:,.0f} GFLOP/s. The memory floor is three reads of both arrays, the "
        f"compute floor two matrix products; the dense method was timed at {LARGEST_DENSE:,} pairs and grows as n "
        f"squared. Times are medians of several, on {report.threads} thread{'s' if report.threads > 1 else ''}.",
        highlight=False,
    )
    if report.spread > _UNSTEADY:
        console.print(
            f"The machine was busy with something else: the same work took up to {report.spread:.1f} times as long as "
            f"at its fastest. Ratios hold better than rates then.",
            highlight=False,
        )


# ---- measuring


@dataclass(frozen=True)
class Timing:
    """One matcher at one size; times are medians of several."""

    method: str
    n: int
    d: int
    seconds: float
    reading_seconds: float
    product_seconds: float
    dense_seconds: float

    @property
    def pairs_per_second(self) -> float:
        """Pairs decided in a second."""
        return self.n / self.seconds

    @property
    def floor(self) -> str:
        """What limits it: "memory" or "compute"."""
        return "memory" if self.reading_seconds >= self.product_seconds else "compute"

    @property
    def times_floor(self) -> float:
        """How many times the larger floor it takes."""
        return self.seconds / max(self.reading_seconds, self.product_seconds)

    @property
    def times_faster_than_dense(self) -> float:
        """How many times longer the dense method would take."""
        return self.dense_seconds / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Everything, for programs."""
        names = ("pairs_per_second", "floor", "times_floor", "times_faster_than_dense")
        return {**asdict(self), **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class SpeedReport:
    """All timings of a run, and the machine's own rates."""

    read_bytes_per_second: float
    product_flops: float
    threads: int
    spread: float  # slowest over fastest timing of the same work, the largest there was
    timings: tuple[Timing, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, for programs."""
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        return {**machine, **asdict(self), "timings": [timing.to_dict() for timing in self.timings]}

    def figure(self) -> Any:
        """Draw how many times its floor each matcher takes."""
        from inlier import plotting

        figure = plotting.new_figure(figsize=(8, 0.3 * len(self.timings) + 1.2))
        ax = figure.subplots()
        labels = [f"{timing.method}, n = {timing.n:,}, d = {timing.d}" for timing in self.timings]
        colours = [plotting.REAL if timing.floor == "memory" else plotting.WRONG for timing in self.timings]
        ax.barh(labels, [timing.times_floor for timing in self.timings], color=colours)
        ax.axvline(1, color="black", linewidth=1)
        ax.set_xscale("log")
        ax.invert_yaxis()
        ax.set_xlabel("times the floor: three reads of the data (blue), two matrix products (orange)")
        return figure


def jobs(*, quick: bool = False) -> list[str]:
    """What is measured, in words."""
    sizes = QUICK_SIZES if quick else SIZES
    return ["the machine itself", *(f"{name}, n = {n:,}, d = {d}" for n, d in sizes for name in _matchers())]


def measure_speed(*, quick: bool = False, on_job: Callable[[str], None] | None = None) -> SpeedReport:
    """Time the matchers at a few sizes; ``quick`` takes smaller ones. ``on_job`` is told what begins."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    from inlier.rows.threads import thread_count

    rng, following = np.random.default_rng(0), iter(jobs(quick=quick))
    stopwatch = _Stopwatch(lambda: on_job(next(following)) if on_job is not None else None)
    sizes = QUICK_SIZES if quick else SIZES
    with threadpool_limits(thread_count(), "blas"):  # as many as the kernels take, and not each of them as many
        stopwatch.begin()
        A = rng.standard_normal((_PRODUCT, _PRODUCT), dtype=np.float32)
        flops = 2 * _PRODUCT**3 / stopwatch.median(lambda: A @ A)
        block = rng.standard_normal(20_000_000, dtype=np.float32)
        bandwidth = block.nbytes / stopwatch.median(block.sum)
        timings = tuple(timing for n, d in sizes for timing in _time_size(n, d, flops, rng, stopwatch))
    return SpeedReport(bandwidth, flops, thread_count(), stopwatch.spread, timings)


def _matchers() -> dict[str, PairMatcher]:
    from inlier.estimators.calibrated import CalibratedMatcher
    from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher

    return {
        "row sums": RowSumMatcher(),
        "eigenvector": EigenvectorMatcher(),
        "calibrated": CalibratedMatcher(random_state=0),
    }


def _time_size(n: int, d: int, flops: float, rng: np.random.Generator, stopwatch: _Stopwatch) -> list[Timing]:
    import numpy as np

    X = rng.standard_normal((n, d), dtype=np.float32)
    Y = X @ np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    wrong = int(0.6 * n)
    Y[wrong:] = np.roll(Y[wrong:], 1, axis=0)
    reading = stopwatch.median(lambda: [(X.sum(), Y.sum()) for _ in range(3)])
    few = min(n, LARGEST_DENSE)
    dense = stopwatch.median(lambda: _dense_row_sums(X[:few], Y[:few]), 1) * (n / few) ** 2
    timings = []
    for name, matcher in _matchers().items():
        stopwatch.begin()
        seconds = stopwatch.median(partial(matcher.fit, X, Y), 1 if name == "calibrated" else _ROUNDS)
        timings.append(Timing(name, n, d, seconds, reading, 4 * n * d * d / flops, dense))
    return timings


def _dense_row_sums(X: Array, Y: Array) -> Array:
    """Row sums as eq. (1) writes them: both Gram matrices, their product, its rows added up."""
    import numpy as np

    x, y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X - X.mean(axis=0), Y - Y.mean(axis=0)))
    sums: Array = ((x @ x.T) * (y @ y.T)).sum(axis=1)
    return sums


class _Stopwatch:
    """Medians of several timings, and how far the timings of one job lay apart."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self.begin, self.spread = begin, 1.0

    def median(self, job: Callable[[], Any], rounds: int = _ROUNDS) -> float:
        """Return the median of several timings, after one that compiles and is not counted."""
        job()
        times = []
        for _ in range(rounds):
            start = perf_counter()
            job()
            times.append(perf_counter() - start)
        if min(times) > _NOTICEABLE:
            self.spread = max(self.spread, max(times) / min(times))
        return median(times)


@dataclass(frozen=True)
class WarmUp:
    """What was compiled ahead of time."""

    seconds: float
    functions: int  # that the estimators use, one per kind of numbers that it was compiled for
    compiled: int  # of them now; the others were found where an earlier run had left them
    folders: tuple[str, ...]  # where they are kept; none if there is no folder that can be written to


def warm_up_jobs() -> list[tuple[str, Callable[[], Any]]]:
    """Problems that between them use every compiled function: what each is, and what solves it."""
    import numpy as np

    from inlier.datasets import make_gaussian_pairs, make_scans
    from inlier.estimators.registration import Registration

    jobs: list[tuple[str, Callable[[], Any]]] = []
    for (n, d, share), dtype in product(_WARM_UP_PAIRS, (np.float64, np.float32)):
        data = make_gaussian_pairs(n, d, share, noise=0.05, rng=0)
        X, Y = data.X.astype(dtype), data.Y.astype(dtype)
        what = f"n = {n:,}, d = {d}, {np.dtype(dtype)}"
        jobs += [(f"{name}, {what}", partial(matcher.fit, X, Y)) for name, matcher in _matchers().items()]
    for (n, share), model in product(_WARM_UP_SCANS, _WARM_UP_MODELS):
        scans = make_scans(10_000, n, share, rng=0)
        X, Y = scans.source[scans.pairs[:, 0]], scans.target[scans.pairs[:, 1]]
        registration = Registration(model, random_state=0, raise_on_failure=False)
        jobs += [
            (f"{model} registration, n = {n:,}, d = {d}", partial(registration.fit, X[:, :d], Y[:, :d])) for d in (3, 2)
        ]
    return jobs


def warm_up(on_job: Callable[[str], None] | None = None) -> WarmUp:
    """Compile what the matchers and `Registration` need; ``on_job`` is told what begins.

    Numba compiles a function when it is first called, and keeps the result on disk; an image or a container in
    which that has been done answers its first question at once.
    """
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the answers do not matter
        for name, fit in warm_up_jobs():
            if on_job is not None:
                on_job(name)
            fit()
    found = list(compiled_functions())
    folders = {str(function.stats.cache_path) for function in found if function.stats.cache_path is not None}
    return WarmUp(
        seconds=perf_counter() - start,
        functions=sum(len(function.signatures) for function in found),
        compiled=sum(sum(function.stats.cache_misses.values()) for function in found),
        folders=tuple(sorted(folders)),
    )


def compiled_functions() -> Iterator[Any]:
    """The functions of the package that numba has compiled so far, each once."""
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in list(sys.modules.items()) if name.startswith("inlier.")]
    found = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    return (function for function in found.values() if function.signatures)
