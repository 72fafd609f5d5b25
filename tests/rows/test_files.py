"""What belongs together, and what is refused."""

from __future__ import annotations

import array_api_strict
import dask.array as da
import numpy as np
import pytest

from inlier import RowSumMatcher, SplitMatcher, estimate_transformation
from inlier.datasets import make_gaussian_pairs
from inlier.overlap.gram import choose_eigen_solver, choose_row_sum_solver
from inlier.rows import as_stored, threads
from inlier.rows import files as in_files
from inlier.rows.files import NpyFile, StoredRows, stretches


def test_a_numpy_array_beside_a_dask_array_becomes_one():
    data = make_gaussian_pairs(300, 3, 0.6, rng=0)
    fitted = RowSumMatcher().fit(da.from_array(data.X, chunks=(70, -1)), data.Y)
    np.testing.assert_array_equal(fitted.inlier_mask_.compute(), RowSumMatcher().fit(data.X, data.Y).inlier_mask_)


def test_two_stores_are_not_mixed():
    X = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.raises(ValueError, match=r"stored in different ways: array_api_strict.* and numpy\.ndarray"):
        RowSumMatcher().fit(array_api_strict.asarray(X), X)


def test_chunks_of_unknown_length_are_refused():
    X = da.from_array(np.random.default_rng(0).standard_normal((30, 2)), chunks=10)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        RowSumMatcher().fit(X[X[:, 0] > 0], X[X[:, 0] > 0])


def test_complex_numbers_are_refused_wherever_they_are():
    with pytest.raises(ValueError, match="complex128"):
        RowSumMatcher().fit(da.ones((10, 2), dtype=complex), da.ones((10, 2)))


def test_lists_and_frames_are_left_to_numpy():
    assert as_stored([[1, 2]]) is None
    assert as_stored(np.ones(3)) is None


@pytest.mark.parametrize("shape", [(10, 1000), (100, 3), (5, 5)])
def test_a_dense_matrix_is_never_formed_for_rows_that_are_elsewhere(shape):
    n, d = shape
    assert choose_eigen_solver(n, d, d, in_memory=False) != "dense"
    assert choose_row_sum_solver(n, d, d, in_memory=False) == "operator"


def test_stretches_end_with_chunks_of_the_file(monkeypatch):
    class InChunks:
        shape, dtype, chunks = (1000, 2), np.float64, (64, 2)

    monkeypatch.setattr(in_files, "_STRETCH_BYTES", 8 * 2 * 150)
    monkeypatch.setattr(in_files, "thread_count", lambda: 1)
    monkeypatch.setattr(threads, "_ROWS_PER_RANGE", 50)
    assert [rows.start for rows in stretches([StoredRows(InChunks())])][:3] == [0, 128, 256]


def test_an_npy_file_is_read_without_mapping_it(tmp_path):
    table = np.arange(60.0).reshape(20, 3)
    np.save(tmp_path / "t.npy", table)
    found = NpyFile(tmp_path / "t.npy")
    np.testing.assert_array_equal(found[5:9], table[5:9])
    assert not isinstance(found[0:20], np.memmap)


def test_an_npy_file_of_objects_is_refused(tmp_path):
    np.save(tmp_path / "t.npy", np.array([None, "x"], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"Python objects.*never loaded"):
        NpyFile(tmp_path / "t.npy")


def test_an_npy_file_of_fewer_than_no_rows_is_refused(tmp_path):
    path = tmp_path / "x.npy"
    header = {"descr": "<f8", "fortran_order": False, "shape": (-1,)}
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
    with pytest.raises(ValueError, match=r"announces the shape \(-1,\)"):
        NpyFile(path)


def test_an_npy_file_that_is_cut_short_is_named(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.ones((20, 3)))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="is cut short: row 18 is missing"):
        NpyFile(path)


def test_what_needs_arrays_here_brings_them_here():
    X = np.random.default_rng(0).standard_normal((30, 3))
    for there in (da.from_array(X, chunks=10), array_api_strict.asarray(X), StoredRows(X)):
        found = estimate_transformation("rigid", there, X + 1.0)
        np.testing.assert_allclose(found.translation, 1.0)


def test_algorithm_3_says_that_it_deals_rows_of_memory():
    X = da.from_array(np.random.default_rng(0).standard_normal((30, 3)), chunks=10)
    with pytest.raises(ValueError, match="fit the matcher itself"):
        SplitMatcher(RowSumMatcher()).fit(X, X)
