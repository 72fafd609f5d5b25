"""``inlier match --repair``: with whom wrong rows belong, and the second table in the order of the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._learning import others_of
from inlier.cli._outputs import BadInput, Output

if TYPE_CHECKING:
    from inlier._typing import Array
    from inlier.cli._tables import Reading
    from inlier.io import Pairing, Table
    from inlier.repair.answer import Repair

_NAMED = 3  # rows that are nobody's partner


def repair_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options on what becomes of wrong rows."""
    for option in (
        click.option(
            "--suspects",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write a list for the laboratory: every row that is not kept, what to check first on top, with its "
            "three likeliest partners and their chances (calibrated).",
        ),
        click.option(
            "--plate",
            metavar="8x12|COLUMN",
            help="With --repair or --suspects: rows come from plates of so many rows and columns of wells, plate by "
            "plate and row by row; or the wells, such as A01, are in this column. Plates that were turned round, "
            "mirrored, or filled in another order are noticed.",
        ),
        click.option(
            "--unmatched",
            is_flag=True,
            help="With --repair or --suspects, and --key: look for partners among rows whose id only one file has, "
            "too, and for them.",
        ),
        click.option(
            "--repair",
            type=click.Path(path_type=Path),
            metavar="FIXED",
            help="Also say with whom wrong rows belong, and write the rows of Y in the order of X, with all their "
            "columns, to this file; empty where the partner is not known (calibrated).",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class RepairWanted:
    """Whether and how to say with whom wrong rows belong."""

    fixed: Path | None
    suspects: Path | None
    unmatched: bool
    plate: str | None = None  # its shape, or the column of wells

    def __bool__(self) -> bool:
        return self.fixed is not None or self.suspects is not None

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The files that will be written."""
        files = (
            ("--repair", "Repaired", self.fixed, _is_repaired),
            ("--suspects", "Suspects", self.suspects, _is_list),
        )
        return tuple(Output(option, name, path, is_ours) for option, name, path, is_ours in files if path is not None)

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and columns of wells of a plate, where these were given."""
        found = re.fullmatch(r"\s*(\d+)\s*[xX\N{MULTIPLICATION SIGN}]\s*(\d+)\s*", self.plate or "")
        return None if found is None else (int(found[1]), int(found[2]))

    @property
    def wells(self) -> dict[str, str]:
        """The column of wells, where it was named."""
        return {} if self.plate is None or self.shape is not None else {"wells": self.plate}

    def check(self, is_calibrated: bool, how: Reading) -> None:
        """Refuse, before the work is done, a repair that could not be made or written."""
        if self.unmatched and (not self or not (how.keys or how.transpose) or "strata" in how.labels):
            raise BadInput(
                "--unmatched belongs to --repair or --suspects, with ids to join on (--key), without --stratum."
            )
        if self.plate is not None and not self:
            raise BadInput("--plate says where slips are looked for: it belongs to --repair or --suspects.")
        if not self:
            return
        from inlier.io import check_can_hold_columns

        option = "--suspects" if self.fixed is None else "--repair"
        if not is_calibrated or how.pairs is not None:
            raise BadInput(f"{option} belongs to --method calibrated without --splits and --pairs.")
        for path in (self.fixed, self.suspects):
            if path is not None:
                check_can_hold_columns(path)


@dataclass(frozen=True, eq=False)
class Repairing:
    """A repair, and the rows of both files that it speaks of."""

    repair: Repair  # its labels are the ids, where the files were joined
    rows: Array  # of X, in its file
    rows_y: Array
    id_name: str  # what the ids are called, where there are any
    turned: str | None  # where Y has a column per sample: the heading of the names of its rows

    @staticmethod
    def of(
        matcher: Any,
        tables: tuple[Table, Table],
        pairing: Pairing,
        wanted: RepairWanted,
        id_name: str | None,
        wells: Any = None,
        groups: tuple[Array, Array] | None = None,
    ) -> Repairing:
        """Repair pairs; where that is asked for, look also among rows that only one file has, and for them."""
        import numpy as np

        rows, rows_y, rest, of_rest = pairing.rows, pairing.rows_of_y, None, None
        in_order = pairing.keys is None and (len(tables[0]) != len(tables[1]) or pairing.rows_y is not None)
        if wanted.unmatched or in_order:
            (others, X_rest), (others_y, Y_rest) = others_of(tables[0], rows), others_of(tables[1], rows_y)
            rest = X_rest, Y_rest
            of_rest = None if groups is None else (groups[0][others], groups[1][others_y])
            rows, rows_y = np.concatenate([rows, others]), np.concatenate([rows_y, others_y])
        order = None if pairing.keys is None else pairing.rows_of_y
        repair = matcher.repair(unpaired=rest, wells=wanted.shape or wells, unpaired_groups=of_rest, order=order)
        if pairing.keys is None and repair.slips:
            repair = replace(repair, slips=tuple(slip.among(rows) for slip in repair.slips))
        if pairing.keys is not None:
            assert tables[0].keys is not None
            assert tables[1].keys is not None
            repair = replace(repair, labels=(tables[0].keys[rows], tables[1].keys[rows_y]))
        return Repairing(repair, rows, rows_y, id_name or "id", tables[1].turned)

    def notes(self, path: Path, source: str) -> Iterator[str]:
        """Say how much of the file will be empty, and which rows of Y will not be in it."""
        n_empty, left_over = int((self.repair.partner < 0).sum()), self.repair.left_over
        if n_empty:
            rows = "one row is" if n_empty == 1 else f"{n_empty:,} rows are"
            rows = rows if self.turned is None else rows.replace("row", "column", 1)
            yield f"In {path} {rows} without values of Y: the old partner looks wrong or is missing, and none is named."
        if left_over.size:
            names = self.rows_y[left_over] if self.repair.labels is None else self.repair.labels[1][left_over]
            some = ", ".join(map(str, names[:_NAMED])) + (", ..." if left_over.size > _NAMED else "")
            rows = "One row" if left_over.size == 1 else f"{left_over.size:,} rows"
            yield f"{rows} of {source} {'is' if left_over.size == 1 else 'are'} nobody's partner in {path}: {some}."

    def write(self, path: Path, of_y: dict[str, Array]) -> None:
        """Write id, verdict, partner and q-value per row of X, as in its file; its partner's columns.

        Where Y has a column per sample, so has what is written, without the verdicts.
        """
        import numpy as np

        from inlier.io import write_table
        from inlier.io.table import REPAIR_COLUMNS

        repair, partner = self.repair, self.repair.partner
        if self.turned is not None:
            write_table(path, self._turned_over(of_y, self.turned))
            return
        columns: dict[str, Array] = {}
        if repair.labels is None:
            of_partner = np.where(partner >= 0, self.rows_y[partner], -1)
        else:
            columns[self.id_name], ids = repair.labels
            of_partner = np.where(partner >= 0, ids[partner], "")
        said = (self.rows, repair.kind, of_partner, repair.q_values)
        columns |= dict(zip(REPAIR_COLUMNS, said, strict=True))
        for name, column in of_y.items():
            columns[f"{name} of y" if name in columns else name] = repair.apply(column[self.rows_y])
        order = np.argsort(self.rows, kind="stable")
        write_table(path, {name: column[order] for name, column in columns.items()})

    def _turned_over(self, of_y: dict[str, Array], heading: str) -> dict[str, Array]:
        """A column for each sample of X, in its order, with what was measured of its partner; empty without one."""
        import numpy as np

        ids = self.rows if self.repair.labels is None else self.repair.labels[0]
        values = np.stack([self.repair.apply(column[self.rows_y]) for column in of_y.values()])
        order = np.argsort(self.rows, kind="stable")
        return {heading: np.array(list(of_y))} | {str(ids[row]): values[:, row] for row in order}

    def write_suspects(self, path: Path) -> None:
        """Write the rows that are not kept, what to check first on top; candidates by their ids."""
        import numpy as np

        from inlier.io import write_table
        from inlier.report.repair_summary import rows_to_check, what_to_do

        repair, rows = self.repair, rows_to_check(self.repair)
        of_x, of_y = (self.rows, self.rows_y) if repair.labels is None else repair.labels

        def names(labels: Array, numbers: Array) -> Array:
            return np.where(numbers >= 0, np.asarray(labels)[numbers].astype(str), "")

        columns = {self.id_name: names(of_x, rows), "verdict": repair.kind[rows]}
        columns["what_to_do"] = np.array([what_to_do(repair, row, of_x, of_y) for row in rows], dtype=str)
        columns["belongs_with"] = np.where(repair.named[rows], names(of_y, repair.partner[rows]), "")
        for k in range(repair.candidates.shape[1]):
            columns[f"candidate_{k + 1}"] = names(of_y, repair.candidates[rows, k])
            columns[f"chance_{k + 1}"] = repair.chances[rows, k].round(4)
        columns["none_of_these"] = (1 - repair.chances[rows].sum(axis=1)).clip(0, 1).round(4)
        columns["own_rank"], columns["copy_of"] = repair.own_rank[rows], names(of_x, repair.copy_of[rows])
        write_table(path, columns)


def columns_of_file(table: Table, source: str, key: str | None) -> dict[str, Array]:
    """All columns of a file but the key, as they are in it: also those that were not compared, numbers or text."""
    from inlier.cli._tables import column_headings
    from inlier.io import read_columns
    from inlier.io.table import by_column

    compared = dict(zip(table.columns, table.values.T, strict=True)) if table.columns else by_column(table.values)
    headings = column_headings(source)
    if not set(compared) <= set(headings):  # columns without names, or a table that was turned over
        return compared
    others = read_columns(source, [name for name in headings if name not in compared and name not in (key, "")])
    whole = compared | {name: column for name, column in others.items() if len(column) == len(table)}
    return {name: whole[name] for name in headings if name in whole}


def _is_list(path: Path) -> bool:
    """Whether it is a list of suspects."""
    from inlier.io import column_names

    return {"verdict", "candidate_1", "none_of_these"} < set(column_names(path))


def _is_repaired(path: Path) -> bool:
    """Whether it is a table that was put right: it begins with what became of each row."""
    from inlier.io import column_names
    from inlier.io.table import REPAIR_COLUMNS

    return set(REPAIR_COLUMNS) < set(column_names(path))
