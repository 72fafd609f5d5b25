"""Data to try the matchers on, made or loaded, always with the truth."""

from inlier.datasets.brain import BrainTable, brain_features, load_brain
from inlier.datasets.sky import load_sky
from inlier.datasets.synthetic import PairedData, make_gaussian_pairs, make_mispaired

__all__ = [
    "BrainTable",
    "PairedData",
    "brain_features",
    "load_brain",
    "load_sky",
    "make_gaussian_pairs",
    "make_mispaired",
]
