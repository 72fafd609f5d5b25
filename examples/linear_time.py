"""
Linear time
===========

Row sums of an n x n matrix without the matrix: twice as many pairs take twice as long, not four times. The dense
way is drawn as far as it goes in a moment.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from inlier import GramOverlap
from inlier.plotting import REAL, WRONG

rng = np.random.default_rng(0)


def seconds(work, repetitions=3):
    """The fastest of a few runs, after one that may compile."""
    work()
    times = []
    for _ in range(repetitions):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


sizes = 2 ** np.arange(8, 18)
linear, dense = [], []
for n in sizes:
    X, Y = rng.normal(size=(2, n, 6))
    linear.append(seconds(GramOverlap(X, Y).row_sums))
    if n <= 2048:
        dense.append(seconds(lambda X=X, Y=Y: ((X @ X.T) * (Y @ Y.T)).sum(axis=1)))
print(f"n = 2,048: the dense way takes {dense[-1] / linear[len(dense) - 1]:,.0f} times as long")

# %%
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.loglog(sizes[: len(dense)], dense, "o-", color=WRONG, label="dense: n x n")
ax.loglog(sizes, linear, "o-", color=REAL, label="inlier: n x d")
ax.set(xlabel="pairs", ylabel="seconds", title="row sums of the overlap, d = 6")
ax.legend(frameon=False)
ax.grid(alpha=0.3)
plt.show()
