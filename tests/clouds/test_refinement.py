"""Refinement, standard errors and the second opinion, on surfaces whose motion is known."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from inlier import SimilarityTransformation
from inlier.clouds.refinement import (
    Motion,
    Nearest,
    contact,
    contact_and_nearness,
    polish,
    refine,
    screws,
    slid_to_surface,
)
from inlier.clouds.second_opinion import View, Views, opinion_on, ranked
from inlier.clouds.suggestions import (
    _supports,
    agreement,
    different,
    level_of,
    refined,
    suggested_motions,
    supporting,
)
from inlier.clouds.surfaces import Grid, Surface
from inlier.datasets import make_scans

SMALL = Motion(Rotation.from_rotvec([0.02, -0.03, 0.01]).as_matrix(), np.array([0.4, -0.3, 0.2]))


@pytest.fixture(scope="module")
def scans():
    return make_scans(rng=0)


def centred(scans):
    a, b = scans.source.mean(axis=0), scans.target.mean(axis=0)
    truth = Motion(scans.rotation, scans.rotation @ a + scans.translation - b)
    return scans.source - a, scans.target - b, truth


def grids(source, target):
    return Grid.of(source, target, 6_000), Grid.of(source, target, 20_000)


def degrees(a, b):
    return np.degrees(Rotation.from_matrix(a.rotation @ b.rotation.T).magnitude())


def test_motions_follow_each_other_and_go_back():
    points = np.random.default_rng(0).random((5, 3))
    np.testing.assert_allclose(SMALL.inverse(SMALL(points)), points)
    turned = SMALL.then(Motion(np.eye(3), np.ones(3), 2.0))
    np.testing.assert_allclose(turned(points), 2 * SMALL(points) + 1)
    np.testing.assert_allclose(turned.inverse(turned(points)), points)


def test_a_small_motion_moves_points_along_their_normals_as_it_says():
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=(2, 7, 3))
    small = 1e-6 * rng.normal(size=7)
    turn = Rotation.from_rotvec(small[:3]).as_matrix()
    moved = (1 + small[6]) * x @ turn.T + small[3:6]
    along = np.einsum("ij,ij->i", moved - x, n)
    np.testing.assert_allclose(screws(x, n, free_scale=True) @ small, along, atol=1e-10)
    np.testing.assert_allclose(screws(x, n), screws(x, n, free_scale=True)[:, :6])


def test_nearness_and_contact_are_those_of_all_distances(scans):
    source, target, truth = centred(scans)
    surfaces = Surface.dense(source[:400]), Surface.dense(target[:500])
    there, n_near = contact_and_nearness(*surfaces, truth, (2.0, 5.0), every=3)
    moved = truth(source[:400:3])
    distance = np.linalg.norm(moved[:, None] - target[None, :500], axis=2)
    nearest = distance.argmin(axis=1)
    cosine = (surfaces[0].normals_at(np.arange(0, 400, 3)) @ truth.rotation.T * surfaces[1].normals_at(nearest)).sum(
        axis=1
    )
    touches = (distance.min(axis=1) < 2) & (np.abs(cosine) > 0.8)
    assert n_near == np.count_nonzero(distance.min(axis=1) < 5)
    np.testing.assert_array_equal(there.rows, np.flatnonzero(touches))
    np.testing.assert_array_equal(there.nearest, nearest[touches])
    assert there.share == touches.mean()


def test_supports_are_counted_as_one_would_by_hand():
    rng = np.random.default_rng(1)
    motions = [Motion(Rotation.random(rng=rng).as_matrix(), rng.normal(size=3)) for _ in range(300)]
    x, y = rng.normal(size=(2, 200, 3))
    expected = [np.count_nonzero(np.linalg.norm(motion(x) - y, axis=1) <= 1.5) for motion in motions]
    np.testing.assert_array_equal(_supports(motions, x, y, 1.5), expected)


def test_a_free_scale_is_refined(scans):
    source, target, truth = centred(scans)
    found, _, _ = polish(grids(1.02 * source, target), truth, free_scale=True)
    assert found.scale == pytest.approx(1 / 1.02, abs=0.003)
    assert polish(grids(1.02 * source, target), truth)[0].scale == 1


def test_polish_finds_the_motion_from_nearby(scans):
    source, target, truth = centred(scans)
    start = Motion(SMALL.rotation @ truth.rotation, SMALL.rotation @ truth.translation + SMALL.translation)
    found, surfaces, bound = polish(grids(source, target), start)
    side = grids(source, target)[1].side
    assert side <= bound <= 8 * side
    np.testing.assert_array_equal(surfaces[0].points, grids(source, target)[1].source)
    assert degrees(start, truth) > 2
    assert degrees(found, truth) < 0.1


def test_the_nearest_of_moving_points_are_those_of_the_tree():
    rng = np.random.default_rng(0)
    tree, points, bound = cKDTree(rng.random((500, 3))), rng.random((400, 3)), 0.08
    nearest, n_asked = Nearest(tree, bound), []
    nearest._tree = spy = Mock(wraps=tree, n=tree.n, data=tree.data)
    for size in (0.0, 1e-4, 1e-3, 0.01, 0.1, 1e-4):
        points = points + size * rng.normal(size=(400, 3))
        distance, rows = nearest(points)
        expected, those = tree.query(points, distance_upper_bound=bound)
        np.testing.assert_allclose(distance, expected)
        is_near = np.isfinite(expected)
        assert is_near.any()
        np.testing.assert_array_equal(rows[is_near], those[is_near])
        n_asked.append(len(spy.query.call_args.args[0]))
    assert n_asked[0] == 400
    assert max(n_asked[1], n_asked[5]) < 40  # of points that hardly moved the tree is hardly asked


def test_points_of_pairs_are_slid_to_the_surface_that_they_lie_on(scans):
    truth = SimilarityTransformation(scans.rotation, scans.translation, model="rigid")
    bound = 0.1 * np.sqrt(scans.target.var(axis=0).sum())
    off = SimilarityTransformation(scans.rotation, scans.translation + 0.3 * bound, model="rigid")
    image = truth(scans.source)
    seen = Surface.dense(scans.target).tree.query(image)[0] < bound / 2
    found = slid_to_surface(scans.source[seen], scans.target, off, bound)
    rms = [np.sqrt(np.mean((motion(scans.source) - image) ** 2)) for motion in (off, found)]
    assert rms[1] < 0.2 * rms[0]


def test_nothing_moves_where_nothing_touches(scans):
    source, target, truth = centred(scans)
    surfaces = Surface.dense(source[:500]), Surface.dense(target[:500] + 1e4)
    assert refine(*surfaces, truth, 1.0, 5) is truth
    assert not len(contact(*surfaces, truth, Nearest(surfaces[1].tree, 1.0)).rows)


def test_on_a_plane_a_shift_is_left_free():
    rng = np.random.default_rng(0)
    plane = np.column_stack([rng.random((3_000, 2)), 0.001 * rng.normal(size=3_000)])
    level = level_of(plane, plane, 500)
    opinion = opinion_on(Motion(np.eye(3), np.zeros(3)), [level])
    assert opinion.undetermined is not None
    assert opinion.log_p_value == 0
    assert opinion.contact > 0.99


def test_the_right_motion_is_suggested_and_stands_out(scans):
    source, target, truth = centred(scans)
    level = level_of(source, target, 1_500)
    found = refined(level, suggested_motions(level, np.random.default_rng(0))[:10])
    opinions = ranked([opinion_on(motion, [level]) for motion in found])
    assert degrees(opinions[0].motion, truth) < 0.5
    assert opinions[0].log_p_value < np.log(1e-5)
    wrong = Motion(Rotation.from_euler("z", 90, degrees=True).as_matrix() @ truth.rotation, truth.translation)
    assert opinion_on(wrong, [level]).log_p_value > np.log(0.01)
    assert supporting(level, wrong).size < opinions[0].n_supporting / 5
    assert len(different([truth, truth, wrong], level)) == 2


def test_matches_agree_as_a_plain_loop_says(scans):
    source, target, _ = centred(scans)
    level = level_of(source, target, 500)
    rows = np.arange(0, len(level.matches), 9)
    (x, y), (n, m) = level.ends, level.normals
    found = agreement(level, rows)
    for a, i in enumerate(rows):
        for b, j in enumerate(rows):
            d, e = (np.linalg.norm(end[i] - end[j]) / level.side for end in (x, y))
            if min(d, e) <= 3:
                assert not found[a, b]
                continue
            u, v = (x[i] - x[j]) / (d * level.side), (y[i] - y[j]) / (e * level.side)
            gaps = [abs(d - e) / 1.5]
            for p, q in ((n[i] @ n[j], m[i] @ m[j]), (n[i] @ u, m[i] @ v), (n[j] @ u, m[j] @ v)):
                gaps.append(abs(abs(p) - abs(q)) / 0.25)
            if abs(max(gaps) - 1) > 1e-3:  # single precision cannot tell on the edge
                assert found[a, b] == (max(gaps) < 1)


def wall(distance, seed=0):
    """A bumpy wall before a camera at the origin that looks along z."""
    x, y = np.random.default_rng(seed).uniform(-0.6, 0.6, (2, 20_000))
    depth = distance * (1 + 0.02 * np.sin(9 * x))
    return np.column_stack([x * depth, y * depth, depth])


def test_what_hangs_before_a_wall_is_in_free_space():
    view = View.of(wall(3.0), np.zeros(3), 0.05)
    assert view.count(wall(3.0, 1), 0.15)[0] == 0
    n_in_front, n_in_view = view.count(wall(2.0, 1), 0.15)
    assert n_in_front == n_in_view > 18_000  # some directions were not seen
    assert view.count(wall(4.0, 1), 0.15) == (0, 0)
    assert view.count(-wall(2.0, 1), 0.15) == (0, 0)  # behind the camera


def test_empty_space_speaks_for_a_motion_only_if_much_is_in_view(scans):
    source, target, truth = centred(scans)
    opinion = opinion_on(truth, [level_of(source, target, 500)])
    nothing, few_clear, clear, usual, crowded = (
        replace(opinion, n_in_front=n_in_front, n_in_view=n_in_view).strength
        for n_in_front, n_in_view in ((0, 0), (0, 20), (0, 4_000), (440, 4_000), (2_000, 4_000))
    )
    assert nothing == pytest.approx(usual)
    assert crowded < usual < few_clear < usual + 0.1 < usual + 1 < clear


def test_views_count_what_either_scan_saw_through():
    here, there = wall(3.0), wall(2.0, 1)
    views = Views.of((here, there), (np.zeros(3), np.zeros(3)))
    at_rest = Motion(np.eye(3), np.zeros(3))
    n_in_front, n_in_view = views.count(at_rest, 3 * views.grid.side, 1)
    assert n_in_front == n_in_view > 4_000  # the near wall hangs before the far one, which hides behind it
    assert views.count(at_rest, 3 * views.grid.side, 4)[1] == pytest.approx(n_in_view, rel=0.05)


def test_the_best_is_surer_the_farther_the_next_one_lies_behind(scans):
    source, target, truth = centred(scans)
    level = level_of(source, target, 500)
    turn = Rotation.from_euler("z", 90, degrees=True).as_matrix()
    wrong = opinion_on(Motion(turn @ truth.rotation, truth.translation), [level])
    right = opinion_on(truth, [level])
    alone, beside_itself = ranked([right])[0], ranked([right, right])[0]
    assert beside_itself.log_p_value == right.log_p_value > alone.log_p_value
    first, second = ranked([wrong, right])
    assert first.motion is right.motion
    assert first.lead == right.strength - wrong.strength
    assert second.lead == 0
    assert ranked([]) == []


def test_nobody_looks_from_within_a_cloud_or_from_afar_or_through_things():
    assert View.of(wall(3.0), np.array([0.0, 0.0, 300.0]), 0.05) is None
    assert View.of(np.vstack([wall(3.0), wall(2.0)]), np.zeros(3), 0.05) is None
    assert View.of(wall(0.01), np.zeros(3), 0.05) is None
