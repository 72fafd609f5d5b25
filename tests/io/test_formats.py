from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from inlier.io import FORMATS, Kind, format_of, formats, read_table, write_table
from inlier.io.formats import BlockCodec, CloudCodec, Codec, Format


def test_a_suffix_means_one_format():
    suffixes = [suffix for format in FORMATS for suffix in format.suffixes]
    assert len(suffixes) == len(set(suffixes))
    for format in FORMATS:
        for suffix in format.suffixes:
            assert format_of(Path(f"a.b{suffix.upper()}")) is format


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_every_format_has_its_codec(format):
    codec = format.codec
    assert isinstance(codec, Codec)
    assert type(codec).read is not Codec.read
    assert type(codec).write is not Codec.write
    if format.is_written and format.kind in (Kind.COLUMNS, Kind.ARRAYS):  # whatever holds columns takes them in blocks
        assert isinstance(codec, BlockCodec)
        assert type(codec).write_blocks is not BlockCodec.write_blocks
    if isinstance(codec, CloudCodec):
        assert format.kind is Kind.POINTS
        assert type(codec).rewrite is not CloudCodec.rewrite


def test_a_new_format_is_a_codec_and_a_line(tmp_path, monkeypatch):
    class Reversed(Codec):
        def read(self, request):
            return np.array(request.path.read_text()[::-1].split(","), dtype=float)

        def write(self, path, content):
            path.write_text(",".join(map(str, content))[::-1])

    module = ModuleType("inlier.io._reversed_files")
    module.Reversed = Reversed
    monkeypatch.setitem(sys.modules, module.__name__, module)
    line = Format("reversed", (".rev",), Kind.ARRAY, "_reversed_files.Reversed")
    monkeypatch.setitem(formats.BY_SUFFIX, ".rev", line)
    write_table(tmp_path / "a.rev", np.array([1.25, 30.5]))
    assert (tmp_path / "a.rev").read_text() == "5.03,52.1"
    assert read_table(tmp_path / "a.rev").values.tolist() == [[1.25], [30.5]]
