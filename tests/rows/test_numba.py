"""The compiled kernels give what plain NumPy gives, for every type and dimension they accept."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier import EigenvectorMatcher, RowSumMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.rows import PairedRows, fused, summarise_columns, threads, unit_rows
from inlier.rows import algebra as moments
from inlier.rows.scores import _WindowOf
from tests import reference

# Every type, unrolled dimensions (1, 3, 6) and others (5, 7, 16); each row of this table is a compilation.
KINDS = [
    ("float64", 3, 3),
    ("float32", 3, 3),
    ("uint8", 3, 3),
    ("float64", 1, 6),
    ("float64", 7, 5),
    ("float64", 16, 7),
    ("float64", 3, 7),
]


@pytest.fixture(scope="module", autouse=True)
def kernels_on_small_tables():
    """Let tables of any length go through the kernels, in several threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused, "FEWEST_ROWS", 1)
        patch.setattr(threads, "_ROWS_PER_RANGE", 40)
        yield


@st.composite
def tables(draw):
    """Two tables of one type; lengths around the tile and the stretch are drawn."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([2, 3, 31, 32, 33, 127, 128, 129, 300]))
    dtype, *dimensions = draw(st.sampled_from(KINDS))
    return [(rng.standard_normal((n, d)) * 20 + 100).astype(dtype) for d in dimensions]


def both_ways(X, Y, unit_length):
    """Pairs read by the kernels, and the prepared rows themselves in float64."""
    maps = [unit_rows(summarise_columns(table)) if unit_length else None for table in (X, Y)]
    pairs = PairedRows(X, Y, *maps)
    wide = [table.astype(np.float64) for table in (X, Y)]
    return pairs, [reference.prepared(table) for table in wide] if unit_length else wide


@given(tables(), st.booleans(), st.integers(0, 2**32 - 1))
def test_every_function_of_the_vocabulary(tables, unit_length, seed):
    pairs, (x, y) = both_ways(*tables, unit_length)
    rng = np.random.default_rng(seed)
    weights, U = rng.standard_normal(len(x)), rng.standard_normal((x.shape[1], y.shape[1]))
    assert fused.kernels_for(*tables) is not None
    tolerance = {"rtol": 1e-9, "atol": 1e-9 * (np.abs(x) ** 2).sum() * (np.abs(y) ** 2).sum()}
    for moment, vectors, fixed in [
        (moments.cross_moment, [], {}),
        (moments.cross_moment, [weights], {}),
        (moments.gram_step, [], {"matrix": U}),
        (moments.product_moment, [], {}),
    ]:
        found = pairs.sum(moment, *vectors, **fixed)
        np.testing.assert_allclose(found, moment(x, y, *vectors, **fixed), **tolerance)
    for score in (moments.bilinear, moments.leave_one_out):
        np.testing.assert_allclose(pairs.map(score, matrix=U), score(x, y, matrix=U), **tolerance)
    np.testing.assert_allclose(pairs.map(moments.norm_product), moments.norm_product(x, y), rtol=1e-5)


@given(tables())
def test_two_sums_in_one_reading(tables):
    pairs, _ = both_ways(*tables, unit_length=True)
    works = [moments.product_moment, moments.cross_moment]
    for together, alone in zip(pairs.sums(*works), map(pairs.sum, works), strict=True):
        np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-12 * len(tables[0]))


@given(
    st.lists(st.floats(-10, 10).map(lambda value: round(value, 1)), min_size=1, max_size=150),
    st.floats(-11, 11).map(lambda value: round(value, 1)),
    st.floats(0, 5),
)
def test_a_window_is_what_numpy_sees_through_it(values, low, width):
    values, high = np.array(values), low + width
    below, inside, above = _WindowOf(low, high)(values)
    assert fused.kernels_for(values) is not None
    assert inside.tolist() == values[(values >= low) & (values < high)].tolist()
    for tail, there, nearest in ((below, values[values < low], max), (above, values[values >= high], min)):
        assert tail.number == there.size
        assert tail.sum == pytest.approx(there.sum(), abs=1e-9)
        assert tail.nearest == (nearest(there) if there.size else {max: -np.inf, min: np.inf}[nearest])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wide_rows_far_from_the_origin_are_prepared_as_by_numpy(dtype):
    half = np.random.default_rng(0).integers(-50, 50, (100, 20)) / 8
    X = (1000.5 + np.vstack([half, -half, np.zeros((1, 20))])).astype(dtype)
    row_map = unit_rows(summarise_columns(X.astype(np.float64)))
    exact = row_map(X.astype(np.float64))
    prepared = fused.PreparedRows(row_map, X)
    assert prepared._kernels is not None
    for rows in (slice(0, 150), slice(150, 201)):  # the second block is shorter than the first
        found = prepared(X[rows])
        assert found.dtype == dtype
        np.testing.assert_allclose(found, exact[rows], atol=16 * np.finfo(dtype).eps)
    assert not prepared(X[-1:]).any()  # it is the mean


@pytest.mark.parametrize("count", [1, 2, 5])
def test_sums_do_not_depend_on_the_number_of_threads(count, monkeypatch):
    X = np.random.default_rng(0).standard_normal((1000, 3))
    pairs = PairedRows(X, X, *[unit_rows(summarise_columns(X))] * 2)
    expected = pairs.sum(moments.cross_moment)
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    monkeypatch.setattr(threads, "_pool", lambda: ThreadPoolExecutor(count))
    np.testing.assert_array_equal(pairs.sum(moments.cross_moment), expected)


@given(tables())
def test_column_summary(tables):
    for X in tables:
        summary = summarise_columns(X)
        np.testing.assert_allclose(summary.mean, X.mean(axis=0, dtype=np.float64), rtol=1e-12)
        np.testing.assert_array_equal(summary.minimum, X.min(axis=0))
        np.testing.assert_array_equal(summary.maximum, X.max(axis=0))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 50, 99])
def test_a_value_that_is_not_finite_shows(value, row):
    X = np.random.default_rng(0).standard_normal((100, 3))
    assert summarise_columns(X).is_finite
    X[row, 1] = value
    assert not summarise_columns(X).is_finite


def test_a_row_without_direction():
    half = np.random.default_rng(0).standard_normal((200, 3))
    X = np.vstack([half, -half, np.zeros((1, 3))])
    pairs = PairedRows(X, X, *[unit_rows(summarise_columns(X))] * 2)
    assert fused.kernels_for(X) is not None
    assert pairs.map(moments.leave_one_out, matrix=np.eye(3))[-1] == 0
    assert np.isfinite(pairs.sum(moments.product_moment)).all()


@pytest.mark.parametrize(
    "table",
    [
        np.asfortranarray(np.ones((50, 3))),
        np.ones((50, 17)),
        np.ones((50, 3), dtype=np.int32),
        np.ones((50, 3), dtype=">f8"),
        np.ones((100, 3))[::2],
    ],
    ids=["column order", "wide", "integers", "foreign bytes", "strided"],
)
def test_tables_that_the_kernels_cannot_read_go_through_numpy(table):
    assert fused.kernels_for(table) is None
    assert summarise_columns(table).mean.tolist() == [1] * table.shape[1]


@pytest.mark.parametrize("Matcher", [RowSumMatcher, EigenvectorMatcher])
@pytest.mark.parametrize("d", [3, 5])
def test_matchers_agree_with_and_without_kernels(Matcher, d, monkeypatch):
    data = make_gaussian_pairs(2000, d, 0.7, noise=0.1, rng=0)
    with_kernels = Matcher().fit(data.X, data.Y)
    monkeypatch.setattr(fused, "_kernels", lambda: None)
    without = Matcher().fit(data.X, data.Y)
    np.testing.assert_allclose(with_kernels.scores_, without.scores_, atol=1e-10 * np.abs(without.scores_).max())
    np.testing.assert_array_equal(with_kernels.inlier_mask_, without.inlier_mask_)


@pytest.mark.parametrize(
    "switch_off", ["import os; os.environ['NUMBA_DISABLE_JIT'] = '1'", "import sys; sys.modules['numba'] = None"]
)
def test_numba_may_be_disabled_or_missing(switch_off):
    code = (
        f"{switch_off}\n"
        "from inlier import RowSumMatcher\n"
        "from inlier.datasets import make_gaussian_pairs\n"
        "from inlier.rows import fused\n"
        "data = make_gaussian_pairs(5000, 60, 0.6, rng=0)\n"
        "assert fused.kernels_for(data.X[:, :3].copy()) is None\n"
        "assert (RowSumMatcher().fit(data.X, data.Y).inlier_mask_ == data.inlier_mask).all()\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_no_folder_for_compiled_code_means_no_kernels(monkeypatch):
    def nowhere_to_write(name):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(fused, "import_module", nowhere_to_write)
    fused._kernels.cache_clear()
    try:
        assert fused.kernels_for(np.ones((10, 3))) is None
    finally:
        fused._kernels.cache_clear()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_threads_work_after_a_fork():
    data = make_gaussian_pairs(2000, 3, 0.7, rng=0)
    expected = RowSumMatcher().fit(data.X, data.Y).scores_
    child = os.fork()
    if child == 0:
        try:
            same = np.array_equal(RowSumMatcher().fit(data.X, data.Y).scores_, expected)
            os._exit(0 if same else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
