"""``inlier register``: two sets of points and supposed pairs; how does one fit onto the other?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._answers import NOTHING_FOUND, BadInput, answering, command_line, warnings_as
from inlier.cli._outputs import (
    STDOUT,
    answer_options,
    check_inputs_stay,
    check_outputs,
    check_outputs_differ,
    check_stdout_once,
    print_summary,
    say_where,
    write_pairs,
)
from inlier.cli._words import in_options, naming_files

if TYPE_CHECKING:
    from inlier.cli._register_inputs import Problem
    from inlier.estimators.registration import Registration
    from inlier.report import RegistrationSummary

_MODELS = ("rigid", "rotation", "orthogonal", "similarity", "affine")
_MATRIX_SUFFIXES = (".txt", ".json", ".npy")
_POINT_FORMATS = ("ply", "pcd", "las", "gifti")  # these hold x, y and z, nothing more or less


@click.command()
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option(
    "--pairs",
    metavar="PAIRS",
    help="Table of supposed matches: row in SOURCE and row in TARGET, counted from 0, in two columns or in those "
    "named source and target.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN",
    help="Pair the points with the same id in this column. Twice: its name in SOURCE, then in TARGET.",
)
@click.option(
    "--columns",
    multiple=True,
    metavar="A,B,...",
    help="Columns that are coordinates: all if not given, x, y and z of point clouds; ^A,^B leaves some out. Twice: of "
    "SOURCE, then of TARGET.",
)
@click.option(
    "--model",
    type=click.Choice(_MODELS),
    default="rigid",
    show_default=True,
    help="What to look for: rotation and translation; rotation about the origin; that or a reflection; rotation, "
    "translation and one scale; any linear map and translation.",
)
@click.option("--reflection", is_flag=True, help="SOURCE may be a mirror image (rigid and similarity).")
@click.option(
    "--noise-bound",
    type=click.FloatRange(0, min_open=True),
    help="Largest distance of a real pair once it is registered, in units of TARGET; found from the data if absent.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 0.5),
    default=0.01,
    show_default=True,
    help="Largest expected share of wrong pairs among those accepted.",
)
@click.option(
    "--weights",
    metavar="FILE|COLUMN",
    help="How far each pair is trusted beforehand: a file with a number a row, or a column of PAIRS, else of SOURCE.",
)
@click.option(
    "-t",
    "--transform",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Write the transformation: .txt or .npy its matrix (4 x 4 in 3-D), .json everything about it.",
)
@click.option(
    "--moved",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Write SOURCE moved onto TARGET. ply, pcd, las, laz and gii keep the rest of their file.",
)
@answer_options("row, key, source, target, residual, p- and q-value, inlier")
@click.pass_context
def register(
    context: click.Context,
    /,
    source: str,
    target: str,
    pairs: str | None,
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    weights: str | None,
    transform: Path | None,
    moved: Path | None,
    output: Path | None,
    report: Path | None,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Find the transformation that carries SOURCE onto TARGET, and which pairs are real.

    Most of the pairs may be wrong. Point i of file SOURCE belongs with point i of file TARGET, or a table says which
    points belong together (--pairs), or points with the same id do (--key). The suffix says how a file is read: npy,
    npz, csv, tsv, txt (.gz too), parquet, feather, hdf5, zarr, ply, pcd, xyz, las, laz, gii. Rows count from 0.

    Exit code 0: a transformation was found; 1: the pairs agree on none, and nothing was written; 2: something was
    wrong with the input.

    \b
    Example:
      inlier demo --save-scans scans
      inlier register scans/source.ply scans/target.ply --pairs scans/pairs.csv --report report.html
      inlier register scans/source.ply scans/target.ply --pairs scans/pairs.csv -t motion.txt --moved moved.ply
    """
    from inlier.cli._progress import stages

    with answering():
        check_stdout_once(output, as_json)
        _check_outputs({"-t": transform, "--moved": moved, "-o": output, "--report": report})
        from inlier.cli._register_inputs import read_problem

        notes: list[str] = []
        said: list[str] = []
        with stages(quiet=quiet) as stage, warnings_as(notes):
            stage(f"reading {source} and {target}")
            problem = read_problem(source, target, pairs, keys, columns, weights)
            _check_fits(problem, (source, target), settings["model"], moved)
            check_inputs_stay(problem.files, (transform, moved, output, report))
            stage(f"registering {len(problem.pairing):,} pairs")
            with naming_files(source, target, said):
                registration = _register(context, problem, (source, target), **settings)
        notes = [*problem.pairing.notes, *notes, *said]
        summary = _summary(registration, problem, (source, target), command_line(context), notes)
        _write(summary, problem, keys, transform, moved)
        write_pairs(summary, output)
        if report is not None:
            from inlier.report import RegistrationReport

            RegistrationReport(summary).write_html(report)
        print_summary(summary, as_json, quiet, words_to_stderr=as_json or output == STDOUT)
        say_where({"Transformation": transform, "Moved": moved, "Pairs": output, "Report": report}, quiet)


def _check_outputs(outputs: dict[str, Path | None]) -> None:
    """Refuse what could not be written, before the work is done."""
    from inlier.io import Kind, check_can_hold_columns, format_of

    transform, moved = outputs["-t"], outputs["--moved"]
    if transform is not None and transform.suffix.lower() not in _MATRIX_SUFFIXES:
        raise BadInput(f"{transform}: a transformation is written as .txt, .json or .npy.")
    if moved is not None:
        format = format_of(moved)
        if format.kind is Kind.PICTURE:
            raise BadInput(f"{moved} would be a picture, but points are to be written. Use the suffix of SOURCE.")
        if format.kind in (Kind.COLUMNS, Kind.ARRAYS):
            check_can_hold_columns(moved)
    check_outputs(outputs["-o"], outputs["--report"], transform, moved)
    check_outputs_differ(outputs)


def _check_fits(problem: Problem, names: tuple[str, str], model: str, moved: Path | None) -> None:
    """Refuse sets that the model cannot join, and points that the file for them cannot hold."""
    from inlier.io import format_of

    d_x, d_y = problem.source.values.shape[1], problem.target.values.shape[1]
    if d_x != d_y and model != "affine":
        raise BadInput(
            f"{names[0]} has {d_x} columns and {names[1]} has {d_y}. Choose the coordinates with --columns, or use "
            f"--model affine."
        )
    if moved is not None and format_of(moved).name in _POINT_FORMATS and d_y != 3:
        raise BadInput(
            f"{moved} holds points of three coordinates, but those of {names[1]} have {d_y}. Write csv or npy."
        )


def _register(
    context: click.Context,
    problem: Problem,
    names: tuple[str, str],
    *,
    model: str,
    alpha: float,
    noise_bound: float | None,
    reflection: bool,
    seed: int,
) -> Registration:
    from inlier import NoConsensusError, Registration

    registration = Registration(model, alpha, noise_bound, reflection, random_state=seed)
    try:
        return registration.fit(problem.pairing.X, problem.pairing.Y, sample_weight=problem.weights)
    except NoConsensusError as error:
        click.echo(f"{in_options(str(error), *names)} {_what_to_check(problem, *names)}", err=True)
        context.exit(NOTHING_FOUND)


def _what_to_check(problem: Problem, source: str, target: str) -> str:
    """How the pairs came about, in case they did not mean to."""
    if problem.ends is not None:
        return f"The first column of --pairs names rows of {source}, the second rows of {target}; check that they do."
    if problem.pairing.keys is not None:
        return f"Rows with the same id were paired; check that it means the same in {source} and {target}."
    return f"Row i of {source} was taken for the partner of row i of {target}; if it is not, say who is with --pairs."


def _summary(
    registration: Registration, problem: Problem, sources: tuple[str, str], command: str, notes: list[str]
) -> RegistrationSummary:
    from inlier.report import Origin, summarise_registration

    return summarise_registration(
        registration,
        problem.pairing.X,
        problem.pairing.Y,
        rows=problem.pairing.rows,
        keys=problem.pairing.keys,
        ends=problem.ends,
        clouds=problem.clouds,
        origin=Origin(sources, command, tuple(notes)),
    )


def _write(
    summary: RegistrationSummary, problem: Problem, keys: tuple[str, ...], transform: Path | None, moved: Path | None
) -> None:
    from inlier.io import Kind, format_of, write_file, write_like, write_table

    found = summary.transformation
    assert found is not None
    if transform is not None and transform.suffix.lower() == ".json":
        content = {
            **summary.transformation_dict(),
            "sources": summary.origin.sources,
            "command": summary.origin.command,
        }
        write_file(transform, json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
    elif transform is not None:
        write_table(transform, found.matrix)
    if moved is None:
        return
    source = problem.source
    values = found(source.values)
    if source.keys is not None and format_of(moved).kind in (Kind.COLUMNS, Kind.ARRAYS):
        names = source.columns if source.columns and len(source.columns) == values.shape[1] else None
        numbered = names or tuple(map(str, range(values.shape[1])))
        write_table(moved, {keys[0]: source.keys, **dict(zip(numbered, values.T, strict=True))})
    else:
        write_like(source, moved, values, getattr(found, "rotation", None) if values.shape[1] == 3 else None)
