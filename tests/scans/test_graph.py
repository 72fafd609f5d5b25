"""Poses from motions, their stated errors, and the motions that break loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from inlier import SimilarityTransformation
from inlier.clouds.errors import in_units
from inlier.scans.graph import bridges, checked_by_loops, loops_of, parts_of, poses_of
from inlier.scans.pairs import Edge

TURN, SHIFT = 0.003, 0.01  # standard errors


def graph(rng, pairs, n, false=(), far=0.0):
    """Scans anywhere, and motions with errors of the size that they state; some of them false."""
    centres, truth, edges = rng.normal(size=(n, 3)) + far, [], []
    for centre in centres:  # all of them near one place, wherever their own axes begin
        turn = Rotation.random(rng=rng).as_matrix()
        truth.append(SimilarityTransformation(turn, 3 * rng.normal(size=3) - turn @ centre, model="rigid"))
    for i, j in pairs:
        right, spread = truth[i].inverse @ truth[j], np.diag([TURN**2] * 3 + [SHIFT**2] * 3)
        miss = rng.multivariate_normal(np.zeros(6), spread)
        turn = Rotation.from_rotvec(miss[:3]).as_matrix() @ right.rotation
        image = right(centres[j][None])[0] + miss[3:]
        if (i, j) in false:
            turn, image = Rotation.random(rng=rng).as_matrix(), image + rng.normal(size=3)
        found = SimilarityTransformation(turn, image - turn @ centres[j], model="rigid")
        edges.append(Edge(i, j, found, in_units(spread, 60.0, 0.0, found, centres[j]), 1e-5, (0.5, 0.5)))
    return truth, centres, edges


RING = [(k, (k + 1) % 8) for k in range(8)] + [(k, (k + 2) % 8) for k in range(8)]


def misses(poses, truth, centres):
    """Turns and shifts from the poses to the truth, by their stated covariance."""
    found = []
    for k, pose in list(poses.items())[1:]:
        right = truth[0].inverse @ truth[k]
        turn = Rotation.from_matrix(right.rotation @ pose.rotation.T).as_rotvec()
        miss = np.concatenate([turn, right(centres[k][None])[0] - pose.place])
        found.append(miss @ np.linalg.solve(pose.covariance, miss))
    return found


@pytest.mark.parametrize("far", [0.0, 1e5])
def test_errors_of_poses_and_of_loops_are_as_stated(far):
    rng, of_poses, of_loops = np.random.default_rng(0), [], []
    for _ in range(25):
        truth, centres, edges = graph(rng, RING, 8, far=far)
        of_poses += misses(poses_of(range(8), edges, centres), truth, centres)
        of_loops += [loop.chi2 for loop in loops_of(edges, centres)]
    assert 0.8 < np.mean(of_poses) / 6 < 1.25
    assert 0.8 < np.mean(of_loops) / 6 < 1.25


def test_a_false_motion_among_true_ones_is_taken_out_and_no_other():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        false = RING[rng.integers(len(RING))]
        truth, centres, edges = graph(rng, RING, 8, {false})
        checked = checked_by_loops(edges, centres)
        assert [edge.ends for edge in checked.taken_out] == [false]
        assert "breaks" in checked.taken_out[0].why_not
        poses = poses_of(range(8), checked.kept, centres, checked.inflation)
        assert (
            max(np.linalg.norm((truth[0].inverse @ truth[k])(centres[k][None])[0] - poses[k].place) for k in poses)
            < 0.1
        )


def test_of_one_loop_the_motion_with_least_evidence_goes_and_the_others_are_named():
    rng = np.random.default_rng(3)
    _, centres, edges = graph(rng, [(0, 1), (1, 2), (2, 0)], 3, {(1, 2)})
    weak = Edge(1, 2, edges[1].motion, edges[1].errors, 3e-3, (0.5, 0.5))
    checked = checked_by_loops([edges[0], weak, edges[2]], centres)
    assert [edge.ends for edge in checked.taken_out] == [(1, 2)]
    assert "Any of its 3 motions could be the wrong one" in checked.taken_out[0].why_not


def test_errors_that_loops_show_to_be_stated_too_small_are_taken_larger():
    rng = np.random.default_rng(4)
    _, centres, edges = graph(rng, RING, 8)
    small = [
        Edge(
            *edge.ends,
            edge.motion,
            in_units(edge.errors.covariance_at_centre / 4, 60.0, 0.0, edge.motion, edge.errors.centre),
            1e-5,
            (0.5, 0.5),
        )
        for edge in edges
    ]
    checked = checked_by_loops(small, centres)
    assert not checked.taken_out
    assert 2 < checked.inflation < 8


def test_parts_and_what_hangs_on_one_motion():
    rng = np.random.default_rng(5)
    _, _, edges = graph(rng, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (5, 6)], 8)
    assert parts_of(edges, 8) == [[0, 1, 2, 3, 4], [5, 6], [7]]
    hanging = {edge.ends: side for edge, side in bridges(edges, 8)}
    assert hanging[2, 3] == [3, 4]
    assert hanging[3, 4] == [4]
    assert (0, 1) not in hanging
