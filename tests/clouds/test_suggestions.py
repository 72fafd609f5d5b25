"""The scale between two clouds, by the votes of pairs of matches."""

from __future__ import annotations

import numpy as np
import pytest

from inlier.clouds import suggestions
from inlier.clouds.octaves import Finding, _united
from inlier.clouds.suggestions import compared, level_of, likely_scales, size_of, voted_scale, witnesses
from inlier.datasets import make_scans


@pytest.fixture(scope="module")
def clouds():
    scans = make_scans(rng=0)
    return scans.source - scans.source.mean(axis=0), scans.target - scans.target.mean(axis=0)


def test_a_size_is_that_of_the_surface(clouds):
    dense_on_one_side = np.vstack([clouds[0], np.repeat(clouds[0][:100], 50, axis=0)])
    assert size_of(dense_on_one_side) == pytest.approx(size_of(clouds[0]), rel=0.05)
    assert size_of(1e3 * clouds[0]) == pytest.approx(1e3 * size_of(clouds[0]))
    astray = np.vstack([clouds[0], [[1e5, 0, 0], [0, -2e5, 0]]])
    assert size_of(astray) == pytest.approx(size_of(clouds[0]), rel=0.05)


@pytest.mark.parametrize("factor", [0.91, 1.0, 1.1])
def test_matches_vote_for_the_scale(clouds, factor):
    level = level_of(factor * clouds[0], clouds[1], 2_000)
    found, votes = voted_scale(level, np.random.default_rng(0))
    assert found * factor == pytest.approx(1, abs=0.04)
    assert votes > 0


def test_votes_are_counted_as_one_would_by_hand(clouds):
    level = level_of(clouds[0], clouds[1], 300)
    rows = witnesses(level, np.random.default_rng(0))
    x, y = (end[rows] / level.side for end in level.ends)
    is_alike = np.vstack([alike for *_, alike in compared(level, rows)])
    votes = np.zeros((rows.size, suggestions._VOTE_BINS))
    for i in range(rows.size):
        for j in range(rows.size):
            a, b = np.linalg.norm(x[i] - x[j]), np.linalg.norm(y[i] - y[j])
            if is_alike[i, j] and min(a, b) > suggestions._TELLING:
                k = int(np.floor(np.log(b / a) / suggestions._VOTE_WIDTH + suggestions._VOTE_BINS / 2))
                if 0 <= k < suggestions._VOTE_BINS:
                    votes[i, k] += 1
    smooth = suggestions.gaussian_filter1d(votes, 1.0, axis=1)
    together = (smooth**2).sum(axis=0) / rows.size**3
    found, count = voted_scale(level, np.random.default_rng(0))
    assert found == pytest.approx(np.exp((together.argmax() - suggestions._VOTE_BINS // 2) * suggestions._VOTE_WIDTH))
    assert count == pytest.approx(together.max(), rel=1e-3)


def test_the_likeliest_scale_is_right_and_all_are_different(clouds):
    found = likely_scales(1.3 * clouds[0], clouds[1], np.random.default_rng(0))
    assert found[0] * 1.3 == pytest.approx(1, abs=0.04)
    assert len(found) <= 3
    assert all(abs(np.log(a / b)) > 0.05 for k, a in enumerate(found) for b in found[:k])


def test_without_any_motion_there_is_nothing_to_unite():
    nothing = Finding(2.0, None, [], [])
    assert _united([nothing, Finding(3.0, None, [], [])]) is nothing
