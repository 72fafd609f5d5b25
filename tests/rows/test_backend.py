"""A fast backend gives what plain algebra gives, for every type and dimension it accepts."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier import EigenvectorMatcher, RowSumMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.rows import PairedRows, backend, summarise_columns, threads, unit_rows
from inlier.rows._numba import Numba
from inlier.rows.backend import backend_for, bins_of, compute_dtype, count_from, ridge_solver, to_host
from tests import reference
from tests.stores import STRICT_DEVICE

# Every type, dimensions that are multiples of three and others, and two types side by side.
KINDS = [
    ("float64", "float64", 3, 3),
    ("float32", "float32", 3, 3),
    ("uint8", "uint8", 3, 3),
    ("uint8", "float64", 3, 2),
    ("float64", "float64", 1, 6),
    ("float64", "float64", 7, 5),
    ("float64", "float64", 16, 7),
]


@pytest.fixture(scope="module", autouse=True)
def kernels_on_small_tables():
    """Let tables of any length go through the kernels, in several threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "FEWEST_ROWS", 1)
        patch.setattr(threads, "_ROWS_PER_RANGE", 40)
        yield


@st.composite
def tables(draw):
    """Two tables; lengths around the range and the tile are drawn."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([2, 3, 39, 40, 41, 255, 256, 257, 300]))
    *dtypes, d_x, d_y = draw(st.sampled_from(KINDS))
    return [(rng.standard_normal((n, d)) * 20 + 100).astype(dtype) for dtype, d in zip(dtypes, (d_x, d_y), strict=True)]


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
    assert isinstance(backend_for(*tables), Numba)
    tolerance = {"rtol": 1e-9, "atol": 1e-9 * (np.abs(x) ** 2).sum() * (np.abs(y) ** 2).sum()}
    products, moment = pairs.product_moments()
    for found, expected in [
        (moment, backend.cross_moment(x, y)),
        (products, backend.product_moment(x, y)),
        (pairs.cross_moment(), backend.cross_moment(x, y)),
        (pairs.cross_moment(weights), backend.cross_moment(x, y, weights)),
        (pairs.gram_step(U), backend.gram_step(x, y, U)),
        (pairs.bilinear(U, 2.5), 2.5 * backend.bilinear(x, y, U)),
        (pairs.leave_one_out(U), backend.leave_one_out(x, y, U)),
    ]:
        np.testing.assert_allclose(found, expected, **tolerance)
    np.testing.assert_allclose(pairs.norm_product(), backend.norm_product(x, y), rtol=1e-5)


@given(
    st.lists(st.floats(-10, 10).map(lambda value: round(value, 1)), min_size=1, max_size=150),
    st.floats(-11, 11).map(lambda value: round(value, 1)),
    st.floats(0.1, 5),
)
def test_histogram_and_window_are_those_of_numpy(values, low, width):
    values, high = np.array(values), low + width
    assert isinstance(backend_for(values), Numba)
    n_below, sum_below, inside, n_above, sum_above = backend_for(values).window(values, low, high)
    below, above = values[values < low], values[values >= high]
    assert inside.tolist() == values[(values >= low) & (values < high)].tolist()
    assert (n_below, n_above) == (below.size, above.size)
    assert (sum_below, sum_above) == pytest.approx((below.sum(), above.sum()), abs=1e-9)
    by_sorting, by_kernel = (way.histogram(values, low, high, 7) for way in (backend.Plain(), Numba()))
    assert by_kernel[0].sum() == values.size
    assert by_kernel[2] == by_sorting[2] == (values == 0).sum()
    edges = np.linspace(low, high, 8)[1:-1]
    if np.abs(values[:, None] - edges).min() > 1e-9:  # else rounding decides
        np.testing.assert_array_equal(by_kernel[0], by_sorting[0])
        np.testing.assert_allclose(by_kernel[1], by_sorting[1], atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wide_rows_far_from_the_origin_are_prepared_as_by_numpy(dtype, small_blocks):
    half = np.random.default_rng(0).integers(-50, 50, (100, 20)) / 8
    X = (1000.5 + np.vstack([half, -half, np.zeros((1, 20))])).astype(dtype)
    row_map = unit_rows(summarise_columns(X.astype(np.float64)))
    exact = row_map(X.astype(np.float64))
    small_blocks(150)  # the second piece is shorter than the first
    for rows, x, _ in backend_for(X, X).prepared(X, X, backend.Maps(row_map, row_map)):
        assert x.dtype == dtype
        np.testing.assert_allclose(x, exact[rows], atol=16 * np.finfo(dtype).eps)
    assert not x[-1].any()  # it is the mean


@pytest.mark.parametrize("count", [1, 2, 5])
def test_sums_do_not_depend_on_the_number_of_threads(count, monkeypatch):
    X = np.random.default_rng(0).standard_normal((1000, 3))
    pairs = PairedRows(X, X, *[unit_rows(summarise_columns(X))] * 2)
    expected = pairs.cross_moment()
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    monkeypatch.setattr(threads, "_pool", lambda: ThreadPoolExecutor(count))
    np.testing.assert_array_equal(pairs.cross_moment(), expected)


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
    assert isinstance(backend_for(X), Numba)
    assert pairs.leave_one_out(np.eye(3))[-1] == 0
    assert all(np.isfinite(found).all() for found in pairs.product_moments())


@pytest.mark.parametrize(
    "table",
    [
        np.asfortranarray(np.ones((50, 3))),
        np.ones((50, 3), dtype=np.int32),
        np.ones((50, 3), dtype=">f8"),
        np.ones((100, 3))[::2],
    ],
    ids=["column order", "integers", "foreign bytes", "strided"],
)
def test_tables_that_the_kernels_cannot_read_go_through_numpy(table):
    assert type(backend_for(table)) is backend.Plain
    assert summarise_columns(table).mean.tolist() == [1] * table.shape[1]


@pytest.mark.parametrize("Matcher", [RowSumMatcher, EigenvectorMatcher])
@pytest.mark.parametrize("d", [3, 5])
def test_matchers_agree_with_and_without_kernels(Matcher, d, monkeypatch):
    data = make_gaussian_pairs(2000, d, 0.7, noise=0.1, rng=0)
    with_kernels = Matcher().fit(data.X, data.Y)
    monkeypatch.setattr(backend, "_BACKENDS", ())
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
        "from inlier.rows.backend import Plain, backend_for\n"
        "data = make_gaussian_pairs(5000, 60, 0.6, rng=0)\n"
        "assert type(backend_for(data.X)) is Plain\n"
        "assert (RowSumMatcher().fit(data.X, data.Y).inlier_mask_ == data.inlier_mask).all()\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


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


def here(table):
    return table


def in_torch(table):
    return pytest.importorskip("torch", reason="torch is the user's to bring, and is not here").from_numpy(table)


def on_strict_device(table):
    return array_api_strict.asarray(table, device=STRICT_DEVICE)


@pytest.mark.parametrize("put", [here, in_torch, on_strict_device])
def test_the_system_is_solved_for_each_right_side(put):
    rng = np.random.default_rng(0)
    rows, right = rng.standard_normal((12, 7)), rng.standard_normal((7, 3))
    solve = ridge_solver(put(rows.T @ rows), 0.5)
    for some in (right, right[:, :1]):
        expected = np.linalg.solve(rows.T @ rows + 0.5 * np.eye(7), some)
        np.testing.assert_allclose(to_host(solve(put(some))), expected, atol=1e-12)


@pytest.mark.parametrize("put", [here, in_torch, on_strict_device])
def test_what_lies_in_few_rows_keeps_its_digits_under_a_tiny_ridge(put):
    """With fewer rows than columns, x^T (X^T X + ridge I)^-1 x is 1 - ridge (K + ridge I)^-1_ii, K = X X^T."""
    rng = np.random.default_rng(0)
    rows, ridge = rng.standard_normal((5, 40)), 1e-7
    solved = to_host(ridge_solver(put(rows.T @ rows), ridge)(put(np.ascontiguousarray(rows.T))))
    leverage = np.einsum("ij,ji->i", rows, solved)
    beyond = ridge * np.diag(np.linalg.inv(rows @ rows.T + ridge * np.eye(5)))
    np.testing.assert_allclose(1 - leverage, beyond, rtol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("u1", "f4"), ("i2", "f4"), ("f2", "f4"), ("f4", "f4"), ("?", "f4"), ("i4", "f8"), ("i8", "f8"), ("f8", "f8")],
)
def test_precision_holds_every_value(dtype, expected):
    assert compute_dtype(np.dtype(dtype)) == np.dtype(expected)


@pytest.mark.parametrize("dropped", [44, 50])
def test_numbers_are_counted_by_their_first_bits_those_before_the_first_bin_in_it(dropped):
    values = np.sort(np.random.default_rng(0).lognormal(sigma=3.0, size=500))
    bins = bins_of(values, dropped)
    assert (np.diff(bins) >= 0).all()
    ends = (bins + 1 << dropped).view(np.float64)
    assert (values < ends).all()
    assert (ends <= values * (1 + 2.0 ** (dropped - 51))).all()
    first, expected = int(bins[40]), np.maximum(bins - bins[40], 0)
    counts = count_from(first, bins, 10_000)
    assert counts.size == max(10_000, expected.max() + 1)
    assert counts.tolist() == [np.count_nonzero(expected == k) for k in range(counts.size)]
    np.testing.assert_array_equal(bins, expected)
