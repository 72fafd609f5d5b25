from __future__ import annotations

import numpy as np
import pytest

from inlier.calibration.any_pairs import compare_any, unit_of_evidence
from inlier.datasets import make_gaussian_pairs
from inlier.estimators._base import prepare_model_pairs
from inlier.rows.null_pairs import may_be_re_paired, pair_labels

N = 120


@pytest.fixture(scope="module")
def problem():
    data = make_gaussian_pairs(N, 4, 0.8, noise=0.3, rng=0)
    return prepare_model_pairs(data.X, data.Y, whiten=True), pair_labels(data.X, data.Y), data.inlier_mask


@pytest.fixture(scope="module")
def compared(problem):
    pairs, labels, trusted = problem
    return compare_any(pairs, labels, trusted, 3, np.random.RandomState(0))


def test_every_pair_is_in_one_fold_of_each_deal(problem):
    pairs, labels, trusted = problem
    folds = compare_any(pairs, labels, trusted, 3, np.random.RandomState(0), steady=True)
    assert len(folds) == 3 * 10
    for deal in range(10):
        rows = np.concatenate([fold.rows for fold in folds[3 * deal : 3 * deal + 3]])
        np.testing.assert_array_equal(np.sort(rows), np.arange(N))


def test_rivals_are_what_the_map_has_not_seen(compared, problem):
    _, _, trusted = problem
    for fold in compared:
        np.testing.assert_array_equal(fold.rivals, np.union1d(fold.rows, np.flatnonzero(~trusted)))


def test_scores_are_those_of_the_folds_map(compared, problem):
    pairs, _, _ = problem
    x, y = pairs.take(np.arange(N))
    fold, i, j = compared[0], np.arange(5), np.arange(3, 9)
    expected = [[float(fold.learned.scores(x[[a]], y[[b]])[0]) for b in j] for a in i]
    np.testing.assert_allclose(fold.scores(i, j), expected, rtol=1e-4)
    np.testing.assert_allclose(fold.pair_scores(i, i), np.diag(fold.scores(i, i)), rtol=1e-4)


def test_log_odds_are_those_of_a_plain_loop(compared, problem):
    _, labels, trusted = problem
    fold = compared[0]
    everyone = np.arange(N)
    evidence = fold._unit * fold.scores(everyone, everyone)
    typical = np.median(np.diag(evidence)[fold.rows[trusted[fold.rows]]])

    def beside(values, others, pair):
        rest = sum(np.exp(values[k]) for k in others if k != pair) + np.exp(typical)
        return np.log(rest / len(others))

    some = np.random.default_rng(0).choice(N, 12, replace=False)
    for i in some:
        for j in some:
            of_x = [k for k in fold.rivals if may_be_re_paired(labels, i, k)]
            of_y = [k for k in fold.rivals if may_be_re_paired(labels, k, j)]
            odds = evidence[i, j] - max(beside(evidence[i], of_x, j), beside(evidence[:, j], of_y, i))
            highest = np.log(min(len(of_x), len(of_y)))
            expected = max(odds if odds <= highest else highest + 1e-3 * (odds - highest), -50)
            assert fold.log_odds(np.array([i]), np.array([j]))[0, 0] == pytest.approx(expected, abs=2e-3)
            if i == j:
                assert fold.own_log_odds(np.array([i]))[0] == pytest.approx(expected, abs=2e-3)


def test_the_unit_undoes_a_change_of_units():
    rng = np.random.default_rng(0)
    differences = rng.normal(-8, 3, size=(50, 40))
    allowed = np.ones(differences.shape, dtype=bool)
    unit = unit_of_evidence(differences, allowed)
    assert unit_of_evidence(10 * differences, allowed) == pytest.approx(unit / 10)
    assert unit_of_evidence(differences, ~allowed) == 1.0
