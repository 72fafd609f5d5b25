"""Every filter of the format, against a filter written down from the specification the slow way."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from inlier.io import UnusableFileError, read_image, write_table
from inlier.io.deep_png import _chunk

RNG = np.random.default_rng(0)


def paeth(a, b, c):
    distances = [abs(a + b - c - value) for value in (a, b, c)]
    return (a, b, c)[distances.index(min(distances))]


def filtered_row(kind, row, above, depth):
    """One row of bytes as the format stores it, byte by byte."""
    stored = bytearray([kind])
    for place, value in enumerate(row):
        a = row[place - depth] if place >= depth else 0
        b = above[place]
        c = above[place - depth] if place >= depth else 0
        stored.append((value - (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) % 256)
    return bytes(stored)


def png(pixels, kinds, n_chunks=1, interlaced=0):
    height, width, channels = pixels.shape
    rows = pixels.astype(">u2").tobytes()
    length = 2 * channels * width
    lines = [list(rows[start : start + length]) for start in range(0, len(rows), length)]
    pairs = zip(kinds, lines, [[0] * length, *lines], strict=False)
    packed = zlib.compress(b"".join(filtered_row(kind, line, above, 2 * channels) for kind, line, above in pairs))
    head = struct.pack(">IIBBBBB", width, height, 16, 2 if channels == 3 else 6, 0, 0, interlaced)
    step = -(-len(packed) // n_chunks)
    parts = [packed[start : start + step] for start in range(0, len(packed), step)]
    chunks = [(b"IHDR", head), (b"tEXt", b"Title\0words"), *((b"IDAT", part) for part in parts), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


@pytest.mark.parametrize("shape", [(9, 5, 3), (5, 9, 4), (1, 7, 3), (7, 1, 3), (1, 1, 4), (6, 6, 3)])
@pytest.mark.parametrize("kinds", [[0], [1], [2], [3], [4], [4, 1, 3, 0, 2]], ids=str)
def test_every_filter(tmp_path, shape, kinds):
    smooth = np.cumsum(RNG.integers(0, 3000, shape), axis=1)
    pixels = (smooth % 2**16).astype(np.uint16)
    (tmp_path / "deep.png").write_bytes(png(pixels, (kinds * 9)[: shape[0]], n_chunks=3))
    read = read_image(tmp_path / "deep.png")
    assert read.dtype == np.uint16
    np.testing.assert_array_equal(read, pixels)


def test_pillow_agrees_on_the_upper_half(tmp_path):
    from PIL import Image

    pixels = RNG.integers(0, 2**16, (30, 20, 3), dtype=np.uint16)
    write_table(tmp_path / "deep.png", pixels)
    with Image.open(tmp_path / "deep.png") as picture:
        picture.load()  # checks the sums of the chunks
        np.testing.assert_array_equal(np.asarray(picture), pixels >> 8)


def test_cut_short(tmp_path):
    write_table(tmp_path / "deep.png", RNG.integers(0, 2**16, (30, 20, 3), dtype=np.uint16))
    content = (tmp_path / "deep.png").read_bytes()
    (tmp_path / "deep.png").write_bytes(content[: len(content) // 2])
    with pytest.raises(UnusableFileError, match=r"deep\.png was cut short"):
        read_image(tmp_path / "deep.png")


def test_interlaced(tmp_path):
    pixels = RNG.integers(0, 2**16, (3, 2, 3), dtype=np.uint16)
    (tmp_path / "deep.png").write_bytes(png(pixels, [0] * 3, interlaced=1))
    with pytest.raises(UnusableFileError, match="Save it without interlacing"):
        read_image(tmp_path / "deep.png")


def test_a_bomb(tmp_path, monkeypatch):
    write_table(tmp_path / "deep.png", np.zeros((400, 400, 3), dtype=np.uint16))
    monkeypatch.setenv("INLIER_MAX_UNPACKED", str(1 / 1024))
    with pytest.raises(UnusableFileError, match="over the limit"):
        read_image(tmp_path / "deep.png")
