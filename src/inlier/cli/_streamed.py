"""``inlier match`` on files larger than memory: rows are read in stretches, the answer is written as it is found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from inlier.cli._common import STDOUT, BadInput, Job, columns_of_both, print_csv, write_json

if TYPE_CHECKING:
    from inlier._typing import Array
    from inlier.estimators._base import PairMatcher
    from inlier.report import StreamedSummary
    from inlier.rows.files import StoredRows

VARIABLE = "INLIER_STREAM_FROM"  # gibibytes
_SHARE = 8  # tables of this part of the memory are read in stretches, and of a GiB: reading and fitting holds copies
_BYTES_A_PAIR = 150  # that scores, p- and q-values and what is made of them take where all of them are held

Stored = tuple["StoredRows", "StoredRows"]


def stored_tables(job: Job, columns: tuple[str, ...], *, method: str, whole: dict[str, bool]) -> Stored | None:
    """Both tables, unread, if they are so large that they are to be read in stretches; otherwise None.

    ``whole`` says which of the options that look at all pairs at once were given. With one of them, files are read as
    small ones are, as far as there is memory for what is held then.
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
    from inlier.estimators.calibrated import MOST_ONE_BY_ONE

    option = next((option for option, is_given in whole.items() if is_given), None)
    if option is not None:
        reason, cure = f"{option} looks at all pairs at once", f"Leave out {option}, or match fewer rows"
    elif method == "calibrated" and len(first) <= MOST_ONE_BY_ONE:
        reason = f"--method calibrated looks at up to {MOST_ONE_BY_ONE:,} pairs at once"
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


def match_streamed(matcher: PairMatcher, tables: Stored, job: Job) -> StreamedSummary:
    """Fit the matcher and write a row per pair, with a bar that shows how much was read."""
    from inlier.cli._progress import bytes_read
    from inlier.estimators.streaming import bytes_to_read, fit_files
    from inlier.io import write_blocks
    from inlier.report import Tally, summarise_streamed

    output, tally = job.output, Tally()
    suffix = "" if output is None else output.suffix.lower()
    is_on_screen = output == STDOUT and sys.stdout.isatty()
    n_columns = 4 if matcher.is_calibrated else 2  # score, inlier; and p- and q-value
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
        elif output is not None and suffix != ".json":
            written = {"inlier": fitted.columns["inlier"]} if suffix == ".npy" else fitted.columns
            write_blocks(output, written, fitted.n_pairs, counted)
        else:
            for _ in counted():
                pass
        summary = summarise_streamed(fitted, tally, job.origin)
        if output is not None and suffix == ".json":
            write_json(output, summary)
    return summary
