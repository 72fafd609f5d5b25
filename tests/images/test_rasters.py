from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from inlier.images import read_photo
from inlier.images.rasters import comparable, gaussian, gradient_power, resample


@pytest.fixture
def picture():
    return np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8)


def test_colour_grey_and_palette(tmp_path, picture):
    image = Image.fromarray(picture)
    image.save(tmp_path / "colour.png")
    image.convert("L").save(tmp_path / "grey.png")
    image.convert("P").save(tmp_path / "palette.png")
    assert np.array_equal(read_photo(tmp_path / "colour.png"), picture)
    assert read_photo(tmp_path / "grey.png").shape == (48, 64)
    assert read_photo(tmp_path / "palette.png").shape == (48, 64, 3)


def test_transparent_pixels_are_not_there(tmp_path, picture):
    clear = np.dstack([picture, np.zeros((48, 64), np.uint8)])
    clear[:24, :, 3] = 255
    Image.fromarray(clear).save(tmp_path / "clear.png")
    read = read_photo(tmp_path / "clear.png")
    assert np.array_equal(read, clear)
    before, after, _ = comparable(read, picture)
    assert np.array_equal(before.there, clear[..., 3] > 0)
    assert after.there.all()
    assert np.array_equal(before.colours, after.colours)


def test_sixteen_bits_are_kept(tmp_path):
    levels = np.linspace(0, 65535, 48 * 64).reshape(48, 64).astype(np.uint16)
    Image.fromarray(levels).save(tmp_path / "deep.png")
    read = read_photo(tmp_path / "deep.png")
    assert np.array_equal(read, levels)
    frame = comparable(read, read).before
    assert np.abs(frame.picture[..., 0] - levels / 257).max() <= 0.51
    assert np.array_equal(frame.clipped[..., 0] > 0, levels == 65535)


def test_the_orientation_in_the_file_is_applied(tmp_path, picture):
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to look at it
    Image.fromarray(picture).save(tmp_path / "turned.png", exif=exif)
    assert np.array_equal(read_photo(tmp_path / "turned.png"), np.rot90(picture, -1))


def test_a_grey_and_a_coloured_photo_are_compared_in_grey(tmp_path, picture):
    Image.fromarray(picture).save(tmp_path / "colour.png")
    Image.fromarray(picture).convert("L").save(tmp_path / "grey.png")
    first, second, _ = comparable(read_photo(tmp_path / "colour.png"), read_photo(tmp_path / "grey.png"))
    assert np.array_equal(first.colours, second.colours)
    assert first.colours.shape == (48, 64, 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_another_number_of_pixels_is_resampled_another_shape_refused(picture, dtype):
    twice, square = (np.asarray(Image.fromarray(picture).resize(size)) for size in ((128, 96), (64, 64)))
    first, second, notes = comparable(picture.astype(dtype), twice.astype(dtype))
    assert first.colours.shape == second.colours.shape == (96, 128, 3)
    assert first.there.shape == (96, 128)
    assert "resampled to the size of AFTER, 2 times as wide" in notes[-1]
    with pytest.raises(ValueError, match="64 x 48 and 64 x 64 pixels: crop them"):
        comparable(picture.astype(dtype), square.astype(dtype))


def bomb(path):
    """A PNG header that claims 100,000 x 100,000 pixels."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")))


def test_bad_files_are_a_sentence_that_names_them(tmp_path, picture):
    Image.fromarray(picture).save(tmp_path / "whole.jpg")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:900])
    (tmp_path / "words.png").write_text("no picture")
    (tmp_path / "empty.png").write_bytes(b"")
    bomb(tmp_path / "bomb.png")
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    for name, message in {
        "cut.jpg": "could not be read as an image",
        "words.png": "no image of a known kind",
        "empty.png": "no image of a known kind",
        "bomb.png": "too large",
        ".": "is a folder",
    }.items():
        with pytest.raises(ValueError, match=message) as caught:
            read_photo(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
    for name in ("absent.png", "loop.png"):
        with pytest.raises((FileNotFoundError, ValueError), match=name):
            read_photo(tmp_path / name)


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
