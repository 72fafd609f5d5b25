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

SUSPECTS = [3, 7, 20, 21, 22, 50, 60]


def mixed_up(seed=0, n=300):
    """A swap, a cycle of three, a lost partner and a near-copy."""
    data = make_gaussian_pairs(n, 10, 1.0, noise=0.2, rng=seed)
    y = data.Y.copy()
    y[[3, 7]] = y[[7, 3]]
    y[[20, 21, 22]] = y[[21, 22, 20]]
    y[50] = np.random.default_rng(seed + 1).normal(size=10) * y.std()
    y[60] = y[61] + 0.01
    return data.X, y, data.Y


@pytest.fixture(scope="module")
def repaired():
    X, y, _ = mixed_up()
    return CalibratedMatcher(random_state=0).fit(X, y).repair(X, y)


def test_every_kind_of_mistake_is_told(repaired):
    assert isinstance(repaired, Repair)
    kinds = ["swapped", "swapped", "moved", "moved", "moved", "lost", "copy"]
    assert repaired.kind[SUSPECTS].tolist() == kinds
    assert repaired.partner[SUSPECTS].tolist() == [7, 3, 22, 20, 21, -1, -1]
    assert repaired.copy_of[60] == 61
    assert repaired.kind[61] == "kept"
    assert set(np.delete(repaired.kind, SUSPECTS)) <= {"kept", "poor", "doubtful"}
    assert (np.delete(repaired.kind, SUSPECTS) == "kept").mean() > 0.97
    assert repaired.suspects[SUSPECTS].all()
    assert repaired.suspects_error_rate < 0.2
    assert (repaired.probability[[3, 7]] > 0.9).all()
    assert np.median(repaired.own_rank) == 1
    assert "2 swapped, 3 in chains or cycles" in repr(repaired)
    assert repaired.chains == ["3 \N{LEFT RIGHT ARROW} 7", " \N{RIGHTWARDS ARROW} ".join(["20", "22", "21", "20"])]


def test_where_right_pairs_look_like_wrong_ones_the_number_of_innocent_is_a_bound(repaired):
    assert repaired.tells_innocent
    assert "of these about" in repaired.answer or "of these hardly any" in repaired.answer
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 4))
    y = X + 1.3 * rng.normal(size=X.shape)
    y[:60] = np.roll(y[:60], 1, axis=0)
    matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y)
    hardly_parted = matcher.repair(X, y)
    assert matcher.inlier_mask_.any()
    assert not hardly_parted.tells_innocent
    assert hardly_parted.suspects.any()
    assert f"at least {hardly_parted.n_innocent:.1f} are innocent" in hardly_parted.answer


@pytest.mark.parametrize("seed", [0, 1])
def test_nobody_is_called_lost_where_partners_would_not_stand_out_if_they_were_here(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 4))
    y = X + 0.5 * rng.normal(size=X.shape)
    y[:60] = np.roll(y[:60], 1, axis=0)  # all partners are here, among too many alike to be named
    repaired = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair(X, y)
    assert repaired.suspects[:60].sum() > 40
    assert not (repaired.kind == "lost").any()
    kinds = repaired.kind[repaired.suspects]
    assert np.isin(kinds, ["doubtful", "moved", "swapped"]).all()
    assert (kinds == "doubtful").mean() > 0.7


@pytest.mark.seeds
@pytest.mark.filterwarnings("ignore::inlier.exceptions.DependenceWarning")
def test_where_all_partners_are_lost_nobody_is_named(seed, promise):
    rng = np.random.default_rng(7_000 + seed)
    X = rng.normal(size=(400, 6))
    y = X @ ortho_group.rvs(6, random_state=rng) + 0.5 * rng.normal(size=X.shape)
    y[:80] = rng.normal(size=(80, 6)) * y.std(axis=0)  # whose partners are not here
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair(X, y)
    promise("draws with a name", int(np.isin(found.kind, ("swapped", "moved")).any()), 1, 0.05)


def test_a_row_whose_y_is_given_away_has_no_small_q_value():
    own = np.arange(300)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 4))
        ring, partner = rng.permutation(300)[:30], own.copy()
        partner[ring] = np.roll(ring, 1)
        y = (X @ ortho_group.rvs(4, random_state=rng) + 0.25 * rng.normal(size=X.shape))[partner]
        found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair(X, y)
        given_away = np.setdiff1d(found.partner[np.isin(found.kind, ("swapped", "moved"))], own[found.partner != own])
        assert (found.q_values[(found.partner == -1) & ~np.isin(found.kind, ("copy", "lost"))] > 0.05).all()
        assert (found.q_values[given_away] == 1).all()


def test_apply_puts_the_table_right(repaired):
    _, y, original = mixed_up()
    fixed = repaired.apply(y)
    np.testing.assert_array_equal(fixed[[3, 7, 20, 21, 22]], original[[3, 7, 20, 21, 22]])
    assert np.isnan(fixed[[50, 60]]).all()
    np.testing.assert_array_equal(fixed[0], y[0])
    assert repaired.apply(np.arange(300)).dtype.kind == "f"
    with pytest.raises(ValueError, match="y has 4 rows, but 300 were repaired"):
        repaired.apply(y[:4])


def test_labels_are_kept():
    pandas = pytest.importorskip("pandas")
    X, y, original = mixed_up()
    index = [f"s{number}" for number in range(300)]
    frames = pandas.DataFrame(X, index=index), pandas.DataFrame(y, index=index)
    found = CalibratedMatcher(random_state=0).fit(*frames).repair(*frames)
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
    found = CalibratedMatcher(random_state=0).fit(X, y).repair(X, y)
    assert not np.isin(found.kind, ("swapped", "moved", "copy")).any()


def test_nothing_is_repaired_where_all_is_right():
    data = make_gaussian_pairs(300, 10, 1.0, noise=0.2, rng=3)
    found = CalibratedMatcher(random_state=0).fit(data.X, data.Y).repair(data.X, data.Y)
    assert (found.kind == "kept").mean() > 0.98
    assert (found.partner == np.arange(300)).mean() > 0.98


def test_a_poor_sample_is_not_called_wrong():
    poor = refused = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 20))
        noise = np.full((400, 1), 0.3)
        noise[:8] = 1.1
        Y = X @ ortho_group.rvs(20, random_state=rng) + noise * rng.normal(size=(400, 20))
        matcher = CalibratedMatcher(random_state=seed).fit(X, Y)
        found = matcher.repair(X, Y)
        poor += int(np.isin(found.kind[:8], ("kept", "poor")).sum())
        refused += int((~matcher.inlier_mask_[:8]).sum())
    assert refused >= 8
    assert poor >= 0.8 * 40


def test_gaps_are_counted_and_said():
    X, y, _ = mixed_up()
    X, y = X.copy(), y.copy()
    X[3, :2], y[100, 0] = np.nan, np.nan
    found = CalibratedMatcher(random_state=0).fit(X, y).repair(X, y)
    assert found.gaps[[3, 100, 5]].tolist() == [2, 1, 0]
    assert found.kind[100] == "kept"
    assert "1 suspect has gaps that were filled in" in found.answer


def test_groups_are_respected():
    X, y, _ = mixed_up()
    groups = np.arange(300)
    groups[7] = 3  # the two that were swapped belong together: they cannot be told apart
    found = CalibratedMatcher(random_state=0).fit(X, y, groups=groups).repair(X, y, groups=groups, alpha=0.05)
    assert found.partner[3] != 7
    assert found.partner[20] == 22


def test_many_pairs_are_looked_at_where_they_are_doubtful():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 10))
    Y = X @ ortho_group.rvs(10, random_state=rng) + 0.1 * rng.normal(size=(8000, 10))
    ring, partner = rng.permutation(8000)[:60], np.arange(8000)
    partner[ring] = np.roll(ring, 1)
    matcher = CalibratedMatcher(random_state=0).fit(X, Y[partner])
    found = matcher.repair(X, Y[partner])
    truth = np.argsort(partner)
    named = np.isin(found.kind, ("swapped", "moved"))
    assert (found.partner[named] == truth[named]).mean() > 0.95
    assert named[ring].mean() > 0.8
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


@pytest.mark.parametrize("wanted", ["auto", "all"])
def test_of_many_pairs_all_rows_are_candidates_on_request(monkeypatch, wanted):
    looked_at = []
    monkeypatch.setattr(_repairing, "_MOST_LOOKED_AT", 100)
    monkeypatch.setattr(_repairing, "_BESIDE_THEM", 150)
    name_partners = _repairing.name_partners
    spy = lambda *given: looked_at.append(given[-1]) or name_partners(*given)  # noqa: E731
    monkeypatch.setattr(_repairing, "name_partners", spy)
    X, y, _ = mixed_up()
    found = CalibratedMatcher(random_state=0).fit(X, y).repair(X, y, candidates=wanted)
    assert found.partner[SUSPECTS[:5]].tolist() == [7, 3, 22, 20, 21]
    assert (looked_at[0].size == 300) == (wanted == "all")
    monkeypatch.setattr(_repairing, "MOST_FOR_ALL", 200)
    with pytest.raises(ValueError, match="candidates 'all' is for up to 200 pairs, and there are 300"):
        CalibratedMatcher(random_state=0).fit(X, y).repair(X, y, candidates="all")


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_only_one_table_has_find_their_partners(seed):
    X, y, X_rest, y_rest, truth = with_rest(seed)
    matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y)
    found = matcher.repair(X, y, unpaired=(X_rest, y_rest))
    assert found.partner[300:].tolist() == truth.tolist()
    assert found.kind[300:].tolist() == ["moved"] * 10 + ["lost"] * 5
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
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair(X, y, unpaired=(X_rest[:0], y_rest))
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
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(*frames).repair(*frames, unpaired=rest)
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
        matcher.repair(X, y, unpaired=X_rest)
    with pytest.raises(ValueError, match="has rows of 9 columns for y, which has 10"):
        matcher.repair(X, y, unpaired=(X_rest, y_rest[:, 1:]))
    with pytest.raises(ValueError, match="no group and no stratum"):
        matcher.repair(X, y, groups=np.arange(300), unpaired=(X_rest, y_rest))
    with pytest.raises(ValueError, match="has 6,000 rows; up to 5,000 are tried"):
        matcher.repair(X, y, unpaired=(np.repeat(X_rest, 400, axis=0), y_rest))


def test_bad_input_is_a_sentence():
    X, y, _ = mixed_up()
    matcher = CalibratedMatcher(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="fitted to 300 pairs, but X has 200 rows"):
        matcher.repair(X[:200], y[:200])
    with pytest.raises(ValueError, match="alpha must lie between 0 and"):
        matcher.repair(X, y, alpha=2)


def test_the_picture(repaired):
    ax = plot_repair(repaired)
    lines = [line.get_ydata().tolist() for line in ax.lines]
    assert len(lines) == 5
    rows = np.union1d(SUSPECTS, [])
    place = {int(row): -height for height, row in enumerate(rows)}
    assert [place[3], place[7]] in lines
    assert plot_repair(repaired, ax=ax) is ax


def test_the_same_seed_gives_the_same_answer(repaired):
    X, y, _ = mixed_up()
    again = CalibratedMatcher(random_state=0).fit(X, y).repair(X, y)
    for name, column in repaired.columns().items():
        np.testing.assert_array_equal(again.columns()[name], column)


def test_rows_on_a_device_are_repaired_as_those_in_memory():
    data = make_gaussian_pairs(n=300, d=8, inlier_fraction=1, noise=0.1, rng=0)
    y = data.Y.copy()
    y[[3, 7]] = y[[7, 3]]
    there = [on_strict_device(table, None, "") for table in (data.X, y)]
    matcher = CalibratedMatcher(random_state=0).fit(*there)
    repaired = matcher.repair(*there)
    assert repaired.partner[[3, 7]].tolist() == [7, 3]
    np.testing.assert_array_equal(repaired.apply(there[1]), data.Y)
    here = CalibratedMatcher(random_state=0).fit(data.X, y).repair(data.X, y)
    np.testing.assert_array_equal(repaired.kind, here.kind)
    assert plot_map(matcher, *there).get_ylabel() == "y"
    plt.close("all")


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_no_pair_can_be_accepted_none_is_called_wrong(share):
    data = make_gaussian_pairs(150, 10, share, noise=8.0, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert not matcher.inlier_mask_.any()
    found = matcher.repair(data.X, data.Y)
    assert not found.suspects.any()
    assert set(found.kind) <= {"poor", "doubtful"}
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
def test_swaps_inside_families_get_names(seed, promise, note):
    """Families of three, two of them swapped in fifteen: a stranger never fits, so ranks alone call them all right."""
    rng = np.random.default_rng([seed, 11])
    X = np.repeat(rng.normal(size=(100, 8)), 3, axis=0) + 0.4 * rng.normal(size=(300, 8))
    truth, swapped = np.arange(300), np.arange(0, 45, 3)
    truth[swapped], truth[swapped + 1] = swapped + 1, swapped
    y = (X @ np.linalg.qr(rng.normal(size=(8, 8)))[0] + 0.15 * rng.normal(size=X.shape))[truth]
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair(X, y)
    named = np.isin(found.kind, ("swapped", "moved"))
    wrong = named & (found.partner != truth)
    note(named=named.sum(), wrong=wrong.sum())
    promise("wrong names", wrong.sum(), named.sum(), 0.05, spread=2)
    assert named.sum() >= 8
    assert wrong.sum() <= 3


@pytest.mark.seeds
def test_noisy_samples_are_seldom_called_lost(seed, note, promise):
    """Each row has its own amount of noise, and some right rows fit nobody: mostly that is noticed."""
    rng = np.random.default_rng([seed, 12])
    X = rng.normal(size=(300, 8))
    noise = 0.25 * np.exp(rng.normal(size=(300, 1)))
    y = X @ np.linalg.qr(rng.normal(size=(8, 8)))[0] + noise * rng.normal(size=X.shape)
    found = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y).repair(X, y)
    lost = int((found.kind == "lost").sum())
    note(lost=lost, told=found.tells_innocent)
    promise("right rows called lost", lost, 300, 0.02, spread=8)
    assert lost <= 60


def test_ranks_count_pairs_alone():
    X, y, X_rest, y_rest, _ = with_rest(0)
    found = CalibratedMatcher(random_state=0).fit(X, y).repair(X, y, unpaired=(X_rest, y_rest))
    assert found.own_rank.max() <= 300


def test_a_polars_frame_is_put_right():
    polars = pytest.importorskip("polars")
    X, y, _ = mixed_up()
    X, y = (polars.DataFrame({f"c{k}": column for k, column in enumerate(table.T)}) for table in (X, y))
    found = CalibratedMatcher(random_state=0).fit(X, y).repair(X, y)
    fixed = found.apply(y.with_columns(polars.Series("name", [f"s{row}" for row in range(300)])))
    assert fixed["name"].to_list()[3] == "s7"
    assert fixed.row(50) == (None,) * 11
    assert found.apply(y["c0"])[3] == y["c0"][7]


def test_the_report_says_who_belongs_to_whom(repaired):
    X, y, _ = mixed_up()
    matcher = CalibratedMatcher(random_state=0).fit(X, y)
    assert "3 \N{LEFT RIGHT ARROW} 7" in matcher.report(repair=repaired).html()
    assert "Who belongs to whom" not in matcher.report().html()
    assert repaired.left_over.tolist() == [50, 60]
