"""What ``inlier match`` writes beside its answer, of what it has learned: new pairs with their error rate, and the map.

And with ``--repair``: with whom wrong rows belong, and the second table in the order of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._outputs import BadInput, Output, is_transformation

if TYPE_CHECKING:
    from inlier._typing import Array
    from inlier.io import Pairing, Table
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from inlier._typing import Array
    from inlier.estimators.repair import Repair
    from inlier.io import Pairing, Table

_NEW_COLUMNS = {"source", "target", "score", "p_value", "q_value"}


def learning_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options on what is learned besides which pairs are real."""
    for option in (
        click.option(
            "--map",
            "map_file",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Write the map from X to Y: .txt or .npy its matrix, for columns x and a 1 (calibrated).",
        ),
        click.option(
            "--new",
            "new_file",
            type=click.Path(path_type=Path, dir_okay=False),
            help="With --pairs: find partners for the rows of X that no pair names, which then help to learn; write "
            "source, target, score, p- and q-value (calibrated).",
        ),
        click.option(
            "--same-columns",
            is_flag=True,
            help="Columns of the same name measure related things, such as a gene and its protein; without names, "
            "those in the same place (calibrated).",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class Wanted:
    """What is to be learned besides which pairs are real."""

    map_file: Path | None
    new_file: Path | None
    same_columns: bool

    def __bool__(self) -> bool:
        return self.same_columns or self.map_file is not None or self.new_file is not None

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The files that will be written."""
        files = []
        if self.map_file is not None:
            files.append(Output("--map", "Map", self.map_file, is_transformation))
        if self.new_file is not None:
            files.append(Output("--new", "New pairs", self.new_file, _are_new_pairs))
        return tuple(files)

    def check(self, is_calibrated: bool, pairs: str | None) -> None:
        """Refuse what does not go together, before the work is done."""
        from inlier.io import check_can_hold_columns

        if self and not is_calibrated:
            option = (
                "--map" if self.map_file is not None else "--new" if self.new_file is not None else "--same-columns"
            )
            raise BadInput(f"{option} belongs to --method calibrated without --splits.")
        if self.map_file is not None and self.map_file.suffix.lower() not in (".txt", ".npy"):
            raise BadInput(f"{self.map_file}: a map is written as .txt or .npy.")
        if self.new_file is not None:
            if pairs is None:
                raise BadInput("--new finds partners for rows that no pair names: say with --pairs which are named.")
            check_can_hold_columns(self.new_file)

    def given(self, first: Table, second: Table, pairing: Pairing) -> dict[str, Any]:
        """What the matcher's fit is given besides the pairs: rows that none of them names."""
        if self.new_file is None:
            return {}
        assert pairing.rows_y is not None
        return {"unpaired": (others_of(first, pairing.rows)[1], others_of(second, pairing.rows_y)[1])}

    def columns(self, first: Table, second: Table) -> Any:
        """What the matcher takes for columns that correspond: their numbers, where they have names."""
        if not self.same_columns or first.columns is None or second.columns is None:
            return self.same_columns
        place = {name: number for number, name in enumerate(second.columns)}
        shared = [(number, place[name]) for number, name in enumerate(first.columns) if name in place]
        if not shared:
            raise BadInput(
                f"--same-columns: no column of {first.source} has the name of one of {second.source}. Leave it out, or "
                f"give both the same names."
            )
        return [number for number, _ in shared], [number for _, number in shared]

    def write(self, matcher: Any, first: Table, second: Table, pairing: Pairing) -> None:
        """Write the map, and the partners that were found."""
        import numpy as np

        from inlier.io import write_table

        if self.map_file is not None:
            found = matcher.map_
            matrix = np.eye(found.offset.size + 1, found.matrix.shape[0] + 1)
            matrix[:-1, :-1], matrix[:-1, -1] = found.matrix.T, found.offset
            matrix[-1], matrix[-1, -1] = 0.0, 1.0
            write_table(self.map_file, matrix)
        if self.new_file is not None:
            assert pairing.rows_y is not None
            rows, values = others_of(first, pairing.rows)
            partners = matcher.find_partners(values, among=second.values)
            best = partners.rows[:, 0]
            columns = {
                "source": rows if first.keys is None else first.keys[rows],
                "target": best if second.keys is None else np.where(best >= 0, second.keys[best], ""),
                "score": partners.scores[:, 0],
                "p_value": partners.p_values[:, 0],
                "q_value": partners.q_values[:, 0],
            }
            order = np.argsort(columns["q_value"], kind="stable")
            write_table(self.new_file, {name: column[order] for name, column in columns.items()})


def others_of(table: Table, rows: Array) -> tuple[Array, Array]:
    """Numbers and values of the rows that no pair names."""
    import numpy as np

    others = np.setdiff1d(np.arange(len(table)), rows)
    return others, table.values[others]


def _are_new_pairs(path: Path) -> bool:
    """Whether it is a table of partners that were found."""
    from inlier.io import column_names

    return set(column_names(path)) == _NEW_COLUMNS


# ---- repair


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
        matcher: Any,
        tables: tuple[Table, Table],
        pairing: Pairing,
        given: dict[str, Any],
        unmatched: bool,
        candidates: str,
    ) -> Repairing:
        """Repair pairs; where that is asked for, look also among rows that only one file has, and for them."""
        import numpy as np

        rows, rows_y = pairing.rows, pairing.rows if pairing.rows_y is None else pairing.rows_y
        Y, rest = np.asarray(pairing.Y), None
        if unmatched:
            (others, X_rest), (others_y, Y_rest) = others_of(tables[0], rows), others_of(tables[1], rows_y)
            rest, Y = (X_rest, Y_rest), np.concatenate([Y, Y_rest])
            rows, rows_y = np.concatenate([rows, others]), np.concatenate([rows_y, others_y])
        labels = given.get("groups"), given.get("strata")
        repair = matcher.repair(pairing.X, pairing.Y, *labels, unpaired=rest, candidates=candidates)
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
            yield f"In {path} {rows} without values of Y: the old partner looks wrong, and no other could be named."

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
