from __future__ import annotations

import numpy as np
import pytest

from inlier.images.regions import describe, find_peaks, fit_tail, outline, q_values, with_gaps_closed, without_specks


def test_peaks_are_the_highest_around_and_level_places_count_as_nothing():
    evidence = np.zeros((200, 300), np.float32)
    evidence[50, 60], evidence[52, 63], evidence[150, 250] = 3, 2, 5
    valid = np.ones_like(evidence)
    peaks = find_peaks(evidence, valid)
    assert np.sort(peaks)[-3:].tolist() == pytest.approx([0.05, 3, 5])  # the 2 is too near to the 3
    assert peaks.size == round(200 * 300 / 15**2 / 4)
    valid[:100] = 0
    assert np.sort(find_peaks(evidence, valid))[-2:].tolist() == pytest.approx([0.05, 5])


def test_the_tail_is_a_generalised_pareto_and_stretched_to_the_photos_own_peaks():
    rng = np.random.default_rng(0)
    null, peaks = rng.gamma(4, 0.25, 400), rng.gamma(4, 0.25, 200)
    tail = fit_tail(null, peaks)
    assert tail.start == pytest.approx(np.quantile(null, 0.8), rel=0.15)
    high = np.array([tail.start, 2 * tail.start, 4 * tail.start])
    assert tail.p_values(high) == pytest.approx(0.2 * np.array([1, 1 / 16, 1 / 256]))  # (z / start)^-4
    assert tail.p_values(np.array([0.0])) == pytest.approx(0.2)
    assert fit_tail(null, 3 * peaks).start == pytest.approx(3 * tail.start, rel=0.1)
    assert fit_tail(null, peaks / 3).start == pytest.approx(np.quantile(null, 0.8))
    changed = np.where(np.arange(200) < 60, 20.0, peaks)  # three tenths of the photo
    assert fit_tail(null, changed).start < 2 * tail.start
    assert q_values(tail.p_values(changed))[:60].max() < 0.05
    assert q_values(tail.p_values(peaks)).min() > 0.05


def test_a_region_ends_half_way_down_and_weak_ones_are_left_out():
    y, x = np.mgrid[:320, :480]

    def hill(row, column, height):
        return height * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * 15**2))

    evidence = (hill(100, 100, 10) + hill(200, 380, 4)).astype(np.float32)
    mask = outline(evidence, evidence, least=5.0)
    (region,) = describe(without_specks(mask, 1), evidence)
    assert region.score == pytest.approx(10, abs=0.1)
    assert (region.right - region.left) / 2 == pytest.approx(15 * np.sqrt(2 * np.log(2)) - 2, abs=1.5)  # less the spill
    assert not outline(evidence, evidence, least=np.inf).any()


def test_solid_things_are_closed_and_thin_ones_kept():
    mask = np.zeros((60, 80), bool)
    mask[10:30, 10:30] = True
    mask[14:26, 14:40] = False  # a notch: the hull fills it
    mask[50, 5:70] = True  # a line
    closed = with_gaps_closed(mask)
    assert closed[20, 20]
    assert closed[50, 5:70].all()
    assert not closed[40].any()


def test_specks_are_left_out():
    mask = np.zeros((20, 20), bool)
    mask[2:8, 2:8] = True
    mask[15, 15] = True
    assert without_specks(mask, 5).max() == 1
    assert without_specks(mask, 1).max() == 2
