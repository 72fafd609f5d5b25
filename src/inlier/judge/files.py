"""A judge in a file: npz, of which one entry is a line of JSON. Nothing is pickled, and nothing in it is run."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.exceptions import UnusableFileError

VERSION = 1  # of the file; a program reads those up to its own
_KIND = "inlier judge"
_MOST_BYTES = 2**28  # unpacked
_FACTS = "facts"


def packed(facts: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """The content of a file."""
    line = json.dumps({"kind": _KIND, "version": VERSION, **facts})
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **{_FACTS: np.frombuffer(line.encode(), np.uint8)}, **arrays)
    return content.getvalue()


def content_of(source: Path | io.BytesIO, made_of: Callable[[dict[str, Any], dict[str, Array]], Any]) -> Any:
    """What was packed, put together; a sentence where it is something else, damaged or of a later version."""
    name = "what was pickled" if isinstance(source, io.BytesIO) else str(source)
    try:
        facts, arrays = _parts(source, name)
        if facts.get("kind") != _KIND:
            raise UnusableFileError(f"{name} holds no judge. Judge.to_file writes them.")
        if int(facts["version"]) > VERSION:
            raise UnusableFileError(
                f"{name} is a judge of version {facts['version']}, and this program reads up to version {VERSION}. "
                f"Install a later inlier, or write the judge with this one."
            )
        return made_of(facts, arrays)
    except FileNotFoundError:
        raise UnusableFileError(f"there is no file {name}. Check the name and the folder.") from None
    except UnusableFileError:
        raise
    except OSError as error:
        raise UnusableFileError(f"{name} could not be opened: {str(error.strerror).lower()}.") from error
    except Exception as error:  # a damaged file may raise anything
        raise UnusableFileError(f"{name} could not be read as a judge: it is damaged, or something else.") from error


def _parts(source: Path | io.BytesIO, name: str) -> tuple[dict[str, Any], dict[str, Array]]:
    if not zipfile.is_zipfile(source):
        if isinstance(source, Path):
            source.open("rb").close()  # says why, where it cannot be read at all
        raise UnusableFileError(f"{name} holds no judge. Judge.to_file writes them.")
    with zipfile.ZipFile(source) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
            raise UnusableFileError(f"{name} is larger than any judge.")
    if isinstance(source, io.BytesIO):
        source.seek(0)
    with np.load(source, allow_pickle=False) as stored:
        arrays = {entry: stored[entry] for entry in stored.files}
    facts = json.loads(arrays.pop(_FACTS, np.empty(0, np.uint8)).tobytes() or b"{}")
    return facts, arrays
