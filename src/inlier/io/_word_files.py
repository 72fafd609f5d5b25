"""vec: word vectors as text, as fastText and word2vec write them (plain or gz)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inlier._typing import FloatArray
from inlier.exceptions import UnusableFileError
from inlier.io._text_files import LINES_AT_A_TIME, create_text, is_number
from inlier.io.formats import Codec
from inlier.io.limits import check_unpacked_size, text_lines
from inlier.io.table import Content, Request, as_array

_WORD = "word"  # column that names the rows
_BYTES_A_ROW = 192  # that a word and an array take beside their numbers


class WordVectors(Codec):
    """A word and its numbers in each line; in the first, or not, how many of both there are."""

    def names(self, path: Path) -> list[str]:
        with text_lines(path) as stream:
            width = max(len(line.split()) for line in (*stream.readlines(1)[:1], *stream.readlines(1)[:1]))
        return [_WORD, *map(str, range(width - 1))]

    def read(self, request: Request) -> Content:
        """Numbers by the place of their column; the words as well where they are asked for."""
        words, rows, announced = list[str](), list[FloatArray](), None
        with text_lines(request.path) as stream:
            for number, line in enumerate(stream, start=1):
                fields = line.split()
                if number == 1 and len(fields) == 2 and all(map(bytes.isdigit, fields)):
                    announced = int(fields[0])
                    continue
                if not fields:
                    continue
                rows.append(_numbers(fields[1:], number, request.path))
                if rows[-1].size != rows[0].size:
                    raise UnusableFileError(
                        f"{request.path} is ragged: line {number} has {rows[-1].size} numbers where the first has "
                        f"{rows[0].size}. A word must not hold blanks."
                    )
                words.append(fields[0].decode("utf-8", "replace"))
                if number % LINES_AT_A_TIME == 0:
                    n_bytes = len(rows) * (_BYTES_A_ROW + 8 * rows[0].size)
                    check_unpacked_size(request.path, n_bytes, "keep fewer words")
        if not rows or rows[0].size == 0:
            raise UnusableFileError(f"{request.path} holds no numbers.")
        if announced not in (None, len(rows)):
            raise UnusableFileError(
                f"{request.path} was cut short: it announces {announced:,} words and holds {len(rows):,}. Copy or save "
                f"it again."
            )
        values = np.array(rows)
        if request.key is None:
            return values
        check_unpacked_size(request.path, 4 * len(words) * max(map(len, words)), "keep fewer words")
        return {_WORD: np.array(words), **{str(place): column for place, column in enumerate(values.T)}}

    def write(self, path: Path, content: Content) -> None:
        """Write numbers as exactly as they are held; rows without a word are called by their number."""
        columns = {} if isinstance(content, np.ndarray) else dict(content)
        words = columns.pop(_WORD, None)
        values = as_array(columns if words is not None or columns else content)
        words = np.arange(len(values)) if words is None else words
        with create_text(path) as stream:
            stream.write(f"{len(values)} {values.shape[1]}\n".encode())
            for word, row in zip(words, values, strict=True):
                stream.write(f"{'_'.join(str(word).split())} {' '.join(map(repr, row.tolist()))}\n".encode())


def _numbers(fields: list[bytes], line: int, path: Path) -> FloatArray:
    try:
        return np.array(fields, dtype=np.float64)
    except ValueError:
        shown = next(field for field in fields if not is_number(field.decode("utf-8", "replace"), "."))
        raise UnusableFileError(
            f"{path} has {shown[:40].decode('utf-8', 'replace')!r} among the numbers of line {line}. Each line is a "
            f"word and its numbers, with blanks between them."
        ) from None
