"""What was learned, frozen: the same answer in any batch, its promises, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from inlier import CalibratedMatcher, Judge
from inlier.datasets import make_gaussian_pairs
from inlier.exceptions import DependenceWarning, ParameterError
from inlier.judge.side import Side, bits_for, whole_rows

# which model, pairs of the fit, dimensions, share of real ones, noise
MODELS = {
    "map": (600, 20, 0.7, 0.2),
    "regression": (600, 6, 0.95, 2.0),
    "ridge": (150, 60, 0.8, 0.5),
    "anchors": (300, 200, 0.15, 0.05),
}


def fitted(model, seed=0, **settings):
    n, d, share, noise = MODELS[model]
    data = make_gaussian_pairs(n=3 * n, d=d, inlier_fraction=share, noise=noise, rng=seed)
    matcher = CalibratedMatcher(random_state=seed, **settings).fit(data.X[:n], data.Y[:n])
    return matcher, data.X[n:], data.Y[n:], data.inlier_mask[n:]


@pytest.fixture(scope="module", params=MODELS)
def learned(request):
    return fitted(request.param)


@pytest.fixture(scope="module")
def by_map():
    return fitted("map")


def test_the_models_are_those_that_were_meant(learned, request):
    kinds = {"LinearMap": "likelihood", "Regression": "likelihood", "RidgeMap": "cosine", "AnchorPairs": "agreement"}
    judge = learned[0]._learned.judges.folds[0].judge
    assert learned[0].judge_.views[0].kind == kinds[type(judge).__name__]


def test_a_row_is_judged_alike_in_any_batch(learned):
    matcher, X, Y, _ = learned
    judge = matcher.judge_
    whole = judge(X, Y)
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 7, 64, 255):
        rows = rng.permutation(len(X))[:size]
        assert (judge(X[rows], Y[rows]).scores == whole.scores[rows]).all()
    many = np.tile(np.arange(len(X)), 9)  # more than are judged at a time
    again = judge(np.asfortranarray(X[many]), Y[many])
    for name, column in again.columns().items():
        assert (column == whole.columns()[name][many]).all()


@pytest.mark.parametrize("model", ["map", "regression"])
def test_scores_of_many_rows_are_those_of_the_judge_of_a_fold(model):
    matcher, X, Y, _ = fitted(model)
    kept = matcher._learned
    of_folds = [fold.standardised(fold.judge.scores(*kept.prepared(X, Y))) for fold in kept.judges.folds]
    nearest = min(np.abs(scores - matcher.judge_(X, Y).scores).max() for scores in of_folds)
    assert nearest < 1e-4 * np.ptp(of_folds)


def test_it_finds_what_a_batch_beside_its_own_re_pairings_finds(learned):
    matcher, X, Y, right = learned
    found, beside = matcher.judge_(X, Y), matcher.predict_pairs(X[:60], Y[:60])
    assert found.inlier_mask[right].mean() > beside.inlier_mask[right[:60]].mean() - 0.3  # 0.2 in 12 fits, of few pairs
    assert found.inlier_mask[~right].mean() < 0.05
    assert not found.certain_mask[~found.inlier_mask].any()


@pytest.mark.seeds
def test_rates_hold_for_pairs_like_those_of_the_fit(seed, promise):
    for model in MODELS:
        matcher, X, Y, right = fitted(model, seed, alpha=0.05)
        found = matcher.judge_(X, Y)
        accepted = found.inlier_mask
        promise(f"wrong among accepted, {model}", int((accepted & ~right).sum()), max(int(accepted.sum()), 1), 0.05)
        promise(f"p below .05, {model}", int((found.p_values[~right] <= 0.05).sum()), int((~right).sum()), 0.06)


def test_nothing_learned_is_nothing_found():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 200, 5))
    judge = CalibratedMatcher(random_state=0).fit(X, Y).judge_
    found = judge(X, Y)
    assert (found.p_values == 1).all()
    assert (found.q_values == 1).all()
    assert not found.inlier_mask.any()
    assert "nothing was learned" in repr(judge)
    assert not judge(X[:0], Y[:0]).inlier_mask.size


def test_strangers_are_not_accepted(by_map):
    matcher, X, Y, _ = by_map
    found = matcher.judge_(X, Y[np.random.default_rng(1).permutation(len(Y))])
    assert found.inlier_mask.mean() < 0.05  # q-values are those of a share of wrong pairs like the fit's
    assert 0.02 < (found.p_values <= 0.05).mean() < 0.09


def test_strata_and_groups_are_those_of_the_fit():
    rng = np.random.default_rng(0)
    plates = np.repeat(np.arange(8), 100)
    X = rng.normal(size=(800, 6)) + 6 * rng.normal(size=(8, 6))[plates]
    Y = X @ rng.normal(size=(6, 6)) + 0.5 * rng.normal(size=(800, 6))
    wrong = np.concatenate([np.roll(np.flatnonzero(plates == plate)[:20], 1) for plate in range(8)])
    Y[np.sort(wrong)] = Y[wrong]
    inside = CalibratedMatcher(random_state=0).fit(X, Y, strata=plates).judge_
    anywhere = CalibratedMatcher(random_state=0).fit(X, Y).judge_
    i = np.arange(800)
    j = np.concatenate([np.roll(np.flatnonzero(plates == plate), 7) for plate in range(8)])
    share = [(judge(X[i], Y[j]).p_values <= 0.05).mean() for judge in (inside, anywhere)]
    assert share[0] < 0.12 < share[1]


def test_many_pairs_are_judged_by_a_map_learned_anew():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(210_000, 3))
    Y = X @ np.linalg.qr(rng.normal(size=(3, 3)))[0] + 0.05 * rng.normal(size=X.shape)
    Y[::3] = rng.normal(size=Y[::3].shape)
    judge = CalibratedMatcher(random_state=0).fit(X, Y).judge_
    found = judge(X[:30_000], Y[:30_000])
    right = np.arange(30_000) % 3 > 0
    assert found.inlier_mask[right].mean() > 0.9
    assert found.inlier_mask[~right].sum() <= 0.02 * found.inlier_mask.sum()


def test_two_views_and_rows_without_a_partner_have_judges_too():
    data = make_gaussian_pairs(n=900, d=12, inlier_fraction=0.8, noise=0.3, rng=0)
    X, Y, right = data.X[:300], data.Y[:300], data.inlier_mask[300:600]
    alike = CalibratedMatcher(random_state=0, same_columns=True).fit(X, X + 0.3 * Y).judge_
    assert len(alike.views) >= 2
    rest = data.X[600:], data.Y[600:]
    helped = CalibratedMatcher(random_state=0).fit(X, Y, unpaired=rest).judge_
    found = helped(data.X[300:600], data.Y[300:600])
    assert found.inlier_mask[right].mean() > 0.8
    assert found.inlier_mask[~right].mean() < 0.1


def test_columns_that_stand_in_both_tables_are_left_out_here_too():
    data = make_gaussian_pairs(n=600, d=8, inlier_fraction=0.8, noise=0.2, rng=0)
    age = np.random.default_rng(0).normal(size=600)
    X, Y = (np.column_stack([table[:, :3], age, table[:, 3:]]) for table in (data.X, data.Y))
    with pytest.warns(DependenceWarning, match="Column 3 is the same in X and y"):
        judge = CalibratedMatcher(random_state=0).fit(X[:300], Y[:300]).judge_
    found = judge(X[300:], Y[300:])
    assert (judge(X[300:], np.column_stack([Y[300:, :3], -age[300:], Y[300:, 4:]])).scores == found.scores).all()
    assert found.inlier_mask[data.inlier_mask[300:]].mean() > 0.8
    assert found.inlier_mask[~data.inlier_mask[300:]].mean() < 0.1


def test_gaps_count_as_usual_values_and_infinity_is_refused(by_map):
    matcher, X, Y, _ = by_map
    holed = X.copy()
    holed[0, :3] = np.nan
    filled = X.copy()
    filled[0, :3] = matcher._learned.preparation.map_x.mean[:3]
    assert np.isclose(matcher.judge_(holed, Y).scores, matcher.judge_(filled, Y).scores).all()
    holed[0, 0] = np.inf
    with pytest.raises(ParameterError, match="x contains infinity"):
        matcher.judge_(holed, Y)
    huge = X[:1] * 1e200
    assert matcher.judge_(huge, Y[:1]).p_values[0] > 0.5


def test_other_tables_are_refused(by_map):
    matcher, X, Y, _ = by_map
    with pytest.raises(ParameterError, match="x has 3 columns, and had 20 in the fit"):
        matcher.judge_(X[:, :3], Y)
    with pytest.raises(ValueError, match="one row per pair"):
        matcher.judge_(X[:5], Y[:4])


def test_names_of_columns_are_kept():
    pandas = pytest.importorskip("pandas")
    data = make_gaussian_pairs(n=300, d=3, inlier_fraction=0.9, noise=0.1, rng=0)
    X, Y = (pandas.DataFrame(table, columns=list("abc")) for table in (data.X, data.Y))
    judge = pickle.loads(pickle.dumps(CalibratedMatcher(random_state=0, same_columns=False).fit(X, Y).judge_))
    assert judge.columns_x == judge.columns_y == ("a", "b", "c")
    with pytest.raises(ParameterError, match="x has other columns than in the fit, or in another order"):
        judge(X[["b", "a", "c"]], Y)


def test_a_fit_has_one_judge_and_another_fit_another(by_map):
    matcher, X, Y, _ = by_map
    assert matcher.judge_ is matcher.judge_
    again = CalibratedMatcher(random_state=0).fit(X[:300], Y[:300])
    first = again.judge_
    assert again.fit(X[300:600], Y[300:600]).judge_ is not first


@pytest.mark.filterwarnings("ignore:.*far fewer pairs than numbers")
@pytest.mark.parametrize("d", [900, 350])
def test_it_stays_below_a_megabyte(d):
    data = make_gaussian_pairs(n=200, d=d, inlier_fraction=0.9, noise=0.1, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X[:150], data.Y[:150])
    assert len(pickle.dumps(matcher.judge_)) < 2**20
    found = matcher.judge_(data.X[150:], data.Y[150:])
    assert found.inlier_mask[data.inlier_mask[150:]].mean() > 0.9


def test_products_are_exact_whatever_the_order():
    rng = np.random.default_rng(0)
    for d in (1, 3, 300, 5000):
        rows, columns = rng.normal(size=(20, d)) * 10.0 ** rng.integers(-8, 8, (20, 1)), rng.normal(size=(d, 4))
        whole, _ = whole_rows(rows, bits_for(d))
        turned, _ = whole_rows(columns.T, bits_for(d))
        order = rng.permutation(d)
        assert (whole @ turned.T == whole[:, order] @ turned[:, order].T).all()
        assert np.abs(whole @ turned.T).max() <= 2.0**53
        nothing = np.zeros(d)
        side = Side(np.arange(d), d, nothing, -1.0, nothing, columns.astype(np.float32), np.zeros(4))
        plain = (rows @ columns).T
        assert np.abs(side.features(rows) - plain).max() < 1e-4 * np.abs(plain).max()


def test_scores_are_python_alone(by_map):
    """A judge in another process needs no fit: nothing of the estimators is loaded."""
    import subprocess
    import sys

    judge = pickle.dumps(by_map[0].judge_)
    code = (
        "import pickle, sys; judge = pickle.loads(sys.stdin.buffer.read());"
        "import numpy as np; judge(np.zeros((2, 20)), np.zeros((2, 20)));"
        "print([m for m in sys.modules if m.startswith(('inlier.estimators', 'inlier.calibration', 'numba'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], input=judge, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
    assert isinstance(pickle.loads(judge), Judge)
