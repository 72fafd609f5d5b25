"""Data to try the matchers on, made or loaded, always with the truth."""

from inlier.datasets.brain import BrainTable, brain_features, load_brain
from inlier.datasets.photos import (
    MovableSquares,
    Scenes,
    load_scenes,
    load_sky,
    make_scenes,
    permuted_squares,
    random_cycle,
    squares_on_grid,
    swapped_squares,
)
from inlier.datasets.synthetic import PairedData, Scans, make_gaussian_pairs, make_mispaired, make_scans

__all__ = [
    "BrainTable",
    "MovableSquares",
    "PairedData",
    "Scans",
    "Scenes",
    "brain_features",
    "load_brain",
    "load_scenes",
    "load_sky",
    "make_gaussian_pairs",
    "make_mispaired",
    "make_scans",
    "make_scenes",
    "permuted_squares",
    "random_cycle",
    "squares_on_grid",
    "swapped_squares",
]
