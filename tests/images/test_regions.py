from __future__ import annotations

import numpy as np
import pytest

from inlier.images.rasters import gaussian
from inlier.images.regions import describe, outline, with_gaps_closed, without_specks


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


def test_specks_are_left_out():
    mask = np.zeros((20, 20), bool)
    mask[2:8, 2:8] = True
    mask[15, 15] = True
    assert without_specks(mask, 5).max() == 1
    assert without_specks(mask, 1).max() == 2
