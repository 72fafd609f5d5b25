"""Linear against dense, growth with n, and memory: ratios measured in one run.

    python benchmarks/linear_time.py

1. Ours against the paper's dense computation (form H, sum its rows, find its eigenvector) at n = 12,000, d = 6.
2. Growth exponent of our time: slope of log(time) against log(n).
3. Peak memory allocated beyond the input by the row sums at n = 5,000,000, d = 3, float32.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
from scipy.sparse.linalg import eigsh

from inlier import GramOverlap
from inlier.datasets import load_brain, make_mispaired
from inlier.estimators._base import prepare_pairs
from timing import seconds


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Step 1 as the paper writes it, on a copy."""
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def dense_overlap(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """H as eq. (1) writes it."""
    x, y = unit_rows(X), unit_rows(Y)
    return (x @ x.T) * (y @ y.T)


def our_overlap(X: np.ndarray, Y: np.ndarray) -> GramOverlap:
    """H as an operator on rows that are prepared as they are read."""
    return GramOverlap.from_pairs(prepare_pairs(X, Y))


def against_dense() -> None:
    """Print how many times faster than the dense computation ours is, and that the answers agree."""
    data = make_mispaired(load_brain().features, 12_000, 0.8, rng=0)
    X, Y = data.X, data.Y
    print("n = 12,000, d = 6 (brain table, 20 % mispaired), from raw rows to scores")
    jobs = {
        "row sums": (lambda: dense_overlap(X, Y).sum(axis=1), lambda: our_overlap(X, Y).row_sums()),
        "eigenvector": (
            lambda: eigsh(dense_overlap(X, Y), k=1, which="LA")[1][:, 0],
            lambda: our_overlap(X, Y).leading_eigenvector().vector,
        ),
    }
    for name, (dense, ours) in jobs.items():
        expected, found = dense(), ours()
        expected = expected * np.sign(expected @ found)
        difference = np.abs(expected - found).max() / np.abs(expected).max()
        ratio = seconds(dense, 3) / seconds(ours, 200)
        print(f"  {name:12s} dense / ours = {ratio:8,.0f}   largest relative difference {difference:.1e}")


def growth() -> None:
    """Print the growth exponent of the time of both computations."""
    print("growth exponent of time with n")
    for d, largest in ((3, 7), (6, 6)):
        for name, method in (("row sums", "row_sums"), ("eigenvector", "leading_eigenvector")):
            print(f"  d = {d}, n = 10^4 .. 10^{largest}, {name:12s} {growth_exponent(d, largest, method):.3f}")


def growth_exponent(d: int, largest: int, method: str) -> float:
    """Slope of log(time) against log(n), n = 10^4 .. 10^largest."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((10**largest, d)), rng.standard_normal((10**largest, d))
    sizes = 10 ** np.arange(4, largest + 1)

    def run(n: int) -> None:
        getattr(our_overlap(X[:n], Y[:n]), method)()

    run(sizes[0])  # compiles
    times = [seconds(partial(run, n), 50 if n < 10**6 else 5) for n in sizes]
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


_MEMORY_PROBE = """
import tracemalloc
import numpy as np
from inlier import GramOverlap
from inlier.estimators._base import prepare_pairs
rng = np.random.default_rng(0)
X, Y = (rng.standard_normal((5_000_000, 3), dtype=np.float32) for _ in range(2))
GramOverlap.from_pairs(prepare_pairs(X[:10_000], Y[:10_000])).row_sums()  # compiles
tracemalloc.start()
GramOverlap.from_pairs(prepare_pairs(X, Y)).row_sums()
print(tracemalloc.get_traced_memory()[1] / (X.nbytes + Y.nbytes))
"""


def memory() -> None:
    """Print the peak of what is allocated beyond the input, over the size of the input."""
    print("peak extra memory of the row sums at n = 5,000,000, d = 3, float32")
    for name, switch in (("compiled kernels", "0"), ("plain NumPy", "1")):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": switch}
        command = [sys.executable, "-c", _MEMORY_PROBE]
        probe = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        print(f"  {name:18s} extra / input = {float(probe.stdout):.2f}   (the scores alone: {8 / 24:.2f})")


if __name__ == "__main__":
    against_dense()
    growth()
    memory()
