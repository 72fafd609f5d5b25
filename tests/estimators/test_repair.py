from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import ortho_group

from inlier import CalibratedMatcher, Repair
from inlier.datasets import make_gaussian_pairs
from inlier.estimators import _repairing
from inlier.plotting import plot_map, plot_repair
from tests.stores import on_strict_device

SWAP, RING, CHAIN, COPY, STRANGER = [3, 7], [20, 21, 22], [50, 51, 52], 60, 70
LONG_RING = list(range(100, 106))
SUSPECTS = [*SWAP, *RING, *CHAIN, COPY, *LONG_RING]


def mixed_up(seed=0, n=300):
    """A swap, two rings, a chain at whose end a y is gone, a near-copy, and a y that belongs to nobody."""
    data = make_gaussian_pairs(n, 10, 1.0, noise=0.2, rng=seed)
    y, rng = data.Y.copy(), np.random.default_rng(seed + 1)
    y[[3, 7]] = y[[7, 3]]
    y[[20, 21, 22]] = y[[21, 22, 20]]
    y[LONG_RING] = y[np.roll(LONG_RING, 1)]
    y[[50, 51]] = y[[51, 52]]
    y[52], y[70] = rng.normal(size=(2, 10)) * y.std()
    y[60] = y[61] + 0.01
    return data.X, y, data.Y


@pytest.fixture(scope="module")
def repaired():
    X, y, _ = mixed_up()
    return CalibratedMatcher(random_state=0).fit(X, y).repair()


def test_every_kind_of_mistake_is_told(repaired):
    assert isinstance(repaired, Repair)
    kinds = ["swapped", "swapped", "moved", "moved", "moved", "lost", "moved", "moved", "copy"]
    assert repaired.kind[SUSPECTS].tolist() == kinds + ["moved"] * 6
    assert repaired.partner[SUSPECTS].tolist() == [7, 3, 22, 20, 21, -1, 50, 51, -1, *range(101, 106), 100]
    assert repaired.copy_of[60] == 61
    assert repaired.kind[61] == "kept"
    assert np.flatnonzero(repaired.suspects).tolist() == SUSPECTS
    assert np.flatnonzero(repaired.named).tolist() == [*SWAP, *RING, 51, 52, *LONG_RING]
    assert set(np.delete(repaired.kind, SUSPECTS)) <= {"kept", "not clear"}
    assert (np.delete(repaired.kind, SUSPECTS) == "kept").mean() > 0.97
    assert np.median(repaired.own_rank[repaired.kind != "kept"]) > 10
    assert "15 of 300 rows are with a wrong partner. 13 partners are named: 2 swapped, 11 in chains or" in repr(
        repaired
    )
    assert "Of 1 more the partner is not here. 1 is a copy of another row." in repr(repaired)
    arrow = " \N{RIGHTWARDS ARROW} "
    chain, ring = arrow.join(["52", "51", "50"]), arrow.join(["20", "22", "21", "20"])
    assert {"3 \N{LEFT RIGHT ARROW} 7", ring, chain} < set(repaired.chains)
    assert len(repaired.chains) == 4


def test_where_it_is_not_clear_the_row_stays_where_it_is(repaired):
    unclear = repaired.kind == "not clear"
    assert unclear[STRANGER]
    assert (repaired.partner[unclear] == np.flatnonzero(unclear)).all()
    assert np.isnan(repaired.chance_wrong[unclear]).all()
    assert not repaired.suspects[unclear].any()
    assert "not clear" in repaired.answer


def test_candidates_come_with_their_chances(repaired):
    sure = np.flatnonzero(repaired.named)
    assert (repaired.candidates[sure, 0] == repaired.partner[sure]).all()
    assert (repaired.chances[sure, 0] > 0.9).all()
    assert (np.diff(repaired.chances, axis=1) <= 0).all()
    assert (repaired.chances.sum(axis=1) <= 1 + 1e-9).all()
    assert ((repaired.candidates >= 0) == (repaired.chances > 0)).all()
    assert repaired.chances[STRANGER].sum() < 0.5  # none of these
    assert (repaired.candidates[repaired.kind == "kept"] == -1).all()


def test_a_q_value_is_the_rate_at_which_a_partner_is_named(repaired):
    X, y, _ = mixed_up()
    matcher = CalibratedMatcher(random_state=0).fit(X, y)
    rest = repaired.kind != "kept"
    for alpha in (0.001, 0.02, 0.2):
        looser = matcher.repair(alpha=alpha)
        tried = rest & (looser.kind != "kept")
        assert (looser.named[tried] <= (looser.q_values[tried] <= alpha)).all()
    assert (repaired.q_values[repaired.named] <= repaired.alpha).all()
    assert (repaired.q_values[rest & ~repaired.named] > repaired.alpha).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_nobody_is_called_lost_where_partners_would_not_stand_out_if_they_were_here(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 4))
    y = X + 0.5 * rng.normal(size=X.shape)
    ring = rng.permutation(600)[:60]
    y[ring] = y[np.roll(ring, 1)]  # all partners are here, among too many alike to be named
    repaired = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair()
    assert not (repaired.kind == "lost").any()
    assert (repaired.kind[ring] == "not clear").sum() > 30


@pytest.mark.seeds
@pytest.mark.filterwarnings("ignore::inlier.exceptions.DependenceWarning")
def test_where_all_partners_are_gone_nobody_is_named(seed, promise):
    rng = np.random.default_rng(7_000 + seed)
    X = rng.normal(size=(400, 6))
    y = X @ ortho_group.rvs(6, random_state=rng) + 0.5 * rng.normal(size=X.shape)
    y[:80] = rng.normal(size=(80, 6)) * y.std(axis=0)  # whose partners are not here
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair()
    promise("draws with a name", int(found.named.any()), 1, 0.05)
    assert not (found.kind == "lost").any()


def test_a_row_whose_y_is_given_away_has_no_small_q_value():
    own = np.arange(300)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 4))
        ring, partner = rng.permutation(300)[:30], own.copy()
        partner[ring] = np.roll(ring, 1)
        y = (X @ ortho_group.rvs(4, random_state=rng) + 0.25 * rng.normal(size=X.shape))[partner]
        found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair()
        given_away = np.setdiff1d(found.partner[found.named], own[found.named])
        assert (found.partner[given_away] == -1).all()
        assert (found.q_values[given_away] > 0.05).all()
        assert (found.chance_wrong[given_away] >= 0.95).all()
        taken = found.partner[found.partner >= 0]
        assert np.unique(taken).size == taken.size


def test_apply_puts_the_table_right(repaired):
    _, y, original = mixed_up()
    fixed = repaired.apply(y)
    np.testing.assert_array_equal(fixed[repaired.named], original[repaired.named])
    assert np.isnan(fixed[[50, 60]]).all()
    np.testing.assert_array_equal(fixed[[0, STRANGER]], y[[0, STRANGER]])
    assert repaired.apply(np.arange(300)).dtype.kind == "f"
    with pytest.raises(ValueError, match="y has 4 rows, but 300 were repaired"):
        repaired.apply(y[:4])


def test_labels_are_kept():
    pandas = pytest.importorskip("pandas")
    X, y, original = mixed_up()
    index = [f"s{number}" for number in range(300)]
    frames = pandas.DataFrame(X, index=index), pandas.DataFrame(y, index=index)
    found = CalibratedMatcher(random_state=0).fit(*frames).repair()
    table = found.to_frame()
    assert table.loc["s3", "partner"] == "s7"
    assert pandas.isna(table.loc["s50", "partner"])
    assert table.loc["s60", "copy_of"] == "s61"
    fixed = found.apply(frames[1])
    np.testing.assert_array_equal(fixed.loc["s20"], original[20])
    assert fixed.loc["s50"].isna().all()
    assert list(fixed.index) == index


def test_without_labels_rows_are_numbered(repaired):
    pytest.importorskip("pandas")
    assert repaired.to_frame().loc[3, "partner"] == 7


def test_nothing_is_named_where_nothing_matches():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2, 200, 5))
    found = CalibratedMatcher(random_state=0).fit(X, y).repair()
    assert (found.kind == "not clear").all()


def test_nothing_is_repaired_where_all_is_right():
    data = make_gaussian_pairs(300, 10, 1.0, noise=0.2, rng=3)
    found = CalibratedMatcher(random_state=0).fit(data.X, data.Y).repair()
    assert (found.kind == "kept").mean() > 0.98
    assert (found.partner == np.arange(300)).mean() > 0.98


@pytest.mark.seeds
def test_bad_samples_are_neither_named_nor_lost(seed, note, promise):
    """A tenth of the rows are measured badly, and all are at home."""
    rng = np.random.default_rng([seed, 13])
    X = rng.normal(size=(400, 20))
    noise = np.full((400, 1), 0.3)
    noise[:40] = 1.5 + 1.5 * (seed % 2)
    y = X @ ortho_group.rvs(20, random_state=rng) + noise * rng.normal(size=X.shape)
    found = CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, y).repair()
    said = found.named | (found.kind == "lost")
    note(named=found.named.sum(), lost=(found.kind == "lost").sum(), unclear=(found.kind == "not clear").sum())
    promise("rows named or lost", int(said.sum()), 400, 0.05)
    assert not said[40:].any()
    assert np.isin(found.kind, ["kept", "not clear"])[:40].mean() > 0.8


def test_gaps_are_counted_and_said():
    X, y, _ = mixed_up()
    X, y = X.copy(), y.copy()
    X[20, :2], y[200, 0] = np.nan, np.nan
    found = CalibratedMatcher(random_state=0).fit(X, y).repair()
    assert found.gaps[[20, 200, 5]].tolist() == [2, 1, 0]
    assert found.kind[200] == "kept"
    assert "1 wrong row has gaps that were filled in" in found.answer


def test_groups_are_respected():
    X, y, _ = mixed_up()
    groups = np.arange(300)
    groups[7] = 3  # the two that were swapped belong together: they cannot be told apart
    found = CalibratedMatcher(random_state=0).fit(X, y, groups=groups).repair(alpha=0.05)
    assert found.partner[3] != 7
    assert found.partner[20] == 22


def test_of_many_pairs_those_that_are_not_accepted_are_looked_at():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5100, 10))
    Y = X @ ortho_group.rvs(10, random_state=rng) + 0.1 * rng.normal(size=(5100, 10))
    ring, partner = rng.permutation(5100)[:60], np.arange(5100)
    partner[ring] = np.roll(ring, 1)
    found = CalibratedMatcher(random_state=0).fit(X, Y[partner]).repair()
    truth = np.argsort(partner)
    assert (found.partner[found.named] == truth[found.named]).mean() > 0.95
    assert found.named[ring].mean() > 0.8
    assert (found.kind[np.setdiff1d(np.arange(5100), ring)] != "lost").all()
    assert (found.own_rank == 0).any()


def with_rest(seed=0):
    """A swap; ten pairs that were parted, and five rows on each side whose partner is nowhere."""
    data = make_gaussian_pairs(320, 10, 1.0, noise=0.2, rng=seed)
    order = np.random.default_rng(seed).permutation(15)
    X_rest, y_rest = data.X[300:315], data.Y[[*range(300, 310), *range(315, 320)]][order]
    y = data.Y[:300].copy()
    y[[3, 7]] = y[[7, 3]]
    truth = np.append(300 + np.argsort(order)[:10], np.full(5, -1))
    return data.X[:300], y, X_rest, y_rest, truth


def test_partners_are_looked_for_in_the_strata_of_the_fit():
    rng = np.random.default_rng(0)
    strata = np.repeat(np.arange(10), 40)
    X = rng.normal(size=(400, 10))
    y = X @ ortho_group.rvs(10, random_state=rng) + 0.1 * rng.normal(size=X.shape)
    inside, across = np.arange(0, 400, 20), np.array([5, 395])
    for rows in (*np.split(inside, 10), across):
        y[rows] = y[rows[::-1]]
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y, strata=strata).repair()
    assert found.within_strata
    assert found.named[inside].mean() >= 0.6
    assert not found.named[across].any()
    row, place = np.nonzero(found.candidates >= 0)
    assert (strata[found.candidates[row, place]] == strata[row]).all()
    assert (strata[found.partner[found.named]] == strata[found.named]).all()


def test_rows_that_were_left_out_of_the_fit_are_not_clear():
    X, y, _ = mixed_up()
    X = X.copy()
    X[10] = np.nan
    with pytest.warns(UserWarning, match="a row without any value"):
        found = CalibratedMatcher(random_state=0).fit(X, y).repair()
    assert found.kind[10] == "not clear"
    assert found.partner[SWAP].tolist() == SWAP[::-1]
    assert found.partner[RING].tolist() == [22, 20, 21]


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_only_one_table_has_find_their_partners(seed):
    X, y, X_rest, y_rest, truth = with_rest(seed)
    matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y)
    found = matcher.repair(unpaired=(X_rest, y_rest))
    assert found.partner[300:].tolist() == truth.tolist()
    assert found.kind[300:].tolist() == ["moved"] * 10 + ["not clear"] * 5
    assert found.partner[[3, 7]].tolist() == [7, 3]
    assert np.isnan(found.chance_wrong[300:]).all()
    assert set(np.flatnonzero(found.suspects)) >= {3, 7}
    assert not found.suspects[300:].any()
    assert "Of the 15 rows given without a partner, 10 have one now." in found.answer
    whole = np.concatenate([y, y_rest])
    fixed = found.apply(whole)
    np.testing.assert_array_equal(fixed[300:310], whole[truth[:10]])
    assert np.isnan(fixed[310:]).all()
    with pytest.raises(ValueError, match="y has 300 rows, but 315 were repaired"):
        found.apply(y)


def test_a_wrong_row_finds_its_partner_among_rows_without_one():
    X, y, X_rest, y_rest, _ = with_rest()
    y_rest[12] = y[30]
    y[30] = np.random.default_rng(5).normal(size=10) * y.std()
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair(unpaired=(X_rest[:0], y_rest))
    assert found.kind.size == 300
    assert found.kind[30] == "moved"
    assert found.partner[30] == 312


def test_labels_of_rows_without_a_partner_are_kept():
    pandas = pytest.importorskip("pandas")
    X, y, X_rest, y_rest, truth = with_rest()
    names = [f"s{number}" for number in range(300)]
    rest = [
        pandas.DataFrame(table, index=[f"{of}{k}" for k in range(15)]) for of, table in (("a", X_rest), ("b", y_rest))
    ]
    frames = pandas.DataFrame(X, index=names), pandas.DataFrame(y, index=names)
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(*frames).repair(unpaired=rest)
    table = found.to_frame()
    assert table.loc["a0", "partner"] == f"b{truth[0] - 300}"
    fixed = found.apply(pandas.concat([frames[1], rest[1]]))
    np.testing.assert_array_equal(fixed.loc["a0"], y_rest[truth[0] - 300])
    ax = plot_repair(found)
    assert {"a0", f"b{truth[0] - 300}"} <= {text.get_text() for text in ax.texts}
    plt.close("all")


def test_bad_rows_without_a_partner_are_a_sentence():
    X, y, X_rest, y_rest, _ = with_rest()
    matcher = CalibratedMatcher(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="must be two tables"):
        matcher.repair(unpaired=X_rest)
    with pytest.raises(ValueError, match="has rows of 9 columns for y, which has 10"):
        matcher.repair(unpaired=(X_rest, y_rest[:, 1:]))
    with pytest.raises(ValueError, match="no stratum"):
        CalibratedMatcher(random_state=0).fit(X, y, strata=np.arange(300) % 3).repair(unpaired=(X_rest, y_rest))
    with pytest.raises(ValueError, match="has 6,000 rows; up to 5,000 are tried"):
        matcher.repair(unpaired=(np.repeat(X_rest, 400, axis=0), y_rest))


def test_bad_input_is_a_sentence():
    X, y, _ = mixed_up()
    matcher = CalibratedMatcher(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="fitted to 300 pairs, but X has 200 rows"):
        matcher.repair(X[:200], y[:200])
    with pytest.raises(ValueError, match="alpha must lie between 0 and"):
        matcher.repair(alpha=2)
    with pytest.raises(ValueError, match="y is missing"):
        matcher.repair(X)


def test_the_picture(repaired):
    ax = plot_repair(repaired)
    lines = [line.get_ydata().tolist() for line in ax.lines]
    assert len(lines) == (repaired.partner[repaired.kind != "kept"] >= 0).sum()
    assert plot_repair(repaired, ax=ax) is ax


def test_the_same_seed_gives_the_same_answer(repaired):
    X, y, _ = mixed_up()
    again = CalibratedMatcher(random_state=0).fit(X, y).repair()
    for name, column in repaired.columns().items():
        np.testing.assert_array_equal(again.columns()[name], column)


def test_rows_on_a_device_are_repaired_as_those_in_memory():
    data = make_gaussian_pairs(n=300, d=8, inlier_fraction=1, noise=0.1, rng=0)
    y = data.Y.copy()
    y[[3, 7]] = y[[7, 3]]
    there = [on_strict_device(table, None, "") for table in (data.X, y)]
    matcher = CalibratedMatcher(random_state=0).fit(*there)
    repaired = matcher.repair()
    assert repaired.partner[[3, 7]].tolist() == [7, 3]
    np.testing.assert_array_equal(repaired.apply(there[1]), data.Y)
    here = CalibratedMatcher(random_state=0).fit(data.X, y).repair()
    np.testing.assert_array_equal(repaired.kind, here.kind)
    assert plot_map(matcher, *there).get_ylabel() == "y"
    plt.close("all")


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_no_pair_can_be_accepted_none_is_called_wrong(share):
    data = make_gaussian_pairs(150, 10, share, noise=8.0, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert not matcher.inlier_mask_.any()
    found = matcher.repair()
    assert not found.suspects.any()
    assert (found.kind == "not clear").all()
    assert (found.partner == np.arange(150)).all()
    assert found.answer == "Of none of the 150 rows can be told whether it is with its partner."


@pytest.mark.parametrize("how", ["rows", "columns of X", "columns of y", "values"])
def test_tables_that_are_not_those_of_the_fit_are_refused(how):
    pandas = pytest.importorskip("pandas")
    X, y, _ = mixed_up()
    names = [f"s{row}" for row in range(300)]
    X, y = (
        pandas.DataFrame(table, index=names, columns=[f"{side}{k}" for k in range(10)])
        for side, table in (("x", X), ("y", y))
    )
    matcher = CalibratedMatcher(random_state=0).fit(X, y)
    order = np.random.default_rng(0).permutation(300)
    given = {
        "rows": (X.iloc[order], y.iloc[order]),
        "columns of X": (X[X.columns[::-1]], y),
        "columns of y": (X, y[y.columns[::-1]]),
        "values": (X, pandas.DataFrame(y.to_numpy()[order], index=names, columns=y.columns)),
    }[how]
    with pytest.raises(ValueError, match=r"in fit|during fit"):
        matcher.repair(*given)
    assert matcher.repair(X, y).partner[3] == 7
    np.testing.assert_array_equal(matcher.feature_names_in_, X.columns)


@pytest.mark.seeds
@pytest.mark.filterwarnings("ignore::inlier.exceptions.DependenceWarning")
@pytest.mark.parametrize("how", ["ring of a fifth", "exchanged, a tenth", "3 %"])
def test_wrong_names_are_as_rare_as_promised(how, seed, promise, note):
    rng = np.random.default_rng([seed, 14])
    n_wrong = {"ring of a fifth": 80, "exchanged, a tenth": 40, "3 %": 12}[how]
    X, partner = rng.normal(size=(400, 12)), np.arange(400)
    rows = rng.permutation(400)[:n_wrong]
    partner[rows] = np.roll(rows, n_wrong // 2 if how == "exchanged, a tenth" else 1)
    y = (X @ ortho_group.rvs(12, random_state=rng) + 0.5 * rng.normal(size=X.shape))[partner]
    found, truth = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair(), np.argsort(partner)
    wrong = found.named & (found.partner != truth)
    note(named=found.named.sum(), wrong=wrong.sum())
    promise("wrong names", wrong.sum(), found.named.sum(), 0.05, spread=2)
    promise("called lost, though all are here", (found.kind == "lost").sum(), max(found.named.sum(), 1), 0.05, spread=2)
    assert found.named.sum() >= 0.3 * n_wrong
    assert wrong.sum() <= 2 + 0.15 * found.named.sum()


@pytest.mark.seeds
def test_noisy_samples_are_seldom_called_lost(seed, note, promise):
    """Each row has its own amount of noise, and some right rows fit nobody."""
    rng = np.random.default_rng([seed, 12])
    X = rng.normal(size=(300, 8))
    noise = 0.25 * np.exp(rng.normal(size=(300, 1)))
    y = X @ np.linalg.qr(rng.normal(size=(8, 8)))[0] + noise * rng.normal(size=X.shape)
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair()
    said = found.named | (found.kind == "lost")
    note(lost=(found.kind == "lost").sum(), named=found.named.sum())
    promise("right rows named or lost", int(said.sum()), 300, 0.02)
    assert said.sum() <= 15


@pytest.mark.seeds
def test_chances_of_candidates_are_as_stated(seed, promise, note):
    rng = np.random.default_rng([seed, 15])
    X, partner = rng.normal(size=(500, 8)), np.arange(500)
    rows = rng.permutation(500)[:80]
    partner[rows] = rng.permutation(rows)
    y = (X @ ortho_group.rvs(8, random_state=rng) + 0.4 * rng.normal(size=X.shape))[partner]
    found, truth = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair(), np.argsort(partner)
    is_right = found.candidates == truth[:, None]
    note(stated=found.chances.sum(), right=is_right.sum())
    assert abs(found.chances.sum() - is_right.sum()) < 0.25 * is_right.sum() + 5
    sure = found.chances > 0.9
    promise("surest candidates that are wrong", int((sure & ~is_right).sum()), int(sure.sum()), 0.1)


def test_ranks_count_pairs_alone():
    X, y, X_rest, y_rest, _ = with_rest(0)
    found = CalibratedMatcher(random_state=0).fit(X, y).repair(unpaired=(X_rest, y_rest))
    assert found.own_rank.max() <= 300


def test_a_polars_frame_is_put_right():
    polars = pytest.importorskip("polars")
    X, y, _ = mixed_up()
    X, y = (polars.DataFrame({f"c{k}": column for k, column in enumerate(table.T)}) for table in (X, y))
    found = CalibratedMatcher(random_state=0).fit(X, y).repair()
    fixed = found.apply(y.with_columns(polars.Series("name", [f"s{row}" for row in range(300)])))
    assert fixed["name"].to_list()[3] == "s7"
    assert fixed.row(50) == (None,) * 11
    assert found.apply(y["c0"])[3] == y["c0"][7]


def test_the_report_says_who_belongs_to_whom(repaired):
    X, y, _ = mixed_up()
    matcher = CalibratedMatcher(random_state=0).fit(X, y)
    assert "3 \N{LEFT RIGHT ARROW} 7" in matcher.report(repair=repaired).html()
    assert "Who belongs to whom" not in matcher.report().html()
    assert repaired.left_over.tolist() == [52, 60]


def test_where_too_many_rows_would_be_compared_that_is_said(monkeypatch):
    monkeypatch.setattr(_repairing, "_ALL_LOOKED_AT", 100)
    monkeypatch.setattr(_repairing, "_MOST_TRIED", 20)
    data = make_gaussian_pairs(n=300, d=10, inlier_fraction=0.8, noise=0.1, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    with pytest.warns(UserWarning, match=r"rows are not sure, and up to 20 are compared with each other"):
        found = matcher.repair()
    assert set(found.kind) == {"kept", "not clear"}
    assert (found.partner == np.arange(300)).all()
