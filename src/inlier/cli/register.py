"""``inlier register``: two sets of points and supposed pairs; how does one fit onto the other?

Without pairs: two raw clouds, of which nobody knows who belongs to whom.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._common import (
    NOTHING_FOUND,
    Job,
    ReadsFiles,
    answer_options,
    answering,
    check_numbers,
    read_both,
)
from inlier.cli._outputs import BadInput, Output, is_transformation, never, say
from inlier.cli._progress import stages
from inlier.cli._scans import is_many, register_many
from inlier.cli._tables import AS_POINTS, noting_odd_values, read_ends
from inlier.exceptions import UnusableFileError

if TYPE_CHECKING:
    from inlier._typing import Array, FloatArray
    from inlier.estimators.clouds import CloudRegistration
    from inlier.estimators.registration import Registration
    from inlier.io import Pairing, Table
    from inlier.report import CloudSummary, RegistrationSummary

_MODELS = ("rigid", "rotation", "orthogonal", "similarity", "affine")
_MATRIX_SUFFIXES = (".txt", ".json", ".npy")
_CLOUD_MODELS = ("rigid", "similarity")
_OF_PAIRS = ("reflection", "noise_bound", "weights", "alpha", "output")  # options that say something of pairs


@click.command(cls=ReadsFiles)
@click.argument("scans", metavar="SOURCE TARGET | SCANS...", nargs=-1, required=True)
@click.option(
    "--pairs",
    metavar="PAIRS",
    help="Table of supposed matches: row in SOURCE and row in TARGET, counted from 0, in two columns or in those "
    "named source and target.",
)
@click.option(
    "--paired/--clouds",
    "paired",
    default=None,
    help="Row i of SOURCE belongs with row i of TARGET; or the rows are points of two raw clouds, in any order. If "
    "neither is given, point clouds and tables of three columns are raw clouds; other tables are paired, and so are "
    "all where another option speaks of pairs.",
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
    "translation and one scale; any linear map and translation. Of raw clouds: rigid, or similarity where they are in "
    "different units.",
)
@click.option("--reflection", is_flag=True, help="SOURCE may be a mirror image (rigid and similarity).")
@click.option(
    "--noise-bound",
    type=click.FloatRange(0, min_open=True),
    help="Largest distance of a real pair once it is registered, in units of TARGET; found from the data if absent.",
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
@click.option(
    "--merged",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Of many scans: write the largest part as one cloud, thinned evenly, with colours and normals where all its "
    "scans have them.",
)
@click.option(
    "--depth",
    metavar="FX,FY,CX,CY",
    help="Of many scans: they are images of depth in millimetres (a fifth number: other units in a metre), by a camera "
    "with these focal lengths and this centre, in pixels.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of many scans: keep what pairs have answered in this file, so that a run can go on after a stop.",
)
@click.option(
    "--jobs",
    type=int,
    default=-1,
    show_default="all processors",
    help="Of many scans: so many pairs are asked at once.",
)
@answer_options("row, key, source, target, residual, p- and q-value, inlier, near_miss")
@click.pass_context
def register(
    context: click.Context,
    /,
    scans: tuple[str, ...],
    pairs: str | None,
    paired: bool | None,
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    weights: str | None,
    transform: Path | None,
    moved: Path | None,
    merged: Path | None,
    depth: str | None,
    cache: Path | None,
    jobs: int,
    output: Path | None,
    report: Path | None,
    force: bool,
    as_json: bool,
    json_pairs: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Find the transformation that carries SOURCE onto TARGET, and which pairs are real; or put many SCANS together.

    Two point clouds, or tables of three columns, are taken as they are, and nothing has to be set: no pairs, no voxel
    size. Or most of some pairs may be wrong: a table says which points belong together (--pairs), or points with the
    same id do (--key), or point i of SOURCE belongs with point i of TARGET (--paired). The suffix says how a file is
    read: FORMATS (text with .gz, too). Rows count from 0.

    More than two scans, a folder of them or a pattern, in any order, become one model: poses (-o as .json, .g2o or a
    trajectory as .txt), one cloud (--merged), and a word on each scan that does not belong.

    Exit code 0: a transformation was found; 1: none is sure, and none was written (of raw clouds --json and --report
    have the best guess); 2: something was wrong with the input.

    \b
    Example:
      inlier demo --save-scans scans
      inlier register scans/source.ply scans/target.ply
      inlier register scans/source.ply scans/target.ply --model similarity
      inlier register scans/source.ply scans/target.ply --pairs scans/pairs.csv --report report.html
      inlier register scans/source.ply scans/target.ply --pairs scans/pairs.csv -t motion.txt --moved moved.ply
      inlier register scans --merged model.ply -o poses.json
    """
    if is_many(scans, context):
        with answering():
            return register_many(context, scans)
    if len(scans) < 2:
        raise click.UsageError(
            f"Missing argument 'TARGET': only {scans[0]} is named. Name the other file as well; if both points of a "
            f"match are columns of one file, name it twice: --columns x1,y1,z1 --columns x2,y2,z2 --paired.",
            context,
        )
    source, target = scans
    others = [Output("-t", "Transformation", transform, is_transformation)] if transform is not None else []
    others += [Output("--moved", "Moved", moved, never)] if moved is not None else []
    as_json = as_json or json_pairs
    job = Job(context, (source, target), output, report, as_json, quiet, force, tuple(others), json_pairs=json_pairs)
    with answering():
        if settings["model"] == "rotation" and settings["reflection"]:
            raise BadInput("--model rotation never reflects. Use --model orthogonal, or leave out --reflection.")
        if pairs is not None and keys:
            raise BadInput("--pairs and --key both say which points belong together. Give one of them.")
        if paired is not None and (pairs is not None or keys):
            raise BadInput("--pairs and --key say which points belong together. Leave out --paired and --clouds.")
        _check_outputs(transform, moved)
        job.check_outputs(*(name for name in (pairs, weights) if name is not None and _is_file(name)))
        with stages(quiet=quiet) as stage, job.noting():
            stage(f"reading {source} and {target}")
            tables = read_both(source, target, keys, columns)
        if pairs is None and not keys and (are_clouds(tables, job) if paired is None else not paired):
            return _register_clouds(job, tables, settings["model"], settings["seed"], transform, moved)
        with stages(quiet=quiet) as stage, job.noting():
            problem = _problem(tables, job.sources, pairs, keys, weights)
            _check_fits(problem, job.sources, settings["model"], moved)
            job.notes.extend(problem.pairing.notes)
            for table in (problem.source, problem.target):
                noting_odd_values(table, job, AS_POINTS)
            stage(f"registering {len(problem.pairing):,} pairs")
            registration = _register(job, problem, **settings)
        summary = _summary(registration, problem, job)
        if transform is not None:
            _write_transformation(summary, transform)
        if moved is not None:
            _write_moved(summary.transformation, problem.source, keys, moved)
        job.write_pairs(summary)
        job.conclude(summary)
    return None


def _register_clouds(
    job: Job, tables: tuple[Table, Table], model: str, seed: int, transform: Path | None, moved: Path | None
) -> None:
    """Register two raw clouds, and write what is asked for."""
    from inlier.estimators.clouds import CloudRegistration

    check_no_pair_options(job)
    with stages(quiet=job.quiet) as stage, job.noting():
        tables = in_space(tables, job)
        stage(f"registering {len(tables[0]):,} and {len(tables[1]):,} points")
        registration = CloudRegistration(random_state=seed, raise_on_failure=False, model=model)
        registration.fit(tables[0].values, tables[1].values)
    summary = summary_of(registration, *tables, job)
    if not registration.success_:  # the best guess is in the JSON, and nowhere where it could be taken for an answer
        conclude(job, summary, [])
        job.context.exit(NOTHING_FOUND)
    if transform is not None:
        _write_transformation(summary, transform)
    if moved is not None:
        _write_moved(registration.transformation_, tables[0], (), moved)
    written = [(what, path) for what, path in (("Transformation", transform), ("Moved", moved)) if path is not None]
    conclude(job, summary, written)


def _check_outputs(transform: Path | None, moved: Path | None) -> None:
    """Refuse what could not be written, before the work is done."""
    from inlier.io import Kind, check_can_hold_columns, format_of

    if transform is not None and transform.suffix.lower() not in _MATRIX_SUFFIXES:
        raise BadInput(f"{transform}: a transformation is written as .txt, .json or .npy.")
    if moved is not None:
        format = format_of(moved)
        if format.kind is Kind.PICTURE:
            raise BadInput(f"{moved} would be a picture, but points are to be written. Use the suffix of SOURCE.")
        if format.kind in (Kind.COLUMNS, Kind.ARRAYS):
            check_can_hold_columns(moved)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Both sets, the pairs between them, the rows that PAIRS joins, and a weight for each pair."""

    source: Table
    target: Table
    pairing: Pairing
    ends: tuple[Array, Array] | None
    weights: FloatArray | None

    @property
    def clouds(self) -> tuple[Array, Array] | None:
        """All points of both sets, where the pairs do not hold each of them once."""
        is_all = self.ends is None and len(self.pairing) == len(self.source) == len(self.target)
        return None if is_all else (self.source.values, self.target.values)


def _problem(
    tables: tuple[Table, Table], sources: tuple[str, str], pairs: str | None, keys: tuple[str, ...], weights: str | None
) -> _Problem:
    """Pair the points: by PAIRS, by id, or row by row."""
    import numpy as np

    from inlier.io import Pairing, pair_tables

    first, second = tables
    if pairs is None and not keys and len(first) != len(second):
        raise BadInput(
            f"{sources[0]} has {len(first):,} rows and {sources[1]} has {len(second):,}, so that row i of one cannot "
            f"belong with row i of the other. Say which points belong together with --pairs or --key; or, if they are "
            f"the points of two raw clouds, in any order, say --clouds."
        )
    if pairs is None:
        pairing, ends = pair_tables(first, second), None
        check_numbers(pairing, sources, (first, second))
    else:
        ends = read_ends(pairs, first, second)
        pairing = Pairing(first.values[ends[0]], second.values[ends[1]], np.arange(len(ends[0])))
        check_numbers(replace(pairing, rows=ends[0], rows_y=ends[1]), sources, (first, second))
    n_rows = len(first) if pairs is None else len(pairing)
    given = None if weights is None else _read_weights(weights, pairs or sources[0], n_rows)[pairing.rows]
    return _Problem(first, second, pairing, ends, given)


def _read_weights(weights: str, rows_of: str, n_rows: int) -> FloatArray:
    """One number a row: from a file of their own, or from a column beside the rows."""
    from inlier.io import read_table

    table = read_table(weights) if _is_file(weights) else read_table(rows_of, columns=[weights])
    if table.values.shape != (n_rows, 1):
        raise BadInput(
            f"{table.source} must hold one weight for each of the {n_rows:,} rows of {rows_of}, but it has "
            f"{len(table):,} rows and {table.values.shape[1]} columns."
        )
    return table.values[:, 0].astype(float)


def _is_file(name: str) -> bool:
    """Whether this names a file, or an array in one; otherwise it is a column."""
    from inlier.io import format_of, split_source

    path, _ = split_source(name)
    try:
        format_of(path)
    except UnusableFileError:
        return path.exists()
    return True


def _check_fits(problem: _Problem, names: tuple[str, str], model: str, moved: Path | None) -> None:
    """Refuse sets that the model cannot join, and points that the file for them cannot hold."""
    from inlier.io.formats import CloudCodec, format_of

    d_x, d_y = problem.source.values.shape[1], problem.target.values.shape[1]
    if d_x != d_y and model != "affine":
        raise BadInput(
            f"{names[0]} has {d_x} columns and {names[1]} has {d_y}. Choose the coordinates with --columns, or use "
            f"--model affine."
        )
    if moved is not None and d_y != 3 and isinstance(format_of(moved).codec, CloudCodec):
        raise BadInput(
            f"{moved} holds points of three coordinates, but those of {names[1]} have {d_y}. Write csv or npy."
        )


def _register(job: Job, problem: _Problem, *, seed: int, **settings: Any) -> Registration:
    from inlier.estimators.registration import Registration
    from inlier.exceptions import NoConsensusError

    registration = Registration(random_state=seed, **settings)
    try:
        return registration.fit(problem.pairing.X, problem.pairing.Y, sample_weight=problem.weights)
    except NoConsensusError as error:
        say(f"{job.in_words(error)} {_what_to_check(problem, *job.sources)}")
        job.context.exit(NOTHING_FOUND)


def _what_to_check(problem: _Problem, source: str, target: str) -> str:
    """How the pairs came about, in case they did not mean to."""
    if problem.ends is not None:
        return f"The first column of --pairs names rows of {source}, the second rows of {target}; check that they do."
    if problem.pairing.keys is not None:
        return f"Rows with the same id were paired; check that it means the same in {source} and {target}."
    return (
        f"Row i of {source} was taken for the partner of row i of {target}; if it is not, say who is with --pairs, or "
        f"that they are raw clouds with --clouds."
    )


def _summary(registration: Registration, problem: _Problem, job: Job) -> RegistrationSummary:
    from inlier.report.registration_summary import summarise_registration

    pairing = problem.pairing
    return summarise_registration(
        registration,
        pairing.X,
        pairing.Y,
        rows=pairing.rows,
        keys=pairing.keys,
        ends=problem.ends,
        clouds=problem.clouds,
        origin=job.origin,
    )


def _write_transformation(summary: RegistrationSummary | CloudSummary, path: Path) -> None:
    """Write all about it as JSON, or its matrix."""
    from inlier.io import write_file, write_table

    found = summary.registration.transformation_
    assert found is not None
    if path.suffix.lower() != ".json":
        write_table(path, found.matrix)
        return
    origin = {"sources": summary.origin.sources, "command": summary.origin.command}
    content = {**summary.transformation_dict(), **origin}
    write_file(path, json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def _write_moved(found: Any, source: Table, keys: tuple[str, ...], path: Path) -> None:
    """Write the source moved onto the target: like its file, or with its ids where there are some."""
    from inlier.io import Kind, format_of, write_like, write_table

    values = found(source.values)
    if source.keys is not None and format_of(path).kind in (Kind.COLUMNS, Kind.ARRAYS):
        names = source.columns if source.columns and len(source.columns) == values.shape[1] else None
        numbered = names or tuple(map(str, range(values.shape[1])))
        write_table(path, {keys[0]: source.keys, **dict(zip(numbered, values.T, strict=True))})
    else:
        write_like(source, path, values, getattr(found, "rotation", None) if values.shape[1] == 3 else None)


# ---- two raw clouds


def are_clouds(tables: tuple[Table, Table], job: Job) -> bool:
    """Whether both files hold points in space, and nothing says who belongs to whom or speaks of pairs."""
    from inlier.io import Kind, format_of, split_source

    if all(format_of(split_source(source)[0]).kind is Kind.POINTS for source in job.sources):
        return True
    is_one_file = job.sources[0] == job.sources[1]  # other columns of the same rows
    if is_one_file or _of_pairs(job.context) or any(table.values.shape[1:] != (3,) for table in tables):
        return False
    if len(tables[0]) == len(tables[1]):
        job.notes.append(
            "Both files have three columns and as many rows, and are taken for two raw clouds, whose rows are in any "
            "order. If row i of one belongs with row i of the other, say --paired."
        )
    return True


def _of_pairs(context: click.Context) -> list[str]:
    """The options that were given and have no meaning where there are no pairs."""
    source = click.core.ParameterSource.COMMANDLINE
    options = [one for one in context.command.params if context.get_parameter_source(one.name or "") is source]
    given = [one.opts[-1] for one in options if one.name in _OF_PAIRS]
    model = context.params["model"]
    return [*given, *([] if model in _CLOUD_MODELS else [f"--model {model}"])]


def check_no_pair_options(job: Job) -> None:
    """Refuse options that have no meaning where there are no pairs."""
    for option in _of_pairs(job.context):
        instead = (
            "" if not option.startswith("--model") else ", for which there are --model rigid and --model similarity"
        )
        raise BadInput(
            f"{option} is about pairs, but {job.sources[0]} and {job.sources[1]} are two raw "
            f"clouds here{instead}. Say which points belong together with --pairs, or that row i belongs with row i "
            f"with --paired; or leave {option} out."
        )


def summary_of(registration: CloudRegistration, source: Table, target: Table, job: Job) -> CloudSummary:
    """What was found, in words and numbers."""
    from inlier.report import summarise_clouds

    return summarise_clouds(registration, source.values, target.values, job.origin)


def conclude(job: Job, summary: CloudSummary, written: list[tuple[str, Path]]) -> None:
    """Write the page, print the answer, and name the files that were written."""
    from inlier.report import CloudReport

    if job.report is not None:
        CloudReport(summary).write_html(job.report)
        written = [*written, ("Report", job.report)]
    if job.as_json:
        click.echo(summary.json(indent=1))
    if job.quiet:
        return
    for note in summary.origin.notes:
        say(f"Note: {note}")
    refused = not summary.registration.success_
    for sentence in (summary.answer, *summary.details):
        say(job.in_words(sentence), to_stderr=job.as_json or refused)
    for what, path in written:
        say(f"{what}: {path}")


def in_space(tables: tuple[Table, Table], job: Job) -> tuple[Table, Table]:
    """Both tables as points in space: columns x, y and z, where a table has these among others."""
    first, second = (_points_of(table, source, job) for table, source in zip(tables, job.sources, strict=True))
    return first, second


def _points_of(table: Table, source: str, job: Job) -> Table:
    from inlier.io.formats import XYZ
    from inlier.io.table import listed

    if table.values.shape[1] == 3:
        return table
    names = [name.strip().lower() for name in table.columns or ()]
    if any(names.count(axis) != 1 for axis in XYZ):
        raise BadInput(
            f"{source} has {table.values.shape[1]} columns; raw clouds have three coordinates. Choose them with "
            f"--columns, or say with --paired that row i of both files belongs together."
        )
    chosen = [names.index(axis) for axis in XYZ]
    left = [name for place, name in enumerate(table.columns or ()) if place not in chosen]
    job.notes.append(f"Points of {source} are its columns x, y and z, without {listed(left)}.")
    return replace(table, values=table.values[:, chosen], columns=XYZ)
