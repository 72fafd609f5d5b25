"""Which pages show results of an older commit than the code they speak of?

    python tools/check_results.py [--strict]

Every file of benchmarks/results is of the last commit that touched it, unless the index names another. Where the code
that it speaks of (as benchmarks/results/index.toml says) has changed in later commits, the file, its age in commits and
the pages that show it are named. That is no mistake in itself: a benchmark of hours is not run for every change; but
whoever reads the page should know, and whoever releases should decide. With --strict the exit code is then 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = Path("benchmarks/results")
COSTS = "costs.json"  # what parts took, by tools/make_results.py
EVERYTHING = ["src/inlier"]


@dataclass(frozen=True)
class Result:
    """A file of results: what printed it, of which commit it is, and how often its code has changed since."""

    file: str
    command: str
    code: list[str]
    commit: str  # short; empty where git does not know the file yet
    date: str
    later_changes: int

    @property
    def is_older(self) -> bool:
        """Whether the code has changed since."""
        return self.later_changes > 0

    @property
    def provenance(self) -> str:
        """Where it comes from, in a sentence or two."""
        if not self.commit:
            return f"Printed by `{self.command}`, not committed yet."
        said = f"Printed by `{self.command}` at commit {self.commit} of {self.date}."
        if not self.is_older:
            return said
        times = "once" if self.later_changes == 1 else f"in {self.later_changes} commits"
        return f"{said} The code it speaks of has changed {times} since."


def git(*words: str, root: Path = ROOT) -> str:
    """What git prints; nothing outside of a checkout."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def entries(root: Path = ROOT) -> dict[str, dict]:
    """What the index says, by name."""
    return tomllib.loads((root / RESULTS / "index.toml").read_text())


def results(root: Path = ROOT) -> list[Result]:
    """All files of results, with what is known of them."""
    known = {}
    for entry in entries(root).values():
        known |= dict.fromkeys(entry["files"], entry)
    kinds = (".txt", ".csv", ".json", ".png")
    files = sorted(path.name for path in (root / RESULTS).iterdir() if path.suffix in kinds and path.name != COSTS)
    return [_look_up(file, known.get(file, {}), root) for file in files]


def _look_up(file: str, entry: dict, root: Path) -> Result:
    path, code = (RESULTS / file).as_posix(), entry.get("code", EVERYTHING)
    first_line = (root / path).read_bytes()[:200].split(b"\n")[0].decode(errors="replace").removeprefix("$ ")
    commands = [command.replace(" --jobs {jobs}", "") for command in entry.get("run", ())]
    run = ", then ".join(f"python benchmarks/{command}" for command in commands)
    command = entry.get("command") or run or (first_line if first_line.startswith("python ") else "a benchmark")
    where = [entry["commit"]] if "commit" in entry else ["--", path]
    commit, _, date = git("log", "-1", "--format=%h %cs", *where, root=root).partition(" ")
    later = git("rev-list", "--count", f"{commit}..HEAD", "--", *code, root=root) if commit else "0"
    return Result(file, command, code, commit, date, int(later or 0))


def pages_that_show(file: str, root: Path = ROOT) -> list[str]:
    """Pages that name a file, or include it."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    outputs = ("_build", "gallery", "generated")
    pages = [page for page in pages if not set(outputs) & set(page.relative_to(root).parts)]
    return [page.relative_to(root).as_posix() for page in pages if file in page.read_text()]


def main() -> None:
    """Name what is older than its code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strict", action="store_true", help="exit code 1 if any page shows older results")
    strict = parser.parse_args().strict
    if not git("rev-parse", "HEAD"):
        sys.exit("This is no git checkout: nothing is known of commits.")
    found = results()
    older = [(result, pages_that_show(result.file)) for result in found if result.is_older]
    for result, pages in older:
        where = f"shown in {', '.join(pages)}" if pages else "on no page"
        print(f"{result.file} ({result.commit}, {result.date}): {where}.")
        print(f"  {', '.join(result.code)} changed in {result.later_changes} later commits. Again: {result.command}")
    print(f"{len(found) - len(older)} of {len(found)} files of results are as new as the code they speak of.")
    if strict and any(pages for _, pages in older):
        sys.exit(1)


if __name__ == "__main__":
    main()
