"""A real cluster of worker processes over TCP: the answer of one machine, and none is lost with a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import CancelledError

import dask
import dask.array as da
import joblib
import numpy as np
import pytest
from dask.callbacks import Callback
from distributed import Client, LocalCluster

from inlier import CalibratedMatcher, EigenvectorMatcher, RowSumMatcher, SplitMatcher
from inlier.datasets import make_gaussian_pairs

# Workers that are killed on purpose, and what asyncio leaves behind when a cluster ends, are no fault of the code.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "10s", "distributed.worker.memory.terminate": False}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, protocol="tcp", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def data():
    return make_gaussian_pairs(20_000, 6, 0.6, noise=0.1, rng=0)


def chunked(data, rows=3_000):
    return (da.from_array(table, chunks=(rows, -1)) for table in (data.X, data.Y))


@pytest.mark.parametrize(
    "matcher", [RowSumMatcher(), EigenvectorMatcher(), EigenvectorMatcher(solver="operator")], ids=str
)
def test_the_answer_is_that_of_numpy(client, data, matcher):
    here = matcher.fit(data.X, data.Y)
    scores, mask = here.scores_, here.inlier_mask_
    there = matcher.fit(*chunked(data))
    assert isinstance(there.inlier_mask_, da.Array)
    np.testing.assert_allclose(there.scores_.compute(), scores, atol=1e-11 * np.abs(scores).max())
    np.testing.assert_array_equal(there.inlier_mask_.compute(), mask)


def test_a_worker_killed_in_the_middle_of_a_fit_loses_nothing(client, data, tmp_path):
    expected = RowSumMatcher().fit(data.X, data.Y).inlier_mask_
    flag = tmp_path / "killed"

    def kill_once(block, block_info=None):
        """Kill the worker that reads the fifth chunk, once: when the columns have been summarised halfway."""
        if block_info and block_info[0]["chunk-location"][0] == 4 and not flag.exists():
            flag.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    X, Y = chunked(data)
    workers = set(client.scheduler_info()["workers"])
    fitted = RowSumMatcher().fit(X.map_blocks(kill_once, dtype=X.dtype, meta=X._meta), Y)
    np.testing.assert_array_equal(fitted.inlier_mask_.compute(), expected)
    assert flag.exists()
    assert int(flag.read_text()) != os.getpid()
    client.wait_for_workers(2)
    assert set(client.scheduler_info()["workers"]) != workers  # one is new


def test_a_scheduler_killed_in_the_middle_of_a_fit_is_named_and_no_half_of_an_answer_is_left(data, tmp_path):
    """There is nobody left to ask: the error says so, soon, and the matcher is as it was before."""
    address = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(address), "--host", "127.0.0.1", "--no-dashboard"]
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    module = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    scheduler = subprocess.Popen([*module, "--port", "0", *common], **options)
    module = [sys.executable, "-m", "distributed.cli.dask_worker"]
    worker = subprocess.Popen([*module, "--no-nanny", "--nthreads", "1", "--death-timeout", "60", *common], **options)

    def kill_the_scheduler(block, block_info=None, number=scheduler.pid):
        if block_info and block_info[0]["chunk-location"][0] == 4:
            os.kill(number, signal.SIGKILL)
        return block

    matcher = RowSumMatcher()
    try:
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "5s"}),
            Client(scheduler_file=str(address), timeout="60s") as client,
        ):
            client.wait_for_workers(1, timeout=60)
            X, Y = chunked(data)
            with pytest.raises(CancelledError, match="scheduler"):
                matcher.fit(X.map_blocks(kill_the_scheduler, dtype=X.dtype, meta=X._meta), Y)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert not hasattr(matcher, "inlier_mask_")
    assert not hasattr(matcher, "scores_")
    assert matcher.fit(data.X, data.Y).inlier_mask_.any()


def test_parts_of_algorithm_3_run_on_the_workers(client, data):
    matcher = SplitMatcher(RowSumMatcher(), n_splits=4, random_state=0)
    here = matcher.fit(data.X, data.Y).scores_
    with joblib.parallel_backend("dask"):
        there = matcher.fit(data.X, data.Y).scores_
    np.testing.assert_array_equal(there, here)


class LargestResult(Callback):
    """Bytes of the largest thing that any task gave back, the tasks that make the data excepted."""

    def __init__(self):
        self.bytes = 0

    def _posttask(self, key, result, dsk, state, worker_id):
        name = key[0] if isinstance(key, tuple) else key
        if "array" not in str(name):
            self.bytes = max(self.bytes, _size(result))


def _size(result):
    if isinstance(result, (list, tuple)) or getattr(result, "dtype", None) == np.dtype(object):
        return sum(map(_size, result))
    return getattr(result, "nbytes", 0)


@pytest.mark.parametrize("matcher", [RowSumMatcher(), EigenvectorMatcher()], ids=str)
def test_no_task_holds_more_than_a_chunk(data, matcher):
    X, Y = chunked(data, rows=1_000)
    with dask.config.set(scheduler="synchronous"), LargestResult() as largest:
        matcher.fit(X, Y).inlier_mask_.compute()
    assert 0 < largest.bytes <= 1_000 * 6 * 8


def test_a_pass_moves_a_small_matrix_per_chunk(data):
    X, Y = chunked(data, rows=1_000)
    from inlier.rows.dask_arrays import _total
    from inlier.rows.paired_rows import PairedRows, _CrossMoment

    work = _CrossMoment(PairedRows(X, Y).maps)
    with LargestResult() as largest:
        total = _total(work, (X, Y)).compute(scheduler="synchronous")[0]
    np.testing.assert_allclose(total, data.X.T @ data.Y, atol=1e-9)
    assert largest.bytes == 8 * 6 * 6


def test_calibrated_matching_on_the_cluster(client, data):
    matcher = CalibratedMatcher(random_state=0)
    here = matcher.fit(data.X, data.Y).inlier_mask_
    there = matcher.fit(*chunked(data)).inlier_mask_
    assert isinstance(there, da.Array)
    np.testing.assert_array_equal(there.compute(), here)
