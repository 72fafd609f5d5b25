"""``inlier judge``: is a motion right that another tool found between two raw clouds?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._common import NOTHING_FOUND, Job, ReadsFiles, answering, read_both
from inlier.cli._outputs import BadInput, force_option
from inlier.cli._progress import stages
from inlier.cli.register import conclude, in_space, summary_of
from inlier.exceptions import ParameterError

if TYPE_CHECKING:
    from inlier._typing import Array

_MATRIX_IN_JSON = ("matrix", "transformation")  # keys under which a matrix may be found


@click.command(cls=ReadsFiles)
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.argument("motion", metavar="MOTION", type=click.Path(path_type=Path))
@click.option(
    "--columns",
    multiple=True,
    metavar="A,B,...",
    help="Columns that are coordinates: x, y and z of point clouds if not given. Twice: of SOURCE, then of TARGET.",
)
@click.option(
    "--model",
    type=click.Choice(("rigid", "similarity")),
    default="rigid",
    show_default=True,
    help="Whether MOTION turns and moves, or scales as well.",
)
@click.option("--report", type=click.Path(path_type=Path), metavar="OUT.html", help="Write a page to look at.")
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors, and what --json prints.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of all choices.")
@click.pass_context
def judge(
    context: click.Context,
    /,
    source: str,
    target: str,
    motion: Path,
    columns: tuple[str, ...],
    model: str,
    report: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    seed: int,
) -> None:
    """Say whether MOTION, which another tool found, carries the cloud SOURCE onto the cloud TARGET.

    The evidence is that of "inlier register": the motion must explain what looks alike and bring surfaces into contact,
    leave no freedom and have no rival, more than motions between clouds of different places do. MOTION is a 4 x 4
    matrix [[R, t], [0, 0, 0, 1]] that carries SOURCE onto TARGET, as .txt, .csv, .npy or .json ("matrix").
    The suffix says how a cloud is read: FORMATS.

    Exit code 0: it is right; 1: it is not, or not sure; 2: something was wrong with the input.

    \b
    Example:
      inlier demo --save-scans scans
      inlier register scans/source.ply scans/target.ply -t motion.txt
      inlier judge scans/source.ply scans/target.ply motion.txt
    """
    from inlier.estimators.clouds import CloudRegistration

    job = Job(context, (source, target), None, report, as_json, quiet, force)
    with answering():
        job.check_outputs(str(motion))
        with stages(quiet=quiet) as stage, job.noting():
            stage(f"reading {source} and {target}")
            matrix = read_motion(motion)
            tables = in_space(read_both(source, target, (), columns), job)
            stage(f"judging {motion}")
            verdict = CloudRegistration(random_state=seed, model=model)
            try:
                verdict.judge(tables[0].values, tables[1].values, matrix)
            except ParameterError as error:
                if error.parameter != "transformation":
                    raise
                raise BadInput(error.naming(str(motion))) from error
        conclude(job, summary_of(verdict, *tables, job), [])
        if not verdict.success_:
            context.exit(NOTHING_FOUND)


def read_motion(path: Path) -> Array:
    """The matrix in a file."""
    import numpy as np

    from inlier.io import read_table

    if path.suffix.lower() != ".json":
        return read_table(str(path)).values
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{path} is no JSON: {error}.") from error
    for key in _MATRIX_IN_JSON:  # what --json prints has the transformation within
        content = content.get(key, content) if isinstance(content, dict) else content
    while isinstance(content, dict) and "matrix" in content:
        content = content["matrix"]
    try:
        return np.array(content, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(
            f'{path} holds no 4 x 4 matrix: a list of four rows, or an object whose "matrix" is one.'
        ) from None
