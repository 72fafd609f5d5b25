"""``inlier diff``: what has changed between two photos."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlier.cli._common import NOTHING_FOUND, answering
from inlier.cli._outputs import (
    Output,
    check_folder,
    check_outputs,
    force_option,
    is_list_of_changes,
    is_page,
    is_picture,
    say,
)

if TYPE_CHECKING:
    from inlier.images import Changes

_WRITTEN = {
    "overlay.png": is_picture,
    "mask.png": is_picture,
    "regions.json": is_list_of_changes,
    "scores.png": is_picture,
    "report.html": is_page,
}


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option(
    "--method",
    type=click.Choice(["calibrated", "row-sum", "eigenvector"]),
    default="calibrated",
    show_default=True,
    help="How change is judged; the last two are the paper's, on the pixels' colours.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Largest expected share of regions by accident (calibrated only).",
)
@click.option("--align/--no-align", default=True, show_default=True, help="First lay BEFORE over AFTER.")
@click.option(
    "--same-scene", is_flag=True, help="You promise that both show one scene: it is not asked whether they do."
)
@click.option(
    "--bits",
    type=click.IntRange(1, 32),
    help="Bits of whole numbers, of which white is the largest; by default as many as the numbers in the files need.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("inlier-diff"),
    show_default=True,
    help="Folder for the pictures, the list and the page; made if absent.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice.")
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors, and what --json asks for.")
def diff(
    before: Path,
    after: Path,
    method: str,
    alpha: float,
    align: bool,
    same_scene: bool,
    bits: int | None,
    out: Path,
    seed: int,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show what has changed between two photos of one scene.

    Other light, shadows, noise and small movements of the camera do not count. Writes overlay.png, mask.png,
    scores.png (the evidence per pixel, 16 bits), regions.json, and report.html to look at.

    Exit code: 0 something has changed, 1 nothing has, or the photos do not show one scene ("verdict" in the JSON
    tells these apart: changed, unchanged, different scenes), 2 bad input.

    \b
    Example:
      inlier demo --save-photos photos
      inlier diff photos/before.png photos/after.png
      inlier diff photos/before.png photos/after.png --json -o changes --alpha 0.01
    """
    from inlier.cli._progress import stages
    from inlier.images import detect_changes, read_photo

    with answering():
        check_folder(out)
        written = [Output(f"-o {name}", "a change", out / name, is_ours) for name, is_ours in _WRITTEN.items()]
        check_outputs(written, (before, after), force=force)
        with stages(quiet=quiet) as stage:
            stage(f"reading {before} and {after}")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                first, second = read_photo(before), read_photo(after)
            stage("comparing them")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # what it says is the sentence of the answer
                changes = detect_changes(first, second, method, alpha, align, seed, same_scene=same_scene, bits=bits)
            read = dict.fromkeys(str(said.message) for said in caught if said.category is UserWarning)
            changes = replace(changes, notes=(*read, *changes.notes))
            content = {"before": str(before), "after": str(after), "seed": seed, **changes.to_dict()}
            stage(f"writing to {out}")
            page = _write(changes, content, out)
    if as_json:
        click.echo(json.dumps(content, indent=2))
    elif not quiet:
        _print(changes)
    if not quiet:
        _say(changes, align, out, page)
    if changes.verdict != "changed":
        raise click.exceptions.Exit(NOTHING_FOUND)


def _write(changes: Changes, content: dict[str, object], folder: Path) -> str:
    """Write the files; return what to say about the page."""
    from inlier.images import pictures
    from inlier.io import write_file

    write_file(folder / "overlay.png", pictures.overlay_png(changes))
    write_file(folder / "mask.png", pictures.mask_png(changes))
    write_file(folder / "regions.json", json.dumps(content, indent=2) + "\n")
    write_file(folder / "scores.png", pictures.scores_png(changes))
    try:
        write_file(folder / "report.html", pictures.change_page(changes, content))
    except ImportError as error:
        return f"No page was written. {error}"
    return f"Page: {folder / 'report.html'}"


def _print(changes: Changes) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(changes.sentence)
    if changes.caution:
        console.print(changes.caution)
    if not changes.regions:
        return
    table = Table("", "left", "top", "width", "height", "pixels", "evidence", "q-value")
    for column in table.columns:
        column.justify = "right"
    for number, region in enumerate(changes.regions[:20], start=1):
        box = (region.left, region.top, region.right - region.left, region.bottom - region.top, region.area)
        chance = "" if region.q_value is None else f"{region.q_value:.2g}"
        table.add_row(str(number), *(f"{value:,}" for value in box), f"{region.score:.3g}", chance)
    console.print(table)
    if len(changes.regions) > 20:
        console.print(f"and {len(changes.regions) - 20:,} more in regions.json.")


def _say(changes: Changes, align: bool, out: Path, page: str) -> None:
    for note in changes.notes:
        say(f"Note: {note}")
    height, width = changes.mask.shape
    if align and changes.alignment.moved:
        shift = changes.alignment.shift(height, width)
        say(f"BEFORE was moved by up to {shift:,.1f} pixels onto AFTER (found by {changes.alignment.method}).")
    say(f"overlay.png, mask.png, scores.png and regions.json: {out}")
    say(page)
