"""``inlier match --repair``: with whom wrong rows belong, and the second table in the order of the first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from inlier.cli._learning import others_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inlier._typing import Array
    from inlier.estimators.repair import Repair
    from inlier.io import Pairing, Table


@dataclass(frozen=True, eq=False)
class Repairing:
    """A repair, and the rows of both files that it speaks of."""

    repair: Repair  # its labels are the ids, where the files were joined
    rows: Array  # of X, in its file
    rows_y: Array
    Y: Array
    columns: tuple[str, ...] | None

    @staticmethod
    def of(
        matcher: Any, tables: tuple[Table, Table], pairing: Pairing, given: dict[str, Any], *, unmatched: bool
    ) -> Repairing:
        """Repair pairs; where that is asked for, look also among rows that only one file has, and for them."""
        import numpy as np

        rows, rows_y = pairing.rows, pairing.rows if pairing.rows_y is None else pairing.rows_y
        Y, rest = np.asarray(pairing.Y), None
        if unmatched:
            (others, X_rest), (others_y, Y_rest) = others_of(tables[0], rows), others_of(tables[1], rows_y)
            rest, Y = (X_rest, Y_rest), np.concatenate([Y, Y_rest])
            rows, rows_y = np.concatenate([rows, others]), np.concatenate([rows_y, others_y])
        repair = matcher.repair(pairing.X, pairing.Y, given.get("groups"), given.get("strata"), unpaired=rest)
        if pairing.keys is not None:
            assert tables[0].keys is not None
            assert tables[1].keys is not None
            repair = replace(repair, labels=(tables[0].keys[rows], tables[1].keys[rows_y]))
        return Repairing(repair, rows, rows_y, Y, tables[1].columns)

    def notes(self, path: Path) -> Iterator[str]:
        """Say how much of the file will be empty."""
        n_empty = int((self.repair.partner < 0).sum())
        if n_empty:
            rows = "one row is" if n_empty == 1 else f"{n_empty:,} rows are"
            yield f"In {path} {rows} without values of Y: the partner of old looks wrong, and no other could be named."

    def write(self, path: Path) -> None:
        """Write verdict, partner, q-value and probability per row of X, and the columns of Y of its partner."""
        import numpy as np

        from inlier.io import write_table

        partner = self.repair.partner
        columns: dict[str, Array] = {"row": self.rows}
        if self.repair.labels is None:
            columns["partner"] = np.where(partner >= 0, self.rows_y[partner], -1)
        else:
            columns["key"], ids = self.repair.labels
            columns["partner"] = np.where(partner >= 0, ids[partner], "")
        columns |= {
            "verdict": self.repair.kind,
            "q_value": self.repair.q_values,
            "probability": self.repair.probability,
        }
        taken = set(columns)
        for number, column in enumerate(self.repair.apply(self.Y).T):
            name = str(number) if self.columns is None else self.columns[number]
            columns[f"{name} of y" if name in taken else name] = column
        write_table(path, columns)


def is_repaired(path: Path) -> bool:
    """Whether it is a table that was put right: it begins with what became of each row."""
    from inlier.io import column_names

    return {"verdict", "partner", "q_value", "probability"} < set(column_names(path))
