"""The paper's figures, tables and theorems, each computed again: from settings to a tidy table and a picture."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inlier.apps.reproduce.model import Claim, Experiment, Outcome, Run
    from inlier.apps.reproduce.registry import EXPERIMENTS, find_experiments
    from inlier.apps.reproduce.runner import run_experiment
    from inlier.apps.reproduce.sources import Sources, load_sources

__all__ = [
    "EXPERIMENTS",
    "Claim",
    "Experiment",
    "Outcome",
    "Run",
    "Sources",
    "find_experiments",
    "load_sources",
    "run_experiment",
]

_HOME = {
    "Claim": "model",
    "EXPERIMENTS": "registry",
    "Experiment": "model",
    "Outcome": "model",
    "Run": "model",
    "Sources": "sources",
    "find_experiments": "registry",
    "load_sources": "sources",
    "run_experiment": "runner",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: ``inlier --help`` need not wait for it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value
