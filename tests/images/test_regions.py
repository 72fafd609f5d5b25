from __future__ import annotations

import numpy as np
import pytest

from inlier.images.regions import describe, noise_tail, significant_peaks, without_specks


def test_the_tail_is_exponential_noise_finds_no_peak_and_a_peak_is_cut_half_way_down():
    rng = np.random.default_rng(0)
    evidence = rng.exponential(1.0, (320, 480)).astype(np.float32)
    tail = noise_tail(evidence, np.ones_like(evidence))
    assert tail.median == pytest.approx(np.log(2), rel=0.03)
    assert tail.rate == pytest.approx(1.15, rel=0.05)  # the rate of the noise, and the caution
    assert tail.p_value(tail.level(1e-6)) == pytest.approx(1e-6 * tail.places)
    y, x = np.mgrid[:320, :480]
    hill = (60 * np.exp(-((y - 100) ** 2 + (x - 200) ** 2) / (2 * 15**2))).astype(np.float32)
    level, peak = significant_peaks(hill + 0.7, tail, alpha=0.01)
    labels = without_specks(hill + 0.7 >= level, 1)
    (region,) = describe(labels, peak, tail)
    assert region.score == pytest.approx(60.7)
    assert (region.right - region.left) / 2 == pytest.approx(15 * np.sqrt(2 * np.log(2)), abs=1.5)


def test_specks_are_left_out():
    mask = np.zeros((20, 20), bool)
    mask[2:8, 2:8] = True
    mask[15, 15] = True
    assert without_specks(mask, 5).max() == 1
    assert without_specks(mask, 1).max() == 2
