"""Whatever is typed, a command ends with an answer (0), nothing found (1) or a sentence about the input (2)."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from inlier.cli import main
from inlier.io import write_table

FILES = ("x.npy", "y.npy", "x.csv", "y.csv", "flat.npy", "nan.npy", "same.npy", "huge.npy", "few.npy", "both.npz:x")
ODD_FILES = (
    "both.npz",
    "both.npz:z",
    "cube.npy",
    "words.csv",
    "cloud.ply",
    "empty.csv",
    "absent.npy",
    ".",
    "",
    "x",
    "-",
)
PHOTOS = ("before.png", "after.png")
NUMBERS = ("0", "0.3", "0.5", "1", "-1", "nan", "inf", "1e-300", "1e300", "x", "")
COLUMNS = ("a0", "a0,a1", "0,1", "^0", "^a0", "a0,^a1", "", "no", "0,0", 'a"')
OUTPUTS = (
    "-",
    "out.csv",
    "out.npy",
    "out.json",
    "out.txt",
    "out.png",
    "out.ply",
    "out",
    "no/out.csv",
    "out.zarr",
    "out.parquet",
    "words.csv",
    "link.csv",
    "/dev/null",
)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """A folder with small files of every kind; nothing in it may be changed by a command."""
    folder, before = tmp_path_factory.mktemp("any"), Path.cwd()
    os.chdir(folder)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    Y = np.where(np.arange(30)[:, None] < 20, X @ np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=(30, 3)))
    ids = np.array([f"s{number}" for number in range(30)])
    for name, values in {"x": X, "y": Y, "flat": X[:, :1], "same": np.ones((30, 3)), "huge": X * 1e200}.items():
        write_table(f"{name}.npy", values)
    write_table("few.npy", X[:2])
    write_table("nan.npy", np.where(X > 2, np.nan, X))
    write_table("cube.npy", np.zeros((3, 3, 3)))
    write_table("pairs.csv", {"source": np.arange(30), "target": np.arange(30)[::-1]})
    for name, values in (("x", X), ("y", Y)):
        write_table(f"{name}.csv", {"id": ids, **{f"a{number}": column for number, column in enumerate(values.T)}})
    np.savez("both.npz", x=X, y=Y)
    write_table("cloud.ply", X)
    (folder / "words.csv").write_text("a,b\nc,d\n")
    (folder / "empty.csv").touch()
    (folder / "link.csv").symlink_to("words.csv")
    photo = rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)
    for name in ("before.png", "after.png", "mask.png"):
        write_table(name, photo)
        photo[10:20, 10:20] = 255
    yield folder
    os.chdir(before)


COMMON = {  # options, with values that are typed; none for flags
    "--alpha": NUMBERS,
    "--seed": NUMBERS,
    "--key": ("id", "a0", "no", ""),
    "--columns": COLUMNS,
    "--pairs": ("pairs.csv", "x.npy", "few.npy", "words.csv", "absent.csv", "-", "empty.csv", "both.npz:x", "."),
    "--output": OUTPUTS,
    "--report": ("page.html", "page.pdf", "x.npy", "."),
    "--json": (),
    "--quiet": (),
    "--force": (),
}
MATCH = {
    **COMMON,
    "--method": ("calibrated", "row-sum", "eigenvector", "no"),
    "--threshold": NUMBERS,
    "--inlier-fraction": NUMBERS,
    "--splits": ("1", "2", "9", "0"),
    "--whiten": (),
    "--no-whiten": (),
    "--transpose": (),
    "--same-columns": (),
    "--x": COLUMNS,
    "--y": COLUMNS,
    "--format": ("csv", "npy", ".tsv", "parquet", "no", ""),
    "--group": ("a0", "id", "0", "flat.npy", "words.csv", "no", ""),
    "--stratum": ("a0", "id", "0", "flat.npy", "words.csv", "no", ""),
    "--meta": ("x.csv", "few.npy", "absent.csv", "words.csv", ""),
    "--missing": ("-9999", "NA,-1", "nan", "", "x"),
    "--repair": OUTPUTS,
    "--unmatched": (),
    "--suspects": OUTPUTS,
    "--new": OUTPUTS,
    "--clean": OUTPUTS,
    "--map": OUTPUTS,
    "--plate": ("8x12", "1x1", "0x3", "x", ""),
    "--max-wrong": NUMBERS,
    "--json-pairs": (),
}
REGISTER = {
    **COMMON,
    "--json-pairs": (),
    "--paired": (),
    "--clouds": (),
    "--reflection": (),
    "--model": ("rigid", "rotation", "orthogonal", "similarity", "affine", "no"),
    "--noise-bound": NUMBERS,
    "--weights": ("a0", "flat.npy", "x.npy", "no", ""),
    "--transform": OUTPUTS,
    "--moved": OUTPUTS,
    "--merged": OUTPUTS,
    "--cache": (*OUTPUTS, "x.csv"),
    "--depth": ("150,150,80,60", "0,0,0,0", "x", ""),
    "--jobs": ("1", "0"),
}
DIFF = {
    "--method": ("calibrated", "row-sum", "eigenvector", "no"),
    "--alpha": NUMBERS,
    "--seed": NUMBERS,
    "--out": ("page", "x.npy", ".", ""),
    "--align": (),
    "--no-align": (),
    "--same-scene": (),
    "--bits": NUMBERS,
    "--json": (),
    "--quiet": (),
    "--force": (),
}
WORDS = ("", "id", "0", "-1", "3", "1e400", "x,y", "out.csv", "out.npz", "out.html", "no/where.npy")  # for any option
FOLDER = "--out"  # which would be made, and be in the way of files of that name
READ = ("--pairs", "--group", "--stratum", "--weights")  # options that name files
TYPED_IN = (b"", b"a,b,c\n1,2,3\n", b"\x93NUMPY\x01\x00", b"\x1f\x8b\x08", b"0,1\n" * 30, b"\xff\xfe\0", b"s0,1\n" * 30)


def commands(command, options, usual=FILES[:4]):
    """The command, two files, and some options, each at most twice."""
    files = st.one_of(st.sampled_from(usual), st.sampled_from(FILES), st.sampled_from(ODD_FILES))
    typed = [
        st.sampled_from((*values, *(WORDS if name != FOLDER else ()))).map(lambda value, name=name: [name, value])
        if values
        else st.just([name])
        for name, values in options.items()
    ]
    words = st.lists(st.one_of(typed), max_size=4).map(lambda found: [word for words in found for word in words])
    return st.tuples(files, files, words).map(lambda found: [command, found[0], found[1], *found[2]])


def contents(folder):
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.stem not in ("out", "page")
    }


@given(
    st.one_of(commands("match", MATCH), commands("register", REGISTER), commands("diff", DIFF, PHOTOS)),
    st.sampled_from(TYPED_IN),
)
@settings(max_examples=2 * settings.default.max_examples)
def test_no_traceback_and_nothing_half_written(folder, words, typed_in):
    before = contents(folder)
    outcome = CliRunner().invoke(main, words, input=typed_in)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exc_info
    assert outcome.exit_code in (0, 1, 2)
    assert "mistake of its own" not in outcome.output
    if outcome.exit_code == 2:
        assert outcome.stdout == ""
        assert "Error: " in outcome.stderr
    after = contents(folder)
    if "--force" in words:  # then what is not read may be written over
        read = {*words[1:3], *(value for name, value in pairwise(words) if name in READ)}
        may_go = {"words.csv", "link.csv"} if read.isdisjoint(("words.csv", "link.csv")) else set()
        may_go |= {"x.npy"} - read
        for name in may_go & before.keys():
            (folder / name).write_bytes(before[name])
        before, after = ({name: kept[name] for name in kept if name not in may_go} for kept in (before, after))
    assert after == before
    assert not list(folder.glob(".inlier-*"))


@pytest.mark.parametrize(("name", "options"), [("match", MATCH), ("register", REGISTER), ("diff", DIFF)])
def test_every_option_is_drawn(name, options):
    known = [
        option for option in main.get_command(click.Context(main), name).params if isinstance(option, click.Option)
    ]
    long_names = {word for option in known for word in (*option.opts, *option.secondary_opts) if len(word) > 2}
    assert long_names - {"--help", "--version"} == options.keys()
