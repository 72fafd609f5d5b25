"""Run in a process of its own, with NUMBA_ENABLE_CUDASIM=1: the CUDA kernels on the processor, against NumPy."""

import numpy as np

from inlier.rows import _cuda as on_cuda
from inlier.rows import _cuda_kernels as cuda_kernels
from inlier.rows import scores as spread
from inlier.rows.algebra import bilinear, cross_moment, gram_step, leave_one_out, product_moment
from inlier.rows.block_work import PairMap, PairSum
from inlier.rows.columns import summarise_columns
from inlier.rows.row_maps import identity_rows, unit_rows

rng = np.random.default_rng(0)


def check_pairs(d_x, d_y, dtype, unit_length):
    X, Y = ((rng.standard_normal((11, d)) * 20 + 100).astype(dtype) for d in (d_x, d_y))
    if dtype == "float64":
        X[5] = X.mean(axis=0)  # near the mean, yet with a direction
    maps = [unit_rows(summarise_columns(T)) if unit_length else identity_rows(T.shape[1]) for T in (X, Y)]
    wide = [T.astype(np.float64) for T in (X, Y)]
    x, y = (row_map(T) for row_map, T in zip(maps, wide, strict=True))
    U = rng.standard_normal((d_x, d_y))
    for moment, matrix in ((cross_moment, None), (gram_step, U), (product_moment, None)):
        fixed = {} if matrix is None else {"matrix": matrix}
        found = on_cuda.cuda_sum(PairSum(moment, *maps, matrix), X, Y, ())
        if found is None:
            assert moment is product_moment
            assert d_x * d_y > 9
            continue
        np.testing.assert_allclose(found, moment(x, y, **fixed), rtol=1e-9)
    for score in (bilinear, leave_one_out):
        found = on_cuda.cuda_map(PairMap(score, *maps, U, 2.5), X, Y)
        np.testing.assert_allclose(found, 2.5 * score(x, y, matrix=U), rtol=1e-9)
    total, low, high = on_cuda.cuda_columns(cuda_kernels, X)
    np.testing.assert_allclose(total, wide[0].sum(axis=0))
    np.testing.assert_array_equal(low, wide[0].min(axis=0))
    np.testing.assert_array_equal(high, wide[0].max(axis=0))


def check_unit_rows():
    X = rng.standard_normal((7, 5)) + 3
    X[2] = 1.0
    mean = np.full(5, 1.0)
    expected = (X - mean) / np.maximum(np.linalg.norm(X - mean, axis=1, keepdims=True), 1e-300)
    np.testing.assert_allclose(on_cuda.cuda_unit_rows(X, mean, 1e-9, np.float64), expected)


def check_spread():
    values = np.append(rng.normal(0, 1, 60), [0.0, 0.0, 5.0, -5.0])
    counts, sums, zeros = on_cuda.cuda_histogram(cuda_kernels, values, -5.0, 5.0)
    expected = spread._Buckets(-5.0, 5.0)._by_sorting(values)
    np.testing.assert_array_equal(counts, expected[0])
    width = 10 / cuda_kernels.BUCKETS
    assert np.abs(sums - expected[1]).max() <= counts.max() * width / cuda_kernels.FRACTION
    assert np.abs(np.cumsum(sums - expected[1])).max() <= spread.ROUNDING * values.size * 10
    assert zeros == 2
    counts, sums, zeros = on_cuda.cuda_histogram(cuda_kernels, values, -0.5, 0.75)  # most lie beyond the ends
    expected = spread._Buckets(-0.5, 0.75)._by_sorting(values)
    np.testing.assert_array_equal(counts, expected[0])
    np.testing.assert_allclose(sums, expected[1], atol=counts.max() * 1.25 / cuda_kernels.BUCKETS / 1000)
    below, inside, above = on_cuda.cuda_window(cuda_kernels, values, -0.5, 0.5)
    np.testing.assert_array_equal(np.sort(inside), np.sort(values[(values >= -0.5) & (values < 0.5)]))
    assert below[0] == (values < -0.5).sum()
    assert below[2] == values[values < -0.5].max()
    assert above[2] == values[values >= 0.5].min()
    np.testing.assert_allclose([below[1], above[1]], [values[values < -0.5].sum(), values[values >= 0.5].sum()])
    assert on_cuda.cuda_window(cuda_kernels, values, -9.0, 9.0) is None


if __name__ == "__main__":
    cuda_kernels.THREADS = 2
    on_cuda._BLOCKS = 2
    on_cuda._MOST_INSIDE = 50
    on_cuda.kernels_on_cuda = lambda *tables, **widest: cuda_kernels
    assert on_cuda._kernels.__wrapped__() is cuda_kernels  # as far as a device can be had, they compile
    check_pairs(3, 3, "float32", True)
    check_pairs(3, 3, "uint8", True)
    check_pairs(1, 2, "float64", False)
    check_unit_rows()
    check_spread()
