"""All experiments, in the order of the paper."""

from __future__ import annotations

from inlier.apps.reproduce import (
    brain_ratio,
    brain_split,
    case_study,
    sky_images,
    sky_noise,
    theory_eigenvector,
    theory_row_sum,
    whole_photo,
)
from inlier.apps.reproduce.model import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        brain_ratio.EXPERIMENT,
        brain_split.EIGENVECTOR_TABLE,
        brain_split.ROW_SUM_TABLE,
        sky_images.EXPERIMENT,
        sky_noise.EXPERIMENT,
        case_study.EXPERIMENT,
        theory_row_sum.EXPERIMENT,
        theory_eigenvector.EXPERIMENT,
        whole_photo.EXPERIMENT,
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
