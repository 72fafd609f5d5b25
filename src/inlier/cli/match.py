"""``inlier match``: two files of paired rows, which pairs are real?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._common import (
    NOTHING_FOUND,
    STDOUT,
    Job,
    ReadsFiles,
    answer_options,
    answering,
    check_numbers,
    columns_of_both,
    missing_codes,
    without_codes,
)
from inlier.cli._learning import Wanted, learning_options
from inlier.cli._max_wrong import max_wrong_option, too_many_wrong
from inlier.cli._one_file import check_one, side_options, sides, write_beside_rows
from inlier.cli._outputs import BadInput, print_csv
from inlier.cli._progress import bytes_read, stages
from inlier.cli._repair import Repairing, RepairWanted, columns_of_file, repair_options
from inlier.cli._tables import AS_GAPS, AS_NUMBERS, Reading, format_option, noting_odd_values, standard_input
from inlier.cli._words import in_numbers

if TYPE_CHECKING:
    from inlier._typing import Array
    from inlier.estimators._base import PairMatcher
    from inlier.report import MatchSummary
    from inlier.rows.files import StoredRows

VARIABLE = "INLIER_STREAM_FROM"  # gibibytes
_SHARE = 8  # tables of this part of the memory are read in stretches, and of a GiB: reading and fitting holds copies
_BYTES_A_PAIR = 150  # that scores, p- and q-values and what is made of them take where all of them are held


@dataclass(frozen=True)
class _Settings:
    method: str
    alpha: float
    threshold: float | None
    inlier_fraction: float | None
    splits: int
    whiten: bool | None
    seed: int

    @property
    def is_calibrated(self) -> bool:
        """Whether all pairs are judged at once, with q-values."""
        return self.method == "calibrated" and self.splits == 1


@click.command(cls=ReadsFiles)
@click.argument("x", metavar="X")
@click.argument("y", metavar="[Y]", required=False)
@click.option(
    "--method",
    type=click.Choice(["calibrated", "row-sum", "eigenvector"]),
    default="calibrated",
    show_default=True,
    help="calibrated bounds the share of wrong pairs among those it accepts; the others are the paper's.",
)
@click.option("--threshold", type=float, help="Where to cut the scores, the paper's t or T; by k-means if not given.")
@click.option(
    "--inlier-fraction",
    type=click.FloatRange(0, 1, min_open=True),
    help="Share of real pairs, if you know it: sets the paper's threshold for it.",
)
@click.option("--splits", type=click.IntRange(1), default=1, show_default=True, help="Match in so many random parts.")
@click.option(
    "--whiten/--no-whiten",
    default=None,
    help="Allow any linear map between the two sets, not only a rotation.  [default: whiten if calibrated]",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN",
    help="Join the two tables on this id column, or on the ids in a file of that name, one for each row. Twice: for X, "
    "then for Y.",
)
@click.option(
    "--columns",
    multiple=True,
    metavar="A,B,...",
    help="Columns to compare, all if not given; ^A,^B leaves some out, of each file those that it has. Twice: of X, "
    "then of Y; * is all.",
)
@side_options
@click.option(
    "--pairs",
    metavar="PAIRS",
    help="Table of supposed pairs, many to many: row in X and row in Y, counted from 0, in two columns or in those "
    "named source and target; with --key, ids instead of rows, as in a dictionary.",
)
@click.option(
    "--transpose",
    is_flag=True,
    help="Both files have a column per sample: turn them over, and join them on the header. Where the ids say so, that "
    "is noticed, for each file.",
)
@format_option
@click.option(
    "--group",
    metavar="COLUMN",
    help="Rows with the same value here belong together: a subject's replicates. Read from X, or else from Y.",
)
@click.option(
    "--stratum",
    metavar="COLUMN",
    help="Wrong partners come from rows with the same value here: a plate, a tissue. Read from X, or else from Y.",
)
@click.option(
    "--meta",
    metavar="FILE",
    help="Read --group and --stratum from this table instead: by id where there is a --key, else row by row as X.",
)
@click.option(
    "--missing",
    metavar="CODE,...",
    help="Numbers that stand for a missing value, such as -9999; empty cells, NA and NaN do so anyway.",
)
@repair_options
@max_wrong_option
@learning_options
@answer_options(
    "row, row_y and key if joined, source and target with --pairs, score, p- and q-value, inlier, certain q-value, "
    "certain, n_rivals",
    alpha_of=" (calibrated)",
)
@click.pass_context
def match(
    context: click.Context,
    /,
    x: str,
    y: str | None,
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    columns_x: str | None,
    columns_y: str | None,
    pairs: str | None,
    transpose: bool,
    format_of_stdin: str | None,
    group: str | None,
    stratum: str | None,
    meta: str | None,
    missing: str | None,
    repair: Path | None,
    plate: str | None,
    unmatched: bool,
    suspects: Path | None,
    map_file: Path | None,
    new_file: Path | None,
    clean_file: Path | None,
    same_columns: bool,
    output: Path | None,
    report: Path | None,
    force: bool,
    as_json: bool,
    json_pairs: bool,
    max_wrong: float | None,
    quiet: bool,
    **settings: Any,
) -> None:
    """Tell which rows of X and Y are real pairs.

    Row i of file X belongs with row i of file Y, or rows with the same id do (--key), or a table says who belongs
    together (--pairs), or both are columns of one file (--x and --y). The suffix says how a file is read: FORMATS
    (text with .gz, too); - is standard input (--format). One of several arrays or sheets in a file is named after a
    colon, as in data.npz:x. Rows and columns count from 0.

    Large npy, zarr and hdf5 files, and vectors in parquet, are read in stretches and need not fit into memory;
    --report, --splits and --key look at all pairs at once.

    Exit code 0: pairs were found; 1: none was, or more are wrong than --max-wrong; 2: something was wrong with the
    input.

    \b
    Example:
      inlier demo --pairs 3000 --save-pairs example
      inlier match example/x.csv example/y.csv --key id --report report.html
      inlier match example/x.csv example/y.csv --key id --method row-sum -o pairs.csv
      inlier match example/x.csv example/y.csv --key id --repair fixed.csv
    """
    chosen = _Settings(**settings)
    labels = {name: column for name, column in (("groups", group), ("strata", stratum)) if column is not None}
    with answering(), ExitStack() as stack:
        is_one = y is None
        first, second, columns = sides(x, y, columns, columns_x, columns_y)
        sources = stack.enter_context(standard_input((first, second), format_of_stdin, is_one=is_one))
        if is_one:
            check_one(
                {"--key": keys, "--pairs": pairs, "--transpose": transpose, "--repair": repair, "--suspects": suspects}
            )
        rows_of = sources[0] if is_one and sources[0] == sources[1] else None
        wanted = Wanted(map_file, new_file, clean_file, same_columns)
        repairs = RepairWanted(repair, suspects, unmatched, plate)
        others = (*wanted.outputs, *repairs.outputs)
        as_json = as_json or json_pairs
        job = Job(
            context, sources, output, report, as_json, quiet, force, others, rows_of=rows_of, json_pairs=json_pairs
        )
        codes, labels = tuple(missing_codes(missing)), labels | repairs.wells
        how = Reading(keys, columns, pairs, transpose, labels, codes, meta, with_words=chosen.is_calibrated)
        repairs.check(chosen.is_calibrated, how)
        _check_options(context, chosen, how)
        if max_wrong is not None and chosen.method != "calibrated":
            raise BadInput("--max-wrong belongs to --method calibrated, which estimates how many pairs are wrong.")
        wanted.check(chosen.is_calibrated, pairs)
        read_too = [file for file in (pairs, meta, *keys) if file is not None and Path(file).is_file()]
        job.check_outputs(*read_too)
        with job.noting():
            stored = None if how.needs_all or wanted or repairs else _stored_tables(chosen, job, columns)
        summary = _match(chosen, job, how, wanted, repairs) if stored is None else _match_stored(chosen, job, stored)
        job.conclude(summary)
    if summary.n_inliers == 0 or (max_wrong is not None and too_many_wrong(summary, max_wrong)):
        context.exit(NOTHING_FOUND)


def _match(chosen: _Settings, job: Job, how: Reading, wanted: Wanted, repairs: RepairWanted) -> MatchSummary:
    """Match files that are read as a whole, and write the pairs."""
    from inlier.report.match_summary import summarise

    with stages(quiet=job.quiet) as stage, job.noting():
        stage(f"reading {' and '.join(dict.fromkeys(job.sources))}")
        tables = how.read(job)
        codes = list(how.codes)
        becomes = AS_GAPS if chosen.is_calibrated else AS_NUMBERS
        first, second = (noting_odd_values(without_codes(table, codes), job, becomes) for table in tables)
        groups = how.groups_of_files(job.sources) if repairs else None
        pairing = how.pair(first, second, groups, in_order=bool(repairs))
        job.notes.extend(pairing.notes)
        first, second, pairing = in_numbers(first, second, pairing, job)
        job.headings.update(
            {name: of.columns for name, of in zip(("X", "y"), (first, second), strict=True) if of.columns}
        )
        check_numbers(pairing, job.sources, (first, second), allow_gaps=chosen.is_calibrated)
        given = {name: how.labels_of(column, job.sources, pairing) for name, column in how.labels.items()}
        given |= wanted.given(first, second, pairing)
        wells = given.pop("wells", None)
        stage(f"matching {len(pairing):,} pairs")
        matcher = _matcher(chosen, pairing.X, pairing.Y)
        if wanted.same_columns:
            matcher.set_params(same_columns=wanted.columns(first, second))
        matcher.fit(pairing.X, pairing.Y, **given)
        if wanted.new_file is not None:
            stage("looking for new partners")
        findings = tuple(wanted.write(matcher, first, second, pairing))
        repairing = None
        if repairs:
            stage("looking for partners")
            id_name = how.keys[0] if how.keys else None
            repairing = Repairing.of(matcher, (first, second), pairing, repairs, id_name, wells, groups)
            if repairs.fixed is not None:
                job.notes.extend(repairing.notes(repairs.fixed, job.sources[1]))
                repairing.write(repairs.fixed, columns_of_file(tables[1], job.sources[1], how.key_of_y))
            if repairs.suspects is not None:
                repairing.write_suspects(repairs.suspects)
    facts: dict[str, Any] = {"rows": pairing.rows, "rows_y": pairing.rows_y, "keys": pairing.keys}
    if pairing.ends is not None:  # named by a table of their own: the rows are its lines
        facts = {"rows": pairing.lines, "ends": pairing.ends}
    repaired = None if repairing is None else repairing.repair
    summary = summarise(matcher, **facts, origin=job.origin, repair=repaired, findings=findings)
    job.write_pairs(summary)
    return summary


def _match_stored(chosen: _Settings, job: Job, tables: tuple[StoredRows, StoredRows]) -> MatchSummary:
    """Match files larger than memory: rows are read in stretches, with a bar, and pairs written as they are decided."""
    from inlier.estimators.streaming import bytes_to_read, fit_files
    from inlier.io import write_blocks
    from inlier.report.match_summary import summarise_streamed
    from inlier.report.tally import Tally

    with job.noting():
        matcher = _matcher(chosen, *tables)
    output, tally = job.output, Tally()
    suffix = "" if output is None else output.suffix.lower()
    is_on_screen = output == STDOUT and sys.stdout.isatty()
    n_columns = 7 if matcher.is_calibrated else 2  # score, inlier; p- and q-value, and what is certain
    again = {".json": n_columns, ".npz": n_columns - 1}.get(suffix, 0)  # they are kept column after column
    expected = bytes_to_read(matcher, *tables) + again * sum(table.n_bytes for table in tables)
    with bytes_read(expected, quiet=job.quiet or is_on_screen) as on_read:
        with job.noting():
            fitted = fit_files(matcher, *tables, on_read=on_read)

        def counted(*names: str) -> Iterator[dict[str, Array]]:
            """Blocks of pairs, counted the first time that they pass by."""
            if tally.counts.any() or names == ("row",):
                yield from fitted.blocks(*names)
                return
            for block in fitted.blocks():
                tally.add(block, block["score"])
                yield {name: block[name] for name in names}

        if output == STDOUT:
            print_csv(counted(*fitted.columns))
        elif output is not None and job.adds_to_rows:
            write_beside_rows(job.sources[0], output, counted(*fitted.columns), quiet=job.quiet)
        elif output is not None and suffix != ".json":
            written = {"inlier": fitted.columns["inlier"]} if suffix == ".npy" else fitted.columns
            write_blocks(output, written, fitted.n_pairs, counted)
        else:
            for _ in counted():
                pass
        summary = summarise_streamed(fitted, tally, job.origin)
        if output is not None and suffix == ".json":
            job.write_pairs(summary)
    return summary


def _stored_tables(chosen: _Settings, job: Job, columns: tuple[str, ...]) -> tuple[StoredRows, StoredRows] | None:
    """Both tables, unread, if they are so large that they are to be read in stretches; otherwise None.

    With an option that looks at all pairs at once, files are read as small ones are, as far as there is memory for
    what is held then.
    """
    from inlier.io import open_stored
    from inlier.io.limits import GIB, bytes_set_by, memory_allowed

    first, second = (
        open_stored(source, columns=names) for source, names in zip(job.sources, columns_of_both(columns), strict=True)
    )
    if first is None or second is None or len(first) != len(second):
        return None
    allowed = memory_allowed()
    if first.n_bytes + second.n_bytes < bytes_set_by(VARIABLE, min(GIB, allowed // _SHARE)):
        return None
    most = _most_at_once(chosen.method)
    if job.report is not None or chosen.splits > 1:
        option = "--splits" if job.report is None else "--report"
        reason, cure = f"{option} looks at all pairs at once", f"Leave out {option}, or match fewer rows"
    elif len(first) <= most:
        reason = f"--method {chosen.method} looks at up to {most:,} pairs at once"
        cure = "Use --method row-sum or eigenvector, or fewer --columns"
    else:
        return first, second
    needed = len(first) * (_BYTES_A_PAIR + 16 * (first.shape[1] + second.shape[1]))
    if needed > allowed:
        raise BadInput(
            f"{reason}, which takes about {needed / GIB:.1f} GiB for the {len(first):,} pairs of {job.sources[0]} and "
            f"{job.sources[1]}; there are {allowed / GIB:.1f} GiB of memory. {cure}."
        )
    return None


def _most_at_once(method: str) -> int:
    """Number of pairs up to which a method looks at all of them at once."""
    if method != "calibrated":
        return 0
    from inlier.estimators.calibrated import MOST_ONE_BY_ONE

    return MOST_ONE_BY_ONE


def _check_options(context: click.Context, chosen: _Settings, how: Reading) -> None:
    """Refuse what does not go together, before the work is done."""
    if how.transpose and (how.columns or how.labels):
        raise BadInput(
            "--transpose makes columns of rows: choose rows of the files beforehand, and leave --columns, "
            "--group and --stratum out."
        )
    if how.meta is not None and not how.labels:
        raise BadInput("--meta holds groups and strata. Name its columns with --group or --stratum.")
    if how.labels and not chosen.is_calibrated:
        option = "--group" if "groups" in how.labels else "--stratum"
        raise BadInput(f"{option} belongs to --method calibrated without --splits.")
    given = {
        name
        for name in ("alpha", "threshold", "inlier_fraction")
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    is_calibrated = chosen.method == "calibrated"
    for name in sorted(given):
        if (name == "alpha") != is_calibrated:
            option = f"--{name.replace('_', '-')}"
            home = "row-sum or eigenvector" if is_calibrated else "calibrated"
            raise BadInput(f"{option} does nothing with --method {chosen.method}. It belongs to --method {home}.")
    if {"threshold", "inlier_fraction"} <= given:
        raise BadInput("--threshold and --inlier-fraction both say where to cut. Give one of them.")


def _matcher(chosen: _Settings, X: Any, Y: Any) -> PairMatcher:
    whiten = chosen.method == "calibrated" if chosen.whiten is None else chosen.whiten
    matcher: PairMatcher
    if chosen.method == "calibrated":
        from inlier.estimators.calibrated import CalibratedMatcher

        matcher = CalibratedMatcher(alpha=chosen.alpha, whiten=whiten, random_state=chosen.seed)
    else:
        matcher = _matcher_of_the_paper(chosen, whiten, X, Y)
    if chosen.splits == 1:
        return matcher
    from inlier.estimators.paper import SplitMatcher

    return SplitMatcher(matcher, chosen.splits, random_state=chosen.seed)


def _matcher_of_the_paper(chosen: _Settings, whiten: bool, X: Any, Y: Any) -> PairMatcher:
    from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher, eigenvector_threshold, row_sum_threshold

    fraction, threshold = chosen.inlier_fraction, "kmeans" if chosen.threshold is None else chosen.threshold
    if chosen.method == "eigenvector":
        return EigenvectorMatcher(threshold if fraction is None else eigenvector_threshold(fraction), whiten)
    if fraction is not None:
        from inlier.estimators._base import prepare_pairs

        # The paper's d is the larger of the two; whitening keeps the directions in which there is something.
        d = max(prepare_pairs(X, Y, whiten=True).dimensions if whiten else (X.shape[1], Y.shape[1]))
        threshold = row_sum_threshold(max(len(X) // chosen.splits, 1), d, fraction)
    return RowSumMatcher(threshold, whiten)
