"""Columns of words, dates and text on the command line: made into numbers once it is known who belongs to whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from inlier.cli._outputs import BadInput

if TYPE_CHECKING:
    from inlier._typing import Array
    from inlier.cli._common import Job
    from inlier.io import Pairing, Table
    from inlier.rows.mixed import ColumnUse

_NAMED = 8  # columns that a note names, of each kind


def in_numbers(first: Table, second: Table, pairing: Pairing, job: Job) -> tuple[Table, Table, Pairing]:
    """Both tables with numbers for their texts, what was done in a note, and the pairs with them."""
    from inlier.estimators._mixed import IN_BOTH, compared_label, in_both, like_strata
    from inlier.rows.mixed import equal_columns

    named = [
        zip(table.columns or (), values.T, strict=False) for table, values in ((first, pairing.X), (second, pairing.Y))
    ]
    job.notes.extend(
        compared_label(name, share, f"say --stratum {name}, and it is not compared")
        for name, share in like_strata(*named)
    )
    if not first.words and not second.words:
        return first, second, pairing
    of_pairs = [
        [(name, texts[rows]) for name, texts in table.words.items()]
        for table, rows in ((first, pairing.rows), (second, pairing.rows_of_y))
    ]
    same = equal_columns(of_pairs[0], of_pairs[1], IN_BOTH)
    job.notes.extend(in_both(name, share, f"say --stratum {name}") for name, (_, share) in same.items())
    first = _coded(first, "X", list(same), job)
    second = _coded(second, "y", [name for name, _ in same.values()], job)
    return first, second, replace(pairing, X=first.values[pairing.rows], Y=second.values[pairing.rows_of_y])


def _coded(table: Table, side: str, without: Sequence[str], job: Job) -> Table:
    """One table; what is made of its columns is learned from all of its rows."""
    from inlier.rows.mixed import MixedColumns

    if not table.words:
        return table
    columns = [*_columns_of(table)]
    coded = MixedColumns.of(columns, side, without)
    job.notes.append(f"Columns of {table.source}: {said_of(coded.uses)}.")
    if not coded.names:
        raise BadInput(f"{table.source} has no column that can be compared: {said_of(coded.uses)}.")
    return replace(table, values=coded(columns, len(table)), columns=coded.names)


def _columns_of(table: Table) -> Iterator[tuple[str, Array]]:
    names = table.columns or tuple(map(str, range(table.values.shape[1])))
    yield from zip(names, table.values.T, strict=True)
    yield from table.words.items()


def said_of(uses: Sequence[ColumnUse]) -> str:
    """What was done to columns, those of one kind together."""
    named: dict[str, list[str]] = {}
    for use in uses:
        became = f" ({use.n} columns)" if use.n > 1 else ""
        named.setdefault(f"{use.kind}, {use.how}" if use.n else use.how, []).append(f"{use.column!r}{became}")
    parts = []
    for how, names in named.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        parts.append(
            f"{', '.join(names[:_NAMED])}{more} {how}" if ":" in how else f"{', '.join(names[:_NAMED])}{more}: {how}"
        )
    return "; ".join(parts)
