"""The paper's figures, tables and theorems, each computed again: from settings to a tidy table and a picture."""

from inlier.experiments.model import Claim, Experiment, Outcome, Run
from inlier.experiments.registry import EXPERIMENTS, find_experiments
from inlier.experiments.runner import run_experiment
from inlier.experiments.sources import Sources, load_sources

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
