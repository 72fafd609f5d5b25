"""Vectors in columns of frames, of Arrow and of data sets are tables; a column that is none is refused by its name."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from inlier import CalibratedMatcher, RowSumMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.exceptions import ParameterError
from inlier.rows import as_table

DATA = make_gaussian_pairs(n=300, d=6, inlier_fraction=0.6, noise=0.2, rng=0)
LISTS = DATA.X.tolist()
FLAT = pa.array(DATA.X.ravel())
FIXED = pa.FixedSizeListArray.from_arrays(FLAT, 6)
TENSORS = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float64(), (6,)), FIXED)
KINDS = {
    "pandas frame of lists": pd.DataFrame({"emb": LISTS}),
    "pandas frame of arrays": pd.DataFrame({"emb": list(DATA.X)}),
    "pandas column": pd.Series(LISTS, name="emb"),
    "pandas on arrow": pd.Series(pd.array(LISTS, dtype=pd.ArrowDtype(pa.list_(pa.float64())))),
    "pandas frame of two columns": pd.DataFrame({"a": list(DATA.X[:, :2]), "b": list(DATA.X[:, 2:])}),
    "pandas frame with a number": pd.DataFrame({"a": DATA.X[:, 0], "b": list(DATA.X[:, 1:])}),
    "polars frame of arrays": pl.DataFrame({"emb": DATA.X}),
    "polars frame of lists": pl.DataFrame({"emb": LISTS}),
    "polars column": pl.Series("emb", LISTS),
    "arrow table": pa.table({"emb": LISTS}),
    "arrow column in chunks": pa.chunked_array([FIXED[:100], FIXED[100:]]),
    "arrow lists": pa.array(LISTS),
    "arrow large lists": pa.array(LISTS, pa.large_list(pa.float64())),
    "arrow tensors": TENSORS,
    "arrow lists further back": pa.array([[0.0] * 6, *LISTS])[1:],
    "objects": np.array([*LISTS, None], dtype=object)[:-1],
}


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_the_table_that_they_make(kind):
    np.testing.assert_array_equal(as_table(KINDS[kind], "X"), DATA.X)


@pytest.mark.parametrize("kind", ["pandas frame of lists", "pandas column", "polars frame of arrays", "arrow table"])
def test_what_is_fitted_to_vectors_predicts_and_repairs_them(kind):
    plain = CalibratedMatcher(random_state=0).fit(DATA.X, DATA.Y)
    given = KINDS[kind]
    matcher = CalibratedMatcher(random_state=0).fit(given, DATA.Y)
    np.testing.assert_array_equal(matcher.scores_, plain.scores_)
    assert matcher.n_features_in_ == 6
    assert np.shape(matcher.transform(given)) == DATA.Y.shape
    np.testing.assert_array_equal(matcher.repair(given, DATA.Y).partner, plain.repair(DATA.X, DATA.Y).partner)
    both = CalibratedMatcher(random_state=0).fit(given, pd.Series(DATA.Y.tolist()))
    assert np.shape(both.predict(given)) == DATA.Y.shape  # y had six numbers, not one


def test_columns_of_vectors_do_not_correspond_by_their_names():
    sides = [
        pd.DataFrame({name: list(table[:, k : k + 2]) for k, name in enumerate("abcd")}) for table in (DATA.X, DATA.Y)
    ]
    arrays = [np.column_stack([table[:, k : k + 2] for k in range(4)]) for table in (DATA.X, DATA.Y)]
    np.testing.assert_array_equal(
        CalibratedMatcher(random_state=0).fit(*sides).scores_, CalibratedMatcher(random_state=0).fit(*arrays).scores_
    )


@pytest.mark.parametrize(
    "make", [pd.Series, pa.array, lambda rows: pl.Series("a", rows)], ids=["pandas", "arrow", "polars"]
)
def test_a_missing_vector_is_missing_everywhere(make):
    table = as_table(make([[1.0, 2.0], None, [3.0, None]]), "X")
    np.testing.assert_array_equal(table, [[1, 2], [np.nan, np.nan], [3, np.nan]])


def test_the_type_of_the_numbers_stays():
    assert as_table(pa.array([[1.0], [2.0]], pa.list_(pa.float32())), "X").dtype == np.float32
    assert as_table(pa.array([[1], None], pa.list_(pa.int8())), "X").dtype.kind == "f"
    assert as_table(pd.Series([np.float32([1, 2])]), "X").dtype == np.float32


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pd.DataFrame({"a": [1.0, 2, 3], "u": ["p", "q", "r"]}), "column 'u' of X .*'p'.*Leave the column out"),
        (pd.DataFrame({"a": [1.0, 2, 3], "u": pd.Categorical(["p", "q", "r"])}), "column 'u' of X .*'p'"),
        (pd.DataFrame({"d": pd.date_range("2020", periods=3)}), "column 'd' of X .*2020-01-01.*dates as days"),
        (pl.DataFrame({"a": [1.0, 2, 3], "u": ["p", "q", "r"]}), "column 'u' of X .*'p'"),
        (pa.table({"u": ["p", "q", "r"]}), "column 'u' of X .*'p'"),
        (pd.Series(["p", "q", "r"]), "X does not hold numbers .*'p'.*Convert them"),
        (
            pd.DataFrame({"e": [[1, 2], [1], [1, 2]]}),
            "column 'e' of X holds vectors of diff.* lengths, 2 in row 0 and 1 in",
        ),
        (pa.array([[1, 2], [1, 2], [1]]), "X holds vectors of diff.* lengths, 2 in row 0 and 1 in row 2"),
        (
            pa.chunked_array([[[1, 2]], [[1, 2], [1]]]),
            "X holds vectors of diff.* lengths, 2 in row 0 and 1 in row 2",
        ),
        (pd.DataFrame({"e": [["p"], ["q"], ["r"]]}), "column 'e' of X holds lists of something else than numbers"),
        (pa.array([[[1, 2]], [[1, 2]], [[1, 2]]]), "X holds lists of lists; flatten them"),
        (pd.Series([[1, 2], "no", [3, 4]]), "X holds a list in some rows and 'no' in row 1"),
        (pd.Series([[], [], []]), "X holds empty lists"),
        (pa.array([None] * 3, pa.list_(pa.float64())), "X holds no vector in any row"),
    ],
)
def test_what_is_no_table_is_refused_by_the_name_of_the_column(table, said):
    with pytest.raises(ParameterError, match=said):
        RowSumMatcher().fit(table, np.eye(3))
    if "vector" in said or "lists" in said:  # words are compared
        with pytest.raises(ParameterError, match=said):
            CalibratedMatcher().fit(table, np.eye(3))


def test_numbers_that_are_held_as_objects_are_numbers():
    frame = pd.DataFrame({"a": [1.5, None, 3], "b": ["1", "2", "3"]}, dtype=object)
    np.testing.assert_array_equal(as_table(frame, "X"), [[1.5, 1], [np.nan, 2], [3, 3]])


def test_the_example_is_what_is_no_number():
    column = [0.5, "1.5", "unknown", 2.0] * 5
    with pytest.raises(ParameterError, match=r"column .dose. of X does not hold numbers .for example 'unknown'"):
        RowSumMatcher().fit(pd.DataFrame({"dose": column, "age": range(20)}), np.random.default_rng(0).random((20, 2)))


def test_data_sets_of_hugging_face():
    datasets = pytest.importorskip("datasets", reason="pip install datasets")
    features = datasets.Features({"a": datasets.Sequence(datasets.Value("float64"), 6), "t": datasets.Value("string")})
    data = datasets.Dataset.from_dict({"a": LISTS, "t": ["p"] * 300}, features=features)
    for given in (data["a"], data.select_columns("a"), data.with_format("numpy")["a"]):
        np.testing.assert_array_equal(as_table(given, "X"), DATA.X)
    np.testing.assert_array_equal(as_table(data.select([5, 3])["a"], "X"), DATA.X[[5, 3]])
    with pytest.raises(ParameterError, match="column 't' of X does not hold numbers"):
        as_table(data, "X")


def test_lists_of_tensors():
    torch = pytest.importorskip("torch", reason="pip install torch; its CPU build is enough")
    np.testing.assert_array_equal(
        as_table([torch.tensor(row, requires_grad=True) for row in LISTS], "X"), np.float32(LISTS)
    )


def test_tensors_of_few_bits_and_with_gradients():
    torch = pytest.importorskip("torch", reason="pip install torch; its CPU build is enough")
    x, y = torch.tensor(DATA.X), torch.tensor(DATA.Y)
    for a, b in ((x.bfloat16(), y.bfloat16()), (x.half(), y.half()), (x.clone().requires_grad_(), y)):
        mask = CalibratedMatcher(random_state=0).fit(a, b).inlier_mask_
        assert (mask.numpy() == DATA.inlier_mask).mean() > 0.97


def test_no_library_is_imported_for_it():
    code = "import sys, numpy, inlier; inlier.RowSumMatcher().fit(numpy.eye(4), numpy.eye(4)); "
    code += "print([name for name in ('polars', 'datasets', 'torch') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
