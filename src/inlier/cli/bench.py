"""``inlier bench``: how fast on this machine, beside what it can do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlier.cli.answers import BadInput, sentence_of

if TYPE_CHECKING:
    from inlier.speed import SpeedReport


@click.command()
@click.option("--quick", is_flag=True, help="Smaller sizes: some seconds instead of a minute or two.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the picture to this file (.png)."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def bench(quick: bool, out: Path | None, as_json: bool) -> None:
    """Measure how fast the matchers are on this machine.

    Prints pairs per second, how many times the time that reading the data (memory) or multiplying the matrices
    (compute) takes, and how many times faster than the dense method.

    \b
    Example:
      inlier bench --quick -o speed.png
    """
    from inlier.speed import measure_speed

    report = measure_speed(quick=quick, on_timing=lambda t: click.echo(f"{t.method}, n = {t.n:,}, d = {t.d}", err=True))
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        _print(report)
    if out is not None:
        _write_picture(report, out)


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
        f"compute floor two matrix products; the dense method was timed at {3000:,} pairs and grows as n squared.",
        highlight=False,
    )


def _write_picture(report: SpeedReport, path: Path) -> None:
    from inlier.display import as_png
    from inlier.io import write_file

    try:
        write_file(path, as_png(report.figure()))
    except (ImportError, OSError) as error:
        raise BadInput(f"The picture was not written: {sentence_of(error)}") from error
    click.echo(f"Picture: {path}", err=True)
