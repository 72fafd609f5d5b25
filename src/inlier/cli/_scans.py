"""``inlier register`` on more than two scans: files, a folder, a pattern."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._common import NOTHING_FOUND, command_line
from inlier.cli._outputs import BadInput, Output, check_outputs, is_page, never, say
from inlier.cli._progress import stages

if TYPE_CHECKING:
    from inlier.scans.model import Model

_POSES = (".json", ".g2o", ".txt")
_TAKEN = {
    "scans",
    "depth",
    "merged",
    "cache",
    "jobs",
    "output",
    "report",
    "force",
    "as_json",
    "quiet",
    "seed",
    "paired",
}


def is_many(given: Sequence[str], context: click.Context) -> bool:
    """Whether more than two scans are meant, or something is asked for that only many have."""
    is_folder = any(Path(one).is_dir() and Path(one).suffix.lower() != ".zarr" for one in given)
    is_pattern = any(sign in one and not Path(one).exists() for one in given for sign in "*?[")
    return (
        len(given) > 2
        or is_folder
        or is_pattern
        or bool(context.params["merged"] or context.params["cache"] or context.params["depth"])
    )


def register_many(context: click.Context, given: Sequence[str]) -> None:
    """Register them, and write what is asked for."""
    from inlier.io import split_source
    from inlier.scans.pairs import is_cache
    from inlier.scans.register import register_scans
    from inlier.scans.scan import files_of

    _refuse_other_options(context)
    asked = context.params
    output, merged, report, quiet, as_json = (
        asked[name] for name in ("output", "merged", "report", "quiet", "as_json")
    )
    files = files_of(given, has_depth=asked["depth"] is not None)
    written = _outputs(output, merged, report)
    kept = [] if asked["cache"] is None else [Output("--cache", "Answers", asked["cache"], is_cache)]
    check_outputs([*written, *kept], (split_source(one)[0] for one in files), force=asked["force"])
    if len(files) < 2:
        raise BadInput(f"{files[0]} is the only scan, and there is nothing to register it with. Give two or more.")
    missing = [one for one in files if not split_source(one)[0].exists()]
    if missing:
        raise BadInput(f"{missing[0]} is not there. Check its name.")
    with stages(quiet=quiet) as stage, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        stage(f"registering {len(files)} scans")
        model = register_scans(
            files, depth=_camera(asked["depth"]), cache=asked["cache"], n_jobs=asked["jobs"], random_state=asked["seed"]
        )
        found = bool(model.placed)
        if found and output is not None:
            _write_poses(model, output)
        if found and merged is not None:
            from inlier.io import write_table

            stage(f"merging into {merged}")
            write_table(merged, model.merged())
    notes = list(dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning))
    if report is not None:
        _write_report(model, report, context, files, notes)
    if as_json:
        click.echo(model.json(indent=1))
    if not quiet:
        for note in notes:
            say(f"Note: {note}")
        for sentence in (model.answer, *model.details):
            say(sentence, to_stderr=as_json or not found)
        for one in written if found else [one for one in written if one.option == "--report"]:
            say(f"{one.what}: {one.path}")
    if not found:
        context.exit(NOTHING_FOUND)


def _camera(depth: str | None) -> list[float] | None:
    """What --depth says of the camera."""
    try:
        return None if depth is None else [float(word) for word in depth.split(",")]
    except ValueError:
        raise BadInput(f"--depth {depth} must be fx,fy,cx,cy: four numbers in pixels, with commas between.") from None


def _outputs(output: Path | None, merged: Path | None, report: Path | None) -> list[Output]:
    """What will be written, once it is sure that it can be."""
    from inlier.io import Kind, format_of

    if output is not None and output.suffix.lower() not in _POSES:
        raise BadInput(f"{output}: poses are written as .json (everything), .g2o (the graph) or .txt (a trajectory).")
    if merged is not None and not (
        format_of(merged).is_written and format_of(merged).kind in (Kind.POINTS, Kind.COLUMNS)
    ):
        raise BadInput(f"{merged} cannot hold a cloud with colours. Write ply, pcd, las or csv.")
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise BadInput(f"{report} would hold a page, which is HTML. Give it a name that ends in .html.")
    wanted = (
        ("-o", "Poses", output, _is_poses),
        ("--merged", "Merged", merged, never),
        ("--report", "Report", report, is_page),
    )
    return [Output(option, what, path, is_ours) for option, what, path, is_ours in wanted if path is not None]


def _is_poses(path: Path) -> bool:
    """Whether it is an earlier answer, or a graph."""
    head = path.read_bytes()[:200].lstrip()
    return head.startswith(b"VERTEX_SE3:QUAT") or (head[:1] == b"{" and b'"model": "scans"' in head)


def _write_poses(model: Model, path: Path) -> None:
    from inlier.io import write_file

    texts: dict[str, Any] = {".json": lambda: model.json(indent=1) + "\n", ".g2o": model.to_g2o}
    write_file(path, texts.get(path.suffix.lower(), model.to_trajectory)())


def _write_report(model: Model, path: Path, context: click.Context, files: list[str], notes: list[str]) -> None:
    from inlier.report.match_summary import Origin
    from inlier.report.scans_page import ScansReport

    ScansReport(model, Origin(tuple(files), command_line(context), tuple(notes))).write_html(path)


def _refuse_other_options(context: click.Context) -> None:
    """Options that speak of pairs, or of one motion, have no meaning here."""
    source = click.core.ParameterSource.COMMANDLINE
    for option in context.command.params:
        name = option.name or ""
        is_given = context.get_parameter_source(name) is source
        if is_given and (name not in _TAKEN or (name == "paired" and context.params["paired"])):
            raise BadInput(
                f"{option.opts[-1]} is about two files, but more than two scans are registered here. Leave it out; "
                f"--merged, -o, --report and --cache are for many scans."
            )
