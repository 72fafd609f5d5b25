"""Tables with columns of words, dates and text beside their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inlier._typing import Array
from inlier.io._lines import NAME
from inlier.io._text_files import is_number
from inlier.io.formats import Kind, format_of
from inlier.io.read import read_beside_words, split_source
from inlier.io.table import Table
from inlier.rows.mixed import kind_of

_FEW = 0.1  # share of the entries of a column of texts that may be numbers


def read_with_words(source: str | Path, *, columns: Sequence[str] | None = None, key: str | None = None) -> Table:
    """Read a table as `read_table` does, with its columns of words, dates and text in ``words``.

    A column of words of which each is another one is taken for ids and refused, unless a key names the rows. A txt file
    of sentences, or of one word in each line, is one column of texts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from inlier.io.words import read_with_words
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "homes.csv"
    ...     _ = path.write_text("sold,rooms\\n2024-05-01,3\\n2024-06-11,5\\n")
    ...     table = read_with_words(path)
    >>> table.values.tolist(), table.columns, {name: texts.tolist() for name, texts in table.words.items()}
    ([[3.0], [5.0]], ('rooms',), {'sold': ['2024-05-01', '2024-06-11']})
    """
    is_list = format_of(split_source(source)[0]).kind is Kind.ARRAY  # of lines, each of which is a text
    return read_beside_words(
        source, columns, key, lambda texts: are_texts(texts, may_be_ids=is_list or key is not None)
    )


def are_texts(texts: Array, *, may_be_ids: bool) -> bool:
    """Whether a column holds texts: hardly any of its entries are numbers, and they are no ids, unless they may be."""
    words = texts[texts != ""].tolist()
    if (
        all(word[0] in "[{" for word in words)
        or np.mean([is_number(word, ".") or is_number(word, ",") for word in words]) > _FEW
    ):
        return False
    return may_be_ids or kind_of(texts) != "id"


def lines_in(table: Table) -> Array | None:
    """The lines, where a table is nothing but lines of text."""
    return table.words[NAME] if set(table.words) == {NAME} and format_of(table.source).kind is Kind.ARRAY else None
