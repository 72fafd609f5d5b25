from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from inlier.datasets import (
    load_scenes,
    load_sky,
    make_scenes,
    permuted_squares,
    random_cycle,
    squares_on_grid,
    swapped_squares,
)


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
    with pytest.raises(ValueError, match=r"bomb\.png is too large.*\(2500 pixels\)"):
        load_sky(tmp_path / "bomb.png")


def test_photos_are_turned_upright(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, size=(5, 7, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to look at it
    Image.fromarray(pixels).save(tmp_path / "photo.png", exif=exif)
    np.testing.assert_array_equal(load_sky(tmp_path / "photo.png"), np.rot90(pixels, -1))


class TestMovingSquares:
    @pytest.mark.parametrize("squares_of", [swapped_squares, permuted_squares])
    @pytest.mark.parametrize("size", [(427, 640), (2080, 3120), (61, 200)])
    def test_squares_do_not_overlap_and_take_their_share(self, squares_of, size):
        squares = squares_of(*size)
        counts = np.bincount(squares.square_of_pixel[squares.square_of_pixel >= 0])
        assert (counts == squares.side**2).all()
        assert np.mean(squares.square_of_pixel >= 0) == pytest.approx(squares.share)
        assert squares.share == pytest.approx(0.25 if squares_of is swapped_squares else 0.185, rel=0.1)

    def test_the_papers_squares(self):
        assert swapped_squares(2080, 3120).side == 900
        assert permuted_squares(2080, 3120).side == 200

    def test_a_moved_square_shows_its_origin(self):
        photo = np.arange(40 * 60).reshape(40, 60)
        squares = squares_on_grid(40, 60, 10, 1, 3)
        source, unmoved = squares.rearrange(np.array([1, 2, 0]))
        changed = photo.ravel()[source].reshape(photo.shape)
        for here, origin in ((0, 1), (1, 2), (2, 0)):
            (a, b), (c, d) = squares.corners[here], squares.corners[origin]
            np.testing.assert_array_equal(changed[a : a + 10, b : b + 10], photo[c : c + 10, d : d + 10])
        np.testing.assert_array_equal(unmoved, (changed == photo).ravel())
        assert np.mean(~unmoved) == pytest.approx(squares.share)

    def test_a_square_that_stays_is_unmoved(self):
        squares = squares_on_grid(40, 60, 10, 1, 3)
        _, unmoved = squares.rearrange(np.array([1, 0, 2]))
        assert unmoved[squares.square_of_pixel == 2].all()
        assert not unmoved[squares.square_of_pixel == 0].any()

    def test_some_pixels_only(self):
        squares = permuted_squares(427, 640)
        origin = random_cycle(30, np.random.default_rng(0))
        pixels = np.random.default_rng(1).choice(427 * 640, 500, replace=False)
        for part, whole in zip(squares.rearrange(origin, pixels), squares.rearrange(origin), strict=True):
            np.testing.assert_array_equal(part, whole[pixels])

    def test_a_cycle_leaves_nothing_in_place(self):
        for seed in range(20):
            origin = random_cycle(30, np.random.default_rng(seed))
            assert sorted(origin) == list(range(30))
            assert (origin != np.arange(30)).all()

    def test_too_small_a_photo(self):
        with pytest.raises(ValueError, match="1 x 2 squares of 5 x 5 pixels do not fit into a photo of 4 x 20"):
            squares_on_grid(4, 20, 5, 1, 2)


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
