"""Matching on a CUDA device, beside what the device can do: reading the data, and multiplying matrices.

    python benchmarks/gpu.py OUT_FOLDER                 # on a machine with a CUDA device
    python benchmarks/gpu.py OUT_FOLDER --limit 60      # start no further row after a minute
    python benchmarks/gpu.py OUT_FOLDER --device cpu    # small sizes on the processor, to see that it runs

Writes gpu.json and gpu.txt to the folder. It needs numpy, scipy, scikit-learn, numba and torch, and CuPy for the rows
that name it; inlier itself is taken from this source tree and need not be installed.

- *floor*: three reads of both arrays (``sum``), for narrow rows; two products of n d^2 multiply-adds at the measured
  float32 rate, for wide rows.
- *checks*: the answer against NumPy in float64 on the same numbers.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

SLOW = 20.0  # seconds after which a first run is taken as it is
START = time.perf_counter()

CASES = [
    (6_489_600, 3, ("row sums", "eigenvector", "calibrated"), ("torch", "cupy")),
    (100_000_000, 3, ("row sums", "eigenvector", "calibrated"), ("torch", "cupy")),
    (10_000_000, 6, ("row sums", "eigenvector", "calibrated"), ("torch",)),
    (1_000_000, 300, ("row sums", "eigenvector", "calibrated"), ("torch", "cupy")),
    (1_000_000, 1024, ("row sums", "eigenvector", "calibrated"), ("torch", "cupy")),
]
CHECKS = [
    (300_000, 3, ("row sums", "eigenvector", "calibrated")),
    (40_000_000, 3, ("row sums", "eigenvector")),  # so many lie next to the cut that they are looked at more closely
    (100_000, 6, ("row sums", "eigenvector", "calibrated")),
    (20_000, 300, ("row sums", "eigenvector")),
    (4_000, 300, ("calibrated",)),
]
SMALL_CHECKS = [(20_000, 3, ("row sums", "eigenvector", "calibrated")), (1_000, 40, ("calibrated",))]
SMALL_CASES = [
    (20_000, 3, ("row sums", "eigenvector"), ("torch",)),
    (5_000, 40, ("row sums", "calibrated"), ("torch",)),
]


def import_inlier() -> None:
    """Make the source tree importable where neither it nor array-api-compat is installed."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
    try:
        import array_api_compat  # noqa: F401
    except ImportError:
        import sklearn.externals.array_api_compat as bundled

        sys.modules["array_api_compat"] = bundled
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # noqa: NPY201  releases of numba-cuda from before NumPy 2.5 still ask for the old name
    installed = importlib.metadata.version
    importlib.metadata.version = lambda name: "source" if name == "inlier" else installed(name)


def make_pairs(n: int, d: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Gaussian rows, rotated and a little noisy; the last 40 % are paired with another's partner."""
    generator = torch.Generator(device=device).manual_seed(0)
    X = torch.randn((n, d), generator=generator, device=device)
    Q = torch.linalg.qr(torch.randn((d, d), generator=generator, device=device))[0]
    Y = X @ Q
    Y += 0.1 * torch.randn((n, d), generator=generator, device=device)
    wrong = int(0.6 * n)
    Y[wrong:] = torch.roll(Y[wrong:], 1, dims=0)
    return X, Y


class Bench:
    """Timings on one device."""

    def __init__(self, device: str, limit: float) -> None:
        self.device = device
        self.limit = limit  # seconds after which no further row is started
        self.rows: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []
        self.compiled = False

    def seconds(self, function: Any, repeats: int = 5) -> float:
        """Shortest of several timings, after one that compiles; of a slow one, that."""
        start = time.perf_counter()
        function()
        self.wait()
        times = [time.perf_counter() - start]
        if times[0] > SLOW:
            return times[0]
        times.clear()
        for _ in range(repeats):
            self.wait()
            start = time.perf_counter()
            function()
            self.wait()
            times.append(time.perf_counter() - start)
            if self.is_over():
                break
        return min(times)

    def is_over(self) -> bool:
        """Whether the time is spent."""
        return time.perf_counter() - START > self.limit

    def wait(self) -> None:
        """Let the device finish."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def product_rate(self, size: int) -> float:
        """Multiply-adds times two per second of a float32 matrix product, without reduced precision."""
        torch.backends.cuda.matmul.allow_tf32 = False
        A = torch.randn((size, size), device=self.device)
        return 2 * size**3 / self.seconds(lambda: A @ A)

    def run_case(self, n: int, d: int, methods: tuple[str, ...], libraries: tuple[str, ...], rate: float) -> None:
        """Time every method in every library at one size."""
        X, Y = make_pairs(n, d, self.device)
        reads = self.seconds(lambda: [(X.sum(), Y.sum()) for _ in range(3)])
        products = 4 * n * d * d / rate
        for library in libraries:
            tables = self.as_library(library, X, Y)
            if tables is None:
                continue
            for method in methods:
                if self.is_over():
                    self.rows.append({"n": n, "d": d, "method": method, "library": library, "skipped": "time"})
                    continue
                self.run_method(n, d, method, library, tables, reads, products)

    def as_library(self, library: str, X: torch.Tensor, Y: torch.Tensor) -> tuple[Any, Any] | None:
        """Return the same memory as an array of a library; None if that is not here."""
        if library == "torch":
            return X, Y
        try:
            import cupy
        except ImportError:
            return None
        return cupy.from_dlpack(X), cupy.from_dlpack(Y)

    def run_method(
        self, n: int, d: int, method: str, library: str, tables: tuple[Any, Any], reads: float, products: float
    ) -> None:
        """Time one method, and look at what it found."""
        matcher = matchers()[method]
        row: dict[str, Any] = {"n": n, "d": d, "method": method, "library": library}
        try:
            row["seconds"] = self.seconds(lambda: matcher.fit(*tables), repeats=2 if method == "calibrated" else 5)
            row["pairs_per_second"] = n / row["seconds"]
            row["three_reads_seconds"], row["times_three_reads"] = reads, row["seconds"] / reads
            row["share_of_product_rate"] = products / row["seconds"]
            mask = matcher.inlier_mask_
            wrong = int(0.6 * n)
            row["found"], row["wrong"] = float(mask[:wrong].sum()) / wrong, float(mask[wrong:].sum()) / (n - wrong)
            row["stays_there"] = bool(type(mask) is type(tables[0]) and mask.device == tables[0].device)
            if self.device == "cuda":
                row["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
                torch.cuda.reset_peak_memory_stats()
        except Exception as error:  # a row that fails must not take the others with it
            row["error"] = "".join(traceback.format_exception_only(error)).strip()
            row["traceback"] = traceback.format_exc()[-3000:]
        self.rows.append(row)
        print(line_of(row), flush=True)

    def check(self, n: int, d: int, methods: tuple[str, ...]) -> None:
        """Compare with NumPy in float64 on the same numbers."""
        X, Y = make_pairs(n, d, self.device)
        same = [T.cpu().numpy().astype(np.float64) for T in (X, Y)]
        for method in methods:
            here = matchers()[method].fit(*same)
            for dtype, library in ((torch.float32, "torch"), (torch.float64, "torch"), (torch.float64, "cupy")):
                tables = self.as_library(library, X.to(dtype), Y.to(dtype))
                if tables is not None:
                    self.compare(here, method, tables, {"n": n, "d": d, "dtype": str(dtype), "library": library})

    def compare(self, here: Any, method: str, tables: tuple[Any, Any], found: dict[str, Any]) -> None:
        """Compare a fit to tables on the device with one that was made here."""
        found["method"] = method
        try:
            there = matchers()[method].fit(*tables)
            scores, mask = (torch.from_dlpack(vector).cpu().numpy() for vector in (there.scores_, there.inlier_mask_))
            found["largest_relative_error"] = float(np.abs(scores - here.scores_).max() / np.abs(here.scores_).max())
            found["masks_differ"] = int((mask != here.inlier_mask_).sum())
        except Exception as error:
            found["error"] = "".join(traceback.format_exception_only(error)).strip()
            found["traceback"] = traceback.format_exc()[-3000:]
        self.checks.append(found)
        print(found if "error" in found else line_of_check(found), flush=True)


def matchers() -> dict[str, Any]:
    """Return new matchers by name."""
    from inlier import CalibratedMatcher, EigenvectorMatcher, RowSumMatcher

    return {
        "row sums": RowSumMatcher(),
        "eigenvector": EigenvectorMatcher(),
        "calibrated": CalibratedMatcher(random_state=0),
    }


def line_of(row: dict[str, Any]) -> str:
    """Return a timing as a line of text."""
    head = f"n = {row['n']:>11,}  d = {row['d']:>5}  {row['library']:5s}  {row['method']:12s}"
    if "seconds" not in row:
        return f"{head}  {row.get('error', 'skipped: no time left')}"
    return (
        f"{head}  {1e3 * row['seconds']:9.2f} ms  {row['times_three_reads']:7.2f} x three reads  "
        f"{row['share_of_product_rate']:6.1%} of the product rate  {row['pairs_per_second']:.2e} pairs/s  "
        f"found {row['found']:.3f}, wrong {row['wrong']:.3f}, stays there: {row['stays_there']}"
    )


def line_of_check(found: dict[str, Any]) -> str:
    """Return a check as a line of text."""
    return (
        f"check  n = {found['n']:,}  d = {found['d']}  {found['library']:5s}  {found['dtype'].removeprefix('torch.')}  "
        f"{found['method']:12s} largest relative error {found['largest_relative_error']:.1e}, "
        f"masks differ in {found['masks_differ']}"
    )


def main() -> None:
    """Run the checks, then the cases from small to large, and write what there is after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--limit", type=float, default=330.0, help="seconds after which no further row is started")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    import_inlier()
    options.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(options.device, options.limit)
    on_cuda = options.device == "cuda"
    from inlier.rows._cuda import _kernels

    bench.compiled = _kernels() is not None
    print(f"compiled CUDA kernels: {bench.compiled}", flush=True)
    for case in CHECKS if on_cuda else SMALL_CHECKS:
        bench.check(*case)
    rate = bench.product_rate(8192 if on_cuda else 512)
    name = torch.cuda.get_device_name() if on_cuda else "cpu"
    print(f"{name}: float32 products at {rate / 1e12:.1f} TFLOP/s", flush=True)
    for case in CASES if on_cuda else SMALL_CASES:
        bench.run_case(*case, rate)
        write(options.out, bench, name, rate)
    write(options.out, bench, name, rate)


def write(folder: Path, bench: Bench, name: str, rate: float) -> None:
    """Write everything so far, for people and for programs."""
    content = {
        "device": name,
        "torch": torch.__version__,
        "compiled_cuda_kernels": bench.compiled,
        "float32_product_flops": rate,
        "checks": bench.checks,
        "rows": bench.rows,
        "seconds_in_all": time.perf_counter() - START,
    }
    (folder / "gpu.json").write_text(json.dumps(content, indent=1))
    checks = [line_of_check(found) if "error" not in found else str(found) for found in bench.checks]
    lines = [
        f"compiled CUDA kernels: {bench.compiled}",
        f"{name}, torch {torch.__version__}, float32 products at {rate / 1e12:.2f} TFLOP/s",
        *checks,
    ]
    (folder / "gpu.txt").write_text("\n".join([*lines, *map(line_of, bench.rows)]) + "\n")


if __name__ == "__main__":
    main()
