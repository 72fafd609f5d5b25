"""``inlier bench``: how fast on this machine, beside what it can do."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlier.cli._common import answering
from inlier.cli._outputs import BadInput, Output, check_outputs, force_option, is_picture, say

if TYPE_CHECKING:
    from inlier.apps.bench import SpeedReport

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
    from inlier.apps.bench import jobs, measure_speed
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
    from inlier.apps.bench import warm_up, warm_up_jobs
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

    from inlier.apps.bench import LARGEST_DENSE

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
