"""
Cells of two modalities
=======================

RNA and proteins of the same cells, in a MuData; some barcodes were shifted. Which cells are still the same? Needs
 ``pip install 'inlier[scverse]'``.
"""

import anndata
import matplotlib.pyplot as plt
import mudata
import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from inlier import scverse
from inlier.plotting import plot_scores

rng = np.random.default_rng(0)
n = 600
state = rng.normal(size=(n, 8))  # what a cell does, which both modalities see
genes = rng.poisson(np.exp(0.5 * state @ rng.normal(size=(8, 500)) / 8**0.5 + 0.5))
proteins = state @ rng.normal(size=(8, 20)) + 0.3 * rng.normal(size=(n, 20))
shifted = np.arange(n) < 90
proteins[shifted] = np.roll(proteins[shifted], 1, axis=0)

cells = pd.DataFrame({"sample": np.where(np.arange(n) < 200, "a", "b")}, index=[f"cell{k}" for k in range(n)])
rna = anndata.AnnData(csr_matrix(genes.astype(np.float32)), obs=cells)
rna.var_names = [f"gene{k}" for k in range(500)]
mdata = mudata.MuData({"rna": rna, "prot": anndata.AnnData(proteins, obs=cells[[]])})
mdata.obs["sample"] = cells["sample"]

# %%
# The sparse counts are compared by the strongest directions of their logarithms, which a warning says; wrong partners
# come from the same sample. The answer stands in ``.obs``, how it was found in ``.uns``.

result = scverse.check(mdata, "rna", "prot", stratum="sample", alpha=0.05)
print(mdata.obs.filter(like="inlier").describe())
found = mdata.obs["inlier"].to_numpy(dtype=bool)
print(
    f"{found.sum()} cells are the same; of the {shifted.sum()} that were shifted {found[shifted].sum()} are among them"
)

plot_scores(result, ~shifted)
plt.show()
