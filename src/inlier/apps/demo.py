"""``inlier demo``: the main job on data that ships with the package, the mispaired vertices of a brain.

What is heavy is imported where it is used, so that ``--help`` answers at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from filecmp import cmp
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._common import answering
from inlier.cli._outputs import BadInput, Output, check_folder, check_outputs, force_option, is_page, is_picture, say

if TYPE_CHECKING:
    from inlier._typing import FloatArray, Mask
    from inlier.datasets import BrainTable, PairedData
    from inlier.estimators._base import PairMatcher
    from inlier.metrics import ErrorRates
    from inlier.result import MatchResult

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


# ---- the problem, and what each matcher made of it


@dataclass(frozen=True)
class MethodOutcome:
    """How one matcher did."""

    name: str
    result: MatchResult
    errors: ErrorRates
    seconds: float

    @property
    def pairs_per_second(self) -> float:
        """Pairs decided in a second."""
        return self.result.n_pairs / self.seconds


@dataclass(frozen=True)
class DemoOutcome:
    """The problem that was posed and what each matcher made of it."""

    brain: BrainTable
    data: PairedData
    methods: list[MethodOutcome]

    @property
    def explanation(self) -> str:
        """What happened, in words."""
        n = len(self.data.X)
        wrong = int((~self.data.inlier_mask).sum())
        mispaired = f"{wrong:,} of them with the wrong partner" if wrong else "none of them with the wrong partner"
        right = [1 - method.errors.overall for method in self.methods]
        return (
            f"{n:,} points of a brain surface were paired with a rotated copy of themselves, "
            f"{mispaired}; without being told the rotation or the number of wrong pairs, the paper's two methods "
            f"judged {right[0]:.1%} and {right[1]:.1%} of all pairs correctly, the calibrated one {right[2]:.1%}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything that is printed, for programs."""
        return {
            "source": self.brain.source,
            "n_pairs": len(self.data.X),
            "n_wrong": int((~self.data.inlier_mask).sum()),
            "methods": [
                {
                    "name": method.name,
                    **{f"error_{kind}": share for kind, share in method.errors._asdict().items()},
                    "seconds": method.seconds,
                    "pairs_per_second": method.pairs_per_second,
                }
                for method in self.methods
            ],
            "explanation": self.explanation,
        }

    def figure(self) -> Any:
        """Draw what was wrong, and how the scores tell."""
        from inlier import plotting

        figure = plotting.new_figure(figsize=(14, 3.4))
        surface, *histograms = figure.subplots(1, 1 + len(self.methods))
        side_view = self.data.X[:, [1, 2]]
        plotting.plot_points(side_view, ~self.data.inlier_mask, "paired with the wrong point", surface)
        surface.set_title("The problem")
        for method, ax in zip(self.methods, histograms, strict=True):
            plotting.plot_scores(method.result, self.data.inlier_mask, ax)
            ax.set_title(f"{method.name}: {method.errors.overall:.2%} misjudged")
        return figure


def demo_page(outcome: DemoOutcome, command: str = "inlier demo") -> str:
    """Render the demo's outcome as one HTML page that needs nothing else."""
    from inlier.report.charts import truth_chart
    from inlier.report.match_summary import versions
    from inlier.report.pages import Part, render_page

    truth, best = outcome.data.inlier_mask, outcome.methods[-1]
    wrongly = round(best.errors.overall * truth.size)
    charts = [{"chart": truth_chart(method.result, truth)} for method in outcome.methods]
    answer = {
        "headline": f"{truth.size - wrongly:,} of {truth.size:,} pairs were judged correctly.",
        "counts": {"real": int(truth.sum()), "wrong": int((~truth).sum())},
        "explanation": outcome.explanation,
    }
    evidence = {
        "surface": _surface(outcome.data.X[:, [1, 2]], truth),
        "methods": [{**words, **chart} for words, chart in zip(outcome.to_dict()["methods"], charts, strict=True)],
        "source": outcome.brain.source,
        "command": command,
        "versions": versions(),
    }
    parts = [Part("demo_answer.html", answer), Part("demo_methods.html", evidence)]
    return render_page("inlier demo", parts, "inlier.apps")


def _surface(points: FloatArray, right: Mask) -> dict[str, Any]:
    """Points of a plane as two paths of dots, for an SVG as wide as the other drawings."""
    low, high = points.min(axis=0), points.max(axis=0)
    width, margin = 520.0, 12.0
    places = margin + (points - low) / (high - low)[0] * (width - 2 * margin)
    height = float(places[:, 1].max() + margin)
    places[:, 1] = height - places[:, 1]

    def dots(mask: Mask) -> str:
        return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places[mask])

    return {"width": width, "height": round(height), "right": dots(right), "wrong": dots(~right)}


def run_demo(n: int = 12_000, inlier_fraction: float = 0.8, seed: int = 0) -> DemoOutcome:
    """Mispair a share of the brain table's rows; let both of the paper's matchers and the calibrated one find them."""
    from inlier.datasets import load_brain, make_mispaired
    from inlier.estimators.calibrated import CalibratedMatcher
    from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher

    brain = load_brain()
    data = make_mispaired(brain.features, n, inlier_fraction, rng=seed)
    methods = [
        ("Row sum", RowSumMatcher()),
        ("Eigenvector", EigenvectorMatcher()),
        ("Calibrated", CalibratedMatcher(random_state=seed)),
    ]
    return DemoOutcome(brain, data, [_time_and_judge(name, matcher, data) for name, matcher in methods])


def _time_and_judge(name: str, matcher: PairMatcher, data: PairedData) -> MethodOutcome:
    from inlier.metrics import error_rates

    seconds = float("inf")
    for _ in range(2):  # the first fit may also load compiled code
        start = perf_counter()
        matcher.fit(data.X, data.Y)
        seconds = min(seconds, perf_counter() - start)
    return MethodOutcome(name, matcher.result_, error_rates(data.inlier_mask, matcher.inlier_mask_), seconds)
