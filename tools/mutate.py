"""Small mistakes put into what decides: which of them does no test notice?

    python tools/mutate.py --mutations 100 [--only refine] [--seed 0] [--minutes 60]

Mutations are those of cosmic-ray (another operator, another number, a condition turned round, a decorator or a branch
gone), drawn at random from all that a module offers. Each is tried in a copy of this process, in which the module is
imported with the mistake and the tests of the module run until one fails. A mutation that no test notices survives.
None of these modules holds compiled loops, so that nothing is compiled anew for a mutation.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.util
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "inlier"
MODULES = {
    "calibration.p_values": ["tests/calibration/test_p_values.py", "tests/calibration/test_significance.py"],
    "rows.null_pairs": ["tests/rows/test_null_pairs.py"],
    "consensus.evidence": ["tests/consensus/test_evidence.py"],
    "consensus.refine": ["tests/consensus/test_refine.py"],
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
            what = f"line {start[0]}: {name.removeprefix('core/')}"
            found.append((what, partial(mutate_code, source, kind(), number)))
    return found


def is_noticed(module: str, source: str, tests: list[str]) -> bool:
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
            options = ["-x", "-q", "-p", "no:cacheprovider"]
            code = int(pytest.main([*options, *tests]))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) != 0


def main() -> None:
    """Try mutations, and print the score of each module and what survived."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mutations", type=int, default=100, help="of each module, all if there are fewer")
    parser.add_argument("--only", default="", help="modules whose name ends so")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600.0, help="for each module")
    given = parser.parse_args()
    import pytest  # noqa: F401 - what every copy needs is imported once
    import scipy.stats  # noqa: F401
    import sklearn.base  # noqa: F401

    for module, tests in MODULES.items():
        if not module.endswith(given.only):
            continue
        source = (SRC / Path(*module.split("."))).with_suffix(".py").read_text()
        all_mutations = mutations_of(source)
        drawn = random.Random(given.seed).sample(all_mutations, min(given.mutations, len(all_mutations)))
        if is_noticed(module, source, tests):
            raise SystemExit(f"The tests of {module} fail without any mutation.")
        start, tried, survivors = time.monotonic(), 0, []
        for what, make in drawn:
            mutated = make()
            if mutated is None or mutated == source:
                continue
            if time.monotonic() - start > 60 * given.minutes:
                break
            tried += 1
            if not is_noticed(module, mutated, tests):
                survivors.append(what)
                print(f"  survived: {module}, {what}", flush=True)
        noticed = tried - len(survivors)
        print(
            f"{module}: {noticed} of {tried} noticed ({noticed / max(tried, 1):.0%}), of {len(all_mutations)} there are"
        )


if __name__ == "__main__":
    main()
