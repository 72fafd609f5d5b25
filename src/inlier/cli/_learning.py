"""What ``inlier match`` writes of what it has learned: the real pairs, new ones with their error rate, the map."""

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

_CLEAN_COLUMNS = {"source", "target", "q_value"}
_NEW_COLUMNS = _CLEAN_COLUMNS | {"score", "p_value"}
_USUAL_RATE = 0.1  # of wrong names among new pairs, which is said beside alpha


def learning_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options on what is written besides which pairs are real."""
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
            help="With --pairs: find partners for the rows of X that are in no real pair; those that no pair names "
            "help to learn. Write source, target, score, p- and q-value, the surest first (calibrated).",
        ),
        click.option(
            "--clean",
            "clean_file",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Write the pairs that are real, each once: source, target (ids, lines of text, or rows), q-value "
            "(calibrated).",
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
    """What is to be learned and written besides which pairs are real."""

    map_file: Path | None
    new_file: Path | None
    clean_file: Path | None
    same_columns: bool

    def __bool__(self) -> bool:
        return bool(self._options)

    @property
    def _options(self) -> list[str]:
        """What was asked for, by its option."""
        given = {
            "--map": self.map_file,
            "--new": self.new_file,
            "--clean": self.clean_file,
            "--same-columns": self.same_columns or None,
        }
        return [option for option, value in given.items() if value is not None]

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The files that will be written."""
        files = []
        if self.clean_file is not None:
            files.append(Output("--clean", "Real pairs", self.clean_file, _has_columns(_CLEAN_COLUMNS)))
        if self.map_file is not None:
            files.append(Output("--map", "Map", self.map_file, is_transformation))
        if self.new_file is not None:
            files.append(Output("--new", "New pairs", self.new_file, _has_columns(_NEW_COLUMNS)))
        return tuple(files)

    def check(self, is_calibrated: bool, pairs: str | None) -> None:
        """Refuse what does not go together, before the work is done."""
        from inlier.io import check_can_hold_columns

        if self and not is_calibrated:
            raise BadInput(f"{self._options[0]} belongs to --method calibrated without --splits.")
        if self.map_file is not None and self.map_file.suffix.lower() not in (".txt", ".npy"):
            raise BadInput(f"{self.map_file}: a map is written as .txt or .npy.")
        if self.new_file is not None and pairs is None:
            raise BadInput("--new finds partners for rows that are in no real pair: say with --pairs who is paired.")
        for file in (self.new_file, self.clean_file):
            if file is not None:
                check_can_hold_columns(file)

    def given(self, first: Table, second: Table, pairing: Pairing) -> dict[str, Any]:
        """What the matcher's fit is given besides the pairs: rows that none of them names."""
        if self.new_file is None:
            return {}
        return {"unpaired": (others_of(first, pairing.rows)[1], others_of(second, pairing.rows_of_y)[1])}

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

    def write(self, matcher: Any, first: Table, second: Table, pairing: Pairing) -> Iterator[str]:
        """Write the pairs that are real, the map, and the partners that were found; say what was found."""
        from inlier.io import write_table

        if self.clean_file is not None:
            write_table(self.clean_file, _real_pairs(matcher, _ends(first, second, pairing)))
        if self.map_file is not None:
            write_table(self.map_file, _homogeneous(matcher.map_))
        if self.new_file is not None:
            found = _new_pairs(matcher, first, second, pairing)
            write_table(self.new_file, found)
            yield _how_many_are_new(found["q_value"], matcher.alpha)


def _ends(first: Table, second: Table, pairing: Pairing) -> tuple[Array, Array]:
    """What the two ends of each pair are called: as --pairs calls them, by their ids, their lines, or their rows."""
    from inlier.io.words import lines_in

    if pairing.ends is not None:
        return pairing.ends
    names = first.keys, second.keys
    if names[0] is None or names[1] is None:
        names = lines_in(first), lines_in(second)
    if names[0] is None or names[1] is None:
        return pairing.rows, pairing.rows_of_y
    return names[0][pairing.rows], names[1][pairing.rows_of_y]


def _real_pairs(matcher: Any, ends: tuple[Array, Array]) -> dict[str, Array]:
    """The pairs that were accepted; each is there once, for lines that repeat another were left out."""
    accepted = matcher.inlier_mask_
    source, target = (end[accepted] for end in ends)
    return {"source": source, "target": target, "q_value": matcher.q_values_[accepted]}


def _homogeneous(learned: Any) -> Array:
    """The map as one matrix, for columns x with a 1 below them."""
    import numpy as np

    matrix = np.eye(learned.offset.size + 1, learned.matrix.shape[0] + 1)
    matrix[:-1, :-1], matrix[:-1, -1] = learned.matrix.T, learned.offset
    matrix[-1], matrix[-1, -1] = 0.0, 1.0
    return matrix


def _new_pairs(matcher: Any, first: Table, second: Table, pairing: Pairing) -> dict[str, Array]:
    """Partners of the rows that are in no pair that was accepted, the surest first."""
    import numpy as np

    rows, values = others_of(first, pairing.rows[matcher.inlier_mask_])
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
    return {name: column[order] for name, column in columns.items()}


def _how_many_are_new(q_values: Array, alpha: float) -> str:
    from inlier.report.words import percent

    rates = sorted({alpha, _USUAL_RATE})
    counts = [f"{int((q_values <= rate).sum()):,} with at most {percent(rate)} wrong among them" for rate in rates]
    rows = "row that is" if q_values.size == 1 else f"{q_values.size:,} rows that are"
    return f"New partners for the {rows} in no real pair: {', '.join(counts)}."


def others_of(table: Table, rows: Array) -> tuple[Array, Array]:
    """Numbers and values of the rows that no pair names."""
    import numpy as np

    others = np.setdiff1d(np.arange(len(table)), rows)
    return others, table.values[others]


def _has_columns(names: set[str]) -> Callable[[Path], bool]:
    """Whether a file is a table of these columns, as an earlier output is."""

    def is_ours(path: Path) -> bool:
        from inlier.io import column_names

        return set(column_names(path)) == names

    return is_ours
