"""The constants of the package: the page that lists them, and what halving and doubling each of them does.

    python benchmarks/constants.py --page                        # writes docs/constants.md
    python benchmarks/constants.py --jobs 16                     # varies all, writes benchmarks/results/constants.json
    python benchmarks/constants.py --list                        # the constants that can be varied
    python benchmarks/constants.py consensus.search              # those whose name contains a word
    python benchmarks/constants.py --draws 30 _CAUTION _ENOUGH   # more draws, for two of them

A constant is a name in capitals at the top of a module of ROOMS that stands for numbers; a single number can be varied.
It is halved and doubled in a copy of the package, as text, so that every module that uses it sees the change, compiled
loops too; whole numbers stay whole. Each row says what has changed against the package as it is, with the same draws:
no change at all means that the constant decides nothing here, not that it never does. What is measured goes to
`benchmarks/results/constants.json`, beside what was measured before; the page shows it as long as the constant has the
value that it had then. Figures: registrations that are right of those drawn with few
real pairs, motions that are claimed in pure noise, false discoveries and recall of calibrated matches, and processor
times of easy fits, beside fixed work of NumPy (changes below a quarter are not told: they may be noise). One constant
takes about a minute, two or three if a compiled loop uses it. Those of photos are varied by `photo_constants.py`.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from string import ascii_lowercase
from time import process_time

from traces import is_number

ROOMS = ("estimators", "repair", "calibration", "clouds", "consensus", "overlap", "rows", "transforms")
CHECKOUT = Path(__file__).parents[1]
MEASURED, PAGE = CHECKOUT / "benchmarks" / "results" / "constants.json", CHECKOUT / "docs" / "constants.md"
ON_THE_PAGE = {  # rooms that decide what is answered; and on which data constants were set, where that is known
    "estimators": "",
    "repair": "",
    "calibration": "`neighbours` was set on draws 0 and 1 of `benchmarks/dictionary.py`; `ridge_map` with the "
    "generators of `benchmarks/tables.py`, seeds 100 to 103 and 200 to 203, and on four of the real tables, seeds 100 "
    "to 111.",
    "consensus": "`clumps` and `find` were set on every other file of a set of feature matches between scans, and on "
    "made clumps (what they do together: `python benchmarks/peers.py negatives`); `evidence` on the `fgr_*` problems "
    "of `reg3d` and every other one of `matches`.",
    "clouds": "Set on every second pair of a set of scans, and on pairs of clouds of different places.",
    "images": "Set on the development half of the photos of `benchmarks/photo_pairs.py`, even seeds, and the kitchen. "
    "What halving and doubling them changes, by `benchmarks/photo_constants.py`, is in "
    "[photo_constants.txt](../benchmarks/results/photo_constants.txt).",
}
NOT_ON_THE_PAGE = re.compile(
    r"^images\.pictures\.|(AT_ONCE|TINY|TILE|WORD|BITS|BYTES|HALF)$"
)  # pages, blocks, rounding
PAGE_BEGINS = """\
# The constants that decide

Written by `python benchmarks/constants.py --page`. What and why is the comment behind the line in the code. Sizes of
blocks, limits of rounding and other rooms are not listed: they are explained beside their lines.

The last columns say what halving and doubling changes: motions found among few real pairs, motions claimed in noise,
false discoveries and recall of calibrated matches in d dimensions at alpha = 0.05, times of easy fits. Without
`--page`, and with `--jobs N`, the command varies all single numbers again, one at a time, with the same draws, and
keeps what it finds in [constants.json](../benchmarks/results/constants.json). "No change" means that the constant
decides nothing *there*: these are small problems. An empty cell, or no such column: not measured with this value.

{runs}

"""
SKIP = {  # numbers that are no choice: bits of a format, limits of a type
    "rows._cuda",
    "rows._cuda_kernels",
}
COMPILED = re.compile(r"@(compiled|njit|jit|vectorize|guvectorize)")


@dataclass(frozen=True)
class Constant:
    """A number at the top of a module, and where its text is."""

    module: str
    name: str
    path: Path
    text: str
    line: int
    column: int  # in bytes, as the parser counts

    @property
    def full_name(self) -> str:
        """With its module."""
        return f"{self.module}.{self.name}"

    @property
    def value(self) -> float:
        """The number."""
        return eval(self.text, {"__builtins__": {}})

    def times(self, factor: float) -> float | None:
        """The number times a factor, as a number of the same kind; None where that is the same number."""
        changed = round(self.value * factor) if isinstance(self.value, int) else self.value * factor
        return None if changed == self.value else changed


@dataclass(frozen=True)
class Assignment:
    """A line that gives numbers to one name or several, and the comment behind it."""

    module: str
    values: dict[str, str]  # text of each name
    why: str
    constants: tuple[Constant, ...]  # those that are one number


def find_constants(package: Path, rooms: tuple[str, ...]) -> list[Constant]:
    """All constants of the rooms that are one number, in the order of the modules."""
    return [constant for found in find_assignments(package, rooms) for constant in found.constants]


def find_assignments(package: Path, rooms: tuple[str, ...]) -> list[Assignment]:
    """All lines of the rooms that name numbers, in the order of the modules."""
    found = []
    for path in sorted(path for room in rooms for path in (package / room).rglob("*.py")):
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        if module not in SKIP:
            found += _assignments(module, path.relative_to(package), path.read_text())
    return found


def _assignments(module: str, path: Path, source: str) -> Iterator[Assignment]:
    comments = {
        token.start[0]: (token.string.lstrip("# "), token.line.lstrip().startswith("#"))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        named = zip(target.elts, node.value.elts, strict=True) if several else [(target, node.value)]
        named = [(name.id, of) for name, of in named if getattr(name, "id", "").isupper() and _holds_numbers(of)]
        if named:
            texts = {name: " ".join(ast.get_source_segment(source, of).split()) for name, of in named}
            constants = (
                Constant(module, name, path, ast.get_source_segment(source, of), of.lineno, of.col_offset)
                for name, of in named
                if is_number(of)
            )
            yield Assignment(module, texts, _comment_of(node, comments), tuple(constants))


def _holds_numbers(node: ast.expr) -> bool:
    """Whether an expression is made of numbers: alone, several in a row, or a grid of them."""
    parts = list(ast.walk(node))
    kinds = {type(part.value) for part in parts if isinstance(part, ast.Constant)}
    calls_others = any(isinstance(part, ast.Call) and isinstance(part.func, ast.Name) for part in parts)
    return bool(kinds) and kinds <= {int, float} and not calls_others


def _comment_of(node: ast.stmt, comments: dict[int, tuple[str, bool]]) -> str:
    """The comment behind a statement, or else the lines of comment above it."""
    for line in (node.end_lineno, node.lineno):
        if line in comments and not comments[line][1]:
            return comments[line][0]
    above, line = [], node.lineno - 1
    while comments.get(line, ("", False))[1]:
        above.insert(0, comments[line][0])
        line -= 1
    return " ".join(above)


# ---- figures, worked out in a process of their own


def figures_here(draws: int) -> dict[str, float]:
    """Work out all figures with the package that this process imports."""
    import warnings

    warnings.simplefilter("ignore")
    return {**registration_figures(draws), **calibration_figures(draws), **times()}


def registration_figures(draws: int) -> dict[str, float]:
    """How many motions are found where few pairs are real, and how many are claimed where none is."""
    import numpy as np

    from inlier import Registration
    from registration_bench.problems import Cell

    def fitted(problem):
        return Registration(raise_on_failure=False, random_state=0).fit(problem.X, problem.Y)

    right = 0
    for n, rate, placement in ((100, 0.8, "re-paired"), (1000, 0.98, "uniform"), (1000, 0.98, "re-paired")):
        for draw in range(draws):
            problem = Cell(n, rate, placement, draw).make()
            found = fitted(problem)
            if found.success_:
                turn = found.transformation_.rotation @ problem.rotation.T
                right += np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1))) < 5
    claimed = sum(fitted(Cell(n, 1.0, "uniform", draw).make()).success_ for n in (50, 500) for draw in range(draws))
    return {"motions found": int(right), "claimed in noise": int(claimed)}


def calibration_figures(draws: int) -> dict[str, float]:
    """False discoveries and recall at alpha = 0.05, all draws of a cell together; and how often noise is accepted."""
    from inlier import CalibratedMatcher
    from inlier.datasets import make_gaussian_pairs

    figures = {}
    for n, d, fraction, noise in ((600, 3, 0.5, 0.3), (300, 10, 0.12, 0.5), (200, 100, 0.1, 0.05)):
        accepted = wrong = real = 0
        for draw in range(max(draws // 2, 1)):
            data = make_gaussian_pairs(n, d, fraction, noise=noise, rng=draw)
            mask = CalibratedMatcher(alpha=0.05, random_state=0).fit(data.X, data.Y).inlier_mask_
            accepted, real = accepted + mask.sum(), real + data.inlier_mask.sum()
            wrong += (mask & ~data.inlier_mask).sum()
        figures[f"false, d = {d}"] = round(float(wrong / max(accepted, 1)), 3)
        figures[f"recall, d = {d}"] = round(float((accepted - wrong) / real), 3)
    return figures


def times() -> dict[str, float]:
    """Processor times of easy fits, in those of a fixed piece of NumPy's work: both suffer alike on a busy machine."""
    import numpy as np

    from inlier import CalibratedMatcher, Registration, RowSumMatcher
    from inlier.datasets import make_gaussian_pairs
    from registration_bench.problems import Cell

    many, some = make_gaussian_pairs(200_000, 3, 0.7, rng=0), make_gaussian_pairs(5000, 6, 0.5, noise=0.1, rng=0)
    scan = Cell(10_000, 0.3, "uniform", 0).make()
    jobs = {
        "fixed work": lambda: np.sort(many.X, axis=0),
        "time, row sums": lambda: RowSumMatcher().fit(many.X, many.Y),
        "time, calibrated": lambda: CalibratedMatcher(random_state=0).fit(some.X, some.Y),
        "time, registration": lambda: [Registration(random_state=0).fit(scan.X, scan.Y) for _ in range(5)],
    }
    shortest = dict.fromkeys(jobs, np.inf)
    for _ in range(8):
        for name, job in jobs.items():
            start = process_time()
            job()
            shortest[name] = min(shortest[name], process_time() - start)
    fixed = shortest.pop("fixed work")
    return {name: taken / fixed for name, taken in shortest.items()}


# ---- a copy of the package that constants are changed in


class Copy:
    """The package in a folder of its own: change one number, work out the figures, change it back."""

    def __init__(self, package: Path, folder: Path, options: list[str]) -> None:
        self.package, self.folder, self.options = folder / "src" / "inlier", folder, options
        shutil.copytree(package, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self._of_loops = [path for path in self.package.rglob("*.py") if COMPILED.search(path.read_text())]

    def figures(self, cache: str = "cache") -> dict[str, float] | None:
        """Figures of the copy as it is now; None where they could not be worked out."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.package.parent), str(Path(__file__).parent)]),
            "NUMBA_CACHE_DIR": str(self.folder / cache),
        }
        command = [sys.executable, __file__, "--figures-here", *self.options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None

    def figures_with(self, constant: Constant, value: float) -> dict[str, float] | None:
        """Figures with another value. Numba's cache does not see a changed number: loops that use it start anew."""
        path = self.package / constant.path
        before, when = path.read_text(), path.stat()
        cache = "cache" if not self._is_compiled_in(constant) else f"cache of {constant.name} {value}"
        lines = before.encode().splitlines(keepends=True)
        line, text = lines[constant.line - 1], constant.text.encode()
        if line[constant.column : constant.column + len(text)] != text:
            raise SystemExit(f"{constant.full_name} could not be changed in the text of its module.")
        lines[constant.line - 1] = line[: constant.column] + repr(value).encode() + line[constant.column + len(text) :]
        after = b"".join(lines).decode()
        try:
            path.write_text(after)
            return self.figures(cache)
        finally:
            path.write_text(before)
            os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))

    def _is_compiled_in(self, constant: Constant) -> bool:
        word = re.compile(rf"\b{constant.name}\b")
        return any(word.search(path.read_text()) for path in self._of_loops)


def difference(before: dict[str, float], after: dict[str, float] | None) -> str:
    """What has changed, in words."""
    if after is None:
        return "fails"
    changes = []
    for name, value in before.items():
        if name.startswith("time"):
            if not 0.8 < after[name] / value < 1.25:
                changes.append(f"{name} x {after[name] / value:.2f}")
        elif after[name] != value:
            changes.append(f"{name} {value:g} -> {after[name]:g}")
    return "; ".join(changes) or "no change"


# ---- what was measured, and the page


def measure(package: Path, chosen: list[Constant], asked: list[str], jobs: int) -> None:
    """Vary constants, several at a time, print what that changes, and write it to the file of measurements."""
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        first = Copy(package, Path(folder) / "0", asked)
        first.figures()  # compiles
        usual = first.figures()
        if usual is None:
            raise SystemExit("The figures of the package as it is could not be worked out.")
        copies.put(first)
        for number in range(1, min(jobs, len(chosen))):
            copies.put(Copy(package, Path(folder) / str(number), asked))
        as_it_is = "; ".join(f"{name} {value:.3g}" for name, value in usual.items())
        print(f"As it is: {as_it_is}", end="\n\n")
        print("| constant | value | halved | doubled |\n|---|---|---|---|", flush=True)

        def varied(constant: Constant) -> tuple[str, str]:
            copy = copies.get()
            try:
                halved, doubled = (
                    "the same number" if value is None else difference(usual, copy.figures_with(constant, value))
                    for value in (constant.times(0.5), constant.times(2.0))
                )
            finally:
                copies.put(copy)
            return halved, doubled

        kept = json.loads(MEASURED.read_text()) if MEASURED.exists() else {"runs": {}, "constants": {}}
        commit, command = _commit(package), f"python benchmarks/constants.py {' '.join(asked)} --jobs {jobs}"
        run = f"{commit}, {' '.join(asked)}"
        kept["runs"][run] = {"commit": commit, "command": command, "as it is": as_it_is}
        with ThreadPoolExecutor(jobs) as workers:
            for constant, (halved, doubled) in zip(chosen, workers.map(varied, chosen), strict=True):
                print(f"| `{constant.full_name}` | {constant.text} | {halved} | {doubled} |", flush=True)
                kept["constants"][constant.full_name] = {
                    "value": constant.text, "halved": halved, "doubled": doubled, "run": run
                }  # fmt: skip
                used = {one["run"] for one in kept["constants"].values()}
                kept["runs"] = {name: of for name, of in kept["runs"].items() if name in used}
                MEASURED.write_text(json.dumps(kept, indent=1) + "\n")


def _commit(package: Path) -> str:
    command = ["git", "-C", str(package), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def page(package: Path, measured: dict) -> str:
    """The page of constants, in Markdown."""
    letters = dict(zip(measured["runs"], ["", *(f" ({letter})" for letter in ascii_lowercase)], strict=False))
    runs = "\n".join(
        f"- Measured{letters[run]} with the code of commit {of['commit']}{of.get('note', '')}: `{of['command']}`. "
        f"As it is: {of['as it is']}."
        for run, of in measured["runs"].items()
    )
    tables = [_table(package, room, note, measured["constants"], letters) for room, note in ON_THE_PAGE.items()]
    return PAGE_BEGINS.format(runs=runs) + "\n".join(tables)


def _table(package: Path, room: str, note: str, measured: dict, letters: dict[str, str]) -> str:
    rows, is_measured, n_numbers = [], False, 0
    for found in find_assignments(package, (room,)):
        values = {
            name: text for name, text in found.values.items() if not NOT_ON_THE_PAGE.search(f"{found.module}.{name}")
        }
        if not values:
            continue
        known = {
            constant.name: measured[constant.full_name]
            for constant in found.constants
            if constant.name in values and measured.get(constant.full_name, {}).get("value") == constant.text
        }
        names = ", ".join(f"`{_within(room, found.module)}{name}`" for name in values)
        said = [_said(known, side, letters) for side in ("halved", "doubled")]
        rows.append([names, f"`{', '.join(values.values())}`", found.why or "-", *said])
        is_measured, n_numbers = is_measured or bool(known), n_numbers + len(values)
    width = 5 if is_measured else 3
    rows = [["constant", "value", "what and why", "halved", "doubled"], ["---"] * 5, *rows]
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row[:width]).rstrip(" |") for row in rows]
    return "\n".join([f"## {room}", "", f"{n_numbers} constants. {note}".rstrip(), "", *lines, ""])


def _within(room: str, module: str) -> str:
    """The part of a module's name that its room does not say."""
    rest = module.removeprefix(room).strip(".")
    return f"{rest}." if rest else ""


def _said(known: dict[str, dict], side: str, letters: dict[str, str]) -> str:
    said = [f"{name}: " * (len(known) > 1) + f"{of[side]}{letters[of['run']]}" for name, of in known.items()]
    return "; ".join(said)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="constants whose module and name contain one of these; default: all")
    parser.add_argument("--src", type=Path, help="folder that holds the package; default: this installation")
    parser.add_argument("--draws", type=int, default=10, help="of each registration problem, half of them of the rest")
    parser.add_argument("--jobs", type=int, default=1, help="constants that are varied at a time")
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("--page", action="store_true", help="write docs/constants.md, and vary nothing")
    parser.add_argument("--figures-here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.figures_here:
        print(json.dumps(figures_here(options.draws)))
        return
    package = options.src / "inlier" if options.src else Path(find_spec("inlier").submodule_search_locations[0])
    if options.page:
        PAGE.write_text(page(package, json.loads(MEASURED.read_text())))
        return
    chosen = [
        constant
        for constant in find_constants(package, ROOMS)
        if not options.words or any(word in constant.full_name for word in options.words)
    ]
    if options.list:
        for constant in chosen:
            print(f"{constant.full_name} = {constant.text}")
        print(f"{len(chosen)} constants")
        return
    measure(package, chosen, ["--draws", str(options.draws)], options.jobs)


if __name__ == "__main__":
    main()
