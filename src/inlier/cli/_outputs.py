"""What the commands print and write: the answer in words, the pairs, the page."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._answers import BadInput

if TYPE_CHECKING:
    from inlier.report import MatchSummary

STDOUT = Path("-")
_WORST_SHOWN = 5
_WORST_COLUMNS = ("key", "row", "source", "target", "residual", "score", "q_value")


def answer_options(columns: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add what every command with an answer per pair takes: where it goes, how it is said, and the seed.

    ``columns`` names what a row of the output holds.
    """
    options = (
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path),
            metavar="OUT",
            help=f"Write a row per pair ({columns}) as csv, parquet, npz, "
            "json, ... by the suffix; as npy the mask alone; - is csv on standard output.",
        ),
        click.option("--report", type=click.Path(path_type=Path), metavar="OUT.html", help="Write a page to look at."),
        click.option("--json", "as_json", is_flag=True, help="Print everything as JSON."),
        click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors, and what --json or -o - print."),
        click.option(
            "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of all choices."
        ),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):  # the last one added is the first one shown
            command = option(command)
        return command

    return add


def check_outputs(output: Path | None, report: Path | None, *others: Path | None) -> None:
    """Refuse, before the work is done, a table, a page or another file that could not be written after it."""
    from inlier.io import check_can_hold_columns

    if output is not None and output.suffix.lower() not in (".json", ".npy"):
        check_can_hold_columns(Path("stdout.csv") if output == STDOUT else output)
    if report is not None:
        from inlier.report.rendering import find_template

        if report.suffix.lower() not in (".html", ".htm") and not report.is_dir():
            raise BadInput(f"{report} would hold a page, which is HTML. Give it a name that ends in .html.")

        find_template("page.html")
    for path in (output, report, *others):
        if path is not None and path != STDOUT:
            check_place(path)


def check_inputs_stay(inputs: Iterable[Path], outputs: Iterable[Path | None]) -> None:
    """Refuse to write over what is read, whatever name it is called by."""
    read = list(inputs)
    for output in outputs:
        if output is not None and any(_is_same_file(output, path) for path in read):
            raise BadInput(f"{output} is read by this command, and would be overwritten. Choose another name.")


def check_outputs_differ(outputs: dict[str, Path | None]) -> None:
    """Refuse two options that would write one file."""
    named: dict[str, Path] = {}
    for option, path in outputs.items():
        if path is None or path == STDOUT:
            continue
        other = next((other for other, taken in named.items() if _is_same_file(taken, path)), None)
        if other is not None:
            raise BadInput(f"{other} and {option} would both write {path}. Give them two names.")
        named[option] = path


def check_stdout_once(output: Path | None, as_json: bool) -> None:
    """Refuse two answers on standard output: behind each other, neither could be read."""
    if output == STDOUT and as_json:
        raise BadInput("-o - and --json both print to standard output. Give -o a file, or leave one of them out.")


def _is_same_file(one: Path, other: Path) -> bool:
    """Whether two names lead to one file: over links, '..', or letters of another case."""
    if os.path.realpath(one) == os.path.realpath(other):  # unlike Path.resolve, says nothing of links in a circle
        return True
    return one.exists() and other.exists() and one.samefile(other)


def check_folder(folder: Path) -> None:
    """Refuse a folder that is a file, or in which no file can be made."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file, but a folder is needed to write to. Choose another name.")
    _check_nearest(folder, [folder.absolute(), *folder.absolute().parents])


def check_place(path: Path) -> None:
    """Refuse a place where no file can be made."""
    if path.is_dir() and path.suffix.lower() != ".zarr":
        raise BadInput(f"{path} could not be written: it is a folder. Give the name of a file in it.")
    _check_nearest(path, path.absolute().parents)


def _check_nearest(path: Path, folders: Iterable[Path]) -> None:
    """Refuse ``path`` if nothing can be made in the first of the folders that is there."""
    nearest = next(folder for folder in folders if folder.exists())
    if not nearest.is_dir():
        raise BadInput(f"{path} could not be written: a file stands where a folder is needed, {nearest.name}.")
    try:
        with tempfile.TemporaryDirectory(dir=nearest, prefix=".inlier-"):
            pass
    except OSError as error:
        reason = f"you may not write to the folder {nearest}"
        if error.errno not in (EACCES, EPERM, EROFS):
            reason = f"no file can be made in the folder {nearest}"
        raise BadInput(f"{path} could not be written: {reason}.") from error


def write_pairs(summary: MatchSummary, output: Path | None) -> None:
    """Write a row per pair, by the suffix; as npy the mask alone."""
    from inlier.io import as_csv, write_table

    if output == STDOUT:
        click.echo(as_csv(summary.columns()), nl=False)
    elif output is not None and output.suffix.lower() == ".json":
        write_parts(output, summary)
    elif output is not None:
        is_mask = output.suffix.lower() == ".npy"
        write_table(output, summary.result.inlier_mask if is_mask else summary.columns())


def write_parts(output: Path, summary: MatchSummary) -> None:
    """Write everything as JSON, a part at a time."""
    from inlier.io import written_beside

    with written_beside(output) as beside, beside.open("w", encoding="utf-8") as stream:
        stream.writelines(summary.json_parts(indent=1))
        stream.write("\n")


def say_where(places: dict[str, Path | None], quiet: bool) -> None:
    """Name the files that were written."""
    for what, path in places.items():
        if path not in (None, STDOUT) and not quiet:
            click.echo(f"{what}: {path}", err=True)


def print_summary(summary: MatchSummary, as_json: bool, quiet: bool, *, words_to_stderr: bool) -> None:
    """Print the answer, what else there is to say, and the worst pairs; or everything as JSON."""
    from rich.console import Console

    if as_json:
        for part in summary.json_parts(indent=1):
            click.echo(part, nl=False)
        click.echo()
    if quiet:
        return
    for note in summary.origin.notes:
        click.echo(f"Note: {note}", err=True)
    console = Console(stderr=words_to_stderr, highlight=False, soft_wrap=True)
    console.print(summary.answer, style="bold", markup=False)
    for sentence in summary.details:
        console.print(sentence, markup=False)
    if summary.n_inliers < summary.n_pairs and summary.scores_differ:
        _print_worst(summary, console)


def _print_worst(summary: MatchSummary, console: Any) -> None:
    from rich.markup import escape
    from rich.table import Table

    worst = summary.worst(_WORST_SHOWN)
    shown = [name for name in _WORST_COLUMNS if name in worst[0]]
    table = Table(title="The worst pairs", title_justify="left", title_style="")
    for name in shown:
        table.add_column(name.replace("_", "-"), justify="left" if name == "key" else "right")
    for record in worst:
        table.add_row(
            *(f"{value:.4g}" if isinstance(value, float) else escape(str(value)) for value in map(record.get, shown))
        )
    console.print(table)
