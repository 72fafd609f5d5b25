"""The rows of a file with further columns beside them, written to another file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.formats import format_of
from inlier.io.read import column_names, read_columns, split_source
from inlier.io.write import write_table, written_beside


class BlocksInTurn:
    """Columns that come in blocks, of which as many rows are taken as somebody else has at hand."""

    def __init__(self, blocks: Iterable[Mapping[str, Array]]) -> None:
        self._blocks: Iterator[Mapping[str, Array]] = iter(blocks)
        self._rest = dict(next(self._blocks))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self._rest)

    def take(self, n_rows: int) -> dict[str, Array]:
        """The next rows."""
        parts, n_taken = [], 0
        while True:
            part = {name: column[: n_rows - n_taken] for name, column in self._rest.items()}
            n_part = len(next(iter(part.values())))
            self._rest = {name: column[n_part:] for name, column in self._rest.items()}
            parts.append(part)
            n_taken += n_part
            if n_taken == n_rows:
                break
            self._rest = dict(next(self._blocks))
        return {name: np.concatenate([part[name] for part in parts]) for name in self._rest}


def write_with_columns(source: str | Path, path: Path, blocks: Iterable[Mapping[str, Array]]) -> list[str]:
    """Write the rows of ``source`` with further columns, which come in blocks; return what could not be carried over.

    Between files of one kind (Arrow, delimited text, jsonl) everything stays as it was, and only a block is held.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from inlier.io.add_columns import write_with_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     here, there = Path(folder) / "here.csv", Path(folder) / "there.csv"
    ...     _ = here.write_text("id,a\\n007,1.50\\n008,2\\n")
    ...     _ = write_with_columns(here, there, [{"real": np.array([True, False])}])
    ...     there.read_text()
    'id,a,real\\n007,1.50,true\\n008,2,false\\n'
    """
    place, inside = split_source(source)
    from_codec, to, further = format_of(place).codec, format_of(path).codec, BlocksInTurn(blocks)
    if inside is None and to.family and to.family == from_codec.family:
        with written_beside(path) as beside:
            to.write_rows_with(from_codec, place, beside, further)
        return []
    return _write_what_is_known(source, path, further)


def _write_what_is_known(source: str | Path, path: Path, further: BlocksInTurn) -> list[str]:
    """The same between files of different kinds: numbers as numbers, anything else as text."""
    place, inside = split_source(source)
    names = column_names(place) if inside is None else []
    known = read_columns(source, [name for name in names if name not in further.names])
    holds_vectors = format_of(path).codec.family != "text"
    carried = {name: column for name, column in known.items() if column.ndim == 1 or holds_vectors}
    n_rows = {len(column) for column in known.values()}
    if len(n_rows) != 1:
        raise UnusableFileError(f"{source} is no table with names, so that nothing can be added to its rows.")
    columns = carried | further.take(n_rows.pop())
    write_table(path, columns)
    return [name for name in names if name not in columns]
