"""The library's sentences in the words of the command line: options for parameters, files for X and y."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from inlier.cli._answers import BadInput, warnings_as

_TABLE = re.compile(r"(?<![\w.:/\\-])[XYy](?![\w/\\-]|[.:]\w)")  # X, but not that of X.npy or data.npz:X
_OPTIONS = {
    r"; for batches, raise_on_failure=False": "",
    r"model='(\w+)'": r"--model \1",
    r"reflection=True": "--reflection",
    r"sample_weight|^weights\b": "--weights",
    r"alpha=": "--alpha ",
    r"^(alpha|threshold)(?= must\b)": r"--\1",
    r"^inlier_fraction(?= must\b)": "--inlier-fraction",
    r"\bnoise_bound\b": "--noise-bound",
    r"n_splits=": "--splits ",
    r"whiten=True": "--whiten",
    r"whiten=False": "--no-whiten",
    r"q_values_ tell": "the q-values (-o) tell",
}


def in_options(sentence: str, x: str, y: str) -> str:
    """Say the same with options for parameters, and with these names for X and y."""
    sentence = _TABLE.sub(lambda found: x if found[0] == "X" else y, sentence)
    for parameter, option in _OPTIONS.items():
        sentence = re.sub(parameter, option, sentence)
    return sentence


@contextmanager
def naming_files(x: str, y: str, notes: list[str]) -> Iterator[None]:
    """Let what the library says of its tables, in errors and in warnings, name the files instead.

    Warnings are collected in ``notes``.
    """
    said: list[str] = []
    try:
        with warnings_as(said):
            yield
    except ValueError as error:
        raise BadInput(in_options(str(error), x, y)) from error
    finally:
        notes += [in_options(sentence, x, y) for sentence in said]
