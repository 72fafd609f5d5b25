"""``python -m fuzz.faults``: what is left of the outputs when the k-th file operation fails, or is the last.

Each command runs once for every k, in a process of its own, over outputs of an earlier run. Whatever happens, each
output must be the old one whole or the new one whole, the inputs as they were, and a sound run afterwards must find
nothing in its way and leave nothing lying about.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate", "ctypes.dlopen"}
COMMANDS = {
    "match": "match x.npy y.npy --method row-sum -o out.csv --report out.html",
    "match to a store": "match x.npy y.npy --method row-sum -o out.zarr",
    "match to hdf5": "match x.npy y.npy --method row-sum -o out.h5",
    "match to parquet": "match x.npy y.npy --method row-sum -o out.parquet",
    "match, streamed": "match x.npy y.npy --method row-sum -o out.csv",
    "match to a store, streamed": "match x.npy y.npy --method row-sum -o out.zarr",
    "match, repaired": "match x.npy y.npy --repair out.csv --map out.txt --report out.html",
    "match, new pairs": "match x.npy y.npy --pairs pairs.csv --new out.xlsx -o out.tsv.gz",
    "register": "register x.npy y.npy -o out.csv -t out.txt --moved out.ply --report out.html --force",
    "raw clouds": "register source.ply target.ply --moved out.ply -t out.json --report out.html --force",
    "diff": "diff before.png after.png --no-align --method row-sum -o out --force",
}
MISTAKE, OVER = 98, 97  # exit codes of our own
_TIMES = re.compile(rb"Time: [^<\n]*</p>")  # that a page of two clouds tells
_SIZES = (0, 1, 100, 1_000, 5_000, 20_000)  # bytes after which a file can grow no further


def make_inputs(folder: Path) -> None:
    """Small tables, clouds and photos."""
    from PIL import Image

    from inlier.datasets.synthetic import make_scans
    from inlier.io import write_table

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = X @ np.linalg.qr(rng.normal(size=(3, 3)))[0] + 0.01 * rng.normal(size=X.shape) + 1
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", np.where(np.arange(40)[:, None] < 30, Y, rng.normal(size=X.shape)))
    np.save(folder / "y2.npy", np.where(np.arange(40)[:, None] < 30, 2 * Y, rng.normal(size=X.shape)))
    write_table(folder / "pairs.csv", {"source": np.arange(36), "target": np.arange(36)})
    scans = make_scans(n_points=1_500, n_pairs=10, rng=0)
    for name, points in (("source", scans.source), ("target", scans.target), ("source2", scans.source[:, [1, 2, 0]])):
        write_table(folder / f"{name}.ply", points)
    photo = rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(photo).save(folder / "before.png")
    photo[5:25, 5:25] = 255
    Image.fromarray(photo).save(folder / "after.png")
    photo[20:38, 20:38] = 0
    Image.fromarray(photo).save(folder / "later.png")


def state(path: Path) -> str:
    """What a file, or a folder, holds, but for how long the work took; empty if it is not there."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path] if path.exists() else []
    contents = {file.relative_to(path.parent): file.read_bytes() for file in files if file.is_file()}
    parts = [str(name).encode() + b"\0" + _TIMES.sub(b"", content) for name, content in contents.items()]
    return hashlib.sha256(b"".join(parts)).hexdigest() if parts else ""


def outputs(folder: Path) -> dict[str, str]:
    """The state of each output; those of ``diff`` lie in a folder."""
    found = sorted(folder.glob("out*"))
    found = [file for path in found for file in (sorted(path.glob("[!.]*")) if path.name == "out" else [path])]
    return {str(path.relative_to(folder)): state(path) for path in found}


def in_child(act: Callable[[], int]) -> int:
    """Run something in a copy of this process; return its exit code, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            with redirect_stdout(io.TextIOWrapper(io.BytesIO())), redirect_stderr(io.TextIOWrapper(io.BytesIO())):
                code = act()
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def command(words: str) -> int:
    """Run a command of inlier in this process; return its exit code, or `MISTAKE`."""
    from inlier.cli import main

    try:
        main(words.split(), standalone_mode=True)
    except SystemExit as ended:
        said = sys.stderr.seek(0) or sys.stderr.read()
        return MISTAKE if "mistake of its own" in said or "Traceback" in said else int(ended.code or 0)
    return 0


class Fault:
    """Fails, or ends the process, at the k-th operation on a file in a folder."""

    def __init__(self, folder: Path, k: int, kill: bool) -> None:
        self.folder, self.left, self.kill = str(folder), k, kill

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Count an operation; called by Python before each."""
        if event not in EVENTS or self.left < 0 or not (event == "ctypes.dlopen" or self._is_here(arguments)):
            return
        self.left -= 1
        if self.left < 0 and self.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.left < 0:
            raise OSError(5, "Input/output error", str(arguments[0]))

    def _is_here(self, arguments: tuple[object, ...]) -> bool:
        names = [str(name) for name in arguments[:2] if isinstance(name, (str, os.PathLike))]
        return any(self.folder in name or (not Path(name).is_absolute() and len(name) > 2) for name in names)


def faulty(words: str, fault: Fault) -> Callable[[], int]:
    """The command under a fault; `OVER` where it ended before the fault was due."""

    def act() -> int:
        sys.addaudithook(fault)
        code = command(words)
        return OVER if fault.left >= 0 else code

    return act


def limited(words: str, size: int) -> Callable[[], int]:
    """The command where no file may grow beyond a size, as on a full disk."""

    def act() -> int:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return command(words)

    return act


def attacks(words: str, folder: Path, every: int) -> Iterator[tuple[str, Callable[[], int]]]:
    """All faults of a command, each with its name; those of one kind end when the command is over before the fault."""
    for kill in (False, True):
        for k in range(0, 100_000, every):
            yield f"{'killed' if kill else 'failed'} at operation {k}", faulty(words, Fault(folder, k, kill))
    for size in _SIZES:
        yield f"files end at {size} bytes", limited(words, size)


def try_command(name: str, words: str, every: int = 1) -> tuple[int, list[str]]:
    """Run a command under all faults; return how many there were, and what went wrong."""
    os.environ["INLIER_STREAM_FROM"] = "0" if "streamed" in name else "1"
    wrong, n_faults, over = [], 0, ""
    with tempfile.TemporaryDirectory(prefix="inlier-faults-") as place:
        folder, aside = Path(place, "here"), Path(place, "aside")
        folder.mkdir()
        os.chdir(folder)
        make_inputs(folder)
        inputs = {path.name: state(path) for path in folder.iterdir()}
        with redirect_stdout(io.TextIOWrapper(io.BytesIO())), redirect_stderr(io.TextIOWrapper(io.BytesIO())):
            command(words)  # here, so that what it imports is there in every copy of this process
        new = outputs(folder)
        in_child(lambda: command(other(words)))
        old = outputs(folder)
        assert old.keys() == new.keys()
        assert not set(old.values()) & set(new.values()), "the two runs must differ in every output"
        put_aside(folder, aside)
        for what, act in attacks(words, folder, every):
            if over and what.startswith(over):
                continue
            put_back(folder, aside)
            code = in_child(act)
            if code == OVER:
                over = what.split(" ")[0]
                continue
            n_faults += 1
            found = outputs(folder)
            torn = [file for file in old if found.get(file) not in (old[file], new[file])]
            if torn or found.keys() != old.keys():
                wrong.append(f"{name}, {what}: torn or gone {torn}, or more than there should be: {sorted(found)}")
            if code not in (0, 1, 2, -signal.SIGKILL):
                wrong.append(f"{name}, {what}: ended with {code}")
            if {file: state(folder / file) for file in inputs} != inputs:
                wrong.append(f"{name}, {what}: an input was changed")
            again = in_child(lambda: command(words))
            rest = sorted(path.name for path in folder.rglob(".inlier-*"))
            if again not in (0, 1) or rest or outputs(folder) != new:
                wrong.append(f"{name}, {what}: the next run ended with {again} and left {rest}")
        os.chdir("/")
    return n_faults, wrong


def other(words: str) -> str:
    """A command that writes the same files with another content."""
    if words.startswith("diff"):
        return words.replace("after.png", "later.png")
    for one, another in (("source.ply", "source2.ply"), ("match x.npy y.npy --repair", "match x.npy y2.npy --repair")):
        if one in words:
            return words.replace(one, another)
    if "--new" in words:
        return words.replace("y.npy", "y2.npy")
    return f"{words} {'--whiten' if words.startswith('match') else '--model similarity'}"


def put_aside(folder: Path, aside: Path) -> None:
    """Keep a copy of the outputs."""
    aside.mkdir()
    for path in folder.glob("out*"):
        shutil.copytree(path, aside / path.name) if path.is_dir() else shutil.copy(path, aside)


def put_back(folder: Path, aside: Path) -> None:
    """Put the outputs back as they were."""
    for path in folder.glob("out*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in aside.iterdir():
        shutil.copytree(path, folder / path.name) if path.is_dir() else shutil.copy(path, folder)


def main() -> int:
    """Run all, and say how it went; 1 if anything was lost."""
    parser = argparse.ArgumentParser(description="Failing file operations against the commands of inlier.")
    parser.add_argument("--every", type=int, default=1, help="only each so manieth operation")
    parser.add_argument("--only", help="the commands whose name starts so")
    given = parser.parse_args()
    failed = 0
    for name, words in COMMANDS.items():
        if name.startswith(given.only or ""):
            n_faults, wrong = try_command(name, words, given.every)
            print(f"{name}: {n_faults} faults, {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)
            failed += len(wrong)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
