"""Random transformations of every model, and how to compare them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy.stats import special_ortho_group

from inlier import AffineTransformation, SimilarityTransformation

MODELS = ("orthogonal", "rotation", "rigid", "similarity", "affine")
FREE = ("rigid", "similarity")  # may reflect on request
seeds = st.integers(0, 2**32 - 1)


def random_rotation(rng, d, reflect=False):
    R = special_ortho_group.rvs(d, random_state=rng) if d > 1 else np.eye(1)
    if reflect:
        R[:, 0] *= -1
    return R


def random_map(model, d, rng, reflect=False, d_y=None):
    if model == "affine":
        return AffineTransformation(rng.standard_normal((d_y or d, d)), rng.standard_normal(d_y or d))
    translation = rng.standard_normal(d) if model in FREE else np.zeros(d)
    scale = float(rng.uniform(0.1, 10)) if model == "similarity" else 1.0
    return SimilarityTransformation(random_rotation(rng, d, reflect), translation, scale, model)


def fewest_pairs(model, d, reflection):
    directions = d if reflection or model in ("orthogonal", "affine") else d - 1
    return max(1, directions + (model not in ("orthogonal", "rotation")), 2 * (model == "similarity"))


def same(T, truth, atol):
    np.testing.assert_allclose(T.matrix, truth.matrix, atol=atol * max(1, np.abs(truth.matrix).max()), rtol=0)
