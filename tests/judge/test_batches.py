"""Batches as engines hand them over: the same answer, in the kind that came."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.exceptions import ParameterError

ADDED = ["inlier", "inlier_score", "inlier_p_value", "inlier_q_value", "inlier_certain_q_value", "inlier_certain"]


@pytest.fixture(scope="module")
def case():
    data = make_gaussian_pairs(n=600, d=4, inlier_fraction=0.7, noise=0.1, rng=0)
    judge = CalibratedMatcher(random_state=0).fit(data.X[:400], data.Y[:400]).judge_
    X, Y = data.X[400:].astype(np.float32), data.Y[400:].astype(np.float32)
    return judge, X, Y, judge(X, Y)


def agrees(found, expected):
    assert (np.asarray(found["inlier_score"]) == expected.scores).all()
    assert (np.asarray(found["inlier"]) == expected.inlier_mask).all()
    assert (np.asarray(found["inlier_certain"]) == expected.certain_mask).all()


def test_dict_of_arrays_or_lists(case):
    judge, X, Y, expected = case
    found = judge.add_to({"a": X, "b": Y}, x="a", y="b")
    assert list(found) == ["a", "b", *ADDED]
    agrees(found, expected)
    agrees(judge.add_to({"a": X.tolist(), "b": Y.tolist()}, x="a", y="b"), expected)
    agrees(judge.add_to(found, x="a", y="b"), expected)  # again: the same columns


def test_arrow_batches_and_tables(case):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    judge, X, Y, expected = case
    columns = {name: arrow.array(list(table), arrow.list_(arrow.float32())) for name, table in (("a", X), ("b", Y))}
    for kind in (arrow.table, arrow.record_batch):
        found = judge.add_to(kind(columns), x="a", y="b")
        assert type(found) is type(kind(columns))
        assert found.column_names == ["a", "b", *ADDED]
        agrees(
            {
                name: found[name].to_numpy(zero_copy_only=False)
                if kind is arrow.record_batch
                else found[name].to_numpy()
                for name in ADDED
            },
            expected,
        )
    streamed = [judge.add_to(batch, x="a", y="b") for batch in arrow.table(columns).to_batches(max_chunksize=37)]
    agrees(arrow.Table.from_batches(streamed).to_pydict(), expected)  # as Spark's mapInArrow hands them


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_with_a_column_for_each_number(case, kind):
    frames = pytest.importorskip(kind, reason=f"{kind} is not installed")
    judge, X, Y, expected = case
    names_x, names_y = ([f"{side}{k}" for k in range(4)] for side in "xy")
    columns = dict(zip([*names_x, *names_y], np.concatenate([X, Y], axis=1).T, strict=True))
    frame = frames.DataFrame({"id": [f"r{k}" for k in range(len(X))], **columns})
    found = judge.add_to(frame, x=names_x, y=names_y)
    assert type(found) is frames.DataFrame
    assert list(found.columns) == ["id", *names_x, *names_y, *ADDED]
    agrees(found, expected)
    assert "inlier" not in frame.columns


def test_pandas_columns_of_vectors_and_dask(case):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    judge, X, Y, expected = case
    frame = pandas.DataFrame({"a": list(X), "b": list(Y)})
    agrees(judge.add_to(frame, x="a", y="b"), expected)
    parts = [judge.add_to(frame.iloc[k : k + 50], "a", "b") for k in range(0, len(frame), 50)]
    agrees(pandas.concat(parts), expected)
    dask = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    numbers = pandas.DataFrame(np.concatenate([X, Y], axis=1)).rename(columns=str)
    sides = [str(k) for k in range(4)], [str(k) for k in range(4, 8)]
    found = dask.from_pandas(numbers, npartitions=3).map_partitions(judge.add_to, *sides).compute(scheduler="sync")
    agrees(found, expected)


def test_datasets_map(case):
    datasets = pytest.importorskip("datasets", reason="pip install datasets")
    judge, X, Y, expected = case
    data = datasets.Dataset.from_dict({"a": X, "b": Y}).with_format("numpy")
    found = data.map(judge.add_to, batched=True, batch_size=64, fn_kwargs={"x": "a", "y": "b"})
    agrees(found.with_format("arrow")[:].to_pydict(), expected)  # as numpy it would be shortened to float32


def test_duckdb(case):
    duckdb = pytest.importorskip("duckdb", reason="pip install duckdb")
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    judge, X, Y, expected = case
    columns = {name: arrow.array(list(table), arrow.list_(arrow.float32())) for name, table in (("a", X), ("b", Y))}
    pairs = arrow.table(columns)  # which the query names
    reader = duckdb.sql("SELECT * FROM pairs").to_arrow_reader(50)
    judged = arrow.Table.from_batches([judge.add_to(batch, x="a", y="b") for batch in reader])
    share = duckdb.sql("SELECT avg(inlier::INT) FROM judged").fetchall()[0][0]
    assert share == pytest.approx(expected.inlier_mask.mean())
    assert len(pairs) == len(judged)


def test_what_is_no_batch_is_refused(case):
    judge, X, Y, _ = case
    with pytest.raises(ParameterError, match="x names column 'c', and the batch has a, b"):
        judge.add_to({"a": X, "b": Y}, x="c", y="b")
    with pytest.raises(ParameterError, match="give an Arrow batch, a frame or a dict of columns"):
        judge.add_to([1, 2], x="a", y="b")


def test_it_travels_by_pickle(case):
    judge, X, Y, expected = case
    function = pickle.loads(pickle.dumps(judge.add_to))
    agrees(function({"a": X, "b": Y}, x="a", y="b"), expected)
