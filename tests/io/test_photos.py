"""Photos of every kind of file, against what Pillow and tifffile read, or against what was written."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from PIL import Image

from inlier.io import UnusableFileError, read_image, read_photo, write_table

tifffile = pytest.importorskip("tifffile")
RNG = np.random.default_rng(0)
SHAPES = {"grey": (40, 50), "colour": (40, 50, 3), "opacity": (40, 50, 4)}


def numbers(shape, dtype):
    values = RNG.integers(0, 2**16, shape)
    return (
        (values >> 8).astype(dtype)
        if dtype == np.uint8
        else (values / 2**16 if dtype == np.float32 else values).astype(dtype)
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("read", [read_photo, read_image])
def test_tiff(tmp_path, dtype, shape, planar, read):
    pixels = numbers(shape, dtype)
    is_apart = planar == "separate" and pixels.ndim == 3
    tifffile.imwrite(
        tmp_path / "x.tif",
        np.moveaxis(pixels, -1, 0) if is_apart else pixels,
        planarconfig="separate" if is_apart else None,
        photometric="rgb" if pixels.ndim == 3 else "minisblack",
        compression="zlib",
        extrasamples=["unassalpha"] if shape == SHAPES["opacity"] else None,
    )
    found = read(tmp_path / "x.tif")
    assert found.dtype == dtype
    assert np.array_equal(np.squeeze(found), pixels)


OTHERS = [np.int8, np.uint16, np.int16, np.int32, np.uint32, np.uint64, np.float16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", OTHERS)
@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("compression", [None, "zlib"])
def test_tiffs_of_other_numbers(tmp_path, dtype, byte_order, compression):
    pixels = RNG.integers(0, 2**64, (40, 50), np.uint64).view(np.int64)
    pixels = pixels.astype(dtype) if np.dtype(dtype).kind in "ui" else (pixels / 2**62).astype(dtype)
    tifffile.imwrite(tmp_path / "x.tif", pixels, byteorder=byte_order, compression=compression)
    assert np.array_equal(read_photo(tmp_path / "x.tif"), pixels)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_a_tiff_in_which_white_is_zero(tmp_path, dtype):
    pixels = numbers((40, 50), dtype)
    tifffile.imwrite(tmp_path / "x.tif", np.iinfo(dtype).max - pixels, photometric="miniswhite")
    assert np.array_equal(read_photo(tmp_path / "x.tif"), pixels)


@pytest.mark.parametrize("top", [1023, 65535])
@pytest.mark.parametrize(("magic", "shape"), [(b"P5", (40, 50)), (b"P6", (40, 50, 3))])
def test_deep_ppm(tmp_path, top, magic, shape):
    pixels = RNG.integers(0, top + 1, shape)
    (tmp_path / "x.ppm").write_bytes(magic + b" 50 40 %d\n" % top + pixels.astype(">u2").tobytes())
    assert np.array_equal(read_photo(tmp_path / "x.ppm"), pixels)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_png(tmp_path, dtype, shape):
    pixels = numbers(shape, dtype)
    write_table(tmp_path / "x.png", pixels)
    assert np.array_equal(read_photo(tmp_path / "x.png"), pixels)


@pytest.mark.parametrize("kind", ["gif", "bmp", "webp", "ppm", "tga", "jpg", "tif"])
@pytest.mark.parametrize("mode", ["RGB", "L", "P", "1"])
def test_what_pillow_reads(tmp_path, kind, mode):
    image = Image.fromarray(numbers((40, 50, 3), np.uint8)).convert(mode)
    if mode in {"jpg": "P", "webp": "1", "ppm": "P"}.get(kind, ""):
        pytest.skip("Pillow does not write it")
    image.save(tmp_path / f"x.{kind}")
    with Image.open(tmp_path / f"x.{kind}") as again:
        expected = np.asarray(again.convert("L" if again.mode in ("1", "L") else "RGB"))
    assert np.array_equal(read_photo(tmp_path / f"x.{kind}"), expected)


def test_a_palette_of_a_tiff_becomes_colours(tmp_path):
    image = Image.fromarray(numbers((40, 50, 3), np.uint8)).convert("P")
    image.save(tmp_path / "x.tif")
    expected = np.asarray(image.convert("RGB"))
    assert np.array_equal(read_photo(tmp_path / "x.tif"), expected)
    assert np.array_equal(read_image(tmp_path / "x.tif"), expected)


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_tiff_is_turned_upright(tmp_path, turn, dtype):
    pixels = numbers((40, 50, 3), dtype)
    tifffile.imwrite(tmp_path / "x.tif", pixels, photometric="rgb", extratags=[(274, "H", 1, turn, True)])
    eight = pixels if dtype == np.uint8 else (pixels >> 8).astype(np.uint8)
    exif = Image.Exif()
    exif[274] = turn
    Image.fromarray(eight).save(tmp_path / "x.png", exif=exif)
    expected = read_photo(tmp_path / "x.png")
    for read in (read_photo, read_image):
        found = read(tmp_path / "x.tif")
        assert np.array_equal(found if dtype == np.uint8 else (found >> 8).astype(np.uint8), expected)


def test_pages_and_planes_that_are_left_out_are_named(tmp_path):
    pages = numbers((5, 40, 50), np.uint8)
    tifffile.imwrite(tmp_path / "pages.tif", pages, photometric="minisblack")
    with pytest.warns(UserWarning, match=r"pages\.tif has 5 pages; the first is read"):
        assert np.array_equal(read_photo(tmp_path / "pages.tif"), pages[0])
    Image.fromarray(pages[0]).save(tmp_path / "x.gif", save_all=True, append_images=[Image.fromarray(pages[1])])
    with pytest.warns(UserWarning, match=r"x\.gif has 2 pages"):
        read_photo(tmp_path / "x.gif")
    for dtype, count in ((np.uint16, 5), (np.uint8, 5), (np.uint8, 4)):
        planes = numbers((count, 40, 50), dtype)
        tifffile.imwrite(
            tmp_path / "planes.tif", planes, planarconfig="separate", photometric="minisblack", compression="zlib"
        )
        with pytest.warns(UserWarning, match=f"has {count} planes; the first three"):
            assert np.array_equal(read_photo(tmp_path / "planes.tif"), np.moveaxis(planes[:3], 0, -1))


def test_opacity_is_left_out_where_everything_is_opaque(tmp_path):
    opaque = numbers((40, 50, 4), np.uint8)
    opaque[..., 3] = 255
    Image.fromarray(opaque).save(tmp_path / "x.png")
    assert np.array_equal(read_photo(tmp_path / "x.png"), opaque[..., :3])


def test_other_kinds_are_named(tmp_path):
    (tmp_path / "x.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    with pytest.raises(UnusableFileError, match=r"it is a HEIC or AVIF file.* Save it again as PNG or JPEG"):
        read_photo(tmp_path / "x.heic")


def test_one_page_is_no_warning(tmp_path):
    Image.fromarray(numbers((40, 50), np.uint8)).save(tmp_path / "x.tif")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_photo(tmp_path / "x.tif")
