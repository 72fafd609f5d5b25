"""png with 16 bits per colour, which Pillow would halve: read and written here, from the format's specification."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from inlier._typing import Array
from inlier.io.limits import check_unpacked_size
from inlier.io.table import UnusableFileError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 6: 4}  # the format's numbers for colours, and for colours with alpha
_SUB, _UP, _AVERAGE, _PAETH = 1, 2, 3, 4


def is_deep_png(path: Path) -> bool:
    """Whether a file is a png with three or four channels of 16 bits."""
    with path.open("rb") as stream:
        head = stream.read(29)
    return len(head) == 29 and head[12:16] == b"IHDR" and head[24] == 16 and head[25] in _CHANNELS


def read_deep_png(path: Path) -> Array:
    """Return the pixels, shape (height, width, 3 or 4), as uint16."""
    content = path.read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    channels = _CHANNELS[content[25]]
    if content[28]:
        raise UnusableFileError(f"{path} is interlaced and has 16 bits per colour. Save it without interlacing.")
    n_bytes = height * (1 + 2 * channels * width)  # each row starts with the number of its filter
    check_unpacked_size(path, 3 * n_bytes, "make it smaller")
    unpacked = zlib.decompressobj().decompress(_image_data(content), n_bytes)
    if len(unpacked) < n_bytes:
        raise UnusableFileError(f"{path} was cut short. Copy or save it again.")
    rows = np.frombuffer(unpacked, dtype=np.uint8).reshape(height, -1)
    pixels = _without_filters(rows[:, 1:].reshape(height, width, 2 * channels), rows[:, 0])
    return pixels.view(">u2").astype(np.uint16)


def write_deep_png(path: Path, pixels: Array) -> None:
    """Write uint16 pixels of shape (height, width, 3 or 4)."""
    height, width, channels = pixels.shape
    kind = next(number for number, count in _CHANNELS.items() if count == channels)
    rows = np.zeros((height, 1 + 2 * channels * width), dtype=np.uint8)  # filter 0: none
    rows[:, 1:] = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    header = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    path.write_bytes(_SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _image_data(content: bytes) -> bytes:
    """The packed pixels, which may be spread over several chunks."""
    parts, place = [], len(_SIGNATURE)
    while place + 8 <= len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        if content[place + 4 : place + 8] == b"IDAT":
            parts.append(content[place + 8 : place + 8 + length])
        place += 12 + length
    return b"".join(parts)


def _without_filters(filtered: Array, filters: Array) -> Array:
    """Undo each row's filter.

    A byte is stored as its difference to a prediction from its neighbours to the left (a), above (b) and above left
    (c). All bytes on one anti-diagonal have theirs on earlier ones, so a diagonal is done at once; in an array with a
    border of zeros its places are evenly spaced.
    """
    height, width, depth = filtered.shape
    bordered = np.zeros((height + 1, width + 1, depth), dtype=np.uint8)
    flat = bordered.reshape(-1, depth)
    for diagonal in range(height + width - 1):
        first, last = max(0, diagonal - width + 1), min(height - 1, diagonal)
        rows = np.arange(first, last + 1)
        places = (rows + 1) * (width + 1) + diagonal - rows + 1
        here = slice(places[0], places[-1] + 1, max(width, 1))
        before = (flat[_shifted(here, step)].astype(np.int16) for step in (1, width + 1, width + 2))
        prediction = _prediction(filters[first : last + 1, None], *before)
        flat[here] = (filtered[rows, diagonal - rows] + prediction).astype(np.uint8)
    return np.ascontiguousarray(bordered[1:, 1:])


def _shifted(places: slice, by: int) -> slice:
    return slice(places.start - by, places.stop - by, places.step)


def _prediction(filters: Array, left: Array, above: Array, above_left: Array) -> Array:
    to_left, to_above = np.abs(above - above_left), np.abs(left - above_left)
    to_above_left = np.abs(left + above - 2 * above_left)
    nearest = np.where(to_above <= to_above_left, above, above_left)
    nearest = np.where((to_left <= to_above) & (to_left <= to_above_left), left, nearest)
    choices = (left, above, (left + above) >> 1, nearest)
    return np.select([filters == number for number in (_SUB, _UP, _AVERAGE, _PAETH)], choices, 0)
