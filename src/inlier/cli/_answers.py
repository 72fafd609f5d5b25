"""How every command ends: the exit codes, and errors as one sentence."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

NOTHING_FOUND = 1
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


@contextmanager
def answering() -> Iterator[None]:
    """Turn what a user can mend into one sentence, and Ctrl-C into its own exit code."""
    try:
        yield
    except BrokenPipeError:  # whoever read our output has had enough; click ends quietly
        raise
    except (ValueError, ImportError, OSError) as error:
        raise BadInput(sentence_of(error)) from error
    except MemoryError as error:
        raise BadInput("There is not enough memory for so many numbers; use fewer columns or --splits.") from error
    except KeyboardInterrupt:
        click.echo("Interrupted. No file was left half written.", err=True)
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def warnings_as(notes: list[str]) -> Iterator[None]:
    """Collect the library's warnings as sentences instead of printing them with a line of code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            notes += dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning)


def command_line(context: click.Context) -> str:
    """What to type to run this command again with the same settings."""
    command, options = ["inlier", *context.command_path.split()[1:]], []
    for parameter in context.command.params:
        if context.get_parameter_source(parameter.name or "") is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = context.params[parameter.name or ""]
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(parameter, click.Argument):
            command += [str(one) for one in values]
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            options += [word for one in values for word in (parameter.opts[-1], str(one))]
    return shlex.join([*command, *options])
