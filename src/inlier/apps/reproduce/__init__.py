"""The paper's figures, tables and theorems, each computed again: from settings to a tidy table and a picture."""

from inlier.apps.reproduce.experiment import Claim, Experiment, Outcome, Run
from inlier.apps.reproduce.mispaired_brain import BrainRatio, BrainSplit
from inlier.apps.reproduce.runner import run_all, run_experiment
from inlier.apps.reproduce.sources import Sources, load_sources
from inlier.apps.reproduce.swapped_sky import SkyImages, SkyNoise
from inlier.apps.reproduce.theory import TheoryEigenvector, TheoryRowSum
from inlier.apps.reproduce.whole_photos import CaseStudy, WholePhoto

__all__ = [
    "EXPERIMENTS",
    "Claim",
    "Experiment",
    "Outcome",
    "Run",
    "Sources",
    "find_experiments",
    "load_sources",
    "run_all",
    "run_experiment",
]

# in the order of the paper
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        BrainRatio(),
        BrainSplit("eigenvector", "Table 1"),
        BrainSplit("row sum", "Table 2"),
        SkyImages(),
        SkyNoise(),
        CaseStudy(),
        TheoryRowSum(),
        TheoryEigenvector(),
        WholePhoto(),
    )
}


def find_experiments(names: list[str]) -> list[Experiment]:
    """Return the named experiments, each once, in the order of the paper.

    Examples
    --------
    >>> from inlier.apps.reproduce import find_experiments
    >>> [experiment.reference for experiment in find_experiments(["sky-noise", "brain-ratio"])]
    ['Figure 1', 'Figure 3']
    """
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(f"There is no experiment named {unknown[0]!r}; there are: {', '.join(EXPERIMENTS)}.")
    return [experiment for name, experiment in EXPERIMENTS.items() if name in names]
