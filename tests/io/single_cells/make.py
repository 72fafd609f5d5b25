"""Write the files beside this one with anndata 0.12 and mudata 0.3: python tests/io/single_cells/make.py."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

IDS = [f"cell{k:02d}-1" for k in range(60)]


def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A few factors of each cell, counts of its genes, and its proteins, of which six went to other cells."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(60, 3))
    counts = rng.poisson(np.exp(0.8 * factors @ rng.normal(size=(3, 40)) + 1))
    proteins = factors @ rng.normal(size=(3, 8)) + 0.05 * rng.normal(size=(60, 8))
    proteins[:6] = proteins[np.roll(np.arange(6), 1)]
    return factors, counts.astype(np.float32), proteins


def make(folder: Path) -> None:
    """Write cells.h5ad, proteins.h5ad (in another order) and both.h5mu."""
    import anndata
    import mudata
    import pandas as pd
    from scipy.sparse import csc_matrix, csr_matrix

    factors, counts, proteins = tables()
    obs = pd.DataFrame({"batch": pd.Categorical(["p", "q"] * 30), "depth": counts.sum(axis=1)}, index=IDS)
    cells = anndata.AnnData(csr_matrix(counts), obs=obs)
    cells.obsm["X_pca"] = factors
    cells.obsm["frame"] = pd.DataFrame(factors[:, :2], index=IDS, columns=["a", "b"])
    cells.layers["by_gene"] = csc_matrix(counts)
    cells.layers["dense"] = counts
    names = pd.DataFrame(index=[f"P{k}" for k in range(8)])
    panel = anndata.AnnData(proteins, obs=pd.DataFrame(index=IDS), var=names)[::-1].copy()
    cells.write_h5ad(folder / "cells.h5ad", compression="gzip")
    panel.write_h5ad(folder / "proteins.h5ad", compression="gzip")
    mudata.MuData({"rna": cells, "prot": panel}).write_h5mu(folder / "both.h5mu", compression="gzip")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
