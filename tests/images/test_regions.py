from __future__ import annotations

import numpy as np
import pytest

from inlier.images.rasters import gaussian
from inlier.images.regions import describe, each_with_a_peak, enlarged, outline, with_gaps_closed, without_specks


def test_a_region_ends_half_way_down_and_weak_ones_are_left_out():
    y, x = np.mgrid[:320, :480]

    def hill(row, column, height):
        return height * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * 15**2))

    evidence = (hill(100, 100, 10) + hill(200, 380, 4)).astype(np.float32)
    mask = outline(evidence, evidence, least=5.0)
    (region,) = describe(without_specks(mask, 1), evidence)
    assert region.score == pytest.approx(10, abs=0.1)
    assert (region.right - region.left) / 2 == pytest.approx(15 * np.sqrt(2 * np.log(2)), abs=1.5)
    assert not outline(evidence, evidence, least=np.inf).any()


def test_what_is_not_resolved_is_drawn_as_wide_as_the_smoothed_evidence_has_it():
    fine = np.zeros((320, 480), np.float32)
    fine[100:106, 200:206] = 40  # a speck
    fine[200:280, 300:380] = 20  # a thing
    smooth = gaussian(fine, 5.8)
    mask = outline(smooth, fine, least=2.0)
    speck, thing = mask[:160], mask[160:]
    rows, columns = np.nonzero(speck)
    assert 6 < np.ptp(rows) + 1 <= 6 + 2 * 6
    assert 6 < np.ptp(columns) + 1 <= 6 + 2 * 6
    assert speck[100:106, 200:206].all()
    assert np.array_equal(thing, fine[160:] > 0)


def test_solid_things_are_closed_and_thin_ones_kept():
    mask = np.zeros((60, 80), bool)
    mask[10:30, 10:30] = True
    mask[14:26, 14:40] = False  # a notch: the hull fills it
    mask[50, 5:70] = True  # a line
    closed = with_gaps_closed(mask)
    assert closed[20, 20]
    assert closed[50, 5:70].all()
    assert not closed[40].any()


def test_every_region_has_a_peak_and_crumbs_have_none():
    mask = np.zeros((60, 90), bool)
    mask[10:20, 10:20] = mask[40:50, 60:70] = True  # two things
    mask[22:24, 12:14] = True  # a crumb of the first
    peaks = np.zeros_like(mask)
    peaks[15, 15] = peaks[38, 65] = True  # the second's lies beside it
    labels = each_with_a_peak(mask, peaks)
    assert labels.max() == 2
    assert not labels[22:24].any()
    larger = enlarged(labels, 150, 225)
    assert larger.max() == 2
    assert (larger[25:50, 25:50] == 1).mean() > 0.95
    assert abs((larger > 0).mean() - (labels > 0).mean()) < 0.005
    assert not each_with_a_peak(mask, np.zeros_like(mask)).any()
    assert not enlarged(np.zeros_like(labels), 150, 225).any()


def test_specks_are_left_out():
    mask = np.zeros((20, 20), bool)
    mask[2:8, 2:8] = True
    mask[15, 15] = True
    assert without_specks(mask, 5).max() == 1
    assert without_specks(mask, 1).max() == 2
