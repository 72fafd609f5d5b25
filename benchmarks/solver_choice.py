"""Does solver="auto" pick the fastest? Time of the chosen solver over that of the best, in one run.

python benchmarks/solver_choice.py
"""

from __future__ import annotations

from functools import partial

import numpy as np

from inlier import GramOverlap
from inlier.datasets import make_gaussian_pairs
from inlier.estimators._base import prepare_pairs
from inlier.overlap.gram import choose_eigen_solver, choose_row_sum_solver
from timing import seconds

SHAPES = [(300, 3), (3000, 3), (3000, 6), (30_000, 6), (3000, 12), (10_000, 16), (10_000, 20), (300, 30), (3000, 30)]
SHAPES += [(300, 100), (1000, 100), (3000, 100), (1000, 300), (4000, 300), (300, 1000), (1000, 1000)]
TOO_WIDE = 1000  # K^T K of more columns than this is never the fastest, and slow to wait for


def chosen_over_best(overlap: GramOverlap, method: str, solvers: list[str], chosen: str) -> tuple[float, str]:
    """Return time of the chosen solver over that of the fastest, and a cell that says so."""
    times = {solver: seconds(partial(getattr(overlap, method), solver)) for solver in solvers}
    best = min(times, key=lambda solver: times[solver])
    ratio = times[chosen] / times[best]
    return ratio, f"{chosen} ({ratio:.2f} x {best})"


def main() -> None:
    """Print a line per shape: the choice, and what it costs relative to the best."""
    print(f"{'n':>7} {'d':>5}  {'eigenvector':30} {'row sums':30}")
    lost = []
    for n, d in SHAPES:
        data = make_gaussian_pairs(n, d, 0.7, rng=0)
        overlap = GramOverlap.from_pairs(prepare_pairs(data.X, data.Y))
        dense = ["dense"] if n <= 10_000 else []
        moments = ["moments"] if d * d <= TOO_WIDE else []
        eigen = chosen_over_best(
            overlap, "leading_eigenvector", [*moments, "operator", *dense], choose_eigen_solver(n, d, d)
        )
        sums = chosen_over_best(overlap, "row_sums", ["operator", *dense], choose_row_sum_solver(n, d, d))
        lost += [eigen[0], sums[0]]
        print(f"{n:7d} {d:5d}  {eigen[1]:30} {sums[1]:30}")
    print(f"chosen / best: median {np.median(lost):.2f}, worst {max(lost):.2f}")


if __name__ == "__main__":
    main()
