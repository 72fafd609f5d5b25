from __future__ import annotations

import numpy as np
import pytest

from inlier.images.filters import gaussian, gradient_power, resample


def test_the_power_of_a_gradient():
    ramp = np.tile(np.arange(10, dtype=np.float32) * 3, (8, 1))
    assert np.allclose(gradient_power(ramp), 9)


def test_resampling_averages_down_and_keeps_channels():
    field = np.arange(4 * 6 * 2, dtype=np.float32).reshape(4, 6, 2)
    small = resample(field, 2, 3)
    assert small.shape == (2, 3, 2)
    assert small[0, 0, 0] == pytest.approx(field[:2, :2, 0].mean())
    assert resample(small, 4, 6).shape == field.shape


def test_smoothing_keeps_the_mean_and_does_not_mix_channels():
    field = np.zeros((40, 60, 3), np.float32)
    field[20, 30, 1] = 1
    smooth = gaussian(field, 2.0)
    assert smooth[..., 1].sum() == pytest.approx(1, rel=1e-5)
    assert smooth[20, 30, 1] == pytest.approx(1 / (2 * np.pi * 4), rel=0.02)
    assert not smooth[..., [0, 2]].any()
    assert gaussian(field, 0.0) is field
