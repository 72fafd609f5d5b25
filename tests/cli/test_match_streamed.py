"""Large files through ``inlier match``: read in stretches, with the answer of files that are read as a whole."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from click.testing import CliRunner

from inlier.calibration import sampled_fit as many_pairs
from inlier.cli import main
from inlier.cli import match as command
from inlier.datasets import make_gaussian_pairs
from inlier.estimators import calibrated
from inlier.io import limits, read_table
from inlier.rows import files as in_files
from inlier.rows import threads

N = 2000
DATA = make_gaussian_pairs(N, 3, 0.6, noise=0.1, rng=0)
METHODS = {
    "row-sum": ["--method", "row-sum"],
    "eigenvector": ["--method", "eigenvector"],
    "threshold": ["--method", "eigenvector", "--threshold", "0.5"],
    "whitened": ["--method", "row-sum", "--whiten", "--inlier-fraction", "0.6"],
    "columns": ["--method", "row-sum", "--columns", "2,0", "--columns", "^1"],
    "calibrated": ["--seed", "3"],
    "strict": ["--alpha", "0"],  # nothing can be accepted
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Two npy files; stretches of 300 pairs, and a calibrated matcher that takes 2,000 pairs for many."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(in_files, "_STRETCH_BYTES", 8 * 6 * 300)
    monkeypatch.setattr(threads, "_ROWS_PER_RANGE", 150)
    monkeypatch.setattr(calibrated, "MOST_ONE_BY_ONE", 1000)
    monkeypatch.setattr(many_pairs, "_SAMPLE", 1500)
    np.save("x.npy", DATA.X.astype(np.float32))
    np.save("y.npy", DATA.Y.astype(np.float32))
    return tmp_path


@pytest.fixture
def run(monkeypatch):
    """Run the command with files read as a whole, or in stretches from the first byte on."""

    def run(*words, stretches=True):
        if stretches is not None:
            monkeypatch.setenv(command.VARIABLE, "0" if stretches else "1000")
        stretch_by_stretch, began = command._match_stored, []
        monkeypatch.setattr(command, "_match_stored", lambda *a: began.append(1) or stretch_by_stretch(*a))
        outcome = CliRunner().invoke(main, ["match", *map(str, words)])
        outcome.was_streamed = bool(began)
        return outcome

    return run


def content(path):
    """What a file holds, apart from how it is packed."""
    if path.suffix in (".csv", ".json", ".npy"):
        return path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    table = read_table(path)
    return table.columns, table.values.tobytes()


@pytest.mark.parametrize("words", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("output", [["--json"], ["--json-pairs"], [], ["-o", "-"], ["-o", "pairs.json"]], ids=" ".join)
def test_the_same_text(run, words, output):
    found = []
    for stretches in (False, True):
        outcome = run("x.npy", "y.npy", *words, *output, stretches=stretches)
        assert outcome.was_streamed == stretches
        written = Path("pairs.json").read_text() if "pairs.json" in output else ""
        found.append((outcome.exit_code, outcome.stdout, outcome.stderr, written))
    assert found[0] == found[1]
    assert found[0][0] == (1 if words == METHODS["strict"] else 0)


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv", "tsv.gz", "parquet", "feather", "h5", "zarr"])
@pytest.mark.parametrize("method", ["row-sum", "calibrated"])
def test_the_same_file(run, suffix, method):
    path, found = Path(f"pairs.{suffix}"), []
    for stretches in (False, True):
        assert run("x.npy", "y.npy", "--method", method, "-o", path, "--force", stretches=stretches).exit_code == 0
        found.append(content(path))
    assert found[0] == found[1]
    assert not list(Path().glob(".inlier-*"))


@pytest.mark.parametrize("chunk", [64, 700])
def test_zarr_and_hdf5(run, chunk):
    expected = run("x.npy", "y.npy", "--method", "row-sum", "-o", "-").stdout
    with h5py.File("both.h5", "w") as file:
        file.create_dataset("set/x", data=np.load("x.npy"), chunks=(chunk, 3))
        file["y"] = np.load("y.npy")
    for name in "xy":
        zarr.create_array(store=f"{name}.zarr", data=np.load(f"{name}.npy"), chunks=(chunk, 2))
    for files in (("both.h5:set/x", "both.h5:y"), ("x.zarr", "y.zarr"), ("x.npy", "y.zarr")):
        outcome = run(*files, "--method", "row-sum", "-o", "-")
        assert outcome.was_streamed
        assert outcome.stdout == expected


def test_a_list_of_numbers_is_a_column(run):
    np.save("line.npy", DATA.X[:, 0])
    words = ("line.npy", "y.npy", "--method", "row-sum", "--json-pairs")
    texts = [run(*words, stretches=stretches).stdout for stretches in (False, True)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("words", [["--report", "page.html"], ["--splits", "2"], ["--report", "page.html", "-o", "-"]])
def test_what_looks_at_all_pairs_at_once_reads_them_at_once(run, words):
    outcome = run("x.npy", "y.npy", *words)
    assert outcome.exit_code == 0, outcome.output
    assert not outcome.was_streamed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--report", "page.html"],
            "--report looks at all pairs at once, which takes about 0.0 GiB for the 2,000 pairs",
        ),
        (["--method", "row-sum", "--splits", "2"], "Leave out --splits, or match fewer rows."),
        (["--method", "calibrated"], "Use --method row-sum or eigenvector, or fewer --columns."),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_read(run, monkeypatch, words, message):
    monkeypatch.setattr(limits, "memory_allowed", lambda: 1000)
    monkeypatch.setattr(calibrated, "MOST_ONE_BY_ONE", N)
    outcome = run("x.npy", "y.npy", *words)
    assert outcome.exit_code == 2
    assert message in " ".join(outcome.stderr.split())


def test_files_that_cannot_be_read_by_rows_are_read_as_a_whole(run):
    np.savez("x.npz", DATA.X)
    np.save("short.npy", DATA.Y[:7])
    assert not run("x.npz", "y.npy", "--method", "row-sum").was_streamed
    outcome = run("x.npy", "short.npy")
    assert "x.npy has 2,000 rows and short.npy has 7" in outcome.stderr
    Path("broken.npy").write_bytes(Path("y.npy").read_bytes()[:-100])
    outcome = run("x.npy", "broken.npy")
    assert outcome.exit_code == 2
    assert "broken.npy is cut short" in outcome.stderr


def test_a_number_that_is_not_finite_is_named_by_its_file(run):
    Y = np.load("y.npy")
    Y[1234, 1] = np.inf
    np.save("bad.npy", Y)
    np.save("mask.npy", np.array([True]))
    outcome = run("x.npy", "bad.npy", "--method", "row-sum", "-o", "mask.npy", "--force")
    assert outcome.exit_code == 2
    assert (
        "Error: bad.npy contains NaN or infinity: 1 value(s), the first (inf) in row 1234, column 1" in outcome.stderr
    )
    assert np.load("mask.npy").tolist() == [True]  # still the old one


def test_what_is_read_is_not_overwritten(run):
    Path("sub").mkdir()
    for name in ("x.npy", "sub/../x.npy"):
        assert f"{name} is read by this command, and would be overwritten" in run("x.npy", "y.npy", "-o", name).stderr
    np.testing.assert_array_equal(np.load("x.npy"), DATA.X.astype(np.float32))


def test_notes_are_the_same(run):
    X = np.load("x.npy")
    X[:, 1] = 7
    np.save("flat.npy", X)
    outcomes = [run("flat.npy", "y.npy", "--method", "row-sum", stretches=stretches) for stretches in (False, True)]
    assert outcomes[0].stderr == outcomes[1].stderr
    assert "columns of flat.npy holds a single value" in outcomes[1].stderr


def test_ties_among_the_worst_are_told_apart_by_their_rows(run):
    np.save("x.npy", np.tile(DATA.X[:20], (100, 1)))
    np.save("y.npy", np.tile(DATA.Y[:20], (100, 1)))
    words = ("x.npy", "y.npy", "--method", "row-sum", "--json")
    texts = [run(*words, stretches=stretches).stdout for stretches in (False, True)]
    assert texts[0] == texts[1]
    assert len({record["score"] for record in json.loads(texts[0])["worst"]}) < 10


class TestWhenToStream:
    def test_from_a_gibibyte_on_or_an_eighth_of_the_memory(self, run, monkeypatch):
        """Two tables of 24 kB each are read in stretches as soon as they are an eighth of the memory."""
        monkeypatch.delenv(command.VARIABLE, raising=False)
        both = 2 * N * 3 * 4
        for allowed, expected in ((8 * both + 8, False), (8 * both, True)):
            monkeypatch.setattr(limits, "memory_allowed", lambda allowed=allowed: allowed)
            assert run("x.npy", "y.npy", "--method", "row-sum", stretches=None).was_streamed == expected
        monkeypatch.setattr(limits, "memory_allowed", lambda: 64 * limits.GIB)
        monkeypatch.setattr(limits, "GIB", both)
        assert run("x.npy", "y.npy", "--method", "row-sum", stretches=None).was_streamed

    def test_the_setting_must_be_a_number(self, monkeypatch):
        monkeypatch.setenv(command.VARIABLE, "much")
        outcome = CliRunner().invoke(main, ["match", "x.npy", "y.npy"])
        assert outcome.exit_code == 2
        assert "INLIER_STREAM_FROM must be a number of GiB; it is 'much'." in outcome.stderr


UNDER_A_LIMIT = """
import resource, sys
import numpy as np
from inlier.cli import main
method, allowance = sys.argv[1], int(sys.argv[2])
main(["match", "few-x.npy", "few-y.npy", "--method", method, "-q", "-o", "few.npy"], standalone_mode=False)
taken = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (taken + allowance,) * 2)
try:
    np.ones(2 * allowance // 8)
except MemoryError:
    print("the limit holds")
main(["match", "big-x.npy", "big-y.npy", "--method", method, "-q", "-o", "mask.npy"])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the memory of data")
def test_files_eight_times_the_memory_that_is_left(folder, monkeypatch):
    """The few pairs compile and start the threads; then the process may take 40 MiB more, for files of 336 MB."""
    allowance, n, rng = 40 * 1024**2, 14_000_000, np.random.default_rng(0)
    for name in "xy":
        np.save(f"few-{name}.npy", rng.standard_normal((500_000, 3), dtype=np.float32))
        table = np.lib.format.open_memmap(f"big-{name}.npy", "w+", np.float32, (n, 3))
        for start in range(0, n, 1_000_000):
            table[start : start + 1_000_000] = rng.standard_normal((1_000_000, 3), dtype=np.float32)
        table.flush()
    assert sum((folder / f"big-{name}.npy").stat().st_size for name in "xy") >= 8 * allowance
    monkeypatch.setenv(command.VARIABLE, "0")
    words = [sys.executable, "-c", UNDER_A_LIMIT, "row-sum", str(allowance)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the limit holds\n"
    assert np.load("mask.npy", mmap_mode="r").shape == (n,)
