"""Ids that two programs have written in two ways, and what spreadsheets take for formulas."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from inlier._typing import Array

_FORMULA = re.compile(r"[=+\-@\t\r].", re.DOTALL)
_NO_NAME = re.compile(r"[^A-Za-z0-9_.]")
_NAMED = 3  # ids in a note


def as_r_writes(key: str) -> str:
    """An id as R makes a name of it (``check.names``): dots for signs and blanks, an X before what is no letter.

    Examples
    --------
    >>> from inlier.io.ids import as_r_writes
    >>> as_r_writes("TCGA-A0FJ"), as_r_writes("7b"), as_r_writes("plain")
    ('TCGA.A0FJ', 'X7b', 'plain')
    """
    dotted = _NO_NAME.sub(".", key)
    return f"X{dotted}" if key and not re.match(r"[A-Za-z]|\.(?!\d)", dotted) else dotted


def as_spreadsheets_write(key: str) -> str:
    """An id without what hands and spreadsheets change: upper case, blanks, zeros before a number.

    Examples
    --------
    >>> from inlier.io.ids import as_spreadsheets_write
    >>> as_spreadsheets_write("S 7b"), as_spreadsheets_write("007"), as_spreadsheets_write("s07")
    ('s7b', '7', 's07')
    """
    bare = "".join(key.split()).casefold()
    return (bare.lstrip("0") or "0") if bare.isdecimal() else bare


def spelled_alike(keys_x: Array, keys_y: Array, source_x: Path, source_y: Path) -> tuple[Array, str | None]:
    """The ids of the second table as the first one writes them, where the two differ in writing; a note on how many.

    An id is taken for another only if nothing else in either table would be written the same way.
    """
    same = _same_by(keys_x, keys_y, as_spreadsheets_write)
    # one of the two is R's: two ids that both have signs in them, and other ones, are two ids
    by_r = {
        key: other
        for key, other in _same_by(keys_x, keys_y, lambda key: as_r_writes(key).casefold()).items()
        if _made_by_r(other, key)
    }
    taken = {*same, *same.values()}
    same |= {key: other for key, other in by_r.items() if not taken & {key, other}}
    if not same:
        return keys_y, None
    some = ", ".join(f"{other} and {key}" for key, other in list(same.items())[:_NAMED])
    what = "1 id is" if len(same) == 1 else f"{len(same):,} ids are"
    note = (
        f"{what} written in two ways, as R or a spreadsheet changes names, in {source_x} and {source_y} and taken for "
        f"the same: {some}{', ...' if len(same) > _NAMED else ''}. If they are not, rename them."
    )
    return np.array([same.get(key, key) for key in keys_y.tolist()], dtype=np.str_), note


def _same_by(keys_x: Array, keys_y: Array, written: Callable[[str], str]) -> dict[str, str]:
    """Ids of the second table that are not in the first, and the one there that is written the same way."""
    alone_x, alone_y = (
        dict.fromkeys(keys[~np.isin(keys, others) & (keys != "")].tolist())
        for keys, others in ((keys_x, keys_y), (keys_y, keys_x))
    )
    if not alone_x or not alone_y:
        return {}
    times = [Counter(map(written, dict.fromkeys(keys.tolist()))) for keys in (keys_x, keys_y)]
    once_x = {written(key): key for key in alone_x if times[0][written(key)] == 1}
    return {key: once_x[written(key)] for key in alone_y if times[1][written(key)] == 1 and written(key) in once_x}


def _made_by_r(key: str, other: str) -> bool:
    key, other = key.casefold(), other.casefold()
    return as_r_writes(key).casefold() == other or as_r_writes(other).casefold() == key


def safe_for_spreadsheets(texts: Array) -> Array:
    """Texts of which no spreadsheet makes a formula: those that begin like one get an apostrophe, which hides there.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.io.ids import plain_ids, safe_for_spreadsheets
    >>> safe = safe_for_spreadsheets(np.array(["=1+1", "-", "-7", "a-b", "@x"]))
    >>> safe.tolist(), plain_ids(safe).tolist()
    (["'=1+1", '-', '-7', 'a-b', "'@x"], ['=1+1', '-', '-7', 'a-b', '@x'])
    """
    values = texts.tolist()
    odd = [place for place, text in enumerate(values) if _FORMULA.match(text) and not _is_number(text)]
    for place in odd:
        values[place] = f"'{values[place]}"
    return np.array(values, dtype=np.str_) if odd else texts


def plain_ids(texts: Array) -> Array:
    """The same without the apostrophes."""
    if not np.char.startswith(texts, "'").any():
        return texts
    values = [text[1:] if text[:1] == "'" and _FORMULA.match(text[1:]) else text for text in texts.tolist()]
    return np.array(values, dtype=np.str_)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
