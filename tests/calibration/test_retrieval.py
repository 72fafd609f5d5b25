from __future__ import annotations

import warnings

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.calibration import retrieval
from inlier.calibration.models.neighbours import Pools, learn_dictionary
from inlier.calibration.new_partners import Proposer, _as_crowded, _fold_of, _share_here
from inlier.calibration.retrieval import (
    NOWHERE,
    Alignment,
    Side,
    best_partners,
    crowding,
    mutual_neighbours,
    unit_rows,
)
from inlier.exceptions import DependenceWarning
from inlier.rows.null_pairs import row_hashes


@pytest.fixture(params=[2**24, 60])
def _blocks_of(request, monkeypatch):
    """All rows at once, and a few at a time."""
    monkeypatch.setattr(retrieval, "_BLOCK", request.param)


def rows_of(n, d, seed):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, d))).astype(np.float32)


def csls(x, y, k=10):
    """The definition, all rows with all rows."""
    cosines = x.astype(np.float64) @ y.T.astype(np.float64)
    around_x = np.array([np.sort(row)[-min(k, len(y)) :].mean() for row in cosines])
    around_y = np.array([np.sort(row)[-min(k, len(x)) :].mean() for row in cosines.T])
    return 2 * cosines - around_x[:, None] - around_y


@pytest.mark.usefixtures("_blocks_of")
@pytest.mark.parametrize(("n", "m"), [(30, 40), (5, 40), (40, 5)])
def test_best_partners_are_those_of_the_definition(n, m):
    x, y = rows_of(n, 6, 0), rows_of(m, 6, 1)
    scores = csls(x, y)
    rows, found, _ = best_partners(x, y, crowding(y, x), k=3)
    order = np.argsort(-scores, axis=1)[:, :3]
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_allclose(found, np.take_along_axis(scores, order, axis=1), atol=1e-5)


@pytest.mark.usefixtures("_blocks_of")
def test_mutual_neighbours_are_those_of_the_definition():
    x, y = rows_of(50, 5, 2), rows_of(45, 5, 3)
    scores = csls(x, y)
    best, back = scores.argmax(axis=1), scores.argmax(axis=0)
    expected = [(i, j) for i, j in enumerate(best) if back[j] == i]
    assert list(zip(*map(np.ndarray.tolist, mutual_neighbours(x, y)), strict=True)) == expected


@pytest.mark.usefixtures("_blocks_of")
def test_what_is_hidden_is_no_candidate_and_crowds_nobody():
    x = rows_of(20, 5, 4)
    rows, *_ = best_partners(x, x, crowding(x, x))
    np.testing.assert_array_equal(rows[:, 0], np.arange(20))

    def hide(cosines, some):
        own = np.arange(20)[some]
        cosines[np.arange(own.size), own] = NOWHERE

    rows, scores, around = best_partners(x, x, crowding(x, x), 1, hide)
    for i in range(20):
        others = np.delete(np.arange(20), i)
        reference = csls(x[[i]], x[others])[0] + (x[others] @ x[i]) - crowding(x[others], x)  # crowded by one row alone
        assert rows[i, 0] == others[reference.argmax()]
        assert scores[i, 0] == pytest.approx(reference.max(), abs=1e-5)
        assert around[i] == pytest.approx(np.sort(x[others] @ x[i])[-10:].mean(), abs=1e-5)


@pytest.mark.usefixtures("_blocks_of")
@pytest.mark.parametrize("n_candidates", [40, 3, 1])
def test_scores_and_chances_of_names_are_those_of_the_definition(n_candidates):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(90, 6))
    Y = X + 0.4 * rng.normal(size=(90, 6))
    entries = np.arange(60)
    proposer = Proposer.of(X[:60], Y[:60], (entries, entries, np.ones(60)), entries, np.random.RandomState(0))
    candidates = Y[90 - n_candidates :][np.r_[0:n_candidates, 0]]  # the first of them twice
    rows, scores, p, _, alike = proposer.find(X[60:], candidates, 2)
    sure = [_looked_up(proposer, i, x, candidates[:-1]) for i, x in enumerate(X[:60])]
    (if_here, is_own, around_sure), if_gone = (
        zip(*(one[:3] for one in sure), strict=True),
        np.array([s[3] for s in sure]),
    )
    found = [_looked_up(proposer, None, x, candidates[:-1]) for x in X[60:]]
    expected, around = np.array([one[3] for one in found]), np.array([one[2] for one in found])
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-5)
    weights = _as_crowded(around[alike], np.array(around_sure))
    m, wrong = 1 / np.sum(weights**2), np.where(is_own, -np.inf, if_here)
    p_here, p_gone = (
        np.array([(1 + m * weights[null >= t - 1e-6].sum()) / (m + 1) for t in expected]) for null in (wrong, if_gone)
    )
    with_none = np.where(alike, scores[:, 0], -np.inf)
    share = _share_here(with_none, np.array(if_here)[:, None], if_gone[:, None], weights)
    np.testing.assert_allclose(p[alike, 0], (share * p_here + (1 - share) * p_gone)[alike], atol=0.03)
    assert (p[~alike] == 1).all()
    assert rows.shape == (30, min(2, n_candidates))
    assert (rows < n_candidates).all()  # of two equal rows, the first


def _looked_up(proposer, own, x, candidates):
    """Score of the best name with the own partner there, is it the own one, how crowded; and the score without it."""
    fold = int(_fold_of(x[None])[0])
    alignment = proposer.alignments[fold]
    around = alignment.x(proposer.around[proposer.fold_around != fold])
    hashes = row_hashes(candidates).tolist()

    def best(rows):
        y = alignment.y(proposer.sides[1](rows))
        every = alignment.y(
            proposer.sides[1](np.concatenate([candidates, proposer.sure_y[_missing(hashes, proposer)]]))
        )
        cosines = (alignment.x(proposer.sides[0](x[None])) @ y.T)[0].astype(float)
        # rows that are there for others alone count as being nowhere
        n_hidden = len(every) - len(rows)
        around_x = np.sort(np.r_[cosines, [NOWHERE] * n_hidden])[-min(10, len(every)) :].mean()
        nearness = 2 * cosines - around_x - crowding(y, around)
        rival = csls(around, every)
        rival = rival[:, [np.flatnonzero((every == row).all(axis=1))[0] for row in y]].max(axis=0)
        first = int(nearness.argmax())
        others = np.delete(nearness, first)
        return first, nearness[first] - max(others.max(initial=-np.inf), rival[first]), around_x

    if own is None:
        _, score, around_x = best(candidates)
        return None, None, around_x, score
    mine = row_hashes(proposer.sure_y[[own]]).item()
    others = np.array([row for row, code in zip(candidates, hashes, strict=True) if code != mine])
    first, with_own, around_x = best(np.concatenate([proposer.sure_y[[own]], others]))
    return with_own, first == 0, around_x, best(others)[1] if len(others) else np.inf


def _missing(hashes, proposer):
    return [k for k, code in enumerate(row_hashes(proposer.sure_y).tolist()) if code not in hashes]


def test_a_rotation_is_undone_whatever_the_units():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 8))
    Y = X @ np.linalg.qr(rng.normal(size=(8, 8)))[0] * 30 + 7
    sides = Side.of(X * 10.0 ** np.arange(-4, 4)), Side.of(Y)
    a, b = sides[0](X * 10.0 ** np.arange(-4, 4)), sides[1](Y)
    alignment = Alignment.of(sides, a[:100], b[:100], np.ones(100))
    x, y = alignment.x(a), alignment.y(b)
    rows, *_ = best_partners(x[100:], y, crowding(y, x))
    assert (rows[:, 0] == np.arange(100, 200)).mean() > 0.95


def test_rows_of_zeros_stay():
    assert (unit_rows(np.zeros((2, 3))) == 0).all()


def vocabularies(n=600, d=20, n_entries=250, wrong=0.7, noise=0.5, seed=0):
    """Rows of two spaces that differ by a rotation; some are entries, of which many are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(1, 0.2, d)
    Y = X @ np.linalg.qr(rng.normal(size=(d, d)))[0] + noise * X.std() * rng.normal(size=(n, d))
    entries, rest = np.arange(n_entries), np.arange(n_entries, n)
    partner = entries.copy()
    bad = rng.permutation(n_entries)[: round(wrong * n_entries)]
    partner[bad] = partner[np.roll(bad, 1)]
    return X, Y, partner, rest


def test_a_dictionary_grows_from_entries_that_are_mostly_wrong():
    X, Y, partner, rest = vocabularies()
    pools = Pools.of(X[: len(partner)], Y[partner], X[rest], Y[rest])
    i, j = learn_dictionary(pools)
    words_y = np.concatenate([partner, rest])
    assert i.size > 300
    assert (words_y[j] == i).mean() > 0.8
    assert np.unique(i).size == np.unique(j).size == i.size


@pytest.mark.seeds
def test_unpaired_rows_help_and_claims_hold(seed, promise):
    X, Y, partner, rest = vocabularies(seed=seed)
    entries = np.arange(len(partner))
    right = partner == entries
    alone = CalibratedMatcher(alpha=0.1, random_state=0).fit(X[entries], Y[partner])
    helped = CalibratedMatcher(alpha=0.1, random_state=0)
    helped.fit(X[entries], Y[partner], unpaired=(X[rest], Y[rest]))
    accepted = helped.inlier_mask_
    promise("wrong among the accepted", int((accepted & ~right).sum()), max(int(accepted.sum()), 1), 0.1, spread=2)
    assert (accepted & right).sum() >= (alone.inlier_mask_ & right).sum() - 5
    assert (accepted & right).sum() > 0.6 * right.sum()
    found = helped.find_partners(X[rest])
    is_right = np.concatenate([partner, rest])[found.rows[:, 0]] == rest
    named = found.q_values[:, 0] <= 0.1
    promise("wrong names", int((named & ~is_right).sum()), max(int(named.sum()), 1), 0.1, spread=2)
    assert is_right.mean() > 0.6
    assert helped.map_.error < 0.6
    later, judge = helped._learned.preparation, helped._learned.judges.folds[0].judge
    x, y = later.x(X[:40]), later.y(Y[:40])
    table = judge.scores_of_all_pairings(x, y)
    np.testing.assert_allclose(judge.pairings(x, y)(np.arange(30), np.arange(10, 40)), np.diag(table, 10), atol=1e-5)
    np.testing.assert_allclose(judge.scores(x, y), np.diag(table), atol=1e-5)


@pytest.mark.seeds
@pytest.mark.filterwarnings("ignore:.*rows looked up are unlike")
@pytest.mark.parametrize("gone", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_looked_up", [300, 10])
def test_names_keep_their_rate_whether_partners_are_there_or_not(gone, n_looked_up, seed, promise):
    X, Y, partner, rest = vocabularies(n=900, n_entries=400, wrong=0.3, seed=100 + seed)
    matcher = CalibratedMatcher(alpha=0.1, random_state=0).fit(X[:400], Y[partner])
    there = np.random.default_rng(seed).random(rest.size) >= gone
    candidates = np.concatenate([partner, rest[there]])
    found = matcher.find_partners(X[rest[:n_looked_up]], among=Y[candidates])
    named = found.q_values[:, 0] <= 0.1
    is_wrong = named & (candidates[found.rows[:, 0]] != rest[:n_looked_up])
    promise("share of wrong names", int(is_wrong.sum()) / max(int(named.sum()), 1), 1, 0.1, spread=1)
    if gone == 0 and n_looked_up == 300:
        assert named.mean() > 0.2


def test_sure_pairs_count_as_often_as_rows_are_as_crowded():
    sure = np.random.default_rng(0).permutation(np.arange(200.0))
    weights = _as_crowded(np.arange(0.5, 200), sure)
    assert weights.sum() == pytest.approx(1)
    assert 1 / np.sum(weights**2) > 180
    assert set(sure[_as_crowded(np.full(7, 150.2), sure) > 0]) == set(range(141, 161))
    assert set(sure[_as_crowded(np.full(7, 1e9), sure) > 0]) == set(range(180, 200))
    np.testing.assert_array_equal(_as_crowded(np.empty(0), sure), np.full(200, 1 / 200))
    np.testing.assert_array_equal(_as_crowded(np.zeros(3), sure[:5]), np.full(5, 1 / 5))


@pytest.mark.seeds
@pytest.mark.filterwarnings("ignore:.*rows looked up are unlike")
@pytest.mark.parametrize("case", ["one cluster of many", "near copies"])
def test_names_keep_their_rate_where_rows_are_not_like_all_pairs(case, seed, promise):
    rng = np.random.default_rng(500 + seed)
    centres = rng.normal(size=(10, 15))
    cluster = np.concatenate([rng.integers(0, 10, 200), np.full(400, 9)])
    X = centres[cluster] + 0.5 * rng.normal(size=(600, 15))
    Y = X[:, ::-1] + 0.2 * rng.normal(size=X.shape)
    candidates, n_there = Y[200:600], 200
    if case == "one cluster of many":
        candidates, n_there = Y[300:600], 100  # the partners of rows 200 to 299 are not there
        order = np.r_[300:400, 200:300]
    else:
        X[:], order = rng.normal(size=X.shape), np.arange(200, 400)
        Y = X[:, ::-1] + 0.5 * rng.normal(size=X.shape)
        candidates = np.concatenate([Y[200:], Y[200:400] + 0.1 * rng.normal(size=(200, 15))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DependenceWarning)  # of clusters
        matcher = CalibratedMatcher(random_state=0).fit(X[:200], Y[:200])
    found = matcher.find_partners(X[order], among=candidates)
    named = found.q_values[:, 0] <= 0.1
    is_right = (found.rows[:, 0] == np.arange(200)) & (np.arange(200) < n_there)
    promise("share of wrong names", int((named & ~is_right).sum()) / max(int(named.sum()), 1), 1, 0.1, spread=1)
    assert (named & ~is_right).sum() < 100  # 100 or more were named before these cases were thought of


@pytest.mark.parametrize("n_looked_up", [200, 1])
@pytest.mark.parametrize("has_partners", [True, False])
def test_nothing_is_said_of_rows_of_a_cluster_that_no_pair_is_from(has_partners, n_looked_up):
    rng = np.random.default_rng(4)
    centres = rng.normal(size=(10, 15))
    cluster = np.concatenate([rng.integers(0, 9, 200), np.full(400, 9)])
    X = centres[cluster] + 0.5 * rng.normal(size=(600, 15))
    Y = X[:, ::-1] + 0.2 * rng.normal(size=X.shape)
    matcher = CalibratedMatcher(random_state=0).fit(X[:200], Y[:200])
    candidates = Y[200:400] if has_partners else Y[400:]
    with pytest.warns(
        DependenceWarning, match=f"{n_looked_up} of the {n_looked_up} rows looked up are unlike the pairs"
    ):
        found = matcher.find_partners(X[200 : 200 + n_looked_up], among=candidates)
    assert (found.q_values == 1).all()
    assert (found.rows >= 0).all()


@pytest.mark.filterwarnings("ignore:.*rows looked up are unlike")
def test_the_last_of_all_candidates_is_no_sure_name():
    X, Y, partner, rest = vocabularies(wrong=0.0)
    matcher = CalibratedMatcher(random_state=0).fit(X[: len(partner)], Y[partner])
    found = matcher.find_partners(X[rest[:20]], k=1_000)  # as many as there are
    assert found.rows.shape == (20, len(partner))
    assert (found.q_values[:, -1] > 0.99).all()


@pytest.mark.filterwarnings("ignore:.*rows looked up are unlike")
@pytest.mark.parametrize("values", [(0.0, -1.0), (0.0, 1.0)])
def test_rows_that_are_all_alike_do_not_stop_it(values):
    x = np.resize(values, (300, 1))
    y = np.hstack([x, -x]) + 0.1 * np.random.default_rng(0).normal(size=(300, 2))
    found = CalibratedMatcher(random_state=0).fit(x, y).find_partners(x[:3])
    assert found.rows.shape == (3, 1)


def test_nothing_is_claimed_of_vocabularies_that_have_nothing_in_common():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(2, 400, 10))
    matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X[:200], Y[:200], unpaired=(X[200:], Y[200:]))
    assert not matcher.inlier_mask_.any()
    assert matcher.map_.kind == "none"
    found = matcher.find_partners(X[200:210], k=2)
    assert (found.rows == -1).all()
    assert (found.q_values == 1).all()


def test_what_is_not_two_tables_is_refused():
    X, Y, partner, rest = vocabularies()
    pairs = X[: len(partner)], Y[partner]
    with pytest.raises(ValueError, match="unpaired must be two tables"):
        CalibratedMatcher().fit(*pairs, unpaired=X)
    with pytest.raises(ValueError, match="unpaired must be two tables"):
        CalibratedMatcher().fit(*pairs, unpaired=5)
    with pytest.raises(ValueError, match="unpaired has rows of 19 columns for y, which has 20"):
        CalibratedMatcher().fit(*pairs, unpaired=(X[rest], Y[rest][:, :-1]))
