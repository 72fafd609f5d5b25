"""The command line: one thin file a command, loaded when it is named, so that ``--help`` answers at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

# a function of that name in this module
_COMMANDS = {
    "match": "inlier.cli.match",
    "register": "inlier.cli.register",
    "judge": "inlier.cli.judge",
    "diff": "inlier.images.diff_command",
    "demo": "inlier.apps.demo",
    "reproduce": "inlier.apps.reproduce",
    "bench": "inlier.apps.bench",
}


class _LazyCommands(click.Group):
    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        run: Callable[[], Any] = partial(super().main, args, prog_name, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        from inlier.cli._common import INTERRUPTED
        from inlier.cli._outputs import usable_streams

        with usable_streams():
            try:
                code = run()  # of `Context.exit`, or nothing
            except click.ClickException as error:
                error.show()
                code = error.exit_code
            except (click.Abort, KeyboardInterrupt):  # for which click itself would end with 1
                code = INTERRUPTED
        raise SystemExit(code or 0)

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        from inlier.cli._common import answering

        with answering():  # --help and --version print here
            return super().make_context(*args, **settings)

    def invoke(self, context: click.Context) -> Any:
        from inlier.cli._common import answering

        with answering():  # whatever a command lets through
            Path.cwd()  # fails where that folder is gone: Python 3.13 cannot even import there
            return super().invoke(context)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return getattr(import_module(_COMMANDS[name]), name) if name in _COMMANDS else None


@click.group(cls=_LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="inlier")
def main() -> None:
    """Given two sets of paired points, which pairs are real?

    \b
    Example:
      inlier demo
      inlier match --help
    """
