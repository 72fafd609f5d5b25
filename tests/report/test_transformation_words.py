from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import special_ortho_group

from inlier import AffineTransformation, SimilarityTransformation, estimate_transformation
from inlier.report.transformation_words import in_words, precision_of

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


@pytest.mark.parametrize(("model", "d"), [("rigid", 3), ("similarity", 2), ("rotation", 3)])
def test_standard_errors_are_what_they_say(model, d):
    """Fit many noisy copies; the spread of the answers is the error that one of them states."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, d)) * [5, 2, 1][:d] + (0 if model == "rotation" else 10)
    angles, shifts, stated = [], [], []
    for _ in range(400):
        Y = X + 0.1 * rng.standard_normal(X.shape)
        found = estimate_transformation(model, X, Y)
        precision = precision_of(found, X, found.residuals(X, Y))
        stated.append((precision.degrees, precision.distance or np.nan))
        if d == 3:
            angles.append(np.degrees(Rotation.from_matrix(found.rotation).as_rotvec()))
        else:
            angles.append([found.angle])
        shifts.append(found(X.mean(axis=0, keepdims=True))[0] - X.mean(axis=0))
    worst = np.sqrt(np.linalg.eigvalsh(np.atleast_2d(np.cov(np.array(angles).T)))[-1])
    assert np.mean(stated, axis=0)[0] == pytest.approx(worst, rel=0.12)
    if model != "rotation":
        assert np.mean(stated, axis=0)[1] == pytest.approx(
            np.sqrt(np.mean(np.sum(np.square(shifts), axis=1))), rel=0.12
        )


def test_where_no_error_can_be_stated():
    X = np.random.default_rng(0).normal(size=(60, 3))
    rigid = SimilarityTransformation(np.eye(3), model="rigid")
    assert precision_of(AffineTransformation(np.eye(3), np.zeros(3)), X, np.ones(60)) is None
    assert precision_of(rigid, X[:3], np.ones(3)) is None  # three pairs fit exactly
    assert precision_of(rigid, np.zeros((60, 3)), np.ones(60)) is None
    assert precision_of(SimilarityTransformation(np.eye(3), determined=False), X, np.ones(60)) is None
    assert precision_of(rigid, X, np.zeros(60)).to_dict() == {"degrees": 0.0, "distance": 0.0}
