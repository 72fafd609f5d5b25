"""Small mistakes put into what decides: which of them does no test notice?

    python tools/mutate.py --mutations 100 [--only refine] [--seed 0] [--minutes 60] [--slowest 10]

Mutations are those of cosmic-ray (another operator, another number, a condition turned round, a decorator or a branch
gone), drawn at random from all that a module offers, but for those in annotations, which nothing evaluates. Each is
tried in a copy of this process, in which the module is imported with the mistake and the tests of the module run until
one fails, the fastest first. A mutation that no test notices survives. None of these modules holds compiled loops, so
that nothing is compiled anew for a mutation.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "inlier"
MODULES = {
    "calibration.p_values": [
        "tests/calibration/test_p_values.py",
        "tests/calibration/test_p_values_definitions.py",
        "tests/calibration/test_linear_map.py",
    ],
    "calibration.bounds": ["tests/calibration/test_bounds.py"],
    "calibration.folds": ["tests/calibration/test_folds.py"],
    "repair.odds": ["tests/repair/test_odds.py", "tests/repair/test_names.py"],
    "repair.names": ["tests/repair/test_names.py"],
    "repair.partner_sets": ["tests/repair/test_partner_sets.py"],
    "rows.null_pairs": ["tests/rows/test_null_pairs.py"],
    "consensus.evidence": ["tests/consensus/test_decisions.py", "tests/consensus/test_evidence.py"],
    "consensus.refine": ["tests/consensus/test_decisions.py", "tests/consensus/test_refine.py"],
    "consensus.find": ["tests/consensus/test_decisions.py", "tests/consensus/test_find.py"],
    "consensus.clumps": ["tests/consensus/test_clumps.py", "tests/consensus/test_clumps_reference.py"],
    "estimators._verdict": ["tests/estimators/test_verdict.py"],
    "estimators.registration": [
        "tests/estimators/test_registration_decisions.py",
        "tests/estimators/test_registration.py",
        "tests/estimators/test_registration_repeats.py",
    ],
}
PATIENCE = 300  # seconds for the tests of one mutation: a mistake that goes on for ever was noticed


class Mistaken(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a text of its own."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source

    def find_spec(self, fullname, path=None, target=None):
        """Find the module, if it is this one."""
        origin = str(SRC.parent / Path(*self.name.split("."))) + ".py"
        return importlib.util.spec_from_loader(fullname, self, origin=origin) if fullname == self.name else None

    def exec_module(self, module):
        """Run the text."""
        module.__file__ = module.__spec__.origin
        exec(compile(self.source, module.__file__, "exec"), module.__dict__)


class FastestFirst:
    """A plugin of pytest: how long each test takes, and from then on the fast ones first and none of the slowest."""

    def __init__(self, durations: Path, slowest: float) -> None:
        self.path, self.slowest = durations, slowest
        self.durations = json.loads(durations.read_text()) if durations.exists() else {}
        self.seen: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items):
        """Put them in order."""
        items[:] = [item for item in items if self.durations.get(item.nodeid, 0.0) <= self.slowest]
        items.sort(key=lambda item: self.durations.get(item.nodeid, 0.0))

    def pytest_runtest_logreport(self, report):
        """Take the time."""
        if report.when == "call":
            self.seen[report.nodeid] = report.duration

    def pytest_sessionfinish(self):
        """Keep it, of the first run."""
        if not self.durations:
            self.path.write_text(json.dumps(self.seen))


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def meaning(source: str) -> str | None:
    """What a text does, as far as it can be seen without running it: its tree without annotations; None if it is none.

    A star among parameters is no operator, but cosmic-ray takes it for one.
    """
    try:
        return ast.dump(_WithoutAnnotations().visit(ast.parse(source)))
    except SyntaxError:
        return None


def mutations_of(source: str) -> list[tuple[str, Callable[[], str | None]]]:
    """All mutations of a text: what is changed, and what makes the text with it."""
    import parso
    from cosmic_ray.ast import ast_nodes
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(parso.parse(source)))
    found = []
    for name in sorted(operator_names()):
        kind = get_operator(name)
        if kind.arguments():  # those that must be told what to put in
            continue
        places = [place for node in nodes for place in kind().mutation_positions(node)]
        for number, (start, _) in enumerate(places):
            what = f"line {start[0]}, column {start[1]}: {name.removeprefix('core/')}"
            found.append((what, partial(mutate_code, source, kind(), number)))
    return found


def is_noticed(module: str, source: str, tests: list[str], plugin: FastestFirst) -> bool:
    """Whether a test of the module fails with this text of it."""
    copy = os.fork()
    if copy == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.meta_path.insert(0, Mistaken(f"inlier.{module}", source))
        code = 3
        try:
            import pytest

            signal.alarm(PATIENCE)
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin"]
            options += ["--hypothesis-profile=quick", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
            code = int(pytest.main([*options, *tests], plugins=[plugin]))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) != 0


def try_module(module: str, tests: list[str], given: argparse.Namespace) -> None:
    """Try mutations of one module, and print its score and what survived."""
    source = (SRC / Path(*module.split("."))).with_suffix(".py").read_text()
    all_mutations = mutations_of(source)
    drawn = random.Random(given.seed).sample(all_mutations, len(all_mutations))
    with tempfile.TemporaryDirectory(prefix="inlier-mutate-") as folder:
        durations = Path(folder, "durations.json")
        if is_noticed(module, source, tests, FastestFirst(durations, float("inf"))):
            raise SystemExit(f"The tests of {module} fail without any mutation.")
        plugin = FastestFirst(durations, given.slowest)
    start, tried, survivors, sound = time.monotonic(), 0, 0, meaning(source)
    for what, make in drawn:
        mutated = make()
        if tried == given.mutations or time.monotonic() - start > 60 * given.minutes:
            break
        if mutated is None or meaning(mutated) in (sound, None):
            continue
        tried += 1
        if not is_noticed(module, mutated, tests, plugin):
            survivors += 1
            line = next(new for new, old in zip(mutated.splitlines(), source.splitlines(), strict=False) if new != old)
            print(f"  survived: {module}, {what}: {line.strip()}", flush=True)
    noticed, seconds = tried - survivors, time.monotonic() - start
    print(
        f"{module}: {noticed} of {tried} noticed ({noticed / max(tried, 1):.0%}), of {len(all_mutations)} there are, "
        f"in {seconds:.0f} s",
        flush=True,
    )


def main() -> None:
    """Try mutations, and print the score of each module and what survived."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutations", type=int, default=100, help="of each module, all if there are fewer")
    parser.add_argument("--only", default="", help="modules whose name ends so")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600.0, help="for each module")
    parser.add_argument("--slowest", type=float, default=60.0, help="seconds; tests that take longer are left out")
    given = parser.parse_args()
    import hypothesis.strategies  # noqa: F401
    import numba  # noqa: F401 - what every copy needs is imported once
    import pytest  # noqa: F401
    import scipy.spatial.transform
    import scipy.stats  # noqa: F401
    import sklearn.base  # noqa: F401

    for module, tests in MODULES.items():
        if module.endswith(given.only):
            try_module(module, tests, given)


if __name__ == "__main__":
    main()
