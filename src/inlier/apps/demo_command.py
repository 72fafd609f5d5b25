"""``inlier demo``: the main job on data that ships with the package."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from filecmp import cmp
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlier.cli._common import answering
from inlier.cli._outputs import BadInput, Output, check_folder, check_outputs, force_option, is_page, is_picture, say

if TYPE_CHECKING:
    from inlier.apps.demo import DemoOutcome

_folder_option = partial(click.option, type=click.Path(path_type=Path), metavar="FOLDER")


@click.command()
@click.option(
    "--pairs", "n_pairs", type=click.IntRange(10, 29_268), default=12_000, show_default=True, help="Number of pairs."
)
@click.option(
    "--inlier-fraction",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="Share of the pairs that are real.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("inlier-demo"),
    show_default=True,
    help="Folder for the report; made if absent.",
)
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@_folder_option(
    "--save-pairs",
    help="Only write the pairs as x.csv and y.csv, with ids and in different orders, to try other commands on.",
)
@_folder_option(
    "--save-scans",
    help="Only write two scans of the surface, source.ply and target.ply, and pairs.csv: 2,000 supposed matches "
    "between them, 30 % of them real.",
)
@_folder_option(
    "--save-photos", help="Only write two photos of one scene, before.png and after.png, to which things were added."
)
def demo(
    n_pairs: int,
    inlier_fraction: float,
    seed: int,
    out: Path,
    force: bool,
    as_json: bool,
    save_pairs: Path | None,
    save_scans: Path | None,
    save_photos: Path | None,
) -> None:
    """Find the mispaired points of a brain surface that ships with inlier.

    Prints a table and writes a page to look at, report.html, and its picture.png.

    \b
    Example:
      inlier demo --pairs 5000 --inlier-fraction 0.6
      inlier demo --save-pairs example
      inlier demo --save-scans example
      inlier demo --save-photos example
    """
    saved = [folder for folder in (save_pairs, save_scans, save_photos) if folder is not None]
    for folder in saved or [out]:
        check_folder(folder)
    with answering():
        if save_pairs is not None:
            with _made_beside(save_pairs, force=force) as folder:
                _save_pairs(folder, n_pairs, inlier_fraction, seed)
            say(f"Pairs: {save_pairs / 'x.csv'} and {save_pairs / 'y.csv'}, to be joined on the column id.")
        if save_scans is not None:
            with _made_beside(save_scans, force=force) as folder:
                _save_scans(folder, seed)
            scans = f"{save_scans / 'source.ply'} and {save_scans / 'target.ply'}"
            say(f"Scans: {scans}, matched by {save_scans / 'pairs.csv'}.")
        if save_photos is not None:
            with _made_beside(save_photos, force=force) as folder:
                _save_photos(folder)
            say(f"Photos: {save_photos / 'before.png'} and {save_photos / 'after.png'}.")
        if not saved:
            written = [Output("--out", "Report", out / "report.html", is_page)]
            written += [Output("--out picture.png", "Picture", out / "picture.png", is_picture)]
            check_outputs(written, [], force=force)
            _show(n_pairs, inlier_fraction, seed, out, as_json=as_json)


@contextmanager
def _made_beside(folder: Path, *, force: bool) -> Iterator[Path]:
    """Yield a folder to write examples to; they are moved to ``folder`` where no other file of such a name is lost.

    The same file again is no loss.
    """
    from inlier.io import workspace_in

    folder.mkdir(parents=True, exist_ok=True)
    with workspace_in(folder) as space:
        made = space / "made"
        made.mkdir()
        yield made
        files = sorted(made.iterdir())
        outputs = [
            Output(f"the demo's {file.name}", "Example", folder / file.name, partial(_is_equal, file)) for file in files
        ]
        check_outputs(outputs, [], force=force)
        for file in files:
            file.replace(os.path.realpath(folder / file.name))


def _is_equal(file: Path, other: Path) -> bool:
    return cmp(file, other, shallow=False)


def _show(n_pairs: int, inlier_fraction: float, seed: int, out: Path, *, as_json: bool) -> None:
    from inlier.apps.demo import demo_page, run_demo
    from inlier.io import write_file
    from inlier.plotting import as_png

    outcome = run_demo(n_pairs, inlier_fraction, seed)
    if as_json:
        click.echo(json.dumps(outcome.to_dict(), indent=2))
    else:
        _print_demo(outcome)
    path = out / "report.html"
    try:
        picture = as_png(outcome.figure())
        write_file(out / "picture.png", picture)
        write_file(path, demo_page(outcome, _command_of(n_pairs, inlier_fraction, seed)))
    except ImportError as error:
        say(f"No report was written. {error}")
    except OSError as error:
        raise BadInput(f"The report could not be written to {path}: {error.strerror or error}") from error
    else:
        say(f"Report: {path}")


def _command_of(n_pairs: int, inlier_fraction: float, seed: int) -> str:
    """What to type to get the same again."""
    given = {"--pairs": (n_pairs, 12_000), "--inlier-fraction": (inlier_fraction, 0.8), "--seed": (seed, 0)}
    options = (f"{name} {value:g}" for name, (value, default) in given.items() if value != default)
    return " ".join(["inlier demo", *options])


def _save_pairs(folder: Path, n_pairs: int, inlier_fraction: float, seed: int) -> None:
    import numpy as np

    from inlier.datasets import load_brain, make_mispaired
    from inlier.io import write_table

    data = make_mispaired(load_brain().features, n_pairs, inlier_fraction, rng=seed)
    ids = np.array([f"v{number:05d}" for number in range(n_pairs)])
    shuffled = np.random.default_rng(seed).permutation(n_pairs)
    for name, values, order in (("x", data.X, np.arange(n_pairs)), ("y", data.Y, shuffled)):
        columns = {f"{name}{number}": column[order] for number, column in enumerate(values.T)}
        write_table(folder / f"{name}.csv", {"id": ids[order], **columns})


def _save_photos(folder: Path) -> None:
    from io import BytesIO

    from PIL import Image

    from inlier.datasets import make_scenes
    from inlier.io import write_file

    photos = make_scenes().photos
    for name, photo in (("before", photos[0]), ("after", photos[2])):
        content = BytesIO()
        Image.fromarray(photo).save(content, format="PNG")
        write_file(folder / f"{name}.png", content.getvalue())


def _save_scans(folder: Path, seed: int) -> None:
    from inlier.datasets import make_scans
    from inlier.io import write_table

    scans = make_scans(rng=seed)
    write_table(folder / "source.ply", scans.source)
    write_table(folder / "target.ply", scans.target)
    write_table(folder / "pairs.csv", {"source": scans.pairs[:, 0], "target": scans.pairs[:, 1]})


def _print_demo(outcome: DemoOutcome) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    shares = ("of the real: missed", "of the wrong: accepted", "of all: misjudged")
    for heading in ("method", *shares, "seconds", "pairs/s"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for method in outcome.methods:
        errors = (f"{share:.2%}" for share in (method.errors.inliers, method.errors.outliers, method.errors.overall))
        table.add_row(method.name, *errors, f"{method.seconds:.4f}", f"{method.pairs_per_second:,.0f}")
    console = Console()
    console.print(table)
    console.print(outcome.explanation, highlight=False)
