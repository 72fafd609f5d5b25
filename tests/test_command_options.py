"""Whatever options are given, a command ends with 0, 1 or 2 and a sentence; never with a traceback."""

from __future__ import annotations

from contextlib import chdir
from itertools import chain

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from inlier.cli import main

WORDS = [
    "",
    "id",
    "0",
    "-1",
    "3",
    "0.5",
    "nan",
    "1e400",
    "x,y",
    "out.csv",
    "out.npz",
    "out.html",
    "out.txt",
    "no/where.npy",
]


def values_of(option):
    """Values of an option, sound ones and others."""
    if isinstance(option.type, click.Choice):
        return st.sampled_from([*option.type.choices, "something else"])
    return st.sampled_from(WORDS)


def words_of(option):
    """An option with its value, as it is typed."""
    name = max(option.opts, key=len)
    return st.just([name]) if option.is_flag else values_of(option).map(lambda value: [name, value])


def command_lines(name):
    """Two tables, and up to four options of a command."""
    command = main.get_command(click.Context(main), name)
    options = [option for option in command.params if isinstance(option, click.Option) and not option.is_eager]
    tables = st.sampled_from(["x.npy", "y.npy", "x.csv", "short.csv", "absent.csv"])
    chosen = st.lists(st.sampled_from(options), max_size=4, unique=True).flatmap(
        lambda some: st.tuples(*map(words_of, some))
    )
    return st.builds(lambda x, y, rest: [name, x, y, *chain(*rest)], tables, tables, chosen)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    X = np.random.default_rng(0).normal(size=(40, 3))
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", np.roll(X, 1, axis=1))
    np.savetxt(folder / "x.csv", X, delimiter=",", header="a,b,c", comments="")
    np.savetxt(folder / "short.csv", X[:3], delimiter=",", header="a,b,c", comments="")
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["match", "register"])
@settings(max_examples=settings.default.max_examples // 2)
@given(st.data())
def test_no_command_line_ends_in_a_traceback(name, folder, data):
    words = data.draw(command_lines(name))
    with chdir(folder):
        outcome = CliRunner().invoke(main, words)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit)
    assert outcome.exit_code in {0, 1, 2}
    assert "mistake of its own" not in outcome.output
    assert outcome.exit_code != 2 or outcome.stderr.strip()
