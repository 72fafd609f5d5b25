"""How near to what the hardware allows: ratios measured in one run.

    python benchmarks/scale.py memory      # n = 6,489,600, d = 3, float32, raw rows to mask, beside three reads
    python benchmarks/scale.py wide        # n = 200,000, d = 300, beside the rate of float32 matrix products
    python benchmarks/scale.py files       # 10^6 to 1.6 x 10^8 pairs from .npy files (needs 4 GB of disk)
    python benchmarks/scale.py dask        # one and two workers on data that is loaded from zarr
    python benchmarks/scale.py bytes       # what a pass moves on a cluster, computed

Timings that are compared are taken in turns, and the shortest of each counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from inlier import EigenvectorMatcher, RowSumMatcher


def in_turns(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the shortest time of each job, all of them run in turns."""
    best = dict.fromkeys(jobs, np.inf)
    for job in jobs.values():
        job()  # compiles
    for _ in range(rounds):
        for name, job in jobs.items():
            start = perf_counter()
            job()
            best[name] = min(best[name], perf_counter() - start)
    return best


def photo_like(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Colours as whole numbers in float32; the second set is noisy, and a third of it is dealt out again."""
    rng = np.random.default_rng(0)
    X = np.round(rng.random((n, 3), dtype=np.float32) * 255)
    Y = np.round(X + 20 * rng.standard_normal((n, 3), dtype=np.float32))
    Y[: n // 3] = Y[rng.permutation(n // 3)]
    return X, Y


def memory() -> None:
    """Narrow rows: times of three reads of both arrays."""
    X, Y = photo_like(6_489_600)
    times = in_turns(
        {
            "three reads": lambda: [(X.sum(), Y.sum()) for _ in range(3)],
            "row sums": lambda: RowSumMatcher().fit(X, Y),
            "eigenvector": lambda: EigenvectorMatcher().fit(X, Y),
        },
        rounds=12,
    )
    print("n = 6,489,600, d = 3, float32, raw rows to mask")
    for name in ("row sums", "eigenvector"):
        print(f"  {name:12s} {times[name] / times['three reads']:.2f} times three reads of both arrays")


def wide() -> None:
    """Wide rows: share of the rate of matrix products."""
    n, d, size = 200_000, 300, 2048
    rng = np.random.default_rng(0)
    X, Y, A = (rng.standard_normal(shape, dtype=np.float32) for shape in ((n, d), (n, d), (size, size)))
    times = in_turns({"product": lambda: A @ A, "row sums": lambda: RowSumMatcher().fit(X, Y)}, rounds=6)
    rate, ours = 2 * size**3 / times["product"], 4 * n * d * d / times["row sums"]
    print("n = 200,000, d = 300, float32, raw rows to mask")
    print(f"  row sums     {ours / rate:.0%} of the rate of a {size} x {size} float32 product")


_STREAM = """
import resource, sys, time
import numpy as np
from inlier import RowSumMatcher
from inlier.streaming import stream_mask
folder = sys.argv[1]
few = np.random.default_rng(0).standard_normal((100_000, 3)).astype(np.float32)
np.save(f"{folder}/few.npy", few)
stream_mask(RowSumMatcher(), f"{folder}/few.npy", f"{folder}/few.npy", f"{folder}/few-mask.npy")
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[2]),) * 2)
start = time.perf_counter()
found = stream_mask(RowSumMatcher(), f"{folder}/X.npy", f"{folder}/Y.npy", f"{folder}/mask.npy")
taken = time.perf_counter() - start
start = time.perf_counter()
for name in "XY":
    with open(f"{folder}/{name}.npy", "rb", buffering=0) as stream:
        while stream.read(2**24): pass
print(taken, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def files() -> None:
    """Files: time and memory as n grows; the last under a limit of an eighth of the files."""
    print("from .npy files to a mask on disk, d = 3, float32 (row sums)")
    for n in (1_000_000, 10_000_000, 100_000_000, 160_000_000):
        with tempfile.TemporaryDirectory() as folder:
            for name, seed in (("X", 0), ("Y", 1)):
                write_normal(Path(folder) / f"{name}.npy", n, seed)
            size = 2 * 12 * n
            # The interpreter and its libraries alone take some 300 MB: a limit makes sense for the largest files only.
            limit = [str(size // 8)] if n > 100_000_000 else []
            command = [sys.executable, "-c", _STREAM, folder, *limit]
            probe = subprocess.run(command, capture_output=True, text=True, check=True)
            taken, reading, peak = map(float, probe.stdout.split())
            note = f", under a limit of {int(limit[0]) / 2**20:.0f} MiB of data" if limit else ""
            print(
                f"  n = {n:>11,}  {1e9 * taken / n:6.1f} ns a pair  {taken / reading:5.1f} plain reads of both files  "
                f"peak memory {peak / 2**20:.0f} MiB for files of {size / 2**20:,.0f} MiB{note}"
            )


def write_normal(path: Path, n: int, seed: int) -> None:
    """Write a table of normal numbers, a million rows at a time."""
    rng = np.random.default_rng(seed)
    with path.open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, 3)}
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, n, 1_000_000):
            stream.write(rng.standard_normal((min(1_000_000, n - start), 3), dtype=np.float32).tobytes())


def dask() -> None:
    """Dask: two workers against one, each with one thread, on data that every pass loads from zarr."""
    import dask.array as da
    import zarr
    from distributed import Client, LocalCluster

    n, d = 800_000, 24
    with tempfile.TemporaryDirectory() as folder:
        table = zarr.create_array(f"{folder}/XY.zarr", shape=(n, 2 * d), chunks=(50_000, 2 * d), dtype="float32")
        rng = np.random.default_rng(0)
        for start in range(0, n, 50_000):
            table[start : start + 50_000] = np.round(rng.standard_normal((50_000, 2 * d)), 2)
        times = {}
        for workers in (1, 2):
            with (
                LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster) as client,
            ):
                client.run(lambda: __import__("inlier").RowSumMatcher)
                both = da.from_zarr(f"{folder}/XY.zarr")
                X, Y = both[:, :d], both[:, d:]
                taken = in_turns({"fit": lambda X=X, Y=Y: RowSumMatcher().fit(X, Y).inlier_mask_.sum().compute()}, 3)
                times[workers] = min(times.get(workers, np.inf), taken["fit"])
    print(f"Dask on zarr, n = {n:,}, d = {d}, float32, one thread a worker")
    print(f"  two workers are {times[1] / times[2]:.2f} times as fast as one")


def bytes_moved() -> None:
    """Print what a pass moves on a cluster: a moment per chunk, merged eight at a time, mostly between workers."""
    chunk_rows = 1_000_000
    print("bytes that one pass moves: 8 d_x d_y for each chunk, at most; chunks of 1,000,000 pairs, d_x = d_y = d")
    print(
        f"  {'pairs':>7s} {'workers':>8s} {'d':>5s} {'data':>10s} {'all workers send':>17s} {'one worker sends':>17s}"
    )
    for n in (10**9, 10**11):
        for workers in (10, 1000):
            for d in (3, 300):
                chunks = n // chunk_rows
                moved = chunks * 8 * d * d
                data = 2 * n * d * 4
                sizes = f"{_size(data):>10s} {_size(moved):>17s} {_size(moved / workers):>17s}"
                print(f"  {n:>7.0e} {workers:>8,} {d:>5} {sizes}")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} EB"


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(os.cpu_count()))
    jobs = {"memory": memory, "wide": wide, "files": files, "dask": dask, "bytes": bytes_moved}
    for name in sys.argv[1:] or jobs:
        jobs[name]()
