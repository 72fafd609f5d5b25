"""What the README says that commands print is what they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from inlier.cli import main

README = Path(__file__).parents[2] / "README.md"


def blocks() -> list[list[str]]:
    """The lines of the blocks that are no Python."""
    return [
        found.splitlines() for found in re.findall(r"^```\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    ]


@pytest.mark.parametrize("command", ["match", "register"])
def test_commands_print_what_the_readme_shows(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    number, lines = next((k, b) for k, b in enumerate(blocks()) if b[-1].startswith(f"inlier {command} "))
    shown = blocks()[number + 1]
    for line in (line for line in lines if line.startswith("inlier ")):
        result = CliRunner().invoke(main, shlex.split(line, comments=True)[1:])
        assert result.exit_code == 0
    assert len(shown) >= 3
    assert result.stdout.splitlines()[: len(shown)] == shown
