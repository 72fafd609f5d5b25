from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from inlier import AffineTransformation, SimilarityTransformation
from inlier.report.transformation_words import errors_as_dict, errors_in_words, in_words

QUARTER = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("transformation", "words"),
    [
        (
            SimilarityTransformation(QUARTER, [5, 0, -1], model="rigid"),
            "turns by 90 degrees about the axis (0.000, 0.000, 1.000) and moves by (5, 0, -1)",
        ),
        (
            SimilarityTransformation(QUARTER, [5, 0, 0], 2.0),
            "scales by 2, turns by 90 degrees about the axis (0.000, 0.000, 1.000) and moves by (5, 0, 0)",
        ),
        (SimilarityTransformation([[0, -1], [1, 0]], model="rotation"), "turns by 90 degrees counter-clockwise"),
        (SimilarityTransformation([[0, 1], [-1, 0]], model="rotation"), "turns by 90 degrees clockwise"),
        (SimilarityTransformation(np.eye(3), model="rigid"), "does not turn and moves by (0, 0, 0)"),
        (SimilarityTransformation(np.diag([-1, 1, 1]), model="orthogonal"), "mirrors"),
        (SimilarityTransformation([[1]], [3], model="rigid"), "moves by (3)"),
        (
            SimilarityTransformation(special_ortho_group.rvs(5, random_state=0), [3, 4, 0, 0, 0], model="rigid"),
            "turns in 5 dimensions and moves by 5",
        ),
        (AffineTransformation([[2, 0], [0, 1]], [1, 2]), "stretches by 1 to 2 and moves by (1, 2)"),
    ],
)
def test_words(transformation, words):
    assert in_words(transformation) == words


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("rigid", "Standard errors: 0.2 degrees, (0.01, 0.02, 0.5) in the translation."),
        ("similarity", "Standard errors: 0.2 degrees, (0.01, 0.02, 0.5) in the translation, 0.003 in the scale."),
        ("rotation", "Standard errors: 0.2 degrees."),
    ],
)
def test_errors(model, words):
    errors = SimpleNamespace(rotation=np.array([0.1, 0.2, 0.05]), translation=np.array([0.01, 0.02, 0.5]), scale=0.003)
    assert errors_in_words(errors, model) == words
    assert errors_as_dict(errors) == {"degrees": [0.1, 0.2, 0.05], "translation": [0.01, 0.02, 0.5], "scale": 0.003}
