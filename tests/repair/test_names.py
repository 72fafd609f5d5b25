from __future__ import annotations

import numpy as np
import pytest

from inlier.repair.copies import nearly_equal
from inlier.repair.names import find_names
from inlier.repair.odds import Odds
from inlier.rows.null_pairs import pair_labels
from tests.repair.reference import fit_of, numbered, slow_chances, slow_log_ratio, slow_odds

N = 90


def scores_of(truth, seed=0, top=12.0, spread=1.0):
    """Scores of strangers, and higher ones where partners are; -1 for those that are gone."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(truth.size, truth.size))
    here = np.flatnonzero(truth >= 0)
    scores[here, truth[here]] = top + spread * rng.normal(size=here.size)
    return scores


def named(scores, tried, seed=0):
    """The names, and the odds they were given by."""
    n = len(scores)
    tables = numbered(n)
    labels, every = pair_labels(*tables), np.ones(n, dtype=bool)
    known, sure = (1.0, scores.astype(np.float32)), np.where(tried, 0.0, 0.99)
    odds = Odds.of(fit_of(scores), tables, labels, None, sure, np.random.RandomState(seed), known)
    return find_names(odds, labels, tried, (every, every), sure, np.random.RandomState(seed)), odds


def mask(rows, n=N):
    return np.isin(np.arange(n), rows)


def moved(*rings):
    truth = np.arange(N)
    for ring in rings:
        truth[list(ring)] = np.roll(ring, -1)
    return truth


@pytest.mark.parametrize(("top", "spread"), [(12.0, 1.0), (6.0, 1.5)])
def test_evidence_and_chances_are_those_of_the_definition(top, spread):
    truth, rows = moved((1, 2), (3, 4, 5), (6, 7)), np.arange(1, 8)  # so few that all candidates are looked at
    scores = scores_of(truth, top=top, spread=spread)
    found, _ = named(scores, mask(rows))
    table, right = slow_odds(scores, 1.0), np.setdiff1d(np.arange(N), rows)

    def alone(some):  # odds where the partner of the right one is gone
        of_x, of_y = (np.log(N + (np.exp(s).sum(axis=1) - np.exp(np.diag(s)))) for s in (scores, scores.T))
        with_x, with_y = (np.logaddexp(of, np.diag(scores)) for of in (of_x, of_y))
        x_of, y_of = (with_x, of_y) if some == "x" else (of_x, with_y)
        pairs = [(i, k) if some == "x" else (k, i) for i in rows for k in right]
        return [scores[i, k] - max(x_of[i], y_of[k]) for i, k in pairs]

    strangers = np.array(alone("x") + alone("y"))
    log_ratio = slow_log_ratio(np.diag(table), np.where(mask(rows), 0.0, 0.99), strangers)
    evidence, chances = slow_chances(table, log_ratio, rows)
    best = evidence.argmax(axis=1)
    for a in np.flatnonzero(found.partner >= 0):
        assert found.partner[a] == rows[best[a]]
    for a in range(rows.size):
        for candidate, chance in zip(found.candidates[a], found.chances[a], strict=True):
            if candidate >= 0:
                assert chance == pytest.approx(chances[a, list(rows).index(candidate)], abs=0.02)
    assert (found.candidates[:, 0] == truth[rows]).mean() > 0.8


def test_who_stands_out_is_named():
    truth = moved((1, 2), (3, 4, 5), range(10, 20))
    tried = mask([*range(1, 6), *range(10, 20), 30, 31])  # two innocent ones among them
    found, _ = named(scores_of(truth), tried)
    is_right = found.partner == truth[found.rows]
    displaced = truth[found.rows] != found.rows
    assert is_right[displaced].all()
    assert (found.q_values[displaced] < 0.05).all()
    assert (found.q_values[found.partner < 0] == 1).all()
    assert (found.q_values[~displaced] > 0.05).all()
    assert (found.own_rank[~displaced] <= 3).all()
    assert (found.own_rank[displaced] > 5).all()
    assert (found.chances[displaced, 0] > 0.7).all()  # of 17 rows: how many are displaced is roughly known
    assert (found.chances[~displaced] < 0.2).all()
    assert np.array_equal(np.flatnonzero(found.belongs_to_another(tried)), found.rows[displaced])
    assert found.chance_here[displaced].min() > 0.01


def test_who_is_not_here_is_told_from_who_is_and_from_one_whose_partner_was_accepted_with_another():
    truth = moved((1, 2), range(10, 20))
    truth[5] = -1
    scores = scores_of(truth)
    scores[30, 40], scores[31, 40] = scores[40, 40], -5.0  # y of an accepted pair fits 30, too
    found, _ = named(scores, mask([1, 2, 5, *range(10, 20), 30]))
    here = dict(zip(found.rows.tolist(), found.chance_here.tolist(), strict=True))
    assert here[5] < 0.05
    assert min(here[i] for i in here if i != 5) > 0.01


@pytest.mark.parametrize("seed", range(8))
def test_an_exchange_is_named_both_ways_or_not_at_all(seed):
    rows = np.arange(20)
    truth = moved(*rows.reshape(10, 2))
    found, _ = named(scores_of(truth, seed, top=5.0, spread=2.0), mask(rows))
    partner = dict(zip(found.rows.tolist(), found.partner.tolist(), strict=True))
    q_value = dict(zip(found.rows.tolist(), found.q_values.tolist(), strict=True))
    both = [i for i in partner if partner[i] >= 0 and partner.get(partner[i]) == i]
    assert both
    assert all(q_value[i] == q_value[partner[i]] for i in both)
    taken = found.partner[found.partner >= 0]
    assert np.unique(taken).size == taken.size


def test_inside_strata_a_row_has_the_candidates_of_its_stratum():
    strata, truth = np.arange(N) % 6, moved(*(range(s, 24, 6) for s in range(6)))
    tried, every, tables = mask(range(24)), np.ones(N, dtype=bool), numbered(N)
    labels, sure = pair_labels(*tables, None, strata), np.where(tried, 0.0, 0.99)
    scores = scores_of(truth)
    odds = Odds.of(fit_of(scores), tables, labels, strata, sure, np.random.RandomState(0))
    found = find_names(odds, labels, tried, (every, every), sure, np.random.RandomState(0))
    assert (found.partner == truth[:24]).all()
    assert (found.q_values < 0.05).all()  # of 264 strangers a side none is as good, for four candidates


@pytest.mark.seeds
def test_nobody_is_named_among_look_alikes_where_partners_are_gone(seed, promise):
    truth, rows, draws = np.arange(N), np.arange(12), []
    truth[rows] = -1
    for draw in range(20):
        scores = scores_of(truth, 1000 * seed + draw)
        scores[: N // 2, : N // 2] += 3.0  # two kinds of rows: those of a kind fit each other better
        scores[N // 2 :, N // 2 :] += 3.0
        found, _ = named(scores, mask(rows))
        draws.append((found.q_values <= 0.05).any())
        assert found.chances.sum(axis=1).max() < 0.9
    promise("draws with a name", int(np.sum(draws)), len(draws), 0.05)
    assert np.sum(draws) <= 5


def test_a_row_of_several_that_fit_alike_has_several_candidates():
    truth, rows = moved(range(8)), np.arange(8)
    scores = scores_of(truth, spread=0.1)
    scores[0, [1, 2]] = scores[0, 1]
    found, _ = named(scores, mask(rows))
    assert set(found.candidates[0, :2]) == {1, 2}
    assert 0.2 < found.chances[0, 1] <= found.chances[0, 0] < 0.8


def test_who_has_a_rival_that_fits_alike_is_not_named():
    """Far better than any stranger, and still one of two: by strangers alone all of them would be named."""
    rows = np.arange(16)
    truth = moved(rows)
    scores = scores_of(truth, spread=0.1)
    twin = truth[rows ^ 1]  # two rows each, the y of which fit both x
    scores[rows, twin] = scores[rows, truth[rows]]
    found, _ = named(scores, mask(rows))
    assert (found.q_values > 0.2).all()
    scores[rows[:8], twin[:8]] = 0.0  # of these the partner alone fits
    found, _ = named(scores, mask(rows))
    assert (found.q_values[:8] < 0.05).all()
    assert (found.q_values[8:] <= 0.05).sum() <= 1
    assert (found.partner[:8] == truth[:8]).all()


def test_odds_that_nobody_else_has_are_no_trouble():
    truth, rows = moved((1, 2), (3, 4)), np.arange(1, 5)
    scores = scores_of(truth)
    scores[1, 3] = -20.0  # lower than of any stranger
    found, _ = named(scores, mask(rows))
    assert np.isfinite(found.chances).all()
    assert found.partner.tolist() == [2, 1, 4, 3]


@pytest.mark.parametrize("rows", [[], range(N)])
def test_where_all_or_none_are_tried_nobody_is_named(rows):
    found, _ = named(scores_of(np.arange(N)), mask(list(rows)))
    assert (found.partner == -1).all()
    assert (found.q_values == 1).all()
    assert (found.chance_here == 1).all()


def test_copies_are_rows_nearer_than_nearly_any_two_right_ones():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 300, 6))
    y[7], x[9] = y[100] + 0.01, x[200] + 0.01
    is_right = ~mask([5, 7, 9], 300)
    copy_of = nearly_equal((x, y), np.array([5, 7, 9]), is_right)
    assert copy_of[[5, 7, 9]].tolist() == [-1, 100, 200]
    assert (copy_of[is_right] == -1).all()
    assert (nearly_equal((x, y), np.array([5]), mask([1], 300)) == -1).all()  # nothing to compare with
