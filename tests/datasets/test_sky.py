from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from inlier.datasets import load_sky


def test_the_photo_that_needs_no_download():
    photo = load_sky()
    assert photo.shape == (427, 640, 3)
    assert photo.dtype == np.uint8
    photo[0, 0] = 0  # a copy of one's own


def test_any_photo(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, size=(5, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    np.testing.assert_array_equal(load_sky(tmp_path / "photo.png"), pixels)


def test_grey_photos_get_three_channels(tmp_path):
    Image.fromarray(np.full((4, 4), 9, dtype=np.uint8)).save(tmp_path / "grey.png")
    assert (load_sky(tmp_path / "grey.png") == 9).all()
    assert load_sky(tmp_path / "grey.png").shape == (4, 4, 3)


def test_no_photo(tmp_path):
    with pytest.raises(FileNotFoundError, match="no photo at"):
        load_sky(tmp_path / "nowhere.jpg")


@pytest.mark.parametrize("content", [b"", b"words", b"\x89PNG\r\n\x1a\n truncated"])
def test_not_a_photo(tmp_path, content):
    (tmp_path / "photo.png").write_bytes(content)
    with pytest.raises(ValueError, match="could not be read as an image"):
        load_sky(tmp_path / "photo.png")


def test_a_decompression_bomb(tmp_path, monkeypatch):
    Image.fromarray(np.zeros((50, 50), dtype=np.uint8)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(ValueError, match=r"could not be read as an image.*decompression bomb"):
        load_sky(tmp_path / "bomb.png")
