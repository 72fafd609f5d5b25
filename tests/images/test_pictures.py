from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from inlier.images import detect_changes
from inlier.images.pictures import COLOUR, mask_png, overlay_png, scores_png, tint_png


@pytest.fixture(scope="module")
def changes(camera):
    return detect_changes(camera(0), camera(1, thing=(190, 50, 40)))


def opened(content):
    return Image.open(BytesIO(content))


def test_the_mask_is_white_where_something_changed(changes):
    assert np.array_equal(np.asarray(opened(mask_png(changes)).convert("L")) > 0, changes.mask)


def test_the_overlay_keeps_what_changed_and_fades_the_rest(changes):
    picture = np.asarray(opened(overlay_png(changes)))
    assert picture.shape == changes.after.shape
    assert np.array_equal(picture[175, 335], changes.after[175, 335])
    assert picture[:100].std(axis=-1).mean() < 0.7 * changes.after[:100].std(axis=-1).mean()
    assert (picture == COLOUR).all(axis=-1).any()


def test_the_scores_are_kept_in_16_bits(changes):
    levels = np.asarray(opened(scores_png(changes)))
    assert levels.dtype == np.uint16
    assert np.corrcoef(levels.ravel(), changes.scores.ravel())[0, 1] > 0.9999


def test_the_tint_is_clear_where_nothing_changed(changes):
    alpha = np.asarray(opened(tint_png(changes, 400)).convert("RGBA"))[..., 3]
    assert alpha.shape == (267, 400)
    assert alpha[:50].max() == 0
    assert alpha[146, 279] == 70
    assert alpha.max() == 255
