from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from inlier.apps.reproduce.experiment import load_sources
from inlier.apps.reproduce.runner import EXPERIMENTS
from inlier.apps.reproduce.theory import LOGARITHMIC, PROPORTIONAL, QUADRATIC

TINY = {
    "brain-ratio": {"n": 400, "inlier_fractions": [0.6, 0.9], "repetitions": 4},
    "brain-split-eigenvector": {"n": 600, "repetitions": 2},
    "brain-split-row-sum": {"n": 600, "repetitions": 2},
    "sky-noise": {"n": 300, "noise_variances": [0.0, 50.0, 100.0], "repetitions": 4},
    "theory-row-sum": {
        "sizes": {PROPORTIONAL: [150, 300], LOGARITHMIC: [400, 800], QUADRATIC: [300, 600]},
        "multiples": [2.0, 3.0, 4.0],
        "repetitions": 3,
    },
    "theory-eigenvector": {"sizes": [50, 100, 200], "repetitions": 3},
    "whole-photo": {"noise_variances": [0.0, 100.0], "repetitions": 1, "sample": 500},
}


@pytest.fixture(scope="session")
def sources():
    return load_sources()


@pytest.fixture
def tiny():
    """An experiment whose quick run takes a moment."""

    def make(name):
        experiment = copy(EXPERIMENTS[name])
        experiment.quick = {**experiment.quick, **TINY.get(name, {})}
        return experiment

    return make


@pytest.fixture
def table_of():
    """Rows of a table: one per point and mean, with a small standard error."""

    def make(quantity, points, means, stderr=1e-4):
        means = np.broadcast_to(means, len(points)).tolist()
        return [
            {
                **point,
                "quantity": quantity,
                "mean": mean,
                "sd": stderr * 10,
                "stderr": stderr,
                "repetitions": 100,
                "paper": None,
            }
            for point, mean in zip(points, means, strict=True)
        ]

    return make
