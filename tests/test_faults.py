"""What is left when a file operation fails, a process is killed, two runs write to one place, or a file shrinks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from inlier.io import read_table, workspace_in, write_file, write_table, written_beside

ROOT = Path(__file__).parents[1]
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
X = np.random.default_rng(0).normal(size=(3000, 3))
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are tried in forked processes")


@pytest.mark.parametrize("name", ["match to a store, streamed", "match, new pairs", "register", "raw clouds"])
def test_some_faults(name):
    """Some of those that `make faults` tries one by one, for all commands."""
    command = [sys.executable, "-m", "fuzz.faults", "--only", name, "--every", "29"]
    done = subprocess.run(command, cwd=ROOT, env=ALONE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "faults, 0 wrong" in done.stdout


def test_a_fault_is_noticed(tmp_path, monkeypatch):
    """The attack finds what it is there for: an output that is written in place."""
    program = """
import sys
from contextlib import contextmanager
import inlier.io.write, inlier.io.write
@contextmanager
def in_place(path):
    yield path
inlier.io.write.written_beside = in_place
from fuzz.faults import COMMANDS, try_command
print(*try_command("match, streamed", COMMANDS["match, streamed"], 3)[1], sep="\\n")
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=ALONE, capture_output=True, text=True, timeout=300, check=True)
    assert "torn or gone" in done.stdout


@pytest.mark.parametrize("name", ["out.csv", "out.zarr"])
def test_many_runs_to_one_output(tmp_path, name):
    """Each writes its own number, over and over; whoever reads finds one of them, whole, and nothing is left over."""
    write_table(tmp_path / name, {"a": np.zeros(50), "b": np.zeros(50)})
    children = []
    for number in range(1, 4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for _ in range(15):
                    write_table(tmp_path / name, {"a": np.full(50, number), "b": np.full(50, number)})
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    values = read_table(tmp_path / name).values
    assert len(np.unique(values)) == 1
    assert values.shape == (50, 2)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_a_killed_run_left_is_cleared_away_and_what_is_in_use_stays(tmp_path):
    child = os.fork()
    if child == 0:
        with written_beside(tmp_path / "b.txt") as beside:
            beside.write_text("half")
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert len(list(tmp_path.glob(".inlier-*"))) == 1
    with workspace_in(tmp_path) as ours:  # which clears away the other
        assert [path.name for path in tmp_path.iterdir()] == [ours.name]
        write_file(tmp_path / "b.txt", "whole")
        assert ours.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def test_folders_change_places_where_the_system_cannot_do_it_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("inlier.io.write._exchanged", lambda one, other: False)
    path = tmp_path / "a.zarr"
    for number in (1.0, 2.0):
        write_table(path, np.full((5, 2), number))
    assert read_table(path).values[0, 0] == 2
    replace = Path.replace

    def fails(self, target):
        if Path(target) == path and ".old-" not in str(self):
            raise OSError(5, "Input/output error")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="Input/output error"):
        write_table(path, np.full((5, 2), 3.0))
    assert read_table(path).values[0, 0] == 2
    assert [child.name for child in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch, streamed):
    from click.testing import CliRunner

    from inlier.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INLIER_STREAM_FROM", "0" if streamed else "1")
    for name in ("x.npy", "y.npy"):
        np.save(name, X)
    Path("out.csv").write_text("row,score,inlier\n0,1,1\n")
    opened = Path.open

    def shrinking(self, *arguments, **options):
        stream = opened(self, *arguments, **options)
        if self.name == "y.npy":
            shrinking.times += 1
            if shrinking.times > 3:
                os.truncate("y.npy", 20_000)
        return stream

    shrinking.times = 0
    monkeypatch.setattr(Path, "open", shrinking)
    outcome = CliRunner().invoke(main, ["match", "x.npy", "y.npy", "--method", "row-sum", "-o", "out.csv"])
    assert outcome.exit_code in ((2,) if streamed else (0, 2)), outcome.output
    assert "mistake of its own" not in outcome.output
    assert not streamed or "y.npy was cut short while it was read" in outcome.stderr
    left = Path("out.csv").read_text()
    assert left.count("\n") == 3001 if outcome.exit_code == 0 else left == "row,score,inlier\n0,1,1\n"


def test_laz_where_the_process_may_take_little_memory(tmp_path):
    """As under ``ulimit -v`` on clusters: damaged files end in a sentence there too, not in an abort of the library."""
    program = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
from fuzz.mutations import damaged
from inlier.io import UnusableFileError, read_table, write_table
import laspy, lazrs
warnings.simplefilter("ignore")
folder, corpus = Path(sys.argv[1]), Path(sys.argv[2])
write_table(folder / "sound.laz", np.random.default_rng(0).normal(size=(2_000, 3)))
sound = (folder / "sound.laz").read_bytes()
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 300 * 2**20,) * 2)
assert read_table(folder / "sound.laz").values.shape == (2_000, 3)
rng, refused = np.random.default_rng(0), 0
paths = sorted(corpus.glob("*.laz"))
for number in range(60):
    paths.append(folder / f"{number}.laz")
    paths[-1].write_bytes(damaged(sound, rng, b""))
for path in paths:
    try:
        read_table(path)
    except UnusableFileError as error:
        assert "\\n" not in str(error)
        refused += 1
print(refused, "of", len(paths))
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("the memory of a process is read from /proc, which is not here")
    command = [sys.executable, "-c", program, str(tmp_path), str(ROOT / "fuzz" / "corpus")]
    done = subprocess.run(command, cwd=ROOT, env=ALONE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    refused, _, files = done.stdout.split()
    assert int(refused) > 20
    assert int(files) > 60
