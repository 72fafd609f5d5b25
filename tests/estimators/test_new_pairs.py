"""What was learned is applied: to new rows, to new pairs, in scikit-learn's tools, with the names that tables have."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from inlier import CalibratedMatcher, Registration, RowSumMatcher
from inlier.calibration.new_pairs import null_of_new_pairs
from inlier.datasets import make_gaussian_pairs

DATA = make_gaussian_pairs(n=600, d=10, inlier_fraction=0.6, noise=0.3, rng=0)
TRAIN, NEW = slice(0, 300), slice(300, 600)


@pytest.fixture(scope="module")
def fitted():
    return CalibratedMatcher(alpha=0.05, random_state=0).fit(DATA.X[TRAIN], DATA.Y[TRAIN])


def test_new_pairs_are_judged_as_those_of_a_fit(fitted):
    judged = fitted.predict_pairs(DATA.X[NEW], DATA.Y[NEW])
    real = DATA.inlier_mask[NEW]
    assert (judged.inlier_mask & real).sum() > 0.9 * real.sum()
    assert (judged.inlier_mask & ~real).sum() <= 0.1 * judged.n_inliers
    np.testing.assert_array_equal(judged.inlier_mask, judged.q_values <= 0.05)
    np.testing.assert_array_equal(judged.scores, fitted.score_samples(DATA.X[NEW], DATA.Y[NEW]))


@pytest.mark.seeds
def test_wrong_new_pairs_have_uniform_p_values(seed, promise):
    data = make_gaussian_pairs(n=2000, d=10, inlier_fraction=0.5, noise=0.3, rng=seed)
    matcher = CalibratedMatcher(random_state=0).fit(data.X[:1000], data.Y[:1000])
    rng = np.random.default_rng(seed)
    p = matcher.predict_pairs(data.X[1000:], data.Y[1000:][rng.permutation(1000)]).p_values
    promise("p-values up to .1", int((p <= 0.1).sum()), p.size, 0.11, spread=3)
    assert 0.4 < p.mean() < 0.6


def unlike(kind, seed):
    """Pairs of a fit, new pairs of which four fifths are wrong, and which are right."""
    rng, n, m = np.random.default_rng([seed, 7]), 80 if kind == "wide" else 300, 200
    if kind == "wide":
        factors, noise = rng.normal(size=(n + m, 8)), 2 * rng.normal(size=(2, n + m, 200))
        X, Y = (factors @ rng.normal(size=(8, 200)) + side for side in noise)
    else:
        cluster = np.append(rng.integers(0, 4, n), np.zeros(m, dtype=int))
        X = (2 * rng.normal(size=(4, 8)))[cluster] + rng.normal(size=(n + m, 8))
        Y = X @ np.linalg.qr(rng.normal(size=(8, 8)))[0] + 0.4 * rng.normal(size=X.shape)
    if kind == "gaps":
        X[n:][rng.random((m, 8)) < 0.2] = np.nan
    order = np.arange(n, n + m)
    order[:160] = np.roll(order[:160], 1)
    return X[:n], Y[:n], X[n:], Y[order], np.arange(m) >= 160


@pytest.mark.seeds
@pytest.mark.filterwarnings("ignore::inlier.exceptions.DependenceWarning")  # clusters, which is the point
@pytest.mark.parametrize("kind", ["wide", "one cluster", "gaps"])
def test_new_pairs_need_not_be_like_those_of_the_fit(seed, promise, note, kind):
    """Re-pairings of the fit are too easy a null for such pairs: beside these far more than .05 would be wrong."""
    accepted = wrong = found = 0
    for draw in range(6):
        X, y, new_x, new_y, right = unlike(kind, 100 * seed + draw)
        matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, y)
        judged = matcher.predict_pairs(new_x, new_y).inlier_mask
        accepted, wrong = accepted + judged.sum(), wrong + (judged & ~right).sum()
        found += (judged & right).sum()
    note(false=wrong / max(accepted, 1), found=found / 240)
    promise("wrong among new pairs", wrong, accepted, 0.05, spread=2)
    assert wrong <= 0.12 * accepted
    assert found >= 0.2 * 240


def test_fewer_than_twenty_new_pairs_are_compared_with_rows_of_the_fit(fitted):
    judged = fitted.predict_pairs(DATA.X[NEW][:8], DATA.Y[NEW][:8])
    real = DATA.inlier_mask[NEW][:8]
    assert judged.inlier_mask[real].all()
    assert not judged.inlier_mask[~real].any()
    assert fitted.predict_pairs(DATA.X[NEW][:1], DATA.Y[NEW][:1]).p_values[0] < 0.01


def test_where_pairs_are_many_some_re_pairings_are_the_null(fitted):
    X = np.random.default_rng(3).normal(size=(700, 10))
    assert fitted.predict_pairs(X, X[::-1]).inlier_mask.sum() <= 2
    null = null_of_new_pairs(lambda x, y: (x * y).sum(axis=1), X, X, np.random.RandomState(0))
    inner = np.sort((X @ X.T)[~np.eye(700, dtype=bool)])
    np.testing.assert_allclose(np.quantile(null, [0.1, 0.5, 0.9]), np.quantile(inner, [0.1, 0.5, 0.9]), atol=0.1)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_output_is_of_the_kind_that_was_set(kind):
    frame = pytest.importorskip(kind).DataFrame
    for matcher in (CalibratedMatcher(random_state=0), Registration("orthogonal", random_state=0)):
        matcher.set_output(transform=kind).fit(DATA.X[TRAIN], DATA.Y[TRAIN])
        moved = matcher.transform(DATA.X[NEW])
        assert isinstance(moved, frame)
        assert list(moved.columns) == matcher.get_feature_names_out().tolist() == [f"y{k}" for k in range(10)]


def test_rows_of_two_languages_keep_both_names(recwarn):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(DATA.X[TRAIN], index=[f"en{k}" for k in range(300)])
    y = pandas.DataFrame(DATA.Y[TRAIN], index=[f"de{k}" for k in range(300)])
    table = CalibratedMatcher(random_state=0).fit(X, y).to_frame()
    assert table.index[7] == "en7"
    assert table["partner"].iloc[7] == "de7"
    assert not recwarn


@pytest.mark.parametrize("method", ["transform", "predict"])
def test_the_map_carries_x_to_y(fitted, method):
    real = DATA.inlier_mask[NEW]
    y = getattr(fitted, method)(DATA.X[NEW])
    assert np.mean((y - DATA.Y[NEW])[real] ** 2) < 0.2 * DATA.Y.var()
    np.testing.assert_allclose(y, fitted.map_.offset + DATA.X[NEW] @ fitted.map_.matrix)


def test_predict_is_flat_where_y_was():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=300)
    matcher = CalibratedMatcher(random_state=0).fit(X, y)
    assert matcher.predict(X).shape == (300,)
    assert matcher.transform(X).shape == (300, 1)
    assert np.corrcoef(matcher.predict(X), y)[0, 1] > 0.99


def test_scikit_learn_can_cross_validate_search_and_chain():
    X, Y = DATA.X, DATA.Y
    scores = cross_val_score(CalibratedMatcher(random_state=0), X, Y, cv=3)
    assert ((scores > 0.7) & (scores < 0.9)).all()  # 60 % of the pairs are real: .6 * 1 + .4 * .5
    chance = cross_val_score(CalibratedMatcher(random_state=0), X, np.random.default_rng(0).permutation(Y), cv=3)
    assert ((chance > 0.4) & (chance < 0.6)).all()
    search = GridSearchCV(CalibratedMatcher(random_state=0), {"whiten": [True, False], "n_folds": [2, 5]}, cv=2)
    assert search.fit(X, Y).best_score_ > 0.7
    pipeline = make_pipeline(StandardScaler(), CalibratedMatcher(random_state=0)).fit(X, Y)
    assert pipeline.predict(X).shape == Y.shape
    assert pipeline.score(X, Y) > 0.7
    assert make_pipeline(CalibratedMatcher(random_state=0), StandardScaler()).fit_transform(X, Y).shape == Y.shape


@pytest.mark.parametrize("n", [4, 5, 6, 9])
def test_a_handful_of_pairs_beside_many_rows_without_a_partner(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X[:, ::-1] + 0.1 * rng.normal(size=X.shape)
    matcher = CalibratedMatcher(random_state=0).fit(X[:n], y[:n], unpaired=(X[n:], y[n:]))
    assert matcher.inlier_mask_.shape == (n,)


def test_fit_predict_is_the_mask():
    matcher = CalibratedMatcher(random_state=0)
    np.testing.assert_array_equal(matcher.fit_predict(DATA.X, DATA.Y), matcher.inlier_mask_)


def test_pairs_of_no_weight_do_not_help_but_are_judged():
    weights = DATA.inlier_mask.astype(float)
    wrong = make_gaussian_pairs(n=600, d=10, inlier_fraction=1.0, noise=0.3, rng=7)
    X, Y = np.concatenate([DATA.X, wrong.X]), np.concatenate([DATA.Y, wrong.Y])  # a second map, as large
    weights = np.concatenate([np.ones(600), np.zeros(600)])
    matcher = CalibratedMatcher(random_state=0).fit(X, Y, sample_weight=weights)
    assert matcher.inlier_mask_[:600][DATA.inlier_mask].mean() > 0.9
    assert matcher.inlier_mask_[600:].mean() < 0.05
    with pytest.raises(ValueError, match="All 600 entries of sample_weight are zero"):
        CalibratedMatcher().fit(DATA.X, DATA.Y, sample_weight=np.zeros(600))


def test_partners_are_found_and_named():
    pandas = pytest.importorskip("pandas")
    names = [f"row{k}" for k in range(600)]
    X = pandas.DataFrame(DATA.X, index=names)
    Y = pandas.DataFrame(DATA.Y, index=names)
    matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    found = matcher.find_partners(X[DATA.inlier_mask], k=2)
    own = np.flatnonzero(DATA.inlier_mask)
    assert (found.rows[:, 0] == own).mean() > 0.95
    frame = found.to_frame()
    assert list(frame.columns) == ["x", "rank", "partner", "row", "score", "p_value", "q_value"]
    best = frame[frame["rank"] == 1]
    assert (best["x"] == best["partner"]).mean() > 0.95
    named = best["q_value"] <= 0.05
    assert (best["x"] != best["partner"])[named].mean() <= 0.05
    elsewhere = matcher.find_partners(X[DATA.inlier_mask], among=Y.iloc[:100])
    assert elsewhere.rows.max() < 100
    not_there = elsewhere.q_values[own >= 100, 0]
    assert (not_there <= 0.05).mean() < 0.05


def test_labels_and_kinds_of_frames_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    index = [f"sample{k}" for k in range(600)]
    X = pandas.DataFrame(DATA.X, index=index, columns=[f"gene{k}" for k in range(10)])
    Y = pandas.DataFrame(DATA.Y, index=index, columns=[f"protein{k}" for k in range(10)])
    matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    mapped = matcher.transform(X)
    assert list(mapped.index) == index
    assert list(mapped.columns) == list(Y.columns) == list(matcher.get_feature_names_out())
    assert list(matcher.to_frame().index) == index
    assert list(RowSumMatcher().fit(X, Y).to_frame().index) == index
    assert list(RowSumMatcher().fit(X.to_numpy(), Y.to_numpy()).to_frame().index) == list(range(600))
    assert list(matcher.predict_pairs(X[:5], Y[:5]).to_frame().index) == index[:5]
    report = matcher.report(tmp_path / "r.html")
    assert "sample17" in (tmp_path / "r.html").read_text()
    assert "sample17" in report.json()
    in_polars = CalibratedMatcher(random_state=0).fit(polars.DataFrame(X), polars.DataFrame(Y))
    assert in_polars.transform(polars.DataFrame(X)).columns == list(Y.columns)
    np.testing.assert_allclose(in_polars.transform(polars.DataFrame(X)).to_numpy(), mapped)


def test_what_was_learned_survives_a_pickle(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(DATA.X[NEW]), fitted.transform(DATA.X[NEW]))
    np.testing.assert_array_equal(again.score_samples(DATA.X, DATA.Y), fitted.score_samples(DATA.X, DATA.Y))
    np.testing.assert_array_equal(again.find_partners(DATA.X[NEW]).rows, fitted.find_partners(DATA.X[NEW]).rows)


def test_rows_that_are_left_out_are_counted_all_the_same():
    X, Y = DATA.X.copy(), DATA.Y.copy()
    X[[0, 5, 200]] = np.nan
    with pytest.warns(UserWarning, match="3 of the 600 pairs have a row without any value"):
        matcher = CalibratedMatcher(random_state=0).fit(X, Y)
    own = np.flatnonzero(matcher.inlier_mask_)
    assert (matcher.find_partners(X[own]).rows[:, 0] == own).mean() > 0.9
    assert matcher._learned.as_given(np.array([0, 4, 596, 597, 600])).tolist() == [1, 6, 599, 600, 603]


def test_bad_new_pairs_are_refused(fitted):
    with pytest.raises(ValueError, match="y has 9 columns, and had 10 when the matcher was fitted"):
        fitted.predict_pairs(DATA.X, DATA.Y[:, :-1])
    with pytest.raises(ValueError, match="X has 600 rows and y has 599"):
        fitted.score_samples(DATA.X, DATA.Y[:-1])
    with pytest.raises(ValueError, match="k must be a whole number"):
        fitted.find_partners(DATA.X, k=0)
    with pytest.raises(ValueError, match="9 features"):
        fitted.transform(DATA.X[:, :-1])


def test_gaps_of_new_rows_are_filled_with_means(fitted):
    X = DATA.X[NEW].copy()
    X[0, :3] = np.nan
    assert np.isfinite(fitted.transform(X)).all()
    assert np.isfinite(fitted.score_samples(X, DATA.Y[NEW])).all()
    assert fitted.find_partners(X[:5]).rows.shape == (5, 1)


def test_of_more_pairs_than_are_judged_one_by_one(monkeypatch):
    import inlier.estimators.calibrated as module

    monkeypatch.setattr(module, "MOST_ONE_BY_ONE", 400)
    matcher = CalibratedMatcher(random_state=0).fit(DATA.X, DATA.Y)
    assert matcher.map_.error < 0.4
    real = DATA.inlier_mask
    assert matcher.predict_pairs(DATA.X, DATA.Y).inlier_mask[real].mean() > 0.9
    assert (matcher.find_partners(DATA.X[real]).rows[:, 0] == np.flatnonzero(real)).mean() > 0.9
    with pytest.raises(ValueError, match="unpaired is respected among up to 400 pairs"):
        CalibratedMatcher().fit(DATA.X, DATA.Y, unpaired=(DATA.X, DATA.Y))


def test_a_registration_judges_new_pairs_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, [1, 2, 0]] + 5 + 0.01 * rng.normal(size=X.shape)
    y[::2] = rng.normal(size=(200, 3)) + 5
    registration = Registration(random_state=0)
    mask = registration.fit_predict(X[:200], y[:200])
    np.testing.assert_array_equal(mask, registration.inlier_mask_)
    judged = registration.predict_pairs(X[200:], y[200:])
    assert judged.inlier_mask[1::2].mean() > 0.9
    assert judged.inlier_mask[::2].mean() < 0.05
    np.testing.assert_allclose(registration.predict(X), registration.transform(X))
    assert 0.7 < registration.score(X[200:], y[200:]) < 0.8
    wide = make_gaussian_pairs(n=400, d=120, inlier_fraction=0.7, noise=0.1, rng=0)
    by_matching = Registration("orthogonal", random_state=0).fit(wide.X, wide.Y)
    np.testing.assert_array_equal(by_matching.predict_pairs(wide.X, wide.Y).inlier_mask, wide.inlier_mask)
