from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from inlier import CalibratedMatcher, RowSumMatcher, SplitMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.report import Origin, summarise
from inlier.report.match_summary import VERDICTS
from inlier.report.words import interval_in_words, percent

CLEAR = make_gaussian_pairs(600, 3, 0.5, noise=0.15, rng=0)
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
    assert summary.counts["doubtful"] > 0


def test_sentences(fitted):
    summary = summarise(fitted)
    counts = summary.counts
    assert summary.answer == f"{counts['real']} of 600 pairs are real, with at most 1 % wrong among them."
    assert summary.details[1] == (
        f"{counts['wrong']} pairs are more likely wrong than real; {counts['doubtful']} pairs are doubtful."
    )


def test_the_share_is_said_as_its_interval(fitted, not_parted):
    low, high = fitted.inlier_fraction_interval_
    assert summarise(fitted).interval == (low, high)
    assert summarise(fitted).share == f"between {int(100 * low)} and {int(100 * high) + 1} %"
    assert not_parted.inlier_fraction_interval_[1] == 1
    assert summarise(not_parted).share == f"at least {int(100 * not_parted.inlier_fraction_interval_[0])} %"
    assert json.loads(summarise(fitted).json())["inlier_fraction_interval"] == [low, high]


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
    assert summary.details[1].startswith(f"{600 - accepted} pairs are doubtful. None is called wrong: ")
    assert "more likely wrong" not in summary.json()


def test_two_swaps_among_clear_pairs_are_called_wrong():
    data = make_gaussian_pairs(500, 20, 1.0, noise=0.1, rng=0)
    data.Y[[3, 7]] = data.Y[[7, 3]]
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert matcher.inlier_fraction_interval_[1] == 1  # and yet they stand apart
    assert np.flatnonzero(summarise(matcher).verdicts == VERDICTS.index("wrong")).tolist() == [3, 7]


@pytest.mark.filterwarnings("ignore::inlier.exceptions.DependenceWarning")
def test_what_follows_another_map_is_not_called_wrong():
    rng = np.random.default_rng(0)
    x, turns = rng.normal(size=(1000, 4)), [np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(2)]
    y = np.concatenate([x[:600] @ turns[0], x[600:900] @ turns[1], rng.normal(size=(100, 4))])
    matcher = CalibratedMatcher(random_state=0).fit(x, y + 0.05 * rng.normal(size=y.shape))
    assert (matcher.map_labels_[600:900] == 1).all()
    summary = summarise(matcher)
    assert 90 < summary.counts["wrong"] <= 100
    assert (summary.verdicts[600:900] == VERDICTS.index("doubtful")).all()


def test_without_a_lower_end_the_accepted_may_be_swaps(fitted):
    summary = replace(summarise(fitted), inlier_fraction_interval=(0.0, 0.8))
    assert "unless similar rows were swapped" in summary.answer
    assert summary.share == "at most 80 %; how few cannot be told, since similar rows may have been swapped unnoticed"
    assert "unless" not in summarise(fitted).answer


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
    low, high = matcher.inlier_fraction_interval_
    assert low < matcher.inlier_fraction_ < high


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
        "Share of real pairs, found or not: cannot be told from these scores.",
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


@pytest.mark.parametrize(("noise", "is_said"), [(0.01, False), (1.0, True)])
def test_it_is_said_where_swaps_between_similar_rows_would_go_unnoticed(noise, is_said):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    summary = summarise(CalibratedMatcher(random_state=0).fit(X, X + noise * rng.normal(size=X.shape)))
    assert ("most similar" in " ".join(summary.details)) == is_said
    assert (summary.to_dict()["look_alike_rate"] > 0.5) == is_said
