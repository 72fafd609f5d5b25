"""How every command ends: the exit codes, and errors as one sentence."""

from __future__ import annotations

import click

BAD_INPUT = 2
INTERRUPTED = 130  # what shells expect after Ctrl-C


class BadInput(click.ClickException):
    """Something the user can mend: one sentence, exit code 2, no traceback."""

    exit_code = BAD_INPUT


def sentence_of(error: Exception) -> str:
    """What went wrong, in words; the system's own errors name the file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename} could not be written or read: {error.strerror}."
    return str(error)
