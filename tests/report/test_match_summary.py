from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy.spatial import cKDTree

from inlier import CalibratedMatcher, RowSumMatcher, SplitMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.estimators import calibrated
from inlier.exceptions import DependenceWarning
from inlier.report import Origin, summarise
from inlier.report.match_summary import VERDICTS
from inlier.report.words import certain_in_words, interval_in_words, percent, share_in_words

CLEAR = make_gaussian_pairs(600, 3, 0.5, noise=0.2, rng=0)
NOISY = make_gaussian_pairs(600, 3, 0.5, noise=0.3, rng=0)  # real pairs score as wrong ones do


@pytest.fixture(scope="module")
def fitted():
    return CalibratedMatcher(alpha=0.01, random_state=0).fit(CLEAR.X, CLEAR.Y)


@pytest.fixture(scope="module")
def not_parted():
    return CalibratedMatcher(alpha=0.01, random_state=0).fit(NOISY.X, NOISY.Y)


def test_verdicts_follow_the_q_values(fitted):
    summary = summarise(fitted)
    q = fitted.q_values_
    words = np.array(VERDICTS)[summary.verdicts]
    assert (words == "real").tolist() == (q <= 0.01).tolist()
    assert (words == "wrong").tolist() == (q > 0.5).tolist()
    assert summary.counts == {word: int((words == word).sum()) for word in VERDICTS}
    assert min(summary.counts.values()) > 0


def test_sentences(fitted):
    summary = summarise(fitted)
    counts = summary.counts
    assert summary.answer == f"{counts['real']} of 600 pairs are real, with at most 1 % wrong among them."
    wrong = fitted.wrong_at_most()
    assert summary.details[0] == f"In this table at most {wrong} of them are wrong, with 95 % confidence."
    assert summary.details[-1] == (
        f"{counts['wrong']} pairs are more likely wrong than real; {counts['doubtful']} pairs are doubtful."
    )


def test_the_share_is_said_with_its_bound_from_below(fitted):
    summary, at_least = summarise(fitted), fitted.inlier_fraction_at_least_
    assert 0.3 < at_least < fitted.inlier_fraction_
    said = next(sentence for sentence in summary.details if "found or not" in sentence)
    assert said == share_in_words(fitted.inlier_fraction_, at_least, found=True)
    content = json.loads(summary.json())
    assert (content["inlier_fraction"], content["inlier_fraction_at_least"]) == (fitted.inlier_fraction_, at_least)
    assert content["wrong_at_most"] == fitted.wrong_at_most(confidence=0.95)


@pytest.mark.parametrize(
    ("share", "at_least", "found", "words"),
    [
        (0.8, 0.7, True, "About 80 % of all pairs are real, found or not; at least 70 % with 95 % confidence."),
        (
            0.8,
            0.7999,
            True,
            "About 80.00 % of all pairs are real, found or not; at least 79.99 % with 95 % confidence.",
        ),
        (0.8, 0.79777, True, "About 80.0 % of all pairs are real, found or not; at least 79.7 % with 95 % confidence."),
        (0.8, None, True, "About 80 % of all pairs are real, found or not."),
        (0.1, 0.0, True, "About 10 % of all pairs are real, found or not; how few cannot be told."),
        (0.1, 0.0, False, "How many of all pairs are real, found or not, cannot be told from these scores."),
        (0.9, 0.8, False, "About 90 % of all pairs are real, found or not; at least 80 % with 95 % confidence."),
    ],
)
def test_the_share_in_words(share, at_least, found, words):
    assert share_in_words(share, at_least, found=found) == words


@pytest.mark.parametrize(
    ("n_certain", "n_others", "fit", "words"),
    [
        (9412, 188, (2, 7), "9,412 are certain: {}; most of the others could as well be one of 2 to 7 rows."),
        (9412, 188, (1, 7), "9,412 are certain: {}; most of the others could as well be one of up to 7 rows."),
        (1, 1, (7, 7), "1 is certain: {}; the other one could as well be one of 7 rows."),
        (5, 3, (1, 1), "5 are certain: {}; the other 3 are not sure enough for alpha = 0.01."),
        (5, 1, (1, 1), "5 are certain: {}; the other one is not sure enough for alpha = 0.01."),
        (0, 9, (20, 1300), "None is certain: most could as well be one of 20 to 1,300 rows."),
        (0, 1, (4, 4), "It is not certain: it could as well be one of 4 rows."),
        (0, 9, (1, 1), "None is certain: no other row seems to fit, but that is not sure enough for alpha = 0.01."),
        (9, 0, (1, 1), "All of them are certain: {}."),
        (1, 0, (1, 1), "It is certain: {}."),
    ],
)
def test_the_certain_in_words(n_certain, n_others, fit, words):
    assert certain_in_words(n_certain, n_others, fit, 0.01) == words.format("no other row would fit")


def test_where_no_other_row_fits_nearly_all_are_certain():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    matcher = CalibratedMatcher(random_state=0).fit(X, X[:, ::-1] + 0.05 * rng.normal(size=X.shape))
    summary, n_certain = summarise(matcher), int(matcher.certain_mask_.sum())
    assert 390 < n_certain == summary.n_certain
    assert summary.details[1] == certain_in_words(n_certain, summary.n_inliers - n_certain, (1, 1), 0.01)
    content = json.loads(summary.json())
    assert content["n_certain"] == n_certain
    for name in ("certain", "certain_q_value", "n_rivals"):
        assert content["pairs"][name] == matcher.result_.columns()[name].tolist()


def test_where_many_rows_fit_it_is_said_how_many():
    """As clear that they belong together as it can be, and as unclear which with which."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    matcher = CalibratedMatcher(random_state=0).fit(X, X + rng.normal(size=X.shape))
    summary = summarise(matcher)
    assert summary.counts["real"] > 350
    assert summary.n_certain == 0
    said = re.fullmatch(r"None is certain: most could as well be one of (\d+) to (\d+) rows.", summary.details[1])
    low, high = map(int, said.groups())
    fit = 1 + matcher.n_rivals_[matcher.inlier_mask_]
    assert 20 < low < np.median(fit) < high < 400
    assert 0.7 < np.mean((low <= fit) & (fit <= high)) < 0.9


def test_where_others_were_not_compared_it_is_said(monkeypatch):
    monkeypatch.setattr(calibrated, "MOST_ONE_BY_ONE", 1000)
    data = make_gaussian_pairs(2000, 4, 0.9, noise=0.1, rng=0)
    summary = summarise(CalibratedMatcher(random_state=0).fit(data.X, data.Y))
    assert summary.n_certain is None
    assert summary.details[1] == (
        "Whether another row would fit as well was not looked at: there are more than 1,000 pairs."
    )
    assert set(json.loads(summary.json())["pairs"]["n_rivals"]) == {-1}


def test_what_was_refused_is_said_and_not_called_wrong():
    """Rows of two unrelated sets that are each other's nearest."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((2, 1500, 3))
    of_x, of_y = cKDTree(Y).query(X)[1], cKDTree(X).query(Y)[1]
    rows = np.flatnonzero(of_y[of_x] == np.arange(1500))
    with pytest.warns(DependenceWarning, match="chosen because they are near"):
        matcher = CalibratedMatcher(random_state=0).fit(X[rows], Y[of_x[rows]])
    summary = summarise(matcher)
    assert summary.answer.startswith(f"None of the {rows.size} pairs can be called real")
    assert f"{rows.size} pairs were refused: chosen because they are near." in summary.details
    assert summary.counts == {"real": 0, "doubtful": rows.size, "wrong": 0}
    assert "would be accepted from alpha" not in " ".join(summary.details)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((0.0, 1.0), "cannot be told from these scores"),
        ((0.003, 1.0), "cannot be told from these scores"),
        ((0.78, 0.82), "between 78 and 82 %"),
        ((0.7801, 0.8199), "between 78 and 82 %"),
        ((0.7985, 0.8012), "between 79.8 and 80.2 %"),
        ((0.9991, 0.9999), "between 99.91 and 99.99 %"),
        ((0.989, 1.0), "at least 98.9 %"),
        ((0.0, 0.972), "at most 98 %"),
    ],
)
def test_intervals_are_rounded_outwards(ends, words):
    assert interval_in_words(*ends) == words


def test_nobody_is_called_wrong_where_real_pairs_score_as_wrong_ones_do(not_parted):
    summary = summarise(not_parted)
    accepted = int(not_parted.inlier_mask_.sum())
    assert (not_parted.q_values_ > 0.5).sum() > 100
    assert summary.counts == {"real": accepted, "doubtful": 600 - accepted, "wrong": 0}
    assert set(summary.verdicts.tolist()) == {0, 1}
    assert any(
        said.startswith(f"{600 - accepted} pairs are doubtful. None is called wrong: ") for said in summary.details
    )
    assert "more likely wrong" not in summary.json()


def test_two_swaps_among_clear_pairs_are_called_wrong():
    data = make_gaussian_pairs(500, 20, 1.0, noise=0.1, rng=0)
    data.Y[[3, 7]] = data.Y[[7, 3]]
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert np.flatnonzero(summarise(matcher).verdicts == VERDICTS.index("wrong")).tolist() == [3, 7]


def test_of_the_paper_nothing_is_promised():
    summary = summarise(RowSumMatcher().fit(NOISY.X, NOISY.Y))
    assert "promises nothing" in summary.answer
    assert summary.details == []
    assert summary.counts["doubtful"] == 0
    assert summary.settings == {"threshold": "kmeans", "whiten": False, "solver": "auto", "n_splits": 1}


def test_records_and_json(fitted):
    keys = [f"s{number}" for number in range(600)]
    summary = summarise(fitted, keys=keys, rows=np.arange(600) * 2, origin=Origin(("a", "b"), "inlier", ("noted",)))
    worst = summary.worst(3)
    assert [record["row"] for record in worst] == (2 * fitted.result_.worst(3)).tolist()
    assert worst[0]["key"] == f"s{worst[0]['row'] // 2}"
    content = json.loads(summary.json())
    assert content["worst"][:3] == worst
    assert content["notes"] == ["noted"]
    assert content["pairs"]["key"] == keys
    assert content["pairs"]["q_value"] == fitted.q_values_.tolist()
    with pytest.raises(ValueError, match="keys must name each of the 600 pairs"):
        summarise(fitted, keys=["one"])


def test_parts_are_summed_up():
    matcher = SplitMatcher(CalibratedMatcher(alpha=0.05), 3, random_state=4).fit(NOISY.X, NOISY.Y)
    summary = summarise(matcher)
    assert summary.alpha == 0.05
    assert summary.method == "calibrated"
    assert summary.settings["n_splits"] == 3
    assert summary.settings["random_state"] == 4
    assert summary.null_scores.size == matcher.null_scores_.size > 600
    assert "not looked at: a part does not see the rows of the others." in summary.details[0]
    assert (summary.n_certain, summary.wrong_at_most, summary.inlier_fraction_at_least) == (None, None, None)


@pytest.mark.parametrize(
    ("n", "alpha", "says"),
    [
        (8, 0.01, "is out of reach"),
        (8, 0.02, "in reach only if"),
        (300, 0.01, None),
        (300, 0.0, "is out of reach"),
    ],
)
def test_what_so_few_pairs_can_show(n, alpha, says):
    data = make_gaussian_pairs(n, 2, 1.0, rng=0)
    matcher = CalibratedMatcher(alpha=alpha, random_state=0).fit(data.X, data.Y)
    sentence = summarise(matcher).out_of_reach
    assert (sentence is None) if says is None else (says in sentence)
    if says == "is out of reach":
        assert not matcher.inlier_mask_.any()  # the sentence is true


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_the_fewest_real_pairs_are_what_the_calibration_needs(k):
    """k scores above every null score are accepted exactly when the sentence says that k may be."""
    from math import ceil

    from inlier.calibration.p_values import calibrate

    n, m, alpha = 20, 600, 0.01
    null = np.linspace(-1, 1, m)
    scores = np.concatenate([np.linspace(50, 51, k), np.linspace(-1, 0.9, n - k)])
    accepted = calibrate(scores, null, (1.0, 0.0)).accepted(alpha)
    assert accepted.any() == (k >= ceil(n / (m + 1) / alpha))


def test_from_which_alpha_on_something_would_be_found():
    summary = summarise(CalibratedMatcher(alpha=1e-5, random_state=0).fit(NOISY.X, NOISY.Y))
    assert summary.result.n_inliers == 0
    said = float(summary.details[-1].split("alpha = ")[1].split(" ")[0])
    lowest = summary.result.q_values.min()
    assert lowest <= said < 1.1 * lowest


def test_nothing_in_common():
    rng = np.random.default_rng(0)
    matcher = CalibratedMatcher(random_state=0).fit(rng.normal(size=(3000, 2)), rng.normal(size=(3000, 2)))
    summary = summarise(matcher)
    assert summary.answer == "None of the 3,000 pairs can be called real at alpha = 0.01."
    assert summary.details[:2] == [
        "How many of all pairs are real, found or not, cannot be told from these scores.",
        "3,000 pairs are doubtful. None is called wrong: no pair stands out from re-paired rows, so a low score is no "
        "sign of a mistake.",
    ]
    if matcher.n_re_pairings_ <= 1:
        assert "No relation between the two sets was found" in summary.details[-1]


@pytest.mark.parametrize(
    ("share", "text"), [(0.01, "1 %"), (0.005, "0.5 %"), (0.496, "49.6 %"), (1.0, "100 %"), (0.0, "0 %"), (0.1, "10 %")]
)
def test_percent(share, text):
    assert percent(share) == text


def test_null_scores_are_kept_in_small(fitted):
    assert fitted.null_scores_.size == 10_000 < fitted.n_re_pairings_
    assert (np.diff(fitted.null_scores_) >= 0).all()
    few = make_gaussian_pairs(12, 2, 1.0, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(few.X, few.Y)
    assert matcher.null_scores_.size == matcher.n_re_pairings_
    assert matcher.p_values_.min() == pytest.approx(1 / (matcher.n_re_pairings_ + 1))
