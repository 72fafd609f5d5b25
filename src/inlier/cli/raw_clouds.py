"""``inlier register`` without pairs: two raw clouds, of which nobody knows who belongs to whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._common import NOTHING_FOUND, Job
from inlier.cli._outputs import BadInput, say

if TYPE_CHECKING:
    from inlier.estimators.clouds import CloudRegistration
    from inlier.io import Table
    from inlier.report import CloudSummary

_MODELS = ("rigid", "similarity")
_OF_PAIRS = ("reflection", "noise_bound", "weights", "alpha", "output")  # options that say something of pairs


def are_clouds(sources: tuple[str, str]) -> bool:
    """Whether both files hold points and nothing says who belongs to whom; tables are pairs row by row."""
    from inlier.io import Kind, format_of, split_source

    return all(format_of(split_source(source)[0]).kind is Kind.POINTS for source in sources)


def check_no_pair_options(context: click.Context) -> None:
    """Refuse options that have no meaning where there are no pairs."""
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and parameter.name in _OF_PAIRS:
            raise BadInput(
                f"{parameter.opts[-1]} is about pairs, but {context.params['source']} and {context.params['target']} "
                f"are two raw clouds here. Say which points belong together with --pairs, or that row i belongs with "
                f"row i with --paired; or leave {parameter.opts[-1]} out."
            )
    if context.params["model"] not in _MODELS:
        raise BadInput(
            f"--model {context.params['model']} is about pairs, but {context.params['source']} and "
            f"{context.params['target']} are two raw clouds here, for which there are --model rigid and --model "
            f"similarity. Or say which points belong together with --pairs or --paired."
        )


def fit_clouds(job: Job, source: Table, target: Table, model: str, seed: int) -> CloudRegistration:
    """Register two clouds; where nothing is sure, say so and leave with the exit code for that."""
    from inlier.estimators.clouds import CloudRegistration
    from inlier.exceptions import NoConsensusError

    try:
        return CloudRegistration(random_state=seed, model=model).fit(source.values, target.values)
    except NoConsensusError as error:
        say(job.in_words(error))
        job.context.exit(NOTHING_FOUND)


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
    for sentence in (summary.answer, *summary.details):
        say(sentence, to_stderr=job.as_json)
    for what, path in written:
        say(f"{what}: {path}")


def check_columns(tables: tuple[Any, Any], sources: tuple[str, str]) -> None:
    """Refuse tables that are no points in space."""
    for table, source in zip(tables, sources, strict=True):
        if table.values.shape[1] != 3:
            raise BadInput(
                f"{source} has {table.values.shape[1]} columns; raw clouds have three coordinates. Choose them with "
                f"--columns, or say with --paired that row i of both files belongs together."
            )
