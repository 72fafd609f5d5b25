"""Run in a process of its own, with NUMBA_ENABLE_CUDASIM=1: the CUDA backend on the processor beside plain backend."""

import numpy as np

from inlier.rows import _cuda, backend, identity_rows, summarise_columns, unit_rows
from inlier.rows import _cuda_kernels as kernels
from inlier.rows._cuda import Cuda
from inlier.rows.backend import Maps, Plain

rng = np.random.default_rng(0)


def check_pairs(d_x, d_y, dtype, unit_length):
    X, Y = ((rng.standard_normal((11, d)) * 20 + 100).astype(dtype) for d in (d_x, d_y))
    if dtype == "float64":
        X[5] = X.mean(axis=0)  # near the mean, yet with a direction
    maps = Maps(*(unit_rows(summarise_columns(T)) if unit_length else identity_rows(T.shape[1]) for T in (X, Y)))
    x, y = (row_map(T.astype(np.float64)) for row_map, T in zip(maps, (X, Y), strict=True))
    U = rng.standard_normal((d_x, d_y))
    products, moment = Cuda().product_moments(X, Y, maps)
    for found, expected in [
        (moment, backend.cross_moment(x, y)),
        (products, backend.product_moment(x, y)),
        (Cuda().cross_moment(X, Y, maps), backend.cross_moment(x, y)),
        (Cuda().cross_moment(X, Y, maps, np.arange(11.0)), backend.cross_moment(x, y, np.arange(11.0))),
        (Cuda().gram_step(X, Y, maps, U), backend.gram_step(x, y, U)),
        (Cuda().bilinear(X, Y, maps, U, 2.5), 2.5 * backend.bilinear(x, y, U)),
        (Cuda().leave_one_out(X, Y, maps, U, 2.5), 2.5 * backend.leave_one_out(x, y, U)),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-9, atol=1e-6)
    for found, expected in zip(Cuda().columns(X), Plain().columns(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def check_prepared_rows():
    X = rng.standard_normal((7, 19)) + 3
    X[2] = 1.0
    row_map = unit_rows(summarise_columns(X))
    narrow = X[:, :5].copy()
    _, x, y = next(Cuda().prepared(X, narrow, Maps(row_map, unit_rows(summarise_columns(narrow)))))
    np.testing.assert_allclose(x, row_map(X), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(y, axis=1), 1)


def check_scores():
    values = np.append(rng.normal(0, 1, 60), [0.0, 0.0, 5.0, -5.0])
    for low, high in ((-5.0, 5.0), (-0.5, 0.75)):  # beyond the ends of the second lie most
        counts, sums, zeros = Cuda().histogram(values, low, high, 1024)
        expected = Plain().histogram(values, low, high, 1024)
        np.testing.assert_array_equal(counts, expected[0])
        assert (np.abs(sums - expected[1]) <= (counts + 1) * backend.HISTOGRAM_ROUNDING * (high - low)).all()
        assert zeros == 2
    for low, high in ((-0.5, 0.5), (-9.0, 9.0)):  # inside the second are more than are fetched
        found, expected = (way.window(values, low, high) for way in (Cuda(), Plain()))
        np.testing.assert_array_equal(np.sort(found[2]), np.sort(expected[2]))
        np.testing.assert_allclose([*found[:2], *found[3:]], [*expected[:2], *expected[3:]], atol=1e-12)


if __name__ == "__main__":
    kernels.THREADS, _cuda._BLOCKS, _cuda._STRIPS, _cuda._MOST_KEPT, _cuda._MOST_INSIDE = 4, 2, 2, 4, 50
    assert _cuda._kernels() is kernels  # as far as a device can be had, they compile
    check_pairs(3, 3, "float32", True)
    check_pairs(3, 3, "uint8", True)
    check_pairs(1, 2, "float64", False)
    check_pairs(19, 17, "float64", True)
    check_prepared_rows()
    check_scores()
