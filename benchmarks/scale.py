"""How near to what the hardware allows: ratios measured in one run.

    python benchmarks/scale.py memory      # n = 6,489,600, d = 3, float32, raw rows to mask, beside three reads
    python benchmarks/scale.py wide        # n = 200,000, d = 300, beside the rate of float32 matrix products
    python benchmarks/scale.py files       # the command on 10^6 to 1.8 x 10^8 pairs, under a limit (needs 5 GB of disk)
    python benchmarks/scale.py dask        # one and two workers on data that is loaded from zarr
    python benchmarks/scale.py bytes       # what a pass moves on a cluster, computed
    python benchmarks/scale.py compile     # the first fit of the first process, and of the next one

Timings that are compared are taken in turns, and the shortest of each counts.
"""

from __future__ import annotations

import os
import resource
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


_COMMAND = """
import sys, time
from inlier.cli import main
for which in ("few", ""):  # first a short run, which loads what there is to load
    start = time.perf_counter()
    words = ["match", f"X{which}.npy", f"Y{which}.npy", "-o", f"mask{which}.npy", "-q", *sys.argv[1:]]
    main(words, standalone_mode=False)
print(time.perf_counter() - start)
"""
_LIMIT = 512 * 1024**2  # of the memory of the whole process, interpreter and libraries (some 300 MiB) included


def files(sizes: tuple[int, ...] = (1_000_000, 10_000_000, 100_000_000, 180_000_000)) -> None:
    """Files: time and memory of the command as n grows; the largest under a limit of an eighth of the files."""
    print("inlier match X.npy Y.npy --method M -o mask.npy, d = 3, float32")
    taken: dict[int, float] = {}
    for n in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_pairs(folder, n)
            limit = _LIMIT if 24 * n >= 8 * _LIMIT else None
            for method in ("row-sum", "eigenvector") if n == sizes[-1] else ("row-sum",):
                seconds, peak = run_command(folder, method, limit)
                taken.setdefault(n, seconds)
                print(
                    f"  {method:11s} n = {n:>11,}  {1e9 * seconds / n:5.1f} ns a pair  "
                    f"{seconds / read_both(folder):4.1f} plain reads of both files  peak resident memory "
                    f"{peak / 2**20:.0f} MiB, files {24 * n / 2**20:,.0f} MiB"
                    + (f" = {24 * n / limit:.1f} x the limit of {limit / 2**20:.0f} MiB of data" if limit else "")
                )
    if len(taken) > 1:
        slope = np.polyfit(np.log(list(taken)), np.log(list(taken.values())), 1)[0]
        print(f"  growth exponent of time with n (row-sum): {slope:.3f}")


def run_command(folder: Path, method: str, limit: int | None) -> tuple[float, int]:
    """Seconds and peak resident memory of ``inlier match`` on two files, with a limit of the process's data."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    command = [sys.executable, "-c", _COMMAND, "--method", method]
    environment = {**os.environ, "INLIER_STREAM_FROM": "0"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, preexec_fn=limited, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("inlier match failed")
    return float(printed), usage.ru_maxrss * 1024


def read_both(folder: Path) -> float:
    """Seconds that plain reads of both files take."""
    start = perf_counter()
    for name in "XY":
        with (folder / f"{name}.npy").open("rb", buffering=0) as stream:
            while stream.read(2**24):
                pass
    return perf_counter() - start


def write_pairs(folder: Path, n: int) -> None:
    """Write two tables of which 60 % of the rows are real pairs, a million rows at a time; and a short version."""
    rng = np.random.default_rng(0)
    with (folder / "X.npy").open("wb") as file_x, (folder / "Y.npy").open("wb") as file_y:
        for file in (file_x, file_y):
            np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (n, 3)})
        for start in range(0, n, 1_000_000):
            X, noise = (rng.random((min(1_000_000, n - start), 3), dtype=np.float32) - 0.5 for _ in range(2))
            Y = np.roll(X, 1, axis=1) + 0.1 * noise  # turned
            Y[600_000:] = noise[600_000:]
            file_x.write(X.tobytes())
            file_y.write(Y.tobytes())
    np.save(folder / "Xfew.npy", X[:500_000])
    np.save(folder / "Yfew.npy", Y[:500_000])


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


FIRST_FITS = """
import time, numpy as np
from inlier import EigenvectorMatcher, RowSumMatcher
X = np.random.default_rng(0).normal(size=(10_000, 3)).astype(np.float32)
for matcher in (RowSumMatcher(), EigenvectorMatcher()):
    start = time.perf_counter()
    matcher.fit(X, X[::-1].copy())
    print(f"  {type(matcher).__name__:20s} {time.perf_counter() - start:6.2f} s")
"""


def compile_times() -> None:
    """How long compiling takes, and how long fetching what was compiled: float32 rows, d = 3."""
    with tempfile.TemporaryDirectory() as cache:
        for process in ("a process that compiles", "the next process"):
            print(f"first fit in {process}", flush=True)
            subprocess.run([sys.executable, "-c", FIRST_FITS], env={**os.environ, "NUMBA_CACHE_DIR": cache}, check=True)


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} EB"


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(os.cpu_count()))
    jobs = {
        "memory": memory,
        "wide": wide,
        "files": files,
        "dask": dask,
        "bytes": bytes_moved,
        "compile": compile_times,
    }
    for name in sys.argv[1:] or jobs:
        jobs[name]()
