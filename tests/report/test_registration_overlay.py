from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from inlier import AffineTransformation, SimilarityTransformation
from inlier.report.registration_summary import make_overlay

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(200, 3)) * [1, 2, 3]
REAL = np.zeros(200, dtype=np.int8)


def turned(degrees, shift=(0, 0, 0), scale=1.0):
    rotation = Rotation.from_rotvec(np.radians(degrees) * np.array([0.6, 0, 0.8])).as_matrix()
    return SimilarityTransformation(rotation, shift, scale)


def placed(view, step):
    """Where the viewer draws the source at a step, in units of the picture."""
    matrix = np.reshape(view["steps"][step], (3, 4))
    return np.reshape(view["source"], (-1, 3)) / view["unit"] @ matrix[:, :3].T + matrix[:, 3]


@settings(max_examples=25)
@given(st.floats(0, 180), st.floats(-1e4, 1e4), st.floats(0.01, 100))
def test_the_motion_ends_where_the_transformation_leads(degrees, shift, scale):
    transformation = turned(degrees, (shift, 0, 1), scale)
    view = make_overlay(transformation, X, transformation(X), REAL, 200).view
    target = np.reshape(view["target"], (-1, 3)) / view["unit"]
    np.testing.assert_allclose(placed(view, -1), target, atol=1e-3)
    before = placed(view, 0)
    ratio = np.ptp(before, axis=0) / np.ptp(X, axis=0)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)  # neither turned nor stretched


def test_halfway_through_a_half_turn_nothing_is_squashed():
    transformation = turned(180, (5, 0, 0))
    view = make_overlay(transformation, X, transformation(X), REAL, 200).view
    spreads = [np.linalg.svd(placed(view, step) - placed(view, step).mean(axis=0))[1] for step in (0, 12, -1)]
    np.testing.assert_allclose(spreads[1], spreads[0], rtol=1e-3)
    np.testing.assert_allclose(spreads[2], spreads[0], rtol=1e-3)


@pytest.mark.parametrize("d", [2, 3])
def test_mirrors_and_stretches_end_well_too(d):
    linear = np.diag([-1.0, 2.0, 0.5][:d])
    transformation = AffineTransformation(linear, np.ones(d))
    view = make_overlay(transformation, X[:, :d], transformation(X[:, :d]), REAL, 200).view
    target = np.reshape(view["target"], (-1, 3)) / view["unit"]
    np.testing.assert_allclose(placed(view, -1), target, atol=2e-3)
    assert view["flat"] == (d == 2)


def test_everything_is_within_sight():
    far = turned(30, (1e6, 0, 0))
    wild = far(X)
    wild[0] = 1e12  # one point that must not decide
    overlay = make_overlay(far, X, wild, REAL, 200)
    assert overlay.drawn_nearer
    assert not make_overlay(turned(30), X, turned(30)(X), REAL, 200).drawn_nearer
    target = np.reshape(overlay.view["target"], (-1, 3)) / overlay.view["unit"]
    assert np.quantile(np.abs(target), 0.98) < 1.1
    assert np.abs(target).max() <= 25
    *centre, radius = overlay.view["first_view"]
    assert (np.linalg.norm(placed(overlay.view, 0) - centre, axis=1) <= 1.1 * radius).all()
    assert radius < 5
    assert overlay.distances == pytest.approx((1e6, 0), rel=1e-3, abs=1e-6)


def test_many_points_and_pairs_are_thinned():
    cloud = RNG.uniform(size=(20_000, 3))
    verdicts = np.repeat(np.array([0, 1, 2], dtype=np.int8), [150, 20, 30])
    overlay = make_overlay(turned(10), X, turned(10)(X), verdicts, 5000, (cloud, cloud[:3000]))
    assert overlay.drawn == (4000, 3000)
    assert overlay.existing == (20_000, 3000)
    assert len(overlay.view["source"]) == 3 * 4000
    counts = np.bincount(overlay.view["verdicts"])
    assert counts.tolist() == [75, 20, 30]
    assert overlay.lines == (125, 5000)


def test_points_without_a_place_are_not_drawn():
    holes = X.copy()
    holes[[0, 7], [1, 2]] = np.nan, np.inf
    whole = make_overlay(turned(10), X[10:], turned(10)(X[10:]), REAL[10:], 190, (np.delete(X, [0, 7], axis=0), X))
    overlay = make_overlay(turned(10), X[10:], turned(10)(X[10:]), REAL[10:], 190, (holes, X))
    assert overlay.view == whole.view
    assert (overlay.drawn, overlay.existing) == ((198, 200), (200, 200))


def test_more_dimensions_are_projected_and_fewer_have_no_before():
    wide = RNG.normal(size=(50, 6))
    identity = SimilarityTransformation(np.eye(6), model="rigid")
    overlay = make_overlay(identity, wide, wide, REAL[:50], 50)
    assert overlay.projected_from == 6
    assert overlay.view["steps"] is None
    assert overlay.view["moved"] == overlay.view["source"] == overlay.view["target"]
    drop = AffineTransformation([[1, 0, 0], [0, 1, 0]], [0, 0])
    overlay = make_overlay(drop, X, X[:, :2], REAL, 200)
    assert not overlay.has_before
    assert overlay.view["flat"]
    assert overlay.view["source"] == overlay.view["target"]
    assert overlay.distances is None
    assert make_overlay(AffineTransformation([[2]], [1]), X[:, :1], X[:, :1], REAL, 200) is None
