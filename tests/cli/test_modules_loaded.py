"""Leaves are leaves: a command loads what it needs, and no other program of the package."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from inlier.datasets import make_gaussian_pairs

CODE = """
import sys
from inlier.cli import main
main({words!r}, standalone_mode=False)
print(*(name for name in sys.modules if name.split(".")[0] == "inlier"), file=sys.stderr)
"""
HELP = """
import sys
from click.testing import CliRunner
from inlier.cli import main
assert CliRunner().invoke(main, {words!r}).exit_code == 0
print(*sys.modules, file=sys.stderr)
"""


def loaded(code, words, folder):
    command = [sys.executable, "-c", code.format(words=words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def pairs(tmp_path):
    data = make_gaussian_pairs(300, 4, 0.7, rng=0)
    np.save(tmp_path / "x.npy", data.X)
    np.save(tmp_path / "y.npy", data.Y)
    return tmp_path


def test_a_match_loads_what_it_needs(pairs):
    words = ["match", "x.npy", "y.npy", "--method", "row-sum", "-q", "-o", "mask.npy"]
    names = loaded(CODE, words, pairs)
    assert np.load(pairs / "mask.npy").shape == (300,)
    assert len(names) < 64, sorted(names)
    rooms = {name.split(".")[1] for name in names if "." in name}
    assert not rooms & {"apps", "images", "datasets", "plotting", "calibration", "consensus", "transforms"}
    assert {name for name in names if name.startswith("inlier.io.") and name.endswith("_files")} == {
        "inlier.io._array_files"
    }


@pytest.mark.parametrize("words", [["--help"], ["match", "--help"], ["register", "--help"]])
def test_help_loads_nothing_heavy(words, tmp_path):
    names = loaded(HELP, words, tmp_path)
    assert not names & {"numpy", "scipy", "sklearn", "numba", "pyarrow", "jinja2", "rich", "matplotlib", "PIL"}
