"""Lines of text: a txt file that is no table of numbers, such as one side of a bitext."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io.limits import check_unpacked_size, text_lines

NAME = "text"  # what their one column is called
_HEAD_LINES = 1000  # that are looked at
_FEW = 0.1  # share of the fields that may be numbers
_SIGNS = re.compile(r"[\s,;]+")  # between fields
_AT_A_TIME = 1024  # lines between two looks at the memory that is taken


def are_lines_of_text(path: Path) -> bool:
    """Whether a file holds text: hardly any numbers, and lines of different lengths, or one word in each."""
    widths, n_fields, n_numbers = set[int](), 0, 0
    with text_lines(path) as stream:
        for line in islice(stream, _HEAD_LINES):
            try:
                fields = _SIGNS.split(line.decode("utf-8-sig").strip())
            except UnicodeDecodeError:
                return False
            fields = [field for field in fields if field]
            widths |= {len(fields)} - {0}
            n_fields += len(fields)
            n_numbers += sum(map(_is_number, fields))
    is_prose = n_fields > 0 and n_numbers <= _FEW * n_fields
    return is_prose and (len(widths) > 1 or widths == {1})


def lines_of_text(path: Path) -> Array:
    """The lines; blank ones stay where they are, but for those at the end."""
    lines, n_bytes = list[str](), 0
    with text_lines(path) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                lines.append(raw.decode("utf-8-sig" if number == 1 else "utf-8").strip())
            except UnicodeDecodeError:
                raise UnusableFileError(f"line {number} of {path} is not UTF-8 text. Save it again as UTF-8.") from None
            n_bytes += len(raw)
            if number % _AT_A_TIME == 0:
                check_unpacked_size(path, 4 * n_bytes, "keep fewer lines")
    while not lines[-1]:
        lines.pop()
    check_unpacked_size(path, 4 * len(lines) * max(map(len, lines)), "keep fewer or shorter lines")
    return np.array(lines, dtype=np.str_)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
