from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from inspect import ismodule
from pathlib import Path

import numpy as np
import pytest

import inlier
from tests import public_names

SNAPSHOT = Path(__file__).with_name("public_names.txt")
MOST_MODULES = 89  # of the package, loaded by the plainest match

PLAIN_MATCH = """
import sys
from inlier.cli import main
main(["match", "x.npy", "y.npy", "--method", "row-sum", "-o", "mask.npy"], standalone_mode=False)
print(*(name for name in sys.modules if name.partition(".")[0] == "inlier"))
"""


def test_every_public_name_is_there_and_has_an_example():
    values = [getattr(inlier, name) for name in inlier.__all__]
    values += [
        getattr(import_module(home), name) for home, names in public_names.ELSEWHERE.items() for name in names.split()
    ]
    for value in values:
        assert value.__doc__
        if not ismodule(value):
            assert ">>>" in value.__doc__, f"{value} has no example"
    assert set(inlier.__all__) <= set(dir(inlier))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Matcher'"):
        _ = inlier.Matcher


def test_version():
    assert inlier.__version__.count(".") == 2


def test_public_names_and_parameters_are_those_of_the_snapshot():
    """After a change that is meant: python -m tests.public_names > tests/public_names.txt"""
    assert list(public_names.lines()) == SNAPSHOT.read_text().splitlines()


def test_a_plain_match_loads_no_leaf_and_little_else(tmp_path):
    rng = np.random.default_rng(0)
    for name in "xy":
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(50, 3)))
    command = [sys.executable, "-c", PLAIN_MATCH]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    leaves = ("inlier.apps", "inlier.images")
    assert not [name for name in loaded if name.startswith(leaves)]
    assert len(loaded) <= MOST_MODULES


def test_the_tree_in_the_docs_names_every_module():
    root = Path(__file__).parents[1]
    tree = (root / "docs/architecture.md").read_text().split("```")[1]
    modules = [path.stem for path in (root / "src/inlier").rglob("*.py") if path.name != "__init__.py"]
    assert set(modules) <= set(re.findall(r"\w+", tree))
