"""The help is the manual: its examples run as printed, and the page made of it is up to date."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from inlier.cli import main

TOOL = Path(__file__).parents[2] / "tools" / "make_command_page.py"


def examples(name):
    """The lines under "Example:" in a command's help."""
    words = [name, "--help"] if name else ["--help"]
    lines = CliRunner().invoke(main, words, terminal_width=200).output.splitlines()
    start = lines.index("  Example:") + 1
    found = []
    for line in lines[start:]:
        if not line.startswith("    inlier"):
            break
        found.append(line.strip())
    return found


@pytest.mark.parametrize("name", ["", *main.list_commands(click.Context(main))])
def test_examples_run_as_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = examples(name)
    assert lines
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "inlier"
        outcome = CliRunner().invoke(main, words)
        assert outcome.exit_code == 0, f"{line}\n{outcome.output}"


def test_the_page_of_commands_is_up_to_date():
    spec = spec_from_file_location("make_command_page", TOOL)
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text() == tool.render(), "run: python tools/make_command_page.py"


def test_completion_is_offered(tmp_path):
    environment = {"_INLIER_COMPLETE": "bash_complete", "COMP_WORDS": "inlier match --me", "COMP_CWORD": "2"}
    code = "from inlier.cli import main; main(prog_name='inlier')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert "--method" in done.stdout
