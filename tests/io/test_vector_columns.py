"""Columns of vectors in files, as the libraries write them whose users have such files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inlier.io import UnusableFileError, open_stored, read_columns, read_labels, read_table, write_table
from inlier.io.add_columns import write_with_columns

N = 60
X = np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32)
IDS = [f"{row:03d}" for row in range(N)]
TEXTS = ["some words"] * N


def by_pandas(path):
    frame = pd.DataFrame({"id": IDS, "text": TEXTS, "emb": list(X), "tags": [["a", "b"]] * N})
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_feather(path)


def by_polars(path):
    frame = pl.DataFrame({"id": IDS, "text": TEXTS, "emb": X})
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_ipc(path)


def by_datasets(path):
    datasets = pytest.importorskip("datasets", reason="pip install datasets")
    features = {"id": datasets.Value("string"), "text": datasets.Value("string")}
    features = datasets.Features({**features, "emb": datasets.Sequence(datasets.Value("float32"))})
    datasets.Dataset.from_dict({"id": IDS, "text": TEXTS, "emb": X}, features=features).to_parquet(path)


def by_json(path):
    lines = [{"id": key, "text": text, "emb": row} for key, text, row in zip(IDS, TEXTS, X.tolist(), strict=True)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


WRITTEN = {
    "a.parquet": by_pandas,
    "a.feather": by_pandas,
    "b.parquet": by_polars,
    "b.arrow": by_polars,
    "c.parquet": by_datasets,
    "d.jsonl": by_json,
}


@pytest.fixture(params=WRITTEN)
def path(request, tmp_path):
    WRITTEN[request.param](tmp_path / request.param)
    return tmp_path / request.param


def test_the_only_column_of_vectors_is_the_table(path):
    with pytest.warns(
        UserWarning, match=r"column 'emb' of .* holds vectors and is compared; id, (text|tags).* left out"
    ):
        table = read_table(path)
    np.testing.assert_array_equal(table.values, X)
    assert table.columns == ("emb[0]", "emb[1]", "emb[2]", "emb[3]")
    joined = read_table(path, key="id", columns=["emb"])
    assert joined.keys.tolist() == IDS
    np.testing.assert_array_equal(joined.values, X)


def test_vectors_come_with_other_columns_where_these_are_named(path):
    found = read_columns(path, ["id", "emb", "text"])
    np.testing.assert_array_equal(found["emb"], X)
    assert found["text"].tolist() == TEXTS
    with pytest.raises(UnusableFileError, match=r"column 'emb' of .* holds vectors, which name nothing"):
        read_labels(path, "emb")


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".jsonl", ".npz"])
def test_vectors_and_numbers_are_written_and_read(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write_table(path, {"id": np.array(IDS), "n": np.arange(N, dtype=float), "emb": X})
    if suffix == ".npz":
        np.testing.assert_array_equal(read_table(f"{path}:emb").values, X)
        return
    table = read_table(path, columns=["n", "emb"])
    assert table.columns == ("n", "emb[0]", "emb[1]", "emb[2]", "emb[3]")
    np.testing.assert_array_equal(table.values[:, 1:], X)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"emb": [[1, 2], [1, 2], [1]]}, "column 'emb' of .* different lengths, 2 in row 0 and 1 in row 2"),
        ({"emb": [["p"], ["q"], ["r"]]}, "column 'emb' of .* does not hold numbers"),
        (
            {"a": [[1.0]] * 3, "b": [[1.0]] * 3},
            "has 2 columns of vectors: a, b. Choose one, for example with --columns a",
        ),
        (
            {"emb": [[], [], []]},
            "column 'emb' of .* (holds empty lists|does not hold numbers)|has no column of numbers",
        ),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".jsonl"])
def test_columns_that_are_no_vectors_are_refused(tmp_path, columns, said, suffix):
    path = tmp_path / f"a{suffix}"
    if suffix == ".jsonl":
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        frame = pd.DataFrame(columns)
        frame.to_parquet(path) if suffix == ".parquet" else frame.to_feather(path)
    with pytest.raises(UnusableFileError, match=said):
        read_table(path)


def test_long_texts_beside_vectors_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setenv("INLIER_MAX_UNPACKED", "0.001")
    pd.DataFrame({"text": ["a" * 100_000, *TEXTS[1:]], "emb": list(X)}).to_parquet(tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="left out"):
        assert read_table(tmp_path / "a.parquet").values.shape == X.shape


# ---- files that need not fit into memory


@pytest.mark.parametrize("group_rows", [7, 1000])
def test_any_rows_of_a_column_are_read_alone(tmp_path, group_rows):
    values = np.random.default_rng(1).normal(size=(1000, 3))
    values[400:403] = np.nan
    lists = pa.array([None if np.isnan(row).any() else row for row in values.tolist()])
    pq.write_table(pa.table({"emb": lists, "id": np.arange(1000)}), tmp_path / "a.parquet", row_group_size=group_rows)
    stored = open_stored(tmp_path / "a.parquet", columns=["emb"])
    assert stored.shape == (1000, 3)
    rng = np.random.default_rng(0)
    for start, stop in np.sort(rng.integers(0, 1001, (40, 2)), axis=1).tolist():
        np.testing.assert_array_equal(stored[start:stop], values[start:stop])
    np.testing.assert_array_equal(np.concatenate([stored[row : row + 13] for row in range(0, 1000, 13)]), values)


@pytest.mark.parametrize("free", [10**12, 0])
def test_what_was_unpacked_is_read_again_as_it_was(tmp_path, monkeypatch, free):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    pq.write_table(pa.table({"emb": list(X)}), tmp_path / "a.parquet", row_group_size=25)
    stored = open_stored(tmp_path / "a.parquet")
    in_order = [slice(0, 20), slice(20, 40), slice(40, N)]
    for rows in [slice(30, 50), *in_order, *in_order, slice(55, N), slice(0, N), slice(7, 9)]:
        np.testing.assert_array_equal(stored[rows], X[rows])


def test_another_length_is_refused_where_it_is_met(tmp_path):
    pq.write_table(pa.table({"emb": [[1.0, 2.0]] * 90 + [[1.0]]}), tmp_path / "a.parquet", row_group_size=20)
    stored = open_stored(tmp_path / "a.parquet")
    assert stored.shape == (91, 2)
    with pytest.raises(UnusableFileError, match=r"column 'emb' of .* different lengths, 2 in row 0 and 1 in row 90"):
        stored[70:91]


def test_what_is_no_single_column_of_vectors_is_not_opened(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "emb": [[1.0], [2.0]], "b": [[1.0], [2.0]]}).to_parquet(tmp_path / "a.parquet")
    assert open_stored(tmp_path / "a.parquet") is None
    assert open_stored(tmp_path / "a.parquet", columns=["a"]) is None
    assert open_stored(tmp_path / "a.parquet", columns=["emb", "b"]) is None
    assert open_stored(tmp_path / "a.parquet", columns=["absent"]) is None


# ---- the rows of a file with further columns

MORE = {"q": np.arange(N) / 4, "real": np.arange(N) % 2 == 0, "n": np.arange(N)}


def in_blocks():
    return ({name: column[start : start + 17] for name, column in MORE.items()} for start in range(0, N, 17))


@pytest.mark.parametrize("target", ["o.parquet", "o.feather"])
@pytest.mark.parametrize("source", ["a.parquet", "a.feather"])
def test_everything_arrow_holds_stays(tmp_path, source, target):
    frame = pd.DataFrame({"id": IDS, "emb": list(X), "day": pd.date_range("2020", periods=N), "tags": [["a", "b"]] * N})
    frame["kind"] = pd.Categorical(["p", "q"] * (N // 2))
    frame.to_parquet(tmp_path / source) if source.endswith("parquet") else frame.to_feather(tmp_path / source)
    assert write_with_columns(tmp_path / source, tmp_path / target, in_blocks()) == []
    read = pd.read_parquet if target.endswith("parquet") else pd.read_feather
    pd.testing.assert_frame_equal(read(tmp_path / target), frame.assign(**MORE))


def test_every_cell_of_a_text_stays(tmp_path):
    lines = ["\ufeffid;a", *(f"{key};1,50" for key in IDS[:-1]), f'"{IDS[-1]};x";']
    (tmp_path / "a.csv").write_text("\r\n".join(lines) + "\r\n")
    assert write_with_columns(tmp_path / "a.csv", tmp_path / "o.tsv", in_blocks()) == []
    written = (tmp_path / "o.tsv").read_text().splitlines()
    assert written[:2] == ["id\ta\tq\treal\tn", "000\t1,50\t0.0\ttrue\t0"]
    assert written[-1] == f"{IDS[-1]};x\t\t14.75\tfalse\t59"


def test_lines_of_json_stay(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(f'{{"id": "{key}", "q": 1, "deep": {{"a": [1]}}}}\n' for key in IDS))
    assert write_with_columns(tmp_path / "a.jsonl", tmp_path / "o.jsonl", in_blocks()) == []
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert lines[2] == {"id": "002", "q": 0.5, "deep": {"a": [1]}, "real": True, "n": 2}


def test_between_kinds_what_cannot_be_carried_is_named(tmp_path):
    by_pandas(tmp_path / "a.parquet")
    assert write_with_columns(tmp_path / "a.parquet", tmp_path / "o.csv", in_blocks()) == ["emb", "tags"]
    assert read_labels(tmp_path / "o.csv", "id").tolist() == IDS
    assert write_with_columns(tmp_path / "a.parquet", tmp_path / "o.jsonl", in_blocks()) == ["tags"]
    np.testing.assert_array_equal(read_columns(tmp_path / "o.jsonl", ["emb"])["emb"], X)


def test_a_failed_copy_leaves_nothing_behind(tmp_path):
    by_pandas(tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(content[:300] + b"\xff" * 40 + content[340:])
    with pytest.raises((UnusableFileError, OSError)):
        write_with_columns(tmp_path / "a.parquet", tmp_path / "o.parquet", in_blocks())
    assert [path.name for path in Path(tmp_path).iterdir()] == ["a.parquet"]
