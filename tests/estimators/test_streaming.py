"""Files larger than memory."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from inlier import CalibratedMatcher, EigenvectorMatcher, RowSumMatcher
from inlier.calibration import sampled_fit as many_pairs
from inlier.datasets import make_gaussian_pairs
from inlier.estimators import calibrated
from inlier.estimators.streaming import bytes_to_read, fit_files, stream_mask
from inlier.rows import files as in_files
from inlier.rows import stores, threads


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(in_files, "_STRETCH_BYTES", 8 * 6 * 700)
    monkeypatch.setattr(threads, "_ROWS_PER_RANGE", 350)
    data = make_gaussian_pairs(4000, 3, 0.6, noise=0.1, rng=0)
    for name, table in (("X", data.X), ("Y", data.Y)):
        np.save(tmp_path / f"{name}.npy", table.astype(np.float32))
    return tmp_path


@pytest.mark.parametrize("matcher", [RowSumMatcher(), EigenvectorMatcher(), RowSumMatcher(threshold=50.0)], ids=str)
def test_the_mask_is_that_of_arrays_in_memory(files, matcher):
    found = stream_mask(matcher, files / "X.npy", files / "Y.npy", files / "mask.npy")
    mask = np.load(files / "mask.npy")
    here = matcher.fit(np.load(files / "X.npy"), np.load(files / "Y.npy"))
    np.testing.assert_array_equal(mask, here.inlier_mask_)
    assert mask.dtype == np.bool_
    assert (found.n_pairs, found.n_inliers) == (4000, mask.sum())
    np.testing.assert_array_equal(np.asarray(found.matcher.scores_), here.scores_)  # to the last bit
    assert found.matcher.threshold_ == here.threshold_


@pytest.mark.parametrize("most_one_by_one", [3000, 5000], ids=["many pairs", "few pairs"])
def test_calibrated_matching_streams_too(files, monkeypatch, most_one_by_one):
    monkeypatch.setattr(calibrated, "MOST_ONE_BY_ONE", most_one_by_one)
    monkeypatch.setattr(many_pairs, "_SAMPLE", 2000)
    matcher = CalibratedMatcher(random_state=0)
    fitted = fit_files(matcher, files / "X.npy", files / "Y.npy")
    blocks = list(fitted.blocks())
    here = matcher.fit(np.load(files / "X.npy"), np.load(files / "Y.npy"))
    for name, expected in [("row", np.arange(4000)), *here.result_.columns().items()]:
        np.testing.assert_array_equal(np.concatenate([block[name] for block in blocks]), expected)
        assert fitted.columns[name] == expected.dtype
    assert len(blocks) > 1


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("chunk", [50, 333, 3999])
def test_chunks_of_the_file_change_no_bit(files, d, chunk, monkeypatch):
    monkeypatch.setattr(stores, "_FEWEST_WIDE_ROWS", 512)
    monkeypatch.setattr(stores, "_WIDE_RANGE_BYTES", 1)
    data = make_gaussian_pairs(4000, d, 0.6, noise=0.1, rng=0)
    matcher = RowSumMatcher(whiten=True)
    X, Y = (zarr.create_array(store={}, data=table, chunks=(chunk, 2)) for table in (data.X, data.Y))
    there = fit_files(matcher, X, Y).matcher
    here = matcher.fit(data.X, data.Y)
    np.testing.assert_array_equal(np.asarray(there.scores_), here.scores_)
    assert there.threshold_ == here.threshold_


def test_a_file_in_column_order_is_read_by_rows(files):
    for name in "XY":
        np.save(files / f"{name}-columns.npy", np.asfortranarray(np.load(files / f"{name}.npy")))
    fit = [fit_files(RowSumMatcher(), files / f"X{end}.npy", files / f"Y{end}.npy") for end in ("", "-columns")]
    np.testing.assert_array_equal(*(np.asarray(fitted.matcher.scores_) for fitted in fit))


def test_a_number_that_is_not_finite_is_found_in_the_file(files):
    X = np.load(files / "X.npy")
    X[3210, 1] = np.nan
    np.save(files / "X.npy", X)
    with pytest.raises(
        ValueError, match=r"X contains NaN or infinity: 1 value\(s\), the first \(nan\) in row 3210, column 1"
    ):
        fit_files(RowSumMatcher(), files / "X.npy", files / "Y.npy")


@pytest.mark.parametrize(
    "matcher",
    [RowSumMatcher(), EigenvectorMatcher(), RowSumMatcher(threshold=3.0), RowSumMatcher(whiten=True)],
    ids=str,
)
def test_bytes_are_reported_as_they_are_read(files, matcher):
    read = []
    stream_mask(matcher, files / "X.npy", files / "Y.npy", files / "mask.npy", on_read=read.append)
    assert max(read) <= 1400 * 3 * 4
    assert sum(read) == bytes_to_read(matcher, files / "X.npy", files / "Y.npy")


def test_a_failed_run_leaves_the_old_mask_and_nothing_else(files):
    np.save(files / "mask.npy", np.array([True]))
    X = np.load(files / "X.npy")
    np.save(files / "X.npy", X[:-1])
    before = sorted(files.iterdir())
    with pytest.raises(ValueError, match="3999 rows and y has 4000"):
        stream_mask(RowSumMatcher(), files / "X.npy", files / "Y.npy", files / "mask.npy")
    assert np.load(files / "mask.npy").tolist() == [True]
    assert sorted(files.iterdir()) == before
