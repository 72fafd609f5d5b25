"""What else could have made pairs agree: an order of rows, another motion, a turn or a slide, nearness."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from inlier import NoConsensusError, Registration
from inlier.consensus.order import is_in_order, kept_in_order
from inlier.consensus.pairs import ColumnPairs


def fitted(X, Y, seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Registration(random_state=seed, raise_on_failure=False).fit(X, Y)


def turn(seed):
    return Rotation.random(rng=np.random.default_rng(seed)).as_matrix()


# ---- an order of rows


def sorted_boxes(rng):
    return tuple(box[np.argsort(box[:, 0])] for box in rng.random((2, 1000, 3)) * [4, 3, 2])


def drives(rng):
    headings = np.cumsum(rng.normal(scale=0.05, size=(2, 500)), axis=1)
    steps = np.stack([np.cos(headings), np.sin(headings)], axis=-1)
    return tuple(np.c_[np.cumsum(one, axis=0), 0.01 * rng.normal(size=500)] for one in steps)


@pytest.mark.parametrize("made", [sorted_boxes, drives])
def test_what_order_alone_gives_is_not_sure(made):
    assert not any(fitted(*made(np.random.default_rng(seed)), seed).success_ for seed in range(6))


def test_the_refusal_speaks_of_the_order_and_any_other_order_of_rows_is_judged_by_the_pairs():
    rng = np.random.default_rng(0)
    said = []
    for seed in range(4):
        with pytest.raises(NoConsensusError) as refusal:
            Registration(random_state=seed).fit(*sorted_boxes(rng))
        said.append("order of the rows" in str(refusal.value))
    assert any(said)


def test_a_motion_of_rows_in_order_is_found():
    X, _ = drives(np.random.default_rng(1))
    rng = np.random.default_rng(2)
    Y = X @ turn(0).T + 0.01 * rng.normal(size=X.shape)
    wrong = rng.random(len(X)) < 0.6
    Y[wrong] = Y[rng.permutation(len(X))[wrong]]
    found = fitted(X, Y)
    assert found.success_
    assert Rotation.from_matrix(found.transformation_.rotation @ turn(0).T).magnitude() < 0.01


def columns(X, Y):
    return ColumnPairs(*(np.ascontiguousarray(side.T) for side in (X, Y)), np.ones(len(X)))


def test_rows_are_re_paired_by_whole_stretches():
    rng = np.random.default_rng(0)
    X, Y = np.sort(rng.random((2, 500)), axis=1)[:, :, None] * [1.0, 0.0, 0.0]
    assert is_in_order(columns(X, Y))
    assert not is_in_order(columns(X, rng.permutation(Y)))
    assert not is_in_order(columns(X[:40], Y[:40]))
    row_of = {x: row for row, x in enumerate(X[:, 0])}
    kept = list(kept_in_order(columns(X, Y), 0.01, 100, rng))
    shifts = []
    for pairs in kept:
        own = np.array([row_of[x] for x in pairs.x[0]])
        partner = np.searchsorted(Y[:, 0], pairs.y[0])
        assert pairs.n_pairs == 100
        assert (np.abs(Y[own, 0] - Y[partner, 0]) > 0.01).all()
        shifts.append((set(partner - own), set(partner + own)))
    assert [min(len(steps), len(sums)) for steps, sums in shifts] == [1] * len(kept)
    assert sum(len(sums) == 1 for _, sums in shifts) == 1  # one goes backwards
    assert len({step for steps, _ in shifts if len(steps) == 1 for step in steps}) == len(kept) - 1


# ---- another motion, as good


def two_motions(share, seed=0):
    rng = np.random.default_rng(seed)
    X, Y = rng.uniform(-1, 1, (600, 3)), rng.uniform(-2, 2, (600, 3))
    ends = [0, round(480 * share), 480]
    turns = []
    for k in range(2):
        part = slice(ends[k], ends[k + 1])
        turns.append(turn(2 * seed + k))
        Y[part] = X[part] @ turns[-1].T + [k, 0, 0] + 0.01 * rng.normal(size=(ends[k + 1] - ends[k], 3))
    return X, Y, turns


def test_two_motions_that_are_as_good_are_a_tie():
    for seed in range(4):
        X, Y, turns = two_motions(0.5, seed)
        answer = fitted(X, Y, seed)
        assert not answer.success_
        both = [answer.best_guess_.rotation, answer.runner_up_.transformation.rotation]
        for true in turns:
            assert min(Rotation.from_matrix(one @ true.T).magnitude() for one in both) < 0.02
        with pytest.raises(NoConsensusError, match="are supported alike"):
            Registration(random_state=seed).fit(X, Y)


def test_the_larger_of_two_is_found_and_the_other_named():
    X, Y, turns = two_motions(0.65)
    with pytest.warns(UserWarning, match="Another rigid transformation"):
        found = Registration(random_state=0).fit(X, Y)
    assert Rotation.from_matrix(found.transformation_.rotation @ turns[0].T).magnitude() < 0.02
    assert Rotation.from_matrix(found.runner_up_.transformation.rotation @ turns[1].T).magnitude() < 0.02


# ---- freedoms


def vase(rng, n=400):
    height, angles = rng.uniform(-1.5, 1.5, n), rng.uniform(0, 2 * np.pi, (2, n))
    radius = 1 + 0.3 * np.sin(2 * height)
    X, Y = (np.c_[radius * np.cos(a), radius * np.sin(a), height] for a in angles)
    return X + 0.01 * rng.normal(size=X.shape), Y + 0.01 * rng.normal(size=Y.shape)


def corridor(rng, slide, n=400):
    wall, across, along = rng.integers(0, 4, n), rng.uniform(-1, 1, n), rng.uniform(0, 20, n)
    P = np.where((wall < 2)[:, None], np.c_[2 * (wall > 0) - 1, across], np.c_[across, 5 - 2 * wall])
    X, Y = np.c_[along, P], np.c_[along + rng.uniform(-slide, slide, n), P]
    return X + 0.02 * rng.normal(size=X.shape), Y + 0.02 * rng.normal(size=Y.shape)


def test_a_turn_that_nothing_fixes_is_not_sure():
    for seed in range(5):
        answer = fitted(*vase(np.random.default_rng(seed)), seed)
        assert not answer.success_


def test_the_freedom_is_named():
    kinds = []
    for seed in range(5):
        free = fitted(*vase(np.random.default_rng(seed)), seed).free_
        if free is not None:
            kinds.append(free.kind)
            assert abs(free.direction[2]) > 0.99
            assert free.is_open
    assert "turn about an axis" in kinds


def test_a_slide_along_a_corridor_is_not_sure_or_said_to_be_free():
    for seed in range(5):
        answer = fitted(*corridor(np.random.default_rng(seed), 5.0), seed)
        off = abs(answer.transformation_.translation[0]) if answer.success_ else 0.0
        assert off < 0.2 or (answer.free_ is not None and answer.free_.reach > off)


def test_a_motion_along_a_corridor_that_most_matches_share_is_sure():
    rng = np.random.default_rng(0)
    X, Y = corridor(rng, 5.0)
    Y[:200] = X[:200] + 0.02 * rng.normal(size=(200, 3))
    found = fitted(X, Y)
    assert found.success_
    assert np.abs(found.transformation_.translation).max() < 0.05


# ---- chosen by nearness


def test_mutual_nearest_points_are_refused_in_words():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 3)), rng.normal(size=(500, 3))
    moved = X @ turn(0).T
    there = cKDTree(Y).query(moved)[1]
    rows = np.flatnonzero(cKDTree(moved).query(Y)[1][there] == np.arange(400))
    with pytest.raises(NoConsensusError, match="because they are near each other"):
        Registration(random_state=0).fit(X[rows], Y[there[rows]])


def sphere(rng, n):
    points = rng.normal(size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def test_mutual_nearest_points_of_spheres_are_refused_though_the_fit_brings_them_nearer_still():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = sphere(rng, 400), sphere(rng, 500)
        moved = X + rng.choice([-0.1, 0.1], 3)
        there = cKDTree(Y).query(moved)[1]
        rows = np.flatnonzero(cKDTree(moved).query(Y)[1][there] == np.arange(400))
        with pytest.raises(NoConsensusError, match="because they are near each other"):
            Registration(random_state=seed).fit(X[rows], Y[there[rows]])


@pytest.mark.parametrize("noise", [0.003, 0.03, 0.1])
def test_right_pairs_on_a_sphere_are_found_without_a_word(noise):
    """With a noise of a third of the spacing they look like mutual nearest points, but for who is nearest."""
    rng = np.random.default_rng(0)
    X = sphere(rng, 400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Registration(random_state=0).fit(X, X @ turn(0).T + noise * rng.normal(size=X.shape)).success_


# ---- another scale


@pytest.mark.parametrize(("scale", "is_told"), [(1.0, False), (1.02, True), (0.97, True)])
def test_another_scale_is_told(scale, is_told):
    rng = np.random.default_rng(0)
    X = rng.normal(loc=[50, 0, 0], size=(600, 3))
    Y = scale * X @ turn(0).T + 0.01 * rng.normal(size=X.shape)
    Y[:200] = rng.permutation(Y[:200])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = Registration(random_state=0).fit(X, Y)
    assert found.success_
    told = [str(warning.message) for warning in said if "model='similarity'" in str(warning.message)]
    assert [float(words.split()[4]) for words in told] == ([pytest.approx(scale, abs=0.003)] if is_told else [])
