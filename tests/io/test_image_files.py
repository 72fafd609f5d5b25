"""png with 16 bits per colour: every filter of the format, against one written down from the specification."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from inlier.io import UnusableFileError, read_image, read_table, write_table

RNG = np.random.default_rng(0)
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


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


def filtered(pixels, kinds):
    length, depth = 2 * pixels[0].size, 2 * pixels.shape[2]
    lines = [list(row.astype(">u2").tobytes()) for row in pixels]
    rows = zip(kinds, lines, [[0] * length, *lines], strict=False)
    return b"".join(filtered_row(kind, line, above, depth) for kind, line, above in rows)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(pixels, kinds, n_chunks=1, interlaced=0):
    height, width, channels = pixels.shape
    parts = [pixels[y::dy, x::dx] for y, x, dy, dx in ADAM7] if interlaced else [pixels]
    packed = zlib.compress(b"".join(filtered(part, kinds) for part in parts if part.size))
    head = struct.pack(">IIBBBBB", width, height, 16, 2 if channels == 3 else 6, 0, 0, interlaced)
    step = -(-len(packed) // n_chunks)
    data = [chunk(b"IDAT", packed[start : start + step]) for start in range(0, len(packed), step)]
    return b"".join(
        [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", head), chunk(b"tEXt", b"Title\0words"), *data, chunk(b"IEND", b"")]
    )


@pytest.mark.parametrize("shape", [(9, 5, 3), (5, 9, 4), (1, 7, 3), (7, 1, 3), (1, 1, 4), (6, 6, 3)])
@pytest.mark.parametrize("kinds", [[0], [1], [2], [3], [4], [4, 1, 3, 0, 2]], ids=str)
def test_every_filter(tmp_path, shape, kinds):
    smooth = np.cumsum(RNG.integers(0, 3000, shape), axis=1)
    pixels = (smooth % 2**16).astype(np.uint16)
    (tmp_path / "deep.png").write_bytes(png(pixels, (kinds * 9)[: shape[0]], n_chunks=3))
    read = read_image(tmp_path / "deep.png")
    assert read.dtype == np.uint16
    np.testing.assert_array_equal(read, pixels)


@pytest.mark.parametrize("channels", [3, 4])
def test_interlaced(tmp_path, channels):
    pixels = RNG.integers(0, 2**16, (11, 13, channels), dtype=np.uint16)
    (tmp_path / "deep.png").write_bytes(png(pixels, [2] * 11, interlaced=1))
    np.testing.assert_array_equal(read_image(tmp_path / "deep.png"), pixels)


@pytest.mark.parametrize("channels", [3, 4])
def test_other_programs_read_what_is_written(tmp_path, channels):
    cv2 = pytest.importorskip("cv2")
    pixels = RNG.integers(0, 2**16, (30, 20, channels), dtype=np.uint16)
    write_table(tmp_path / "deep.png", pixels)
    found = cv2.imread(str(tmp_path / "deep.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(found[:, :, [2, 1, 0, 3][:channels]], pixels)
    with Image.open(tmp_path / "deep.png") as picture:
        picture.load()  # checks the sums of the chunks
        np.testing.assert_array_equal(np.asarray(picture), pixels >> 8)


def test_all_bits_are_turned_upright(tmp_path):
    pixels = RNG.integers(0, 2**16, (4, 6, 3), dtype=np.uint16)
    exif = Image.Exif()
    exif[274] = 6  # turn by 90 degrees to look at it
    whole = png(pixels, [0] * 4)
    body = chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0"))
    (tmp_path / "deep.png").write_bytes(whole[:33] + body + whole[33:])
    np.testing.assert_array_equal(read_image(tmp_path / "deep.png"), np.rot90(pixels, -1))


def test_cut_short(tmp_path):
    write_table(tmp_path / "deep.png", RNG.integers(0, 2**16, (30, 20, 3), dtype=np.uint16))
    content = (tmp_path / "deep.png").read_bytes()
    (tmp_path / "deep.png").write_bytes(content[: len(content) // 2])
    with pytest.raises(UnusableFileError, match=r"deep\.png could not be read as png.*truncated"):
        read_image(tmp_path / "deep.png")


def test_a_bomb(tmp_path, monkeypatch):
    write_table(tmp_path / "deep.png", np.zeros((400, 400, 3), dtype=np.uint16))
    monkeypatch.setenv("INLIER_MAX_UNPACKED", str(1 / 1024))
    with pytest.raises(UnusableFileError, match=r"unpacks to 1\.8 MiB, over the limit of 1\.0 MiB"):
        read_image(tmp_path / "deep.png")


@pytest.mark.parametrize("mode", ["P", "CMYK"])
def test_other_layouts_become_colours(tmp_path, mode):
    name = "picture.png" if mode == "P" else "picture.jpg"
    Image.new("RGB", (4, 4), (255, 0, 0)).convert(mode).save(tmp_path / name)
    table = read_table(tmp_path / name)
    assert table.columns == ("red", "green", "blue")
    assert np.abs(table.values.astype(int) - [255, 0, 0]).max() <= 8
