"""Damage: bytes of sound files changed at random, and headers that were never sound, drawn by hypothesis."""

from __future__ import annotations

import io
import json
import pickle
import re
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

ODD_NUMBERS = (0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
ODD_BYTES = (
    b"\0",
    b"\xff",
    b"\n",
    b"{",
    b"}",
    b",",
    b";",
    b'"',
    b"-",
    b"9" * 20,
    b"nan",
    b"1e400",
    b"\x1b[31m",
    b"<",
    b"&",
)

ODD_WRITTEN = (
    *(str(number).encode() for number in (-1, 0, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30, -(10**19))),
    *(b"9" * 5000, b"1" + b"0" * 400, b"1e308", b"-1e999", b"0.0000001", b"1_000", b"0x7fffffff", b"+", b""),
)
_HEADER, _LONGEST, _MOST_REPEATED = 4096, 4 * 1024**2, 300  # bytes, bytes, times


class Canary:
    """An object that leaves a file behind if it is ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def damaged(content: bytes, rng: np.random.Generator, payload: bytes) -> bytes:
    """The content with one to eight changes, each of a kind that parsers have stumbled over."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 9)):
        # headers are where lengths and counts stand
        reach = len(data) if rng.random() < 0.5 else min(len(data), 512)
        place = int(rng.integers(reach)) if reach else 0
        length = int(rng.integers(1, 17))
        kind = rng.integers(9)
        if kind == 0 and data:
            data[place] = rng.integers(256)
        elif kind == 1 and data:
            data[place] ^= 1 << rng.integers(8)
        elif kind == 2:
            number = ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))] % 2**64
            packed = struct.pack(("<Q", ">Q")[rng.integers(2)], number)
            width = (1, 2, 4, 8)[rng.integers(4)]
            data[place : place + width] = packed[:width] if rng.random() < 0.5 else packed[-width:]
        elif kind == 3:
            del data[place : place + length]
        elif kind == 4:
            data[place:place] = ODD_BYTES[rng.integers(len(ODD_BYTES))]
        elif kind == 5:
            data[place:place] = data[place : place + length * 8]
        elif kind == 6 and rng.random() < 0.3:
            del data[place:]
        elif kind == 7:
            other = int(rng.integers(len(data))) if data else 0
            data[place : place + length] = data[other : other + length]
        elif kind == 8 and rng.random() < 0.1:
            data[place : place + len(payload)] = payload
    return bytes(data)


def rearranged(content: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """The content in larger pieces: cut, repeated, exchanged, joined to another file, or with absurd numbers."""
    data, kind = content, rng.integers(7)
    start, stop = sorted(int(place) for place in rng.integers(0, len(data) + 1, 2))
    if kind == 0:  # the front of one file and the end of another
        data = data[:start] + other[int(rng.integers(len(other) + 1)) :]
    elif kind == 1:
        data = data[: len(data) * int(rng.integers(16)) // 16]
    elif kind == 2:
        data = data[:start] + data[start:stop] * int(rng.integers(2, _MOST_REPEATED)) + data[stop:]
    elif kind == 3:
        data = data[stop:] + data[start:stop] + data[:start]
    elif kind == 4:
        data = data[:start] + (b"\0", b"\xff", b" ", b"\n")[rng.integers(4)] * (stop - start) + data[stop:]
    elif kind == 5:
        data = data[:start] + data
    else:
        head, tail = data[:_HEADER], data[_HEADER:]
        share = rng.choice((0.05, 0.3, 1.0))
        numbers = re.compile(rb"[-+]?\d+(\.\d+)?")
        data = numbers.sub(lambda found: _absurd(rng) if rng.random() < share else found[0], head) + tail
    return data[:_LONGEST]


def _absurd(rng: np.random.Generator) -> bytes:
    """A written number that no file should hold."""
    return ODD_WRITTEN[rng.integers(len(ODD_WRITTEN))]


def damaged_archive(content: bytes, rng: np.random.Generator, payload: bytes) -> bytes:
    """A sound zip archive of which one or two members are damaged: what is inside is reached, past all checksums."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        hit = {names[rng.integers(len(names))] for _ in range(rng.integers(1, 3))}
        for name in names:
            member = old.read(name)
            new.writestr(name, damaged(member, rng, payload) if name in hit else member)
    return packed.getvalue()


def damaged_folder(seed: Path, there: Path, rng: np.random.Generator, payload: bytes) -> None:
    """A copy of a zarr store with one or two of its files damaged."""
    shutil.copytree(seed, there)
    files = sorted(path for path in there.rglob("*") if path.is_file())
    for _ in range(rng.integers(1, 3)):
        path = files[rng.integers(len(files))]
        path.write_bytes(damaged(path.read_bytes(), rng, payload))


numbers = st.one_of(st.integers(-3, 50), st.sampled_from(ODD_NUMBERS), st.integers(-(2**70), 2**70))
words = st.one_of(numbers.map(str), st.sampled_from(["nan", "inf", "-", "", "x", "1e9", "0x10", "\u0661"]))


def lines(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Lines in their order, of which some may be missing."""
    kept = [st.one_of(part, part, part, part, st.just("")) for part in parts]
    return st.tuples(*kept).map(lambda found: "".join(line + "\n" for line in found if line))


ply = st.tuples(
    lines(
        st.just("ply"),
        st.sampled_from(["format ascii 1.0", "format binary_little_endian 1.0", "format binary_big_endian 1.0"]),
        words.map(lambda count: f"element vertex {count}"),
        st.sampled_from(["property float x", "property double x", "property list uchar int x", "property int64 x"]),
        st.just("property float y"),
        st.just("property float z"),
        words.map(lambda count: f"element face {count}"),
        st.sampled_from(["property list uchar int vertex_indices", "property list float double v", "property char f"]),
        st.just("end_header"),
    ),
    st.one_of(st.binary(max_size=200), st.lists(words, max_size=60).map(lambda found: " ".join(found).encode())),
).map(lambda found: found[0].encode() + found[1])

counts = st.lists(words, min_size=1, max_size=4).map(" ".join)
pcd = st.tuples(
    lines(
        st.just("# .PCD v0.7"),
        st.just("VERSION 0.7"),
        st.sampled_from(["FIELDS x y z", "FIELDS x y", "FIELDS x x x", "FIELDS"]),
        st.one_of(st.just("SIZE 4 4 4"), counts.map("SIZE {}".format)),
        st.sampled_from(["TYPE F F F", "TYPE I U F", "TYPE Z F F", "TYPE"]),
        st.one_of(st.just("COUNT 1 1 1"), counts.map("COUNT {}".format)),
        words.map("WIDTH {}".format),
        words.map("HEIGHT {}".format),
        st.just("VIEWPOINT 0 0 0 1 0 0 0"),
        words.map("POINTS {}".format),
        st.sampled_from(["DATA ascii", "DATA binary", "DATA binary_compressed", "DATA"]),
    ),
    st.binary(max_size=200),
).map(lambda found: found[0].encode() + found[1])

npy_headers = st.fixed_dictionaries(
    {},
    optional={
        "descr": st.sampled_from(
            ["<f8", ">f4", "|O", "|V0", "<U0", "|b1", "<f16", "<c8", "x", [["a", "<f8"]], "<M8[ns]"]
        ),
        "fortran_order": st.sampled_from([True, False, None, 3]),
        "shape": st.one_of(st.lists(numbers, max_size=3).map(tuple), st.just("x"), st.just((2**40, 0))),
        "more": words,
    },
)
npy = st.tuples(npy_headers, st.sampled_from([(1, 0), (2, 0), (3, 0), (9, 9)]), st.binary(max_size=400)).map(
    lambda found: _npy(*found)
)


def _npy(header: dict[str, object], version: tuple[int, int], body: bytes) -> bytes:
    text = (repr(header) + "\n").encode()
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version == (1, 0) else "<I", len(text)) + text + body


def _las(seed: bytes, fields: dict[int, tuple[str, int]]) -> bytes:
    data = bytearray(seed)
    for place, (kind, number) in fields.items():
        struct.pack_into(kind, data, place, number % 256 ** struct.calcsize(kind))
    return bytes(data)


LAS_FIELDS = {
    25: "<B",
    94: "<H",
    96: "<I",
    100: "<I",
    104: "<B",
    105: "<H",
    107: "<I",
    131: "<Q",
    235: "<Q",
    243: "<I",
    247: "<Q",
}


def las(seed: bytes) -> st.SearchStrategy[bytes]:
    """Sound points below a header in which counts, sizes and places were changed."""
    fields = st.dictionaries(st.sampled_from(sorted(LAS_FIELDS)), numbers, min_size=1, max_size=4)
    return fields.map(lambda found: _las(seed, {place: (LAS_FIELDS[place], number) for place, number in found.items()}))


codecs = st.recursive(
    st.sampled_from(
        [{"name": "bytes"}, {"name": "zstd"}, {"id": "pickle"}, {"name": "gzip", "configuration": {"level": 99}}, {}, 3]
    ),
    lambda inner: st.builds(
        lambda found, chunk: {"name": "sharding_indexed", "configuration": {"codecs": found, "chunk_shape": chunk}},
        st.lists(inner, max_size=2),
        st.lists(numbers, max_size=2),
    ),
    max_leaves=4,
)
shapes = st.lists(numbers, max_size=3)
third = st.fixed_dictionaries(
    {"zarr_format": st.sampled_from([3, 2, None]), "node_type": st.sampled_from(["array", "group", 3])},
    optional={
        "shape": shapes,
        "data_type": st.sampled_from(["float64", "int8", "string", "bytes", "r16", {"name": "x"}, None]),
        "chunk_grid": shapes.map(lambda shape: {"name": "regular", "configuration": {"chunk_shape": shape}}),
        "chunk_key_encoding": st.sampled_from(
            [{"name": "default", "configuration": {"separator": "/"}}, {"name": "v2"}, 3]
        ),
        "fill_value": st.sampled_from([0, "NaN", None, "x", [1]]),
        "codecs": st.lists(codecs, max_size=3),
        "attributes": st.sampled_from([{}, {"text": "utf-8"}, None]),
    },
)
second = st.fixed_dictionaries(
    {"zarr_format": st.just(2)},
    optional={
        "shape": shapes,
        "chunks": shapes,
        "dtype": st.sampled_from(["<f8", "|O", "|S3", "<M8[s]", "x", [["a", "<f8"]]]),
        "compressor": st.sampled_from([None, {"id": "pickle"}, {"id": "zlib"}, {"id": "blosc"}, {"id": 3}, "zlib"]),
        "filters": st.sampled_from(
            [None, [], [{"id": "pickle"}], [{"id": "vlen-utf8"}], [{"id": "delta", "dtype": "<f8"}]]
        ),
        "fill_value": st.sampled_from([0, None, "NaN", "AAAA"]),
        "order": st.sampled_from(["C", "F", 3]),
    },
)
zarr = st.one_of(third.map(lambda found: ("zarr.json", found)), second.map(lambda found: (".zarray", found)))
zarr = st.tuples(zarr, st.binary(max_size=60)).map(lambda found: (found[0][0], json.dumps(found[0][1]), found[1]))

cells = st.one_of(words, st.sampled_from(['"', '""', "a,b", "=1+1", "\x1b[31m", "1,5", "1.234", "\ud7ff", "NA", " "]))
csv = st.tuples(
    st.sampled_from([",", ";", "\t"]),
    st.lists(st.lists(cells, max_size=4), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
).map(lambda found: found[2].join(found[0].join(row) for row in found[1]).encode(found[3], "replace"))


def payload_for(canary: Path) -> bytes:
    """A pickle that gives itself away."""
    return pickle.dumps(Canary(canary))
