from __future__ import annotations

import json

import numpy as np
import pytest

from inlier import CalibratedMatcher, RowSumMatcher, SplitMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.report import Origin, summarise
from inlier.report.match_summary import VERDICTS, percent

NOISY = make_gaussian_pairs(600, 3, 0.5, noise=0.3, rng=0)


@pytest.fixture(scope="module")
def fitted():
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
    assert "\N{PLUS-MINUS SIGN}" not in summary.details[0]  # parts know no error of the whole


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
