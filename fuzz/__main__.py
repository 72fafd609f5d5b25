"""``python -m fuzz --mutants 10000 --seed 1``: damaged files against the readers, in a process with limits.

A failure is an exception that is not documented, an answer that takes more than 10 s of work, more memory than the
limit and a GiB, a process that dies, a canary that was touched, an input that was changed. The file is kept in
``fuzz/corpus``, which ``make test`` reads again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed

from fuzz import mutations
from fuzz.seeds import make_seeds

CORPUS = Path(__file__).parent / "corpus"
LIMIT_GIB = 0.25  # that a file may unpack to
PATIENCE, WAITING = 10.0, 60.0  # seconds of work, and until a process counts as one that hangs
_SPARE_MIB = 1024  # beyond the limit
_COMMAND_EVERY = 20  # mutants, one is also given to the command line
_ARCHIVES, _INSIDE = (".npz", ".xlsx"), 0.7  # of which so many are damaged inside
_IN_DISORDER = 0.25  # of the sound files, whose pieces are exchanged rather than their bytes
_RESTART_EVERY = 5_000  # mutants, so that memory is measured afresh


class Reader:
    """A process that reads files, started anew when it dies."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None
        self._base, self._done = 0, 0

    def ask(self, kind: str, path: Path) -> str:
        """How the reading of a file ended."""
        if self._child is None or self._done >= _RESTART_EVERY:
            self.close()
            self._start()
        assert self._child is not None
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._done += 1
        print(kind, path, file=self._child.stdin, flush=True)
        if not select.select([self._child.stdout], [], [], WAITING)[0]:
            self.close()
            return f"no answer in {WAITING:g} s"
        line = self._child.stdout.readline()
        if not line:
            code = self._child.wait()
            self.close()
            return f"the process died with {code}"
        return self._judged(json.loads(line))

    def _judged(self, answer: dict[str, float | str]) -> str:
        taken = int(answer["mib"]) - self._base
        if taken > 1024 * LIMIT_GIB + _SPARE_MIB:
            self.close()
            return f"{taken} MiB of memory"
        return f"{answer['seconds']:.1f} s" if float(answer["seconds"]) > PATIENCE else str(answer["outcome"])

    def _start(self) -> None:
        environment = {**os.environ, "INLIER_MAX_UNPACKED": str(LIMIT_GIB), "INLIER_STREAM_FROM": "0"}
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "fuzz.child"]
        self._child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert self._child.stdout is not None
        self._base, self._done = json.loads(self._child.stdout.readline())["mib"], 0

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    stream.close()
        self._child = None


class Run:
    """Mutants, one after the other, and what became of them."""

    def __init__(self, folder: Path, deadline: float) -> None:
        self.folder, self.deadline = folder, deadline
        self.canary = folder / "canary"
        self.payload = mutations.payload_for(self.canary)
        self.reader, self.outcomes, self.n_mutants = Reader(), Counter[str](), 0
        self.by_format: Counter[str] = Counter()

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.deadline

    def attack(self, name: str, make: Callable[[Path], object]) -> None:
        """Make a mutant, have it read, and keep it if that went wrong."""
        path = self.folder / f"mutant{name}"
        make(path)
        self.n_mutants += 1
        self.by_format[name] += 1
        kinds = ("read", "command") if self.n_mutants % _COMMAND_EVERY == 0 else ("read",)
        for kind in kinds:
            outcome = self.reader.ask(kind, path)
            if self.canary.exists():
                self.canary.unlink()
                outcome = "CODE WAS RUN"
            is_fine = outcome in ("read", "refused")
            self.outcomes[outcome if is_fine else "FAILED"] += 1
            if not is_fine:
                self._keep(path, name, f"{kind}: {outcome}")
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _keep(self, path: Path, name: str, outcome: str) -> None:
        content = b"".join(part.read_bytes() for part in sorted(path.rglob("*")) if part.is_file())
        content = content or path.read_bytes() if path.is_file() else content
        kept = CORPUS / f"{hashlib.sha256(content).hexdigest()[:12]}{name}"
        if not kept.exists():
            shutil.copytree(path, kept) if path.is_dir() else shutil.copy(path, kept)
        print(f"FAILED {kept.name}: {' '.join(outcome.split())[:300]}", flush=True)


def bytes_damaged(run: Run, seeds: list[Path], n: int, rng: np.random.Generator) -> None:
    """Sound files with some bytes changed."""
    for number in range(n):
        if run.is_over:
            return
        seed = seeds[number % len(seeds)]
        suffix = "".join(seed.suffixes[-2:]) if seed.name.endswith(".gz") else seed.suffix
        if seed.is_dir():
            run.attack(suffix, lambda path, seed=seed: mutations.damaged_folder(seed, path, rng, run.payload))
        else:
            content = _changed(seed, seeds, rng, run.payload)
            run.attack(suffix, lambda path, content=content: path.write_bytes(content))


def _changed(seed: Path, seeds: list[Path], rng: np.random.Generator, payload: bytes) -> bytes:
    """A sound file with some bytes changed, inside or outside of its archive, or with its pieces in disorder."""
    content = seed.read_bytes()
    if rng.random() < _IN_DISORDER:
        files = [path for path in seeds if path.is_file()]
        return mutations.rearranged(content, files[rng.integers(len(files))].read_bytes(), rng)
    is_archive = seed.suffix in _ARCHIVES and rng.random() < _INSIDE
    return (mutations.damaged_archive if is_archive else mutations.damaged)(content, rng, payload)


def headers_made_up(run: Run, seeds: Path, n: int, number: int) -> None:
    """Headers and metadata that hypothesis thinks of."""
    las = (seeds / "plain.las").read_bytes(), (seeds / "plain.laz").read_bytes()
    kinds = {
        ".ply": mutations.ply,
        ".pcd": mutations.pcd,
        ".npy": mutations.npy,
        ".las": mutations.las(las[0]),
        ".laz": mutations.las(las[1]),
        ".csv": mutations.csv,
        ".txt": mutations.csv,
        ".tsv": mutations.csv,
    }

    def write_store(path: Path, found: tuple[str, str, bytes]) -> None:
        path.mkdir()
        (path / found[0]).write_text(found[1])
        for chunk in ("c/0/0", "0.0"):
            (path / chunk).parent.mkdir(parents=True, exist_ok=True)
            (path / chunk).write_bytes(found[2] or run.payload)

    def attacks(suffix: str, strategy: object, write: Callable[[Path, object], object]) -> None:
        @hypothesis_seed(number)
        @settings(
            max_examples=n // (len(kinds) + 1) + 1,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def attack(found: object) -> None:
            if not run.is_over:
                run.attack(suffix, lambda path: write(path, found))

        attack()

    for suffix, strategy in kinds.items():
        attacks(suffix, strategy, lambda path, content: path.write_bytes(content))
    attacks(".zarr", mutations.zarr, write_store)


def main() -> int:
    """Run, and say how it went; 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Damaged files against the readers of inlier.")
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop then, however many there were")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="suffixes whose sound files are damaged, as .xlsx,.csv; no made-up headers then")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="inlier-fuzz-") as name:
        folder, start = Path(name), time.monotonic()
        seeds = make_seeds(folder / "seeds")
        run = Run(folder, start + 60 * given.minutes)
        if given.only:
            seeds = [seed for seed in seeds if seed.name.endswith(tuple(given.only.split(",")))]
        else:
            headers_made_up(run, folder / "seeds", given.mutants // 5, given.seed)
        bytes_damaged(run, seeds, given.mutants - run.n_mutants, np.random.default_rng(given.seed))
        run.reader.close()
    per_format = ", ".join(f"{suffix} {count:,}" for suffix, count in sorted(run.by_format.items()))
    print(f"{run.n_mutants:,} mutants of {len(seeds)} seeds in {time.monotonic() - start:,.0f} s, seed {given.seed}")
    print(f"read {run.outcomes['read']:,}, refused {run.outcomes['refused']:,}, failed {run.outcomes['FAILED']:,}")
    print(per_format)
    return int(run.outcomes["FAILED"] > 0)


if __name__ == "__main__":
    sys.exit(main())
