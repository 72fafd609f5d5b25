"""The one door of all outputs: what a command will write is checked here before any work is done.

An output takes the place of an earlier output of its own kind, which is told by its content, and of nothing else unless
--force is given. What is read is never written over, force or not.

Standard streams may be closed, full or left by their reader: none of that may change what an exit code means.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlier.exceptions import UnusableFileError

if TYPE_CHECKING:
    from inlier._typing import Array
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from io import TextIOWrapper
from typing import Any, TextIO, cast

BAD_INPUT = 2
_HEAD = 4096  # bytes in which the mark of a page or a picture stands
_MOST_MATRIX_BYTES = 1024**2
_PAIR_COLUMNS = {
    "row",
    "row_y",
    "key",
    "source",
    "target",
    "residual",
    "score",
    "p_value",
    "q_value",
    "inlier",
    "certain_q_value",
    "certain",
    "n_rivals",
    "near_miss",
}

force_option = click.option("--force", is_flag=True, help="Overwrite files that are no earlier output of this command.")


class BadInput(click.ClickException):
    """Something the user can mend: one sentence, exit code 2, no traceback."""

    exit_code = BAD_INPUT

    def format_message(self) -> str:
        """The sentence, in one line; control characters that came from a file are shown, not sent to the terminal."""
        return plain(self.message).replace("\n", "\\n")


def plain(text: str) -> str:
    """A text for the terminal: control characters, of which a terminal takes orders, are written as escapes."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", _escaped, text)


def say(text: str, *, to_stderr: bool = True) -> None:
    """Print a sentence, in which names of files and what they hold may stand."""
    click.echo(plain(text), err=to_stderr)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


@dataclass(frozen=True)
class Output:
    """A file that will be written."""

    option: str  # that names it
    what: str  # it holds, in a word
    path: Path
    is_ours: Callable[[Path], bool]  # whether what is there already is an earlier one of its kind


def check_outputs(outputs: Sequence[Output], inputs: Iterable[Path], *, force: bool) -> None:
    """Refuse, before the work is done, what could not be written after it, and what must not be written over."""
    named: dict[str, Path] = {}
    for output in outputs:
        check_place(output.path)
        other = next((other for other, taken in named.items() if is_same_file(taken, output.path)), None)
        if other is not None:
            raise BadInput(f"{other} and {output.option} would both write {output.path}. Give them two names.")
        named[output.option] = output.path
    _check_inputs_stay(list(inputs), named.values())
    for output in outputs:
        if not force and output.path.exists() and not _is_no_loss(output):
            raise BadInput(
                f"{output.path} is there already, and is no earlier output of this kind ({output.what.lower()}, "
                f"{output.option}). Choose another name, or overwrite it with --force."
            )


def _is_no_loss(output: Output) -> bool:
    if output.path.is_file() and output.path.stat().st_size == 0:
        return True
    try:
        return output.is_ours(output.path)
    except (UnusableFileError, OSError, ImportError):
        return False


def _check_inputs_stay(inputs: Sequence[Path], outputs: Iterable[Path]) -> None:
    """Refuse to write over what is read, whatever name it is called by, or a folder around it, or into one."""
    for output in outputs:
        for path in inputs:
            if is_same_file(output, path) or _is_inside(path, output):
                raise BadInput(f"{output} is read by this command, and would be overwritten. Choose another name.")
            if path.is_dir() and _is_inside(output, path):
                raise BadInput(f"{output} lies in {path}, which this command reads. Choose another place.")


def _is_inside(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(folder)) in Path(os.path.realpath(path)).parents


def check_folder(folder: Path) -> None:
    """Refuse a folder that is a file, or in which no file can be made."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file, but a folder is needed to write to. Choose another name.")
    _check_nearest(folder, [folder.absolute(), *folder.absolute().parents])


def check_place(path: Path) -> None:
    """Refuse a place where no file can be made."""
    from inlier.io import first_foreign

    if path.is_dir() and path.suffix.lower() != ".zarr":
        raise BadInput(f"{path} could not be written: it is a folder. Give the name of a file in it.")
    if path.is_dir() and (foreign := first_foreign(path)) is not None:
        raise BadInput(
            f"{path} is a folder with something in it that is no part of a zarr store, {foreign.name}. It is not "
            f"replaced; choose another name."
        )
    if path.exists() and not path.is_dir() and not path.is_file():
        raise BadInput(f"{path} is a device or a pipe, not a file. Choose another name.")
    place = Path(os.path.realpath(path)) if path.is_symlink() else path.absolute()
    if place.is_symlink():
        raise BadInput(f"{path} is a link that leads in a circle. Choose another name.")
    _check_nearest(path, place.parents)


def _check_nearest(path: Path, folders: Iterable[Path]) -> None:
    """Refuse ``path`` if nothing can be made in the first of the folders that is there."""
    from inlier.io import workspace_in

    nearest = next(folder for folder in folders if folder.exists())
    if not nearest.is_dir():
        raise BadInput(f"{path} could not be written: a file stands where a folder is needed, {nearest.name}.")
    try:
        with workspace_in(nearest):
            pass
    except OSError as error:
        reason = f"you may not write to the folder {nearest}"
        if error.errno not in (EACCES, EPERM, EROFS):
            reason = f"no file can be made in the folder {nearest}"
        raise BadInput(f"{path} could not be written: {reason}.") from error


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two names lead to one file: over links, '..', or letters of another case."""
    if os.path.realpath(one) == os.path.realpath(other):  # unlike Path.resolve, says nothing of links in a circle
        return True
    return one.exists() and other.exists() and one.samefile(other)


def is_page(path: Path) -> bool:
    """Whether it is a page of ours: it says so in its head."""
    return b'<meta name="generator" content="inlier">' in _head(path)


def is_picture(path: Path) -> bool:
    """Whether it is a PNG of ours: it names its maker."""
    return b"tEXtSoftware\0inlier" in _head(path)


def is_pairs(path: Path) -> bool:
    """Whether it is a table of judged pairs: it has their columns and no others."""
    from inlier.io import column_names

    if path.suffix.lower() == ".json":
        return _starts_with(path, "answer")
    if path.suffix.lower() == ".npy":  # a mask like any other
        return False
    names = set(column_names(path))
    return {"row", "inlier"} < names <= _PAIR_COLUMNS and bool(names & {"score", "residual"})


def is_transformation(path: Path) -> bool:
    """Whether it is the matrix of a transformation, whose last row is 0 ... 0 1, or all about one as JSON.

    A list of labels and a table of zeros and ones may end so, too, and are the user's.
    """
    import numpy as np

    from inlier.io import read_table

    if path.suffix.lower() == ".json":
        return _starts_with(path, "model")
    if path.stat().st_size > _MOST_MATRIX_BYTES:
        return False
    matrix = read_table(path).values
    is_affine = min(matrix.shape) > 1 and matrix[-1, -1] == 1 and not matrix[-1, :-1].any()
    is_of_labels = np.isin(matrix, (0, 1)).all() and not np.array_equal(matrix, np.eye(*matrix.shape))
    return bool(is_affine and not is_of_labels)


def is_list_of_changes(path: Path) -> bool:
    """Whether it is the list of changed regions."""
    return _starts_with(path, "before")


def is_experiment(path: Path) -> bool:
    """Whether it belongs to an experiment of ours, whose record lies beside it."""
    return _starts_with(path.with_suffix(".json"), "experiment")


def never(path: Path) -> bool:
    """For what cannot be told from a file of the user's."""
    return False


def _starts_with(path: Path, key: str) -> bool:
    return re.match(rb'\s*\{\s*"' + key.encode() + rb'"', _head(path)) is not None


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD)


# ---- what is written


def print_csv(blocks: Iterable[Mapping[str, Array]]) -> None:
    """Print a table, block after block, as csv."""
    from inlier.io import write_csv

    write_csv(sys.stdout.buffer, map(_plain_columns, blocks) if sys.stdout.isatty() else blocks)
    sys.stdout.flush()  # so that a reader who has gone is noticed here, and not as Python ends


def _plain_columns(block: Mapping[str, Array]) -> dict[str, Array]:
    """Ids for a terminal, which takes orders from control characters."""
    import numpy as np

    return {
        name: np.array([plain(text) for text in column.tolist()]) if column.dtype.kind == "U" else column
        for name, column in block.items()
    }


# ---- standard streams


def let_go_of(stream: TextIO | None) -> None:
    """Send what is still to be printed nowhere: what could not be written would fail again as Python ends."""
    if stream is None:
        return
    with suppress(OSError, ValueError):  # no file behind it, as under a test
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class _Words:
    """Standard error: what cannot be said there is not said, and the work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            let_go_of(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            let_go_of(self._stream)


@contextmanager
def usable_streams() -> Iterator[None]:
    """Keep the numbers of closed streams from files, which would get what libraries print; let no word be fatal.

    What libraries log, of themselves or of a damaged file, is said nowhere: sentences are ours to find.
    """
    if not os.environ.get("COLUMNS", "1").strip("0"):  # a terminal of no width, in which nothing would be shown
        del os.environ["COLUMNS"]
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # where it cannot hold an id or a sign, as stderr does
    logging.basicConfig(handlers=[logging.NullHandler()])
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:  # the lowest number that is free is that of the first of them
            os.open(os.devnull, os.O_RDWR)
    with redirect_stderr(cast(TextIO, _Words(sys.stderr or Path(os.devnull).open("w", encoding="utf-8")))):
        yield
