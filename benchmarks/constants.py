"""What halving and doubling each constant of the package does to its figures.

    python benchmarks/constants.py --list                        # the constants that are found
    python benchmarks/constants.py consensus.search              # those whose name contains a word
    python benchmarks/constants.py --draws 30 _CAUTION _ENOUGH   # more draws, for two of them
    python benchmarks/constants.py --photos --draws 2 accident   # those of photos

A constant is a number with a name in capitals at the top of a module of ROOMS. It is halved and doubled in a copy of
the package, as text, so that every module that uses it sees the change, compiled loops too; whole numbers stay whole.
Each row says what has changed against the package as it is, with the same draws: no change at all means that the
constant decides nothing here, not that it never does. Figures: registrations that are right of those drawn with few
real pairs, motions that are claimed in pure noise, false discoveries and recall of calibrated matches, and processor
times of easy fits, beside fixed work of NumPy (changes below a quarter are not told: they may be noise). One constant
takes about a minute, two or three if a compiled loop uses it. Photos have figures of their own: changed pairs that are
found, unchanged ones that are reported, average precision and overlap of the masks, of made pairs, hard ones and drawn
boards of the development half, with even seeds.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import process_time

from traces import named_numbers

PHOTO_ROOMS = ("images",)
ROOMS = ("estimators", "calibration", "clouds", "consensus", "overlap", "rows", "transforms")
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

    @property
    def value(self) -> float:
        """The number."""
        return eval(self.text, {"__builtins__": {}})

    def times(self, factor: float) -> float | None:
        """The number times a factor, as a number of the same kind; None where that is the same number."""
        changed = round(self.value * factor) if isinstance(self.value, int) else self.value * factor
        return None if changed == self.value else changed


def find_constants(package: Path, rooms: tuple[str, ...]) -> list[Constant]:
    """All constants of the rooms, in the order of the modules."""
    found = []
    for path in sorted(path for room in rooms for path in (package / room).rglob("*.py")):
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        source = path.read_text()
        for name, value in named_numbers(ast.parse(source)) if module not in SKIP else ():
            found.append(Constant(module, name, path.relative_to(package), ast.get_source_segment(source, value)))
    return found


# ---- figures, worked out in a process of their own


def figures_here(draws: int, photos: bool) -> dict[str, float]:
    """Work out all figures with the package that this process imports."""
    import warnings

    warnings.simplefilter("ignore")
    if photos:
        return photo_figures(draws)
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


def photo_figures(draws: int) -> dict[str, float]:
    """Verdicts, ranking and masks: so many changed pairs of each kind, and as many unchanged ones."""
    import numpy as np

    from images import Verdicts
    from photo_pairs import DEVELOPMENT, board_pairs, hard_pairs, made_pairs, photos_of

    photos, verdicts = photos_of(DEVELOPMENT), Verdicts()
    for changed, seed in ((True, 0), (False, 2)):
        for pairs in (made_pairs(photos, draws, seed, changed), hard_pairs(photos, draws, seed, changed)):
            for pair in pairs:
                verdicts.add(pair)
        for pair in board_pairs(draws, seed, changed):
            verdicts.add(pair)
    return {
        "pairs found": sum(verdicts.found),
        "unchanged reported": sum(verdicts.reported),
        "average precision": round(float(np.mean(verdicts.precision)), 3),
        "mask IoU": round(float(np.mean(verdicts.overlap)), 3),
    }


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
        assigned = re.compile(rf"^({constant.name}\b[^=\n]*=\s*){re.escape(constant.text)}", re.MULTILINE)
        after, n_changed = assigned.subn(lambda found: f"{found[1]}{value!r}", before)
        if n_changed != 1:
            raise SystemExit(f"{constant.module}.{constant.name} could not be changed in the text of its module.")
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


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="constants whose module and name contain one of these; default: all")
    parser.add_argument("--src", type=Path, help="folder that holds the package; default: this installation")
    parser.add_argument("--draws", type=int, default=10, help="of each registration problem, half of them of the rest")
    parser.add_argument("--photos", action="store_true", help="constants and figures of photos")
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("--figures-here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.figures_here:
        print(json.dumps(figures_here(options.draws, options.photos)))
        return
    package = options.src / "inlier" if options.src else Path(find_spec("inlier").submodule_search_locations[0])
    chosen = [
        constant
        for constant in find_constants(package, PHOTO_ROOMS if options.photos else ROOMS)
        if not options.words or any(word in f"{constant.module}.{constant.name}" for word in options.words)
    ]
    if options.list:
        for constant in chosen:
            print(f"{constant.module}.{constant.name} = {constant.text}")
        print(f"{len(chosen)} constants")
        return
    with tempfile.TemporaryDirectory() as folder:
        asked = ["--draws", str(options.draws), *(["--photos"] if options.photos else [])]
        copy = Copy(package, Path(folder), asked)
        copy.figures()  # compiles
        usual = copy.figures()
        if usual is None:
            raise SystemExit("The figures of the package as it is could not be worked out.")
        print("As it is: " + "; ".join(f"{name} {value:.3g}" for name, value in usual.items()), end="\n\n")
        print("| constant | value | halved | doubled |\n|---|---|---|---|", flush=True)
        for constant in chosen:
            words = [
                "the same number" if value is None else difference(usual, copy.figures_with(constant, value))
                for value in (constant.times(0.5), constant.times(2.0))
            ]
            print(f"| `{constant.module}.{constant.name}` | {constant.text} | {' | '.join(words)} |", flush=True)


if __name__ == "__main__":
    main()
