"""How two tables come about that are not simply two files: from standard input, turned over, paired by a third file."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlier.cli._common import STDOUT, for_both, labels_of_pairs, read_both
from inlier.cli._outputs import BadInput
from inlier.exceptions import UnusableFileError

if TYPE_CHECKING:
    from inlier._typing import Array
    from inlier.cli._common import Job
    from inlier.io import Pairing, Table

ENDS = ("source", "target")  # columns of a table of pairs
_STDIN = "standard input"
_STEP = 1024**2  # bytes that are copied at a time
_MOST, _HARDLY_ANY, _FEWEST = 0.5, 0.1, 4  # shares of ids in common that say what a header holds; ids at the least

format_option = click.option(
    "--format",
    "format_of_stdin",
    metavar="SUFFIX",
    help="What standard input holds, where X or Y is -: csv, tsv, txt, npy, parquet, ...",
)


# ---- standard input


@contextmanager
def standard_input(
    sources: tuple[str, str], format_of_stdin: str | None, *, is_one: bool = False
) -> Iterator[tuple[str, str]]:
    """The sources, with a file in place of -; what is said of it names standard input.

    With ``is_one`` both are the same file.
    """
    n_streams = sources.count(str(STDOUT))
    if n_streams == 0:
        if format_of_stdin is not None:
            raise BadInput("--format says what standard input holds, but neither file is -. Leave it out.")
        yield sources
        return
    if n_streams == 2 and not is_one:
        raise BadInput("Only one of the two files can be -, standard input.")
    suffix = _suffix(format_of_stdin)
    with tempfile.TemporaryDirectory(prefix="inlier-") as folder:
        path = Path(folder) / f"stdin{suffix}"
        _copy_stdin(path)
        first, second = (str(path) if source == str(STDOUT) else source for source in sources)
        try:
            yield first, second
        except (BadInput, ValueError) as error:
            said = error.message if isinstance(error, BadInput) else str(error)
            raise BadInput(said.replace(str(path), _STDIN)) from error


def name_of(source: str) -> str:
    """What a source is called: standard input has a file of its own for a while."""
    path = Path(source)
    return "-" if path.stem == "stdin" and path.parent.name.startswith("inlier-") else source


def _suffix(format_of_stdin: str | None) -> str:
    from inlier.io.formats import BY_SUFFIX

    if format_of_stdin is None:
        raise BadInput("Standard input has no suffix. Say what it holds, as in --format csv.")
    suffix = f".{format_of_stdin.lower().lstrip('.')}"
    if suffix not in BY_SUFFIX or BY_SUFFIX[suffix].is_folder:
        known = " ".join(sorted(known[1:] for known, format in BY_SUFFIX.items() if not format.is_folder))
        raise BadInput(f"--format {format_of_stdin} is not a format that is known here. Known are: {known}")
    return suffix


def _copy_stdin(path: Path) -> None:
    """Keep standard input in a file, as far as there is room for it once it is read."""
    from inlier.io.limits import most_unpacked_bytes

    if sys.stdin is None:
        raise BadInput("Standard input is closed. Give a file, or open it.")
    left = most_unpacked_bytes()
    stream = sys.stdin.buffer
    with path.open("wb") as copy:
        while piece := stream.read(_STEP):
            left -= len(piece)
            if left < 0:
                raise BadInput("Standard input is larger than the limit on files. Write it to a file, and give that.")
            copy.write(piece)


# ---- columns of each file


def columns_of_each(
    sources: Sequence[str], columns: tuple[str, ...], names: Sequence[list[str] | None]
) -> list[list[str] | None]:
    """Columns of each file; one list that leaves columns out leaves out of each file those that it has.

    ``names`` are what was read off the options: columns between commas, for each file.
    """
    chosen = [None if some == ["*"] else some for some in names]
    first = chosen[0]
    if len(columns) != 1 or first is None or not all(name.startswith("^") for name in first):
        return chosen
    there = [column_headings(source) for source in sources]
    for name in (name[1:] for name in first):
        if all(there) and not any(name in known for known in there):
            raise BadInput(f"Neither {sources[0]} nor {sources[1]} has a column named {name!r}. Check its spelling.")
    return [[name for name in first if not known or name[1:] in known] or None for known in there]


def column_headings(source: str) -> list[str]:
    """Names of the columns of a file; none where they have none, or are not known before it is read."""
    from inlier.io import Kind, column_names, format_of, split_source

    path, inside = split_source(source)
    format = format_of(path)
    is_table = format.kind is Kind.COLUMNS or format.name.endswith("txt")
    return column_names(path) if inside is None and is_table else []


# ---- values that cannot be meant


AS_GAPS = "They count as missing; if they are meant, take logarithms or ranks first."
AS_NUMBERS = (
    "They are compared like any other number, and one such row can hide all real pairs: if they are mistakes, leave "
    "those rows or columns out."
)
AS_POINTS = (
    "If they are codes or mistakes, leave those rows or columns out."  # far ones are left out of the search anyway
)


def noting_odd_values(table: Table, job: Job, becomes: str) -> Table:
    """Note values that cannot be meant, by the names of rows and columns; return the table, without them if so said."""
    import numpy as np

    from inlier.rows.gaps import describe, odd_values

    if isinstance(table.values, np.memmap):  # a large file is looked through once, when it is matched
        return table
    odd = odd_values(table.values)
    if odd is None:
        return table
    n, keys = int(odd.sum()), None if table.keys is None else [f"id {key}" for key in table.keys]
    values = f"{n:,} value{'' if n == 1 else 's'} of {table.source}"
    job.notes.append(f"{values} {describe(odd, table.values, keys, table.columns)} {becomes}")
    return replace(table, values=np.where(odd, np.nan, table.values)) if becomes == AS_GAPS else table


# ---- tables with a column per sample


def read_transposed(source: str, key: str | None) -> Table:
    """Read a table whose rows are what is measured and whose columns are the samples; the header becomes the ids."""
    import numpy as np

    from inlier.io import Table, read_table

    names = column_headings(source)
    label = key if key is not None else names[0] if names and _names_rows(source, names[0]) else None
    table = read_table(source, key=label)
    keys = None if table.columns is None or not names else np.array(table.columns)
    columns = None if table.keys is None else tuple(table.keys.tolist())
    return Table(np.ascontiguousarray(table.values.T), columns, keys, table.source, turned=label or "")


def seem_transposed(sources: tuple[str, str], key: str | None = None) -> tuple[bool, bool] | None:
    """Which of two tables have a column per sample, by their ids; None where the ids do not say so.

    Where either could be turned over to fit the other, the one that has the column ``key`` has a row per sample.
    """
    from inlier.io import read_labels

    headers = [column_headings(source) for source in sources]
    if not all(headers):
        return None
    labels = [
        set() if ids is None else set(ids.tolist())
        for ids in (read_labels(source, names[0]) for source, names in zip(sources, headers, strict=True))
    ]
    first, second = (set(names[1:]) for names in headers)
    if _in_common(first, second) >= _MOST and _in_common(*labels) < _HARDLY_ANY and all(labels):
        return True, True
    turn_first, turn_second = _in_common(first, labels[1]) >= _MOST, _in_common(second, labels[0]) >= _MOST
    if turn_first and turn_second:
        turn_first = key in headers[1] and key not in headers[0]
    return (turn_first, not turn_first) if turn_first or turn_second else None


def _in_common(some: set[str], others: set[str]) -> float:
    """Share of ids in common, also of those that R writes in another way."""
    from inlier.io.ids import as_r_writes

    some, others = set(map(as_r_writes, some)), set(map(as_r_writes, others))
    fewer = min(len(some), len(others))
    return len(some & others) / fewer if fewer >= _FEWEST else 0.0


def _names_rows(source: str, column: str) -> bool:
    """Whether a column holds names: it has none itself, or not all it holds is numbers."""
    from inlier.io import read_labels

    if column == "":
        return True
    labels = read_labels(source, column)
    return labels is not None and not all(map(_is_number, labels.tolist()))


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def read_turned(sources: tuple[str, str], keys: tuple[str, ...], turned: tuple[bool, bool]) -> tuple[Table, Table]:
    """Read two tables of which one or both have a column per sample; the rows of the other are named by their ids."""
    from inlier.io import read_table

    def read(source: str, key: str | None, is_turned: bool) -> Table:
        if is_turned:
            return read_transposed(source, key)
        return read_table(source, key=column_headings(source)[0] if key is None else key)

    first, second = (read(*given) for given in zip(sources, for_both(keys, "--key"), turned, strict=True))
    return first, second


# ---- pairs named in a table of their own


def read_ends(pairs: str, source: Table, target: Table) -> tuple[Array, Array]:
    """Rows of source and target that each line of PAIRS joins, counted from 0."""
    import numpy as np

    table = _read_two_columns(pairs, source.source, target.source)
    for place, end in enumerate((source, target)):
        column = table.values[:, place]
        whole = np.isfinite(column) & (column == np.floor(column))
        if not whole.all():
            row = int(np.argmin(whole))
            raise BadInput(
                f"{table.source} must hold row numbers, counted from 0, but its row {row} has {column[row]:g} for the "
                f"{ENDS[place]}."
            )
        outside = (column < 0) | (column >= len(end))
        if outside.any():
            row = int(np.argmax(outside))
            from_one = " Are they counted from 1? Here they count from 0." if column.max() == len(end) else ""
            raise BadInput(
                f"{table.source} names {ENDS[place]} row {int(column[row])} in its row {row}, but {end.source} has "
                f"{len(end):,} rows, 0 to {len(end) - 1}.{from_one}"
            )
        if len(column) > 1 and (column == column[0]).all():
            raise BadInput(
                f"{table.source} names row {int(column[0])} of {end.source} in each of its {len(column):,} rows, so "
                f"that no pair can be told from another. Check that the right columns were read."
            )
    ends = table.values.astype(np.intp)
    return ends[:, 0], ends[:, 1]


def _read_two_columns(pairs: str, source: Path, target: Path) -> Table:
    """Columns named source and target, or the only two there are."""
    from inlier.io import read_table
    from inlier.io.table import TextColumnError

    try:
        return read_table(pairs, columns=ENDS)
    except TextColumnError as error:
        raise _names_rows_by_ids(pairs, source, target) from error
    except UnusableFileError:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # these numbers are ids, and meant to be read
            try:
                table = read_table(pairs)
            except TextColumnError as error:
                raise _names_rows_by_ids(pairs, source, target) from error
    if table.values.shape[1] != 2:
        raise BadInput(
            f"{table.source} must have two columns, a row of {source} and a row of {target}; it has "
            f"{table.values.shape[1]}. If there are more, name those two source and target."
        )
    return table


def _names_rows_by_ids(pairs: str, source: Path, target: Path) -> BadInput:
    return BadInput(
        f"{pairs} holds words, not row numbers. If they are ids, say with --key which column of {source} and of "
        f"{target} has them."
    )


def read_ends_by_id(pairs: str, source: Table, target: Table) -> tuple[Array, Array, Array, list[str]]:
    """Rows that lines of PAIRS join by their ids, many to many; which lines; what was left out, in sentences."""
    import numpy as np

    assert source.keys is not None
    assert target.keys is not None
    named, notes = _ids_of_pairs(pairs, source, target), list[str]()
    rows = []
    for table, ids in zip((source, target), named, strict=True):
        keys = np.asarray(table.keys)
        unique, first, count = np.unique(keys, return_index=True, return_counts=True)
        row_of = {key: int(row) for key, row, times in zip(unique.tolist(), first, count, strict=True) if times == 1}
        rows.append(np.array([row_of.get(name, -1) for name in ids.tolist()]))
        lost = [name for name, row in zip(ids.tolist(), rows[-1], strict=True) if row < 0]
        if lost:
            notes.append(
                f"{len(lost):,} line{'' if len(lost) == 1 else 's'} of {pairs} left out: {lost[0]!r} "
                f"{'is' if len(set(lost)) == 1 else 'and others are'} not in {table.source}, or not only once."
            )
    found = (rows[0] >= 0) & (rows[1] >= 0)
    if not found.any():
        raise BadInput(
            f"No line of {pairs} names an id of {source.source} and one of {target.source}, each of which occurs once. "
            f"Its first column names rows of the first file, its second of the second."
        )
    return rows[0][found], rows[1][found], np.flatnonzero(found), notes


def _ids_of_pairs(pairs: str, source: Table, target: Table) -> tuple[Array, Array]:
    import numpy as np

    from inlier.io import column_names, read_labels

    names = column_names(pairs)
    columns = ENDS if set(ENDS) <= set(names) else tuple(names or ("0", "1"))
    if len(columns) != 2:
        raise BadInput(
            f"{pairs} must have two columns, an id of {source.source} and one of {target.source}; it has "
            f"{len(columns)}. If there are more, name those two source and target."
        )
    left, right = (read_labels(pairs, column) for column in columns)
    if left is None or right is None:
        raise BadInput(f"{pairs} must have two columns, an id of {source.source} and one of {target.source}.")
    if names and columns[0] in np.asarray(source.keys) and columns[1] in np.asarray(target.keys):
        left, right = np.append(columns[0], left), np.append(columns[1], right)  # its first line is a pair, no header
    return left, right


# ---- labels from a file of their own


def labels_of_meta(meta: str, column: str, key: str | None, pairing: Pairing) -> Array:
    """A column of a third file for each pair: by id where the tables were joined, else row by row."""
    import numpy as np

    from inlier.io import read_labels
    from inlier.io.ids import spelled_alike

    labels = read_labels(meta, column)
    if labels is None:
        raise BadInput(f"{meta} has no column named {column!r}. Check its spelling.")
    if pairing.keys is None:
        is_short = pairing.rows.max() >= len(labels)
        if is_short or (pairing.rows_y is None and len(labels) != len(pairing)):
            raise BadInput(f"{meta} has {len(labels):,} rows, but one for each of X is needed. Or join all on --key.")
        return _all_there(labels[pairing.rows], meta, column)
    names = column_headings(meta)
    id_name = key if key is not None and (key in names or not names) else next(iter(names), None)
    ids = None if id_name is None else read_labels(meta, id_name)
    if ids is None:
        raise BadInput(f"{meta} has no column of ids: its first one, or the one called as --key says, must hold them.")
    ids = spelled_alike(pairing.keys, ids, Path("X"), Path(meta))[0]
    of_id = dict(zip(ids.tolist(), labels.tolist(), strict=True))
    lost = [name for name in pairing.keys.tolist() if name not in of_id]
    if lost:
        raise BadInput(
            f"{meta} has no row for {len(lost):,} of the {len(pairing):,} pairs, such as {lost[0]}. Add them, or leave "
            f"these pairs out."
        )
    return _all_there(np.array([of_id[name] for name in pairing.keys.tolist()]), meta, column)


def _all_there(labels: Array, meta: str, column: str) -> Array:
    if (labels == "").any():
        raise BadInput(f"Column {column!r} of {meta} is empty for a pair. Give such rows a label of their own.")
    return labels


def rows_by_group(of_x: Array, of_y: Array) -> tuple[Array, Array]:
    """Rows of two files that are the first of their group, the second, and so on, in the order of the first file."""
    import numpy as np

    def counted(labels: Array) -> list[tuple[str, int]]:
        seen: dict[str, int] = {}
        places = []
        for label in map(str, labels.tolist()):
            seen[label] = seen.get(label, -1) + 1
            places.append((label, seen[label]))
        return places

    row_of = {place: row for row, place in enumerate(counted(of_y))}
    pairs = [(row, row_of[place]) for row, place in enumerate(counted(of_x)) if place in row_of]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


# ---- all of it, as options say


@dataclass(frozen=True)
class Reading:
    """How two tables become pairs, as the options say."""

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    pairs: str | None
    transpose: bool
    labels: dict[str, str]  # columns of groups and strata
    codes: tuple[float, ...]  # of missing values
    meta: str | None = None  # file that holds groups and strata
    with_words: bool = False  # whether columns of words and lines of text are compared, too

    @property
    def needs_all(self) -> bool:
        """Whether the files have to be read as a whole for it."""
        return bool(self.keys or self.labels or self.codes or self.transpose or self.pairs is not None)

    @property
    def key_of_y(self) -> str | None:
        """Column of ids of the second file, where one was named."""
        return self.keys[-1] if self.keys else None

    @property
    def only_keys(self) -> bool:
        """Whether nothing but columns of ids was named: one that a table has not may be its header."""
        return bool(self.keys) and not (self.columns or self.labels or self.pairs is not None)

    def read(self, job: Job) -> tuple[Table, Table]:
        """Read both tables; turned over where that was asked for, or where their ids say so."""
        if self.transpose:
            return read_turned(job.sources, self.keys, (True, True))
        inside = () if self.meta is not None else tuple(self.labels.values())
        given = self.keys or self.columns or inside or self.pairs is not None
        try:
            if not given and any(column_headings(source)[:1] == [""] for source in job.sources):
                raise UnusableFileError("rows have names without a name for them")
            tables = self._read_both(job.sources, inside)
            if not given and any(table.words for table in tables) and seem_transposed(job.sources):
                raise UnusableFileError("one of the columns of words names what is measured")
            return tables
        except UnusableFileError:
            key = self.keys[0] if self.keys else None
            turned = seem_transposed(job.sources, key) if not given or self.only_keys else None
            if turned is None:
                return self._read_both(job.sources, inside)
        which = [source for source, is_turned in zip(job.sources, turned, strict=True) if is_turned]
        job.notes.append(
            f"The header of {' and of '.join(which)} holds the ids of the other file: a column per sample. The table "
            f"was turned over, and joined on these ids (--transpose does so for both)."
        )
        return read_turned(job.sources, (), turned)

    def _read_both(self, sources: tuple[str, str], leave_out: tuple[str, ...]) -> tuple[Table, Table]:
        from inlier.io import read_table

        read = read_table
        if self.with_words:
            from inlier.io.words import read_with_words as read
        return read_both(*sources, self.keys, self.columns, leave_out, read)

    def labels_of(self, column: str, sources: tuple[str, str], pairing: Pairing) -> Array:
        """Labels of each pair: of the file that was named for them, or else of the two that are compared."""
        if self.meta is None:
            return labels_of_pairs(column, sources, pairing)
        return labels_of_meta(self.meta, column, self.keys[0] if self.keys else None, pairing)

    def groups_of_files(self, sources: tuple[str, str]) -> tuple[Array, Array] | None:
        """Groups of the rows of both files, where both have the column; None where they are named elsewhere."""
        from inlier.io import read_labels

        column = self.labels.get("groups")
        if column is None or self.meta is not None or self.transpose or self.pairs is not None:
            return None
        of_x, of_y = (read_labels(source, column) for source in sources)
        return None if of_x is None or of_y is None else (of_x, of_y)

    def pair(
        self, first: Table, second: Table, groups: tuple[Array, Array] | None = None, *, in_order: bool = False
    ) -> Pairing:
        """Rows as pairs: by PAIRS, by id, or row by row.

        Where lines may have been lost, and are looked for ``in_order``, one table may be longer than the other. Where
        the groups of both are known then, rows are counted inside of each.
        """
        import numpy as np

        from inlier.io import Pairing, pair_tables

        if in_order and not self.keys and groups is not None and not np.array_equal(*groups):
            rows, rows_y = rows_by_group(*groups)
            note = f"Rows are paired by their place in their {self.labels['groups']}, which both files have."
            return Pairing(first.values[rows], second.values[rows_y], rows, notes=[note], rows_y=rows_y)
        if self.pairs is None and in_order and len(first) != len(second) and not (self.keys or self.transpose):
            n = min(len(first), len(second))
            return Pairing(first.values[:n], second.values[:n], np.arange(n))
        if self.pairs is None:
            return pair_tables(first, second)
        notes: list[str] = []
        if first.keys is not None and second.keys is not None:
            i, j, lines, notes = read_ends_by_id(self.pairs, first, second)
            ends = first.keys[i], second.keys[j]
        else:
            i, j = ends = read_ends(self.pairs, first, second)
            lines = np.arange(len(i))
        once = np.sort(np.unique(np.stack([i, j]), axis=1, return_index=True)[1])
        n_again = len(i) - once.size
        if n_again:
            repeat = "1 line that repeats" if n_again == 1 else f"{n_again:,} lines that repeat"
            notes.append(f"{repeat} an earlier one of {self.pairs} left out.")
        i, j, lines, ends = i[once], j[once], lines[once], (ends[0][once], ends[1][once])
        return Pairing(first.values[i], second.values[j], i, None, notes, j, ends, lines)
