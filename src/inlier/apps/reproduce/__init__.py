"""``inlier reproduce``: the paper's figures, tables and theorems, each computed again.

From settings to a tidy table and a picture; `runner` has the list of experiments.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.apps.reproduce.settings import place_of, setting_options
from inlier.cli._common import INTERRUPTED, sentence_of
from inlier.cli._outputs import BadInput, Output, check_folder, check_outputs, force_option, is_experiment, is_page, say

if TYPE_CHECKING:
    from inlier.apps.reproduce.experiment import Experiment, Outcome, Sources


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "list_them", is_flag=True, help="List the experiments and stop.")
@click.option("--all", "run_all", is_flag=True, help="Run all of them and write one page, reproduction.html.")
@click.option("--quick", is_flag=True, help="Fewer repetitions and smaller sizes: seconds instead of minutes.")
@click.option("--repetitions", type=click.IntRange(1), help="Repetitions of each point, instead of the paper's.")
@setting_options
@click.option("--jobs", type=click.IntRange(1), help="Processes, one a core by default. Numbers do not depend on it.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("inlier-reproduction"),
    show_default=True,
    help="Folder for the results; made if absent.",
)
@click.option(
    "--photo",
    "photos",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Once: the photo of the sky experiments. Three times: the photos of the case study.",
)
@click.option("--brain", type=click.Path(path_type=Path), help="Workbench folder, or .npz, with the brain's features.")
@force_option
@click.option("--compare", is_flag=True, help="Compare with the committed full runs; exit code 1 if numbers differ.")
def reproduce(
    names: tuple[str, ...],
    list_them: bool,
    run_all: bool,
    quick: bool,
    repetitions: int | None,
    jobs: int | None,
    seed: int,
    out: Path,
    photos: tuple[Path, ...],
    brain: Path | None,
    force: bool,
    compare: bool,
    **values: tuple[float, ...] | None,
) -> None:
    """Compute the paper's figures and tables again, beside the printed numbers.

    Each experiment writes a CSV, a JSON, a PNG and a PDF. An interrupted run goes on where it stopped.

    \b
    Example:
      inlier reproduce --list
      inlier reproduce sky-images --quick --jobs 1
      inlier reproduce sky-noise --n 2000 --noise 0:50:5 --threshold .4 --repetitions 20
    """
    from inlier.apps.reproduce.experiment import load_sources
    from inlier.apps.reproduce.runner import EXPERIMENTS, find_experiments

    if list_them:
        _list_experiments(list(EXPERIMENTS.values()))
        return
    try:
        experiments = find_experiments(list(EXPERIMENTS) if run_all or (compare and not names) else list(names))
        if not experiments:
            raise ValueError("Name an experiment (inlier reproduce --list shows them), or give --all.")
        changes = {option: given for option, given in values.items() if given is not None}
        _check_they_are_used(experiments, changes)
        check_folder(out)
        kinds = [
            out / f"{experiment.name}.{kind}" for experiment in experiments for kind in ("json", "csv", "png", "pdf")
        ]
        written = [Output(f"--out {path.name}", "experiment", path, is_experiment) for path in kinds]
        written += [Output("--out", "Page", out / "reproduction.html", is_page)] if run_all else []
        check_outputs(written, [] if brain is None else [*photos, brain], force=force)
        needed = {source for experiment in experiments for source in experiment.data}
        sources = load_sources(sorted(needed), brain=brain, photos=photos)
        how = {"quick": quick, "repetitions": repetitions, "changes": changes, "seed": seed}
        outcomes = _run_with_bar(experiments, sources, out, jobs=jobs, **how)
    except (ValueError, ImportError, OSError) as error:
        raise BadInput(sentence_of(error)) from error
    except KeyboardInterrupt:
        say(f"Interrupted. What was finished is kept in {out}: the same command goes on from there.")
        raise SystemExit(INTERRUPTED) from None
    _print_outcomes(outcomes)
    say(f"CSV, JSON, PNG and PDF of each: {out}")
    if run_all:
        _write_reproduction_page(outcomes, out)
    if compare:
        _compare_with_baseline(outcomes)


def _check_they_are_used(experiments: list[Experiment], changes: dict[str, tuple[float, ...]]) -> None:
    """Refuse what no chosen experiment has, and values that it cannot have, before any of them runs."""
    for option in changes:
        if not any(place_of(option, of.settings(), of.takes) for of in experiments):
            raise ValueError(f"--{option} is no setting of {', '.join(of.name for of in experiments)}. Leave it out.")
    for experiment in experiments:
        experiment.settings(changes=changes)


def _list_experiments(experiments: list[Experiment]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for experiment in experiments:
        table.add_row(experiment.name, f"{experiment.title} ({experiment.reference})")
    Console().print(table)


def _run_with_bar(experiments: list[Experiment], sources: Sources, out: Path, **how: Any) -> list[Outcome]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    from inlier.apps.reproduce.runner import run_all

    console, say = Console(stderr=True), partial(click.echo, err=True)
    if not console.is_terminal:
        return run_all(experiments, sources, out, on_missing_library=say, **how)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeLeft())
    with Progress(*columns, console=console) as bar:
        tasks: dict[str, Any] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done)

        return run_all(experiments, sources, out, progress=show, on_missing_library=say, **how)


def _print_outcomes(outcomes: list[Outcome]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table

    console = Console(highlight=False)
    for outcome in outcomes:
        experiment = outcome.experiment
        lines = experiment.headline(outcome.rows)
        console.print(f"[bold]{experiment.name}[/bold] ({experiment.reference}): {experiment.title}")
        if outcome.smaller:
            console.print(Padding(f"A quick run: {escape('; '.join(outcome.smaller))}.", (0, 2)))
        table = Table(*(lines[0] if lines else ()))
        for line in lines:
            table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in line.values()))
        console.print(table)
        for claim in outcome.claims:
            verdict = "[green]holds[/green]" if claim.holds else "[red]does not hold here[/red]"
            console.print(Padding(f"{verdict}: {escape(claim.text)} {escape(claim.evidence)}", (0, 2)))


def _write_reproduction_page(outcomes: list[Outcome], folder: Path) -> None:
    from inlier.apps.reproduce.output import reproduction_page
    from inlier.io import write_file

    path = folder / "reproduction.html"
    try:
        write_file(path, reproduction_page(outcomes))
    except ImportError as error:
        say(f"No page was written. {error}")
    else:
        say(f"Page: {path}")


def _compare_with_baseline(outcomes: list[Outcome]) -> None:
    from inlier.apps.reproduce.output import as_record, compare, load_baselines, what_was_compared

    comparisons = [compare(as_record(outcome), load_baselines(outcome.experiment.name)) for outcome in outcomes]
    for comparison in comparisons:
        click.echo(f"{comparison.name}: {comparison.summary}")
        for difference in comparison.differences:
            click.echo(f"  {difference}")
    click.echo(what_was_compared(comparisons))
    if any(comparison.differences for comparison in comparisons):
        raise click.exceptions.Exit(1)
    if not any(comparison.n_compared for comparison in comparisons):
        raise BadInput(
            "--compare found nothing to compare with: other data, or other sizes, than those of the baseline."
        )
