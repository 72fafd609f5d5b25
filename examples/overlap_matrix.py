"""
The matrix that is never formed
===============================

The idea in one picture. Multiply the Gram matrices of both sets entry by entry: where pairs i and j are both real,
their inner products agree and the product is large on average. Real pairs form a bright block; a wrong pair agrees
with nobody.
"""

import matplotlib.pyplot as plt
import numpy as np

from inlier import GramOverlap
from inlier.datasets import make_gaussian_pairs
from inlier.plotting import REAL, WRONG

data = make_gaussian_pairs(n=200, d=12, inlier_fraction=0.6, rng=0)
X, Y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (data.X, data.Y))
overlap = GramOverlap(X, Y)
H = overlap.to_dense()  # only to look at it; nothing below needs it
print("row sums agree to", f"{np.abs(overlap.row_sums() - H.sum(axis=1)).max():.0e}")

# %%
# Sorted, real pairs first. Left the matrix (its diagonal is 1), in the middle and right what the paper's two
# methods look at.

order = np.argsort(~data.inlier_mask, kind="stable")
figure, (matrix, sums, vector) = plt.subplots(
    1, 3, figsize=(11, 3.8), layout="constrained", gridspec_kw={"width_ratios": [1.15, 1, 1]}
)
matrix.imshow(H[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=0.25)
matrix.set(title="H = (X X^T) o (Y Y^T), real pairs first", xticks=[0, 119, 199], yticks=[0, 119, 199])
colours = np.where(data.inlier_mask, REAL, WRONG)[order]
sums.scatter(np.arange(200), overlap.row_sums()[order], s=9, c=colours)
sums.set(title="row sums (Algorithm 2)", xlabel="pair")
vector.scatter(np.arange(200), overlap.leading_eigenvector().vector[order], s=9, c=colours)
vector.set(title="leading eigenvector (Algorithm 1)", xlabel="pair")
plt.show()
