from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.report.charts import label, linear, logarithmic, round_numbers, with_lower_tail

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
        (-1e13, "\N{MINUS SIGN}1e13"),
        (1e-5, "1e\N{MINUS SIGN}5"),
        (-2.5, "\N{MINUS SIGN}2.5"),
    ],
)
def test_label(value, text):
    assert label(value) == text
