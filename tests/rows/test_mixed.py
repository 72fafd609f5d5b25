"""Columns of all kinds as numbers: each in its own way, learned from that column alone, and said."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from inlier import CalibratedMatcher
from inlier.exceptions import DependenceWarning, ParameterError

N = 400
RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=(N, 4))
DAYS = pd.Timestamp("2020-03-01") + pd.to_timedelta(np.round(120 * HIDDEN[:, 0]), unit="D")
CITY = np.array(["Lima", "Oslo", "Bonn", "Rome"])[np.digitize(HIDDEN[:, 1], [-0.7, 0, 0.7])]
Y = HIDDEN @ RNG.normal(size=(4, 4)) + 0.1 * RNG.normal(size=(N, 4))
X = pd.DataFrame({"sold": DAYS, "city": CITY, "new": HIDDEN[:, 2] > 0, "rooms": HIDDEN[:, 3], "ref": range(N)})
X["ref"] = [f"r{k}x" for k in range(N)]
WRONG = np.arange(N) < 60
SHIFTED = np.concatenate([np.roll(Y[:60], 1, axis=0), Y[60:]])


def fit(x, y=SHIFTED):
    return CalibratedMatcher(random_state=0).fit(x, y)


def auc(scores, wrong):
    """Chance that a right pair scores above a wrong one."""
    order = np.argsort(np.argsort(scores))
    n_wrong = wrong.sum()
    return 1 - (order[wrong].sum() - n_wrong * (n_wrong - 1) / 2) / (n_wrong * (~wrong).sum())


FRAMES = {
    "pandas": X,
    "pandas, text": X.assign(sold=DAYS.strftime("%Y-%m-%d"), new=np.where(X["new"], "yes", "no")),
    "pandas, categories": X.assign(city=X["city"].astype("category")),
    "polars": pl.from_dict({name: X[name].to_list() for name in X}),
    "arrow": pa.Table.from_pandas(X),
    "objects": X.astype(object),
    "days": X.assign(sold=[datetime.date(day.year, day.month, day.day) for day in DAYS]),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_each_column_is_used_in_its_own_way(kind):
    matcher = fit(FRAMES[kind])
    uses = {use.column: use for use in matcher.columns_}
    assert {name: use.kind for name, use in uses.items()} == {
        "sold": "date",
        "city": "category",
        "new": "category" if kind == "pandas, text" else "yes or no",
        "rooms": "number",
        "ref": "id",
    }
    assert "ids" in uses["ref"].how
    assert uses["ref"].n == 0
    assert uses["city"].n == 4
    assert auc(matcher.scores_, WRONG) > 0.97


def test_numbers_alone_say_less():
    assert auc(fit(X[["rooms"]]).scores_, WRONG) < 0.9


def test_new_rows_are_coded_as_those_of_the_fit():
    matcher = fit(X)
    whole = matcher.score_samples(X, SHIFTED)
    np.testing.assert_allclose(matcher.score_samples(X.iloc[::-1], SHIFTED[::-1])[::-1], whole)
    with pytest.raises(ParameterError, match="has no column 'city'"):
        matcher.predict(X.drop(columns="city"))
    with pytest.raises(ParameterError, match="was a frame of mixed columns"):
        matcher.predict(Y)


SYLLABLES = [
    words.split()
    for words in (
        "ba do ki lu me no pa ri su ta ve wo xi za qu fe gi ho ju ny",
        "ark ell ist orn urt ask emp ild ock uff and ent ing old unt amb eth irk oss ump",
    )
]
SOUNDS = RNG.integers(0, 20, size=(300, 6))
ONE = [" ".join(SYLLABLES[0][k] for k in row) for row in SOUNDS]
OTHER = [" ".join(SYLLABLES[1][k] for k in row) for row in SOUNDS]
TEXTS = {
    "frames": lambda texts: pd.DataFrame({"t": texts}),
    "columns": lambda texts: pd.Series(texts),
    "polars": lambda texts: pl.Series(texts),
    "arrow": pa.array,
    "arrays": lambda texts: np.array(texts),
    "objects": lambda texts: np.array(texts, dtype=object),
    "lists": lambda texts: texts,
}


@pytest.mark.parametrize("kind", TEXTS)
def test_two_columns_of_text_are_tables(kind):
    make, shifted = TEXTS[kind], OTHER[1:40] + OTHER[:1] + OTHER[40:]
    matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(make(ONE), make(shifted))
    wrong = np.arange(300) < 40
    assert [use.kind for use in matcher.columns_] == ["text", "text"]
    assert auc(matcher.scores_, wrong) > 0.9
    assert matcher.inlier_mask_[wrong].sum() <= 0.2 * matcher.inlier_mask_.sum()
    assert matcher.predict_pairs(make(ONE), make(shifted)).n_inliers > 100


def test_words_that_stand_on_both_sides_are_not_compared_and_offered_as_strata():
    plates = np.array(["p", "q", "r", "s"])[np.arange(N) % 4]
    y = pd.DataFrame(SHIFTED, columns=list("abcd")).assign(plate=plates)
    with pytest.warns(DependenceWarning, match="'plate' is the same on both sides in 100% .* give it as strata"):
        matcher = fit(X.assign(plate=plates), y)
    assert {use.how for use in matcher.columns_ if use.column == "plate"} == {"left out: the same on both sides"}


def test_rare_words_that_agree_by_chance_are_compared():
    rare = [pd.Series(np.where(RNG.random(N) < 0.03, "yes", "no")) for _ in range(2)]
    matcher = fit(X.assign(rare=rare[0]), pd.DataFrame(SHIFTED, columns=list("abcd")).assign(rare=rare[1]))
    assert all(use.n for use in matcher.columns_ if use.column == "rare")


@pytest.mark.parametrize("name", ["batch", "Plate", "age"])
def test_numbers_called_like_strata_are_asked_about(name):
    batch = np.arange(N) % 5
    x = pd.DataFrame(HIDDEN, columns=list("abcd")).assign(**{name: batch})
    y = pd.DataFrame(SHIFTED, columns=list("efgh")).assign(**{name: np.where(WRONG, (2 * batch + 1) % 5, batch)})
    with pytest.warns(DependenceWarning, match=f"{name!r} is on both sides, equal in 8[58]% .* give it as strata"):
        fit(x, y)


@pytest.mark.filterwarnings("error")
def test_numbers_called_otherwise_are_compared_in_silence():
    genotypes = RNG.integers(0, 3, size=(N, 12))
    sides = [pd.DataFrame(genotypes, columns=[f"rs{k}" for k in range(12)]) for _ in range(2)]
    sides[1].iloc[:60] = np.roll(genotypes[:60], 1, axis=0)
    assert fit(*sides).inlier_mask_.sum() > 300


def test_a_table_without_any_column_to_compare_is_refused_with_what_was_done():
    with pytest.raises(ParameterError, match=r"X has no column that can be compared: 'ref' left out: every row"):
        fit(X[["ref"]])


def test_words_in_arrays_are_refused_by_their_column():
    table = np.array([[1.0, "u"], [2.0, "v"]] * 50, dtype=object)
    for given in (table, table.tolist()):
        with pytest.raises(ParameterError, match=r"column 1 of X does not hold numbers \(for example 'u'\)"):
            fit(given, SHIFTED[:100])


def test_a_frame_that_holds_no_rows_yet_is_named():
    with pytest.raises(ParameterError, match=r"is a LazyFrame.*collect\(\)"):
        fit(pl.DataFrame(Y).lazy())
