"""Finished cells are kept beside the output until the command is done, so that an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from inlier.apps.reproduce.model import Cell, Record, Run
from inlier.io import write_file
from inlier.report.rendering import versions

FOLDER = ".unfinished"
_DIGITS = 16


class CellStore:
    """The records of one run's finished cells, each in a file of its own.

    The folder's name holds a hash of all that decides the numbers, so that a run with other settings,
    another seed, other data or another version finds nothing.
    """

    def __init__(self, out: Path, run: Run, cells: Sequence[Cell]) -> None:
        decides = [run.settings, run.seed, run.sources.describe(), versions(), list(cells)]
        digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:_DIGITS]
        self._folder = out / FOLDER / f"{run.name}-{digest}"

    def read(self, number: int) -> list[Record] | None:
        """Return the records of a cell, or None if it is not finished."""
        try:
            records: list[Record] = json.loads(self._path(number).read_text())
        except (OSError, ValueError):
            return None
        return records

    def write(self, number: int, records: list[Record]) -> None:
        """Keep the records of a finished cell."""
        write_file(self._path(number), json.dumps(records))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:05d}.json"


def forget_finished_cells(out: Path, names: Iterable[str]) -> None:
    """Remove what was kept of the named experiments: they are done."""
    folder = out / FOLDER
    for name in names:
        for kept in folder.glob(f"{name}-{'[0-9a-f]' * _DIGITS}"):
            shutil.rmtree(kept, ignore_errors=True)
    with suppress(OSError):  # not there, or other experiments are still unfinished
        folder.rmdir()
