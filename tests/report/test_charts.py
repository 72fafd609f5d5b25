from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.report import MatchSummary, Part, render_page
from inlier.report.charts import (
    label,
    linear,
    logarithmic,
    mirrored,
    q_chart,
    residual_chart,
    round_numbers,
    score_chart,
    with_lower_tail,
)
from inlier.result import MatchResult

sizes = st.floats(1e-3, 1e6)


@given(st.floats(-1e6, 1e6), sizes, st.integers(2, 8))
def test_round_numbers_lie_between(low, width, most):
    numbers = round_numbers(low, low + width, most)
    assert 0 < len(numbers) <= most + 1
    slack = 1e-6 * (abs(low) + width)
    assert all(low - slack <= number <= low + width + slack for number in numbers)


def test_round_numbers_are_round():
    assert round_numbers(0, 3000, 5) == [0, 1000, 2000, 3000]
    assert round_numbers(2, 2, 5) == [2]


@given(st.floats(-1e3, 1e3), sizes, st.floats(4, 1e12))
def test_a_compressed_tail_is_monotone_and_smooth(core, unit, times):
    low, high = core - times * unit, core + unit
    scale = with_lower_tail(low, core, high)
    places = scale.place(np.array([low, core - unit, core, high]))
    assert places[0] == pytest.approx(0, abs=1e-6)
    assert places[2] == pytest.approx(scale.break_at)
    assert places[3] == pytest.approx(1)
    assert (np.diff(places) > 0).all()
    step = 1e-4 * unit
    left, here, right = scale.place(np.array([core - step, core, core + step]))
    assert here - left == pytest.approx(right - here, rel=0.02)  # equally dense on both sides


def test_linear_and_logarithmic():
    assert linear(2, 4).place(np.array([2, 3, 4])).tolist() == [0, 0.5, 1]
    scale = logarithmic(1e-4, 1)
    assert scale.place(np.array([1e-4, 1e-2, 1])).tolist() == [0, 0.5, 1]
    assert scale.ticks == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (2000, "2,000"),
        (0.01, "0.01"),
        (-1e13, "\N{MINUS SIGN}10\u00b9\u00b3"),
        (2e7, "2\N{DOT OPERATOR}10\u2077"),
        (1e-5, "10\u207b\u2075"),
        (-2.5, "\N{MINUS SIGN}2.5"),
    ],
)
def test_label(value, text):
    assert label(value) == text


def summary_of(scores, q_values=None, threshold=0.5, null=None, **facts):
    scores = np.asarray(scores, dtype=float)
    q_values = None if q_values is None else np.asarray(q_values, dtype=float)
    mask = scores >= np.min(threshold)
    result = MatchResult("matcher", mask, scores, threshold, q_values, q_values)
    null = None if null is None else np.asarray(null, dtype=float)
    return MatchSummary(result, "calibrated", {}, np.arange(scores.size), null_scores=null, **facts)


def page_of(chart):
    return render_page(
        "charts",
        [
            Part(
                "charts.html",
                {
                    "charts": [chart],
                    "judged_by": "score",
                    "n_re_pairings": None,
                    "tells_wrong": True,
                    "tells_certain": True,
                },
            )
        ],
    )


def svg_of(chart):
    """The page's drawing, by the template that the report uses."""
    page = page_of(chart)
    return page[page.index("<svg") : page.index("</svg>")]


THREE_KINDS = {"scores": [0, 0, 0.2, 0.4, 0.4, 1, 1, 1], "q_values": [1, 1, 1, 0.3, 0.3, 0.01, 0.01, 0.01]}


def test_bars_stand_on_each_other_and_say_how_many_pairs_they_are():
    chart = score_chart(summary_of(**THREE_KINDS, alpha=0.05))
    said = [bar["title"] for bar in chart["bars"]]
    assert sorted(said) == ["1 pair, wrong", "2 pairs, doubtful", "2 pairs, wrong", "3 pairs, real"]
    assert chart["verdicts"] == ["real", "doubtful", "wrong"]
    per_pair = {round(bar["height"] / int(bar["title"].split()[0]), 3) for bar in chart["bars"]}
    assert len(per_pair) == 1  # heights are in proportion to the counts
    together = score_chart(summary_of([0.4, 0.4, 0.4], q_values=[1, 0.3, 0.01], threshold=0.4))["bars"]
    tops = [bar["y"] for bar in together]
    assert [bar["verdict"] for bar in together] == ["real"]
    mixed = summary_of([0.0, 1.0, 1.0, 1.0], q_values=[1, 1, 0.3, 0.3], threshold=2.0)
    wrong, doubtful = (bar for bar in score_chart(mixed)["bars"] if bar["x"] > 300)
    assert wrong["y"] == pytest.approx(doubtful["y"] + doubtful["height"])  # the doubtful ones on top of the wrong
    assert len(tops) == 1


def test_the_drawing_shows_bars_with_tooltips_ticks_and_the_threshold():
    chart = score_chart(summary_of(**THREE_KINDS, alpha=0.05))
    svg = svg_of(chart)
    assert svg.count("<rect") == len(chart["bars"]) == svg.count("<title>")
    assert "<title>3 pairs, real</title>" in svg
    assert re.findall(r'text-anchor="middle">([\d.]+)<', svg) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert svg.count('class="cut"') == 1
    assert ">threshold<" in svg
    assert 'aria-label="Histogram of the scores with the cut"' in svg


def test_the_threshold_stands_where_its_score_does():
    chart = score_chart(summary_of([0, 1, 2, 3, 4], threshold=3.0))
    assert chart["cuts"] == pytest.approx([chart["left"] + 0.75 * (chart["right"] - chart["left"])])
    several = score_chart(summary_of([0, 1, 2, 3, 4], threshold=np.array([1.0, 3.0, 9.0])))
    assert len(several["cuts"]) == 2  # one lies outside
    assert several["cut_label"] == "thresholds"


def test_the_null_is_drawn_to_the_number_of_wrong_pairs():
    """Ten wrong pairs of twenty: an outline over one bin, as high as half of the bar of all twenty would be."""
    chart = score_chart(summary_of([0.0] * 10 + [1.0] * 10, null=np.zeros(1000), inlier_fraction=0.5))
    heights = [float(y) for y in re.findall(r"L[\d.]+ ([\d.]+)", chart["outline"])]
    wrong = next(bar for bar in chart["bars"] if bar["verdict"] == "wrong")
    assert min(heights) == pytest.approx(wrong["y"], abs=0.1)
    assert score_chart(summary_of([0.0, 1.0]))["outline"] is None


def test_few_pairs_are_seen_beside_many():
    few = score_chart(summary_of([0.0] * 5000 + [1.0] * 5, threshold=0.5))
    assert few["log_counts"]
    bars = {bar["verdict"]: bar["height"] for bar in few["bars"]}
    assert bars["real"] / bars["wrong"] == pytest.approx(np.log(6) / np.log(5001))
    assert [tick["label"] for tick in few["y_ticks"]] == ["0", "1", "10", "100", "1,000"]
    assert "on a logarithmic axis" in page_of(few)
    assert not score_chart(summary_of([0.0] * 100 + [1.0] * 5, threshold=0.5))["log_counts"]


def test_a_long_tail_is_compressed_and_said():
    far = [-1e6, *np.linspace(-3, 3, 50)]
    chart = score_chart(summary_of(far))
    assert chart["left"] < chart["break"] < chart["right"]
    assert 'class="gap"' in svg_of(chart)
    assert score_chart(summary_of(np.linspace(-3, 3, 50)))["break"] is None


def test_residuals_run_the_other_way():
    residuals = np.array([0.1, 0.2, 0.3, 500.0])
    chart = residual_chart(summary_of(-residuals, threshold=-0.3), residuals, np.array([400.0, 600.0]), 0.3)
    left = {bar["verdict"]: bar["x"] for bar in chart["bars"]}
    assert left["real"] < chart["cuts"][0] < left["wrong"]
    assert chart["cut_label"] == "noise bound"
    assert "Right of the dotted line the axis is compressed." in page_of(chart)


def test_mirrored_scales():
    scale = mirrored(linear(-4, 0))
    assert scale.place(np.array([0.0, 1.0, 4.0])).tolist() == [0, 0.25, 1]
    assert scale.ticks == [0, 1, 2, 3, 4]


def test_the_curve_passes_through_what_was_accepted():
    q = np.sort(np.r_[np.full(30, 1e-3), np.linspace(0.1, 1, 70)])
    chart = q_chart(summary_of(-q, q_values=q, threshold=-0.01, alpha=0.01))
    across = chart["left"] + 0.3 * (chart["right"] - chart["left"])
    assert chart["dot"] == pytest.approx(across)
    assert chart["dot_label"] == "30 accepted with at most 1 % wrong"
    assert chart["dot_height"] == pytest.approx(chart["alpha"])
    points = np.array([point.split() for point in chart["line"][1:].split("L")], dtype=float)
    assert (np.diff(points[:, 0]) > 0).all()
    assert (np.diff(points[:, 1]) <= 0).all()  # up the page
    assert [tick["label"] for tick in chart["y_ticks"]] == ["10\u207b\u2074", "0.001", "0.01", "0.1", "1"]
    assert q_chart(summary_of(-q)) is None  # the paper's methods have no q-values


def test_labels_do_not_run_into_each_other():
    chart = score_chart(summary_of(np.linspace(1_234_567, 1_234_569, 50), threshold=1_234_568))
    ticks = chart["x_ticks"]
    assert len(ticks) >= 2
    for before, after in pairwise(ticks):
        assert after["at"] - before["at"] > 4.5 * (len(before["label"]) + len(after["label"]))
