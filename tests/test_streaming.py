"""Files larger than memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from inlier import CalibratedMatcher, EigenvectorMatcher, RowSumMatcher, calibrated, many_pairs
from inlier.datasets import make_gaussian_pairs
from inlier.engine import in_files
from inlier.streaming import bytes_to_read, stream_mask


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(in_files, "_STRETCH_BYTES", 8 * 6 * 700)
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
    np.testing.assert_allclose(np.asarray(found.matcher.scores_), here.scores_, atol=4e-6 * np.abs(here.scores_).max())


def test_calibrated_matching_streams_too(files, monkeypatch):
    monkeypatch.setattr(calibrated, "_MOST_ONE_BY_ONE", 3000)
    monkeypatch.setattr(many_pairs, "_SAMPLE", 2000)
    matcher = CalibratedMatcher(random_state=0)
    stream_mask(matcher, files / "X.npy", files / "Y.npy", files / "mask.npy")
    here = matcher.fit(np.load(files / "X.npy"), np.load(files / "Y.npy"))
    np.testing.assert_array_equal(np.load(files / "mask.npy"), here.inlier_mask_)


@pytest.mark.parametrize("matcher", [RowSumMatcher(), EigenvectorMatcher()], ids=str)
def test_bytes_are_reported_as_they_are_read(files, matcher):
    read = []
    stream_mask(matcher, files / "X.npy", files / "Y.npy", files / "mask.npy", on_read=read.append)
    assert max(read) <= 700 * 3 * 8
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


UNDER_A_LIMIT = """
import resource, sys
import numpy as np
from inlier import RowSumMatcher
from inlier.streaming import stream_mask
folder, allowance = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
n = 8_000_000
for name in "XY":
    table = np.lib.format.open_memmap(f"{folder}/{name}.npy", "w+", np.float32, (n, 3))
    for start in range(0, n, 500_000):
        table[start : start + 500_000] = rng.standard_normal((500_000, 3), dtype=np.float32)
    del table
    np.save(f"{folder}/{name}-few.npy", rng.standard_normal((400_000, 3), dtype=np.float32))
few = [f"{folder}/{name}-few.npy" for name in "XY"]
stream_mask(RowSumMatcher(), *few, f"{folder}/few-mask.npy")  # compiles, and starts the threads
taken = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (taken + allowance,) * 2)
try:
    np.ones(2 * allowance // 8)
except MemoryError:
    print("the limit holds")
found = stream_mask(RowSumMatcher(), f"{folder}/X.npy", f"{folder}/Y.npy", f"{folder}/mask.npy")
print(found.n_pairs)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the memory of data")
def test_memory_stays_flat_when_the_files_are_eight_times_what_is_left_of_it(tmp_path):
    allowance = 22 * 1024**2
    command = [sys.executable, "-c", UNDER_A_LIMIT, str(tmp_path), str(allowance)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["the limit holds", "8000000"]
    assert sum((tmp_path / f"{name}.npy").stat().st_size for name in "XY") >= 8 * allowance
    assert np.load(tmp_path / "mask.npy", mmap_mode="r").shape == (8_000_000,)
