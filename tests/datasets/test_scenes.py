from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from inlier.datasets import load_scenes, make_scenes


def test_objects_are_where_they_are_said_to_be():
    scenes = make_scenes()
    first, second, third = (photo.astype(float) for photo in scenes.photos)
    box, cushion = scenes.objects
    assert 0.01 < box.mean() < 0.05
    assert not (box & cushion).any()
    assert np.abs(second - first).max(axis=2)[box].mean() > 50
    assert np.abs(third - second).max(axis=2)[cushion].mean() > 50
    far = np.zeros_like(box)
    far[:200] = True  # above the objects and their shadows: only light and sensor noise differ
    assert np.abs(third - first)[far].mean() < 6
    np.testing.assert_array_equal(scenes.changed(0, 2), box | cushion)
    np.testing.assert_array_equal(scenes.changed(1, 2), cushion)


def test_the_seed_decides_the_noise():
    first, again, other = (make_scenes(seed).photos[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_three_photos_of_one_size(tmp_path):
    paths = [tmp_path / f"{k}.png" for k in range(3)]
    for path, width in zip(paths, (5, 5, 6), strict=True):
        Image.new("RGB", (width, 4)).save(path)
    with pytest.raises(ValueError, match=r"must have one size.*4 x 5, 4 x 5, 4 x 6"):
        load_scenes(paths)
    with pytest.raises(ValueError, match="compares three photos of one scene; 2 were given"):
        load_scenes(paths[:2])
    assert load_scenes([paths[0]] * 3).objects is None
