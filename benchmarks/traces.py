"""How many files and functions an answer passes through, and how large the house is: this checkout, or several.

    python benchmarks/traces.py                                     # this installation
    python benchmarks/traces.py --src ../other/src --src src        # before and after, and what has gone

Seven ways through the package are walked on small data, each in a fresh process with compilation switched off, so that
compiled loops are seen too. A file or function is visited if it is called in the work, not if it is only imported;
`imported` counts the modules of the package that are loaded when the work is done. The house is measured by reading
its text: `chain` is the longest chain of modules of which each imports the next when it is loaded, `knobs` are numbers
with a name in capitals at the top of a module; the core is what decides: all but programs, formats, pages and data.
Only public names are used: any version of the package can be measured.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.util import find_spec
from inspect import CO_OPTIMIZED
from pathlib import Path

NOT_CORE = ("apps", "experiments", "images", "cli", "io", "report", "datasets")


# ---- ways through the package: each makes its data, and returns the work that is followed


def row_sum() -> Callable[[], object]:
    """1,000 pairs of six numbers."""
    from inlier import RowSumMatcher

    return partial(RowSumMatcher().fit, *_pairs(1000, 6, 0.5))


def calibrated(n: int, d: int, real: float, noise: float = 0.02) -> Callable[[], object]:
    """Pairs that follow a rotation, and others. With few real pairs and much noise a consensus is looked for, too."""
    from inlier import CalibratedMatcher

    return partial(CalibratedMatcher(random_state=0).fit, *_pairs(n, d, real, noise))


def registration(wrong: float) -> Callable[[], object]:
    """60 points in space, moved."""
    from inlier import Registration

    return partial(Registration("rigid", random_state=0).fit, *_pairs(60, 3, 1 - wrong))


def csv_to_page() -> Callable[[], object]:
    """Two csv files, by the command line, with a report."""
    import numpy as np

    for name, table in zip("xy", _pairs(1200, 6, 0.5), strict=True):
        np.savetxt(f"{name}.csv", table, delimiter=",", header="a,b,c,d,e,f", comments="")
    return partial(_command, "match", "x.csv", "y.csv", "--report", "page.html")


def larger_than_memory() -> Callable[[], object]:
    """Two npy files, by the command line, read in stretches."""
    import numpy as np

    os.environ["INLIER_STREAM_FROM"] = "0.00001"
    for name, table in zip("xy", _pairs(2000, 3, 0.5), strict=True):
        np.save(f"{name}.npy", table)
    return partial(_command, "match", "x.npy", "y.npy", "--method", "row-sum", "-o", "mask.npy")


WAYS = {
    "row sums, 1,000 x 6": row_sum,
    "calibrated, easy, n = 1,200": partial(calibrated, 1200, 6, 0.5),
    "calibrated, 12 % real, n = 300": partial(calibrated, 300, 10, 0.12, 0.5),
    "rigid, 60 pairs, 30 % wrong": partial(registration, 0.3),
    "rigid, 60 pairs, 75 % wrong": partial(registration, 0.75),
    "csv to page": csv_to_page,
    "npy larger than memory": larger_than_memory,
}


def _pairs(n, d, real, noise=0.02):
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    rotation, _ = np.linalg.qr(rng.normal(size=(d, d)))
    rotation[:, 0] *= np.sign(np.linalg.det(rotation))
    y = X @ rotation.T + noise * rng.normal(size=(n, d))
    n_wrong = round((1 - real) * n)
    y[:n_wrong] = rng.normal(size=(n_wrong, d))
    return X, y


def _command(*arguments: str) -> None:
    from inlier.cli import main

    sys.stdout = sys.stderr  # for the answer; standard output is for what was seen
    main(arguments, standalone_mode=False)


# ---- following them


@dataclass(frozen=True)
class Seen:
    """What one way passed through."""

    files: list[str]
    functions: int
    calls: int
    imported: int


def follow_here(name: str) -> Seen:
    """Walk one way in this process."""
    package = Path(find_spec("inlier").submodule_search_locations[0])
    prefix, seen, calls = f"{package}{os.sep}", {}, 0

    def on_event(frame, event, _argument):
        nonlocal calls
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(prefix) and code.co_flags & CO_OPTIMIZED:
            calls += 1
            if code not in seen and not _is_importing(frame, prefix):
                seen[code] = len(seen)

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        work = WAYS[name]()
        threading.setprofile(on_event)
        sys.setprofile(on_event)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        os.chdir(package)
    files = dict.fromkeys(str(Path(code.co_filename).relative_to(package)) for code in seen)
    imported = sum(module.partition(".")[0] == "inlier" for module in list(sys.modules))
    return Seen(list(files), len(seen), calls, imported)


def _is_importing(frame, prefix: str) -> bool:
    """Whether a frame runs because a module of the package is being loaded."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(prefix):
            return True
        frame = frame.f_back
    return False


def follow(source: Path | None, name: str) -> Seen:
    """Walk one way in a new process."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    if source is not None:
        environment["PYTHONPATH"] = str(source.resolve())
    command = [sys.executable, str(Path(__file__).resolve()), "--follow-here", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name!r} with {source or 'this installation'} failed:\n{done.stderr}")
    return Seen(**json.loads(done.stdout.splitlines()[-1]))


# ---- the house as it stands


def measure_house(package: Path) -> dict[str, int]:
    """Read all modules of a package: files, lines and what they define."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(package.rglob("*.py"))}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    knobs = {path: len(list(named_numbers(tree))) for path, tree in trees.items()}
    return {
        "Python files": len(trees),
        "lines": sum(len(path.read_text().splitlines()) for path in trees),
        "modules at the top": sum(path.parent == package for path in trees) - 1,
        "layers of the import contract": _layers(package.parents[1] / "pyproject.toml"),
        "longest import chain": _longest_chain(_import_graph(package, trees)),
        "classes": sum(isinstance(node, ast.ClassDef) for node in nodes),
        "functions": sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
        "numeric knobs": sum(knobs.values()),
        "numeric knobs of the core": sum(
            count for path, count in knobs.items() if path.relative_to(package).parts[0] not in NOT_CORE
        ),
    }


def named_numbers(tree: ast.Module) -> Iterable[tuple[str, ast.expr]]:
    """Numbers with a name in capitals at the top of a module, and their expressions."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_number(node.value):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id.isupper():
                    yield target.id, node.value


def is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone: 8, -1e-3, 2**20."""
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _layers(project: Path) -> int:
    """Count the layers that import-linter holds; 0 where there is no such file beside the package."""
    if not project.is_file():
        return 0
    contracts = tomllib.loads(project.read_text())["tool"]["importlinter"]["contracts"]
    return max(len(contract.get("layers", ())) for contract in contracts)


def _import_graph(package: Path, trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    """Which modules each one imports when it is loaded: not inside functions, not for the type checker."""
    names = {_module_name(package, path): path for path in trees}
    return {name: set(_imported(trees[path].body, names)) - {name} for name, path in names.items()}


def _module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(body: list[ast.stmt], names: Iterable[str]) -> Iterable[str]:
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield from (name for name in (inside if inside in names else node.module,) if name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _imported([*node.body, *node.orelse], names)
        elif isinstance(node, ast.Try):
            yield from _imported(node.body, names)


def _longest_chain(graph: dict[str, set[str]]) -> int:
    """Count the modules of the longest chain; where modules import each other, the way back is left out."""
    on_the_way: set[str] = set()

    @cache
    def length(name: str) -> int:
        on_the_way.add(name)
        longest = max((length(other) for other in sorted(graph[name]) if other not in on_the_way), default=0)
        on_the_way.discard(name)
        return 1 + longest

    return max(map(length, graph))


def _package_of(source: Path | None) -> Path:
    return Path(find_spec("inlier").submodule_search_locations[0]) if source is None else source.resolve() / "inlier"


# ---- tables


def show(sources: list[Path | None], *, list_files: bool) -> None:
    """Print both tables, one column a checkout, and by how much the last one is smaller than the first."""
    titles = [str(source or "this installation") for source in sources]
    width = max(22, *(len(title) + 2 for title in titles))
    heads = "".join(f"{title:>{width}}" for title in titles)
    print(f"{'files / functions / imported':<40}{heads}{'   files fewer' if len(sources) > 1 else ''}")
    for name in WAYS:
        seen = [follow(source, name) for source in sources]
        columns = "".join(f"{f'{len(s.files)} / {s.functions} / {s.imported}':>{width}}" for s in seen)
        print(f"{name:<40}{columns}{_fewer([len(s.files) for s in seen])}", flush=True)
        if list_files:
            for title, s in zip(titles, seen, strict=True):
                print(f"    {title}: {', '.join(s.files)}")
    houses = [measure_house(_package_of(source)) for source in sources]
    print()
    for row in houses[0]:
        values = [house[row] for house in houses]
        print(f"{row:<40}{''.join(f'{value:>{width},}' for value in values)}{_fewer(values)}")


def _fewer(values: list[int]) -> str:
    return f"{1 - values[-1] / values[0]:>14.0%}" if len(values) > 1 and values[0] else ""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, action="append", help="folder that holds the package; several to compare")
    parser.add_argument("--files", action="store_true", help="name the files, in the order of the first visit")
    parser.add_argument("--follow-here", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.follow_here:
        print(json.dumps(asdict(follow_here(options.follow_here))), file=sys.__stdout__)
    else:
        show(options.src or [None], list_files=options.files)


if __name__ == "__main__":
    main()
