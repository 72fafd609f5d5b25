"""Whatever is typed, a command ends with an answer (0), nothing found (1) or a sentence about the input (2)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from inlier.cli import main
from inlier.io import write_table

FILES = ("x.npy", "y.npy", "x.csv", "y.csv", "flat.npy", "nan.npy", "same.npy", "huge.npy", "few.npy", "both.npz:x")
ODD_FILES = ("both.npz", "both.npz:z", "cube.npy", "words.csv", "cloud.ply", "empty.csv", "absent.npy", ".", "", "x")
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


def option(name, values):
    return st.sampled_from(values).map(lambda value: [name, value])


def commands(command, options, usual=FILES[:4]):
    """The command, two files, and some options, each at most twice."""
    files = st.one_of(st.sampled_from(usual), st.sampled_from(FILES), st.sampled_from(ODD_FILES))
    words = st.lists(st.one_of(*options), max_size=4).map(lambda found: [word for words in found for word in words])
    return st.tuples(files, files, words).map(lambda found: [command, found[0], found[1], *found[2]])


COMMON = [
    option("--alpha", NUMBERS),
    option("--seed", NUMBERS),
    option("--key", ("id", "a0", "no", "")),
    option("--columns", COLUMNS),
    option("-o", OUTPUTS),
    option("--report", ("page.html", "page.pdf", "x.npy", ".")),
    st.sampled_from([["--json"], ["--quiet"]]),
]
MATCH = [
    *COMMON,
    option("--method", ("calibrated", "row-sum", "eigenvector", "no")),
    option("--threshold", NUMBERS),
    option("--inlier-fraction", NUMBERS),
    option("--splits", ("1", "2", "9", "0")),
    st.sampled_from([["--whiten"], ["--no-whiten"]]),
]
REGISTER = [
    *COMMON,
    option("--pairs", ("pairs.csv", "x.npy", "few.npy", "words.csv", "absent.csv")),
    option("--model", ("rigid", "rotation", "orthogonal", "similarity", "affine", "no")),
    option("--noise-bound", [number for number in NUMBERS if number != "1e-300"]),  # overflows when divided by
    option("--weights", ("a0", "flat.npy", "x.npy", "no", "")),
    option("-t", OUTPUTS),
    option("--moved", OUTPUTS),
    st.just(["--reflection"]),
]
DIFF = [
    option("--method", ("calibrated", "row-sum", "no")),
    option("--alpha", NUMBERS),
    option("--seed", NUMBERS),
    option("-o", ("page", "x.npy", ".", "")),
    st.sampled_from([["--json"], ["--quiet"], ["--no-align"]]),
]


def contents(folder):
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.stem not in ("out", "page")
    }


@given(st.one_of(commands("match", MATCH), commands("register", REGISTER), commands("diff", DIFF, PHOTOS)))
@settings(max_examples=100)
def test_no_traceback_and_nothing_half_written(folder, words):
    before = contents(folder)
    outcome = CliRunner().invoke(main, words)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exc_info
    assert outcome.exit_code in (0, 1, 2)
    assert "mistake of its own" not in outcome.output
    if outcome.exit_code == 2:
        assert outcome.stdout == ""
        assert "Error: " in outcome.stderr
    assert contents(folder) == before
    assert not list(folder.glob(".inlier-*"))
