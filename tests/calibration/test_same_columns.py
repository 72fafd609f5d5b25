from __future__ import annotations

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration.models.same_columns import _shrunk, _without_own_pair

pytestmark = pytest.mark.filterwarnings("ignore:.*far fewer pairs than numbers")


def genes_and_proteins(n, seed, n_columns=300, n_wrong=7, related=True):
    """Columns that correlate .2 to .45 with their namesake, and in groups with each other."""
    rng = np.random.default_rng(seed)
    rho = rng.uniform(0.2, 0.45, n_columns) if related else np.zeros(n_columns)

    def draw():
        groups = rng.normal(size=(n, 10)) @ rng.normal(size=(10, n_columns)) / 10**0.5
        return 0.8**0.5 * rng.normal(size=(n, n_columns)) + 0.2**0.5 * groups

    shared = draw()
    X, Y = (np.sqrt(rho) * shared + np.sqrt(1 - rho) * draw() for _ in range(2))
    bad = rng.permutation(n)[:n_wrong]
    Y[bad] = Y[np.roll(bad, 1)]
    right = np.ones(n, dtype=bool)
    right[bad] = False
    return X * rng.uniform(0.1, 10, n_columns), Y + 100, right


@pytest.mark.parametrize("n", [60, 120])
def test_wrong_rows_are_the_lowest_where_columns_correspond(n):
    X, Y, right = genes_and_proteins(n, seed=n)
    matcher = CalibratedMatcher(alpha=0.1, random_state=0, same_columns=True).fit(X, Y)
    lowest = np.argsort(matcher.scores_)[:7]
    assert (~right[lowest]).sum() >= 6
    assert matcher.inlier_mask_[right].sum() >= n - 10
    alone = CalibratedMatcher(alpha=0.1, random_state=0).fit(X, Y)
    assert (~right[np.argsort(alone.scores_)[:7]]).sum() < (~right[lowest]).sum()  # the map alone sees less


@pytest.mark.parametrize("n", [60, 120])
def test_a_repair_looks_at_columns_that_correspond(n):
    X, Y, right = genes_and_proteins(n, seed=200)
    matcher = CalibratedMatcher(alpha=0.05, random_state=0, same_columns=True).fit(X, Y)
    found = matcher.repair()
    assert found.named[~right].sum() >= 5  # of seven in one ring, each with the y of the next
    assert not found.suspects[right].any()


@pytest.mark.seeds
def test_wrong_rows_are_suspects(seed, promise):
    """In most draws all seven, in some five or six: the rates are over many draws."""
    X, Y, right = genes_and_proteins(60, 100 + seed)
    suspects = CalibratedMatcher(random_state=0, same_columns=True).fit(X, Y).q_values_ > 0.5
    promise("innocent suspects", int((suspects & right).sum()), int(right.sum()), 1 / 53)
    promise("wrong rows that are no suspects", int((~suspects & ~right).sum()), 7, 1 / 7)


def test_columns_are_found_by_their_names():
    pandas = pytest.importorskip("pandas")
    X, Y, right = genes_and_proteins(60, seed=1)
    names = [f"gene{k}" for k in range(300)]
    order = np.random.default_rng(0).permutation(300)
    by_place = CalibratedMatcher(random_state=0, same_columns=True).fit(X, Y)
    frames = pandas.DataFrame(X, columns=names), pandas.DataFrame(Y[:, order], columns=[names[k] for k in order])
    by_name = CalibratedMatcher(random_state=0).fit(*frames)
    assert (np.argsort(by_name.scores_)[:6] == np.argsort(by_place.scores_)[:6]).mean() > 0.5
    assert (~right[np.argsort(by_name.scores_)[:7]]).sum() >= 6
    numbers = [list(range(300)), np.argsort(order).tolist()]
    by_number = CalibratedMatcher(random_state=0, same_columns=numbers).fit(X, Y[:, order])
    np.testing.assert_allclose(by_number.scores_, by_name.scores_)
    never = CalibratedMatcher(random_state=0, same_columns=False).fit(*frames)
    np.testing.assert_allclose(never.scores_, CalibratedMatcher(random_state=0).fit(X, Y[:, order]).scores_)


def test_unrelated_columns_of_the_same_name_are_not_believed():
    believed = 0
    for seed in range(6):
        X, Y, _ = genes_and_proteins(60, seed, related=False)
        matcher = CalibratedMatcher(alpha=0.01, random_state=0, same_columns=True).fit(X, Y)
        believed += matcher.inlier_mask_.any()
    assert believed <= 1  # one draw in a hundred may


def test_what_cannot_correspond_is_refused():
    X, Y, _ = genes_and_proteins(60, seed=0)
    with pytest.raises(ValueError, match=r"X has 300 columns and y has 299"):
        CalibratedMatcher(same_columns=True).fit(X, Y[:, :-1])
    with pytest.raises(ValueError, match="same_columns must be True or False"):
        CalibratedMatcher(same_columns="yes").fit(X, Y)
    for columns, said in (([[0], [300]], "column 300 of y"), ([[0, 1], [0]], "2 columns of X and 1"), ([[0]], "two")):
        with pytest.raises(ValueError, match=said):
            CalibratedMatcher(same_columns=columns).fit(X, Y)
    pandas = pytest.importorskip("pandas")
    frames = pandas.DataFrame(X[:, :2], columns=["a", "b"]), pandas.DataFrame(Y[:, :2], columns=["c", "d"])
    with pytest.raises(ValueError, match="no column of X has the name"):
        CalibratedMatcher(same_columns=True).fit(*frames)


def test_pairings_are_scored_alike_however_they_are_asked_for():
    X, Y, _ = genes_and_proteins(60, seed=0, n_columns=40)
    matcher = CalibratedMatcher(random_state=0, same_columns=True).fit(X, Y)
    later, judge = matcher._learned.preparation, matcher._learned.judges.folds[0].judge
    x, y = later.x(X), later.y(Y)
    table = judge.scores_of_all_pairings(x, y)
    i, j = np.random.default_rng(0).integers(60, size=(2, 100))
    np.testing.assert_allclose(judge.pairings(x, y)(i, j), table[i, j])
    np.testing.assert_allclose(judge.scores(x, y), np.diag(table))


def test_correlations_are_pulled_to_their_mean_as_far_as_noise_explains():
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(_shrunk(np.full(5, 0.3), 50), 0.3)
    noise = 0.3 + rng.normal(size=2000) / 50**0.5
    assert _shrunk(noise, 50).std() < 0.4 * noise.std()
    clear = rng.uniform(-1, 1, 2000)
    np.testing.assert_allclose(_shrunk(clear, 5000), clear, atol=0.01)


def test_a_training_pair_is_scored_by_the_others():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 30, 8))
    scores = _without_own_pair(a, b, a * b)
    for i in range(3):
        others = np.arange(30) != i
        weights = np.maximum(_shrunk((a * b)[others].mean(axis=0), 29), 0)
        expected = np.sum(weights * a[i] * b[i]) / np.sqrt(np.sum(weights * a[i] ** 2) * np.sum(weights * b[i] ** 2))
        assert scores[i] == pytest.approx(expected if weights.any() else 0.0)
