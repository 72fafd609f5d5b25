"""AnnData and MuData: files that their libraries wrote, read without these; objects; and results in ``.obs``."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.sparse import csc_array, csr_array

from inlier import CalibratedMatcher, scverse
from inlier.cli import main
from inlier.exceptions import ParameterError
from inlier.io import UnusableFileError, column_names, read_labels, read_table, write_table
from inlier.rows.sparse import strongest_directions
from tests.io.single_cells.make import IDS, tables

HERE = Path(__file__).parent / "single_cells"
FACTORS, COUNTS, PROTEINS = tables()
WRONG = np.arange(60) < 6


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in HERE.glob("*.h5*"):
        shutil.copy(path, tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, ["match", *map(str, words), "--alpha", "0.05"])


@pytest.mark.parametrize(
    ("source", "values", "columns"),
    [
        ("cells.h5ad:X_pca", FACTORS, None),
        ("cells.h5ad:obsm/X_pca", FACTORS, None),
        ("cells.h5ad:frame", FACTORS[:, :2], ("a", "b")),
        ("cells.h5ad:dense", COUNTS, tuple(map(str, range(40)))),
        ("proteins.h5ad", PROTEINS[::-1], tuple(f"P{k}" for k in range(8))),
        ("both.h5mu:prot", PROTEINS[::-1], tuple(f"P{k}" for k in range(8))),
        ("both.h5mu:prot:X", PROTEINS[::-1], tuple(f"P{k}" for k in range(8))),
        ("both.h5mu:rna:X_pca", FACTORS, None),
        ("both.h5mu:mod/rna/obsm/X_pca", FACTORS, None),
    ],
)
def test_tables_come_with_the_names_of_the_cells(source, values, columns):
    table = read_table(source)
    np.testing.assert_array_equal(table.values, values)
    assert table.columns == columns
    assert table.keys.tolist() == (IDS[::-1] if "prot" in source else IDS)


@pytest.mark.parametrize("source", ["cells.h5ad", "cells.h5ad:by_gene", "both.h5mu:rna"])
def test_sparse_tables_are_read_by_their_strongest_directions(source):
    with pytest.warns(UserWarning, match="is sparse: compared are logarithms of its counts, along their 39 strongest"):
        table = read_table(source)
    scaled = np.log1p(COUNTS * np.median(COUNTS.sum(axis=1)) / COUNTS.sum(axis=1, keepdims=True))
    left, strength, _ = np.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(table.values), np.abs(left * strength)[:, :39], atol=1e-3)


@pytest.mark.parametrize("kind", [csr_array, csc_array])
def test_numbers_that_are_no_counts_stay_as_they_are(kind):
    table = np.random.default_rng(0).normal(size=(50, 20))
    coordinates, said = strongest_directions(kind(table), 19)
    centred = table - table.mean(axis=0)
    assert said == "its numbers, along their 19 strongest directions (truncated SVD)"
    assert np.linalg.norm(coordinates) < np.linalg.norm(centred) < 1.01 * np.linalg.norm(coordinates)


def test_labels_of_cells_and_columns():
    assert read_labels("cells.h5ad", "batch").tolist() == ["p", "q"] * 30
    assert read_labels("cells.h5ad:X_pca", "depth").tolist() == [str(int(n)) for n in COUNTS.sum(axis=1)]
    assert read_labels("cells.h5ad", "absent") is None
    assert read_table("proteins.h5ad", columns=["P3", "P1"]).columns == ("P3", "P1")
    assert read_table("proteins.h5ad", columns=["^P0"]).values.shape == (60, 7)
    assert "obsm/X_pca" in column_names("cells.h5ad")
    assert "rna:layers/dense" in column_names("both.h5mu")


@pytest.mark.parametrize(
    ("words", "least"),
    [
        (["cells.h5ad:X_pca", "proteins.h5ad"], 40),
        (["both.h5mu:rna:X_pca", "both.h5mu:prot"], 40),
        (["both.h5mu", "--x", "rna:X_pca", "--y", "prot"], 40),
        (["cells.h5ad:X_pca", "proteins.h5ad", "--stratum", "batch"], 20),
    ],
)
def test_cells_are_joined_by_their_names(words, least):
    outcome = run(*words, "-o", "pairs.csv")
    assert outcome.exit_code == 0, outcome.output
    pairs = pd.read_csv("pairs.csv")
    assert pairs["key"].tolist() == IDS
    assert pairs["inlier"].sum() >= least
    assert pairs["inlier"][WRONG].sum() <= 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cells.h5ad:nope", "proteins.h5ad"], "has no table named 'nope'; it has X, obsm/X_pca"),
        (["both.h5mu", "proteins.h5ad"], "holds prot, rna. Choose one of them"),
        (["both.h5mu:atac", "proteins.h5ad"], "holds prot, rna, and no atac"),
        (["proteins.h5ad", "proteins.h5ad", "--columns", "P1,P9"], "has no column named 'P9'"),
        (["cells.h5ad:X_pca", "proteins.h5ad", "--key", "batch"], "obs of proteins.h5ad has no column named 'batch'"),
        (["renamed.h5", "proteins.h5ad"], "renamed.h5 holds MuData. Rename it to end in .h5mu"),
        (["plain.h5ad", "proteins.h5ad"], "no AnnData: it has no obs. Name it .h5"),
        (["cells.h5ad:X_pca", "proteins.h5ad", "-o", "out.h5ad"], "read only. Write csv or parquet"),
        (["broken.h5ad", "proteins.h5ad"], "sparse table whose places do not fit it"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(words, said):
    shutil.copy("both.h5mu", "renamed.h5")
    write_table("plain.h5", PROTEINS)
    Path("plain.h5").rename("plain.h5ad")
    shutil.copy("cells.h5ad", "broken.h5ad")
    with h5py.File("broken.h5ad", "a") as file:
        file["X/indices"][3] = 10_000_000
    outcome = run(*words)
    assert outcome.exit_code == 2
    assert said in outcome.stderr


def test_the_mark_of_hdf5_may_stand_behind_a_block_of_the_users():
    with h5py.File("u.h5", "w", userblock_size=2048) as file:
        file["X"] = PROTEINS
    np.testing.assert_array_equal(read_table("u.h5:X").values, PROTEINS)
    Path("no.h5").write_bytes(b"x" * 5000)
    with pytest.raises(UnusableFileError, match="is no hdf5 file"):
        read_table("no.h5")
    Path("near.h5").write_bytes(b"x" * 300 + Path("u.h5").read_bytes()[2048:])
    with pytest.raises(UnusableFileError, match="is no hdf5 file"):
        read_table("near.h5")


# ---- objects


class Cells:
    """As much of an AnnData as is asked for."""

    def __init__(self, X, names, **obsm):
        self.X, self.obsm, self.shape = X, obsm, X.shape
        self.obs, self.obs_names = pd.DataFrame(index=names), pd.Index(names)
        self.var_names, self.uns = pd.Index([f"v{k}" for k in range(X.shape[1])]), {}


def both():
    mods = {"rna": Cells(csr_array(COUNTS), IDS, X_pca=FACTORS), "prot": Cells(PROTEINS[:50][::-1], IDS[:50][::-1])}
    obs = pd.DataFrame({"batch": ["p", "q"] * 30}, index=IDS)
    return SimpleNamespace(mod=mods, obs=obs, obs_names=obs.index, uns={})


def test_cells_are_tables_with_names():
    given = Cells(FACTORS, IDS), Cells(PROTEINS, IDS)
    matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(*given)
    np.testing.assert_array_equal(
        matcher.scores_, CalibratedMatcher(alpha=0.05, random_state=0).fit(FACTORS, PROTEINS).scores_
    )
    assert matcher.to_frame().index.tolist() == IDS
    assert matcher.transform(given[0]).index.tolist() == IDS
    with pytest.raises(ParameterError, match=r"X is an AnnData whose X is sparse. Give one of its .obsm .*X_pca"):
        CalibratedMatcher().fit(both().mod["rna"], given[1])


def test_cells_in_another_order_are_noticed():
    with pytest.warns(UserWarning, match="indexes differ"):
        CalibratedMatcher(random_state=0).fit(Cells(FACTORS, IDS), Cells(PROTEINS[::-1], IDS[::-1]))


def test_the_answer_is_written_where_analyses_look():
    data = both()
    result = scverse.check(data, "rna", "prot", x_rep="X_pca", alpha=0.05, key_added="ok")
    assert result.n_pairs == 50
    flags = data.obs["ok"]
    assert flags[IDS[50:]].tolist() == [""] * 10  # which only one modality has
    assert (flags[IDS[:50]] == "True").tolist() == result.inlier_mask.tolist()
    assert result.inlier_mask.sum() > 30
    assert result.inlier_mask[:6].sum() <= 1
    assert data.obs["ok_q_value"].isna().tolist() == [False] * 50 + [True] * 10
    assert data.uns["ok"]["n_inliers"] == result.n_inliers
    assert list(data.obs) == ["batch", "ok", "ok_score", "ok_q_value", "ok_certain"]
    with pytest.warns(UserWarning, match="X of rna is sparse: compared are logarithms"):
        assert scverse.check(data, "rna", "prot", stratum="batch").n_pairs == 50


@pytest.mark.parametrize(
    ("words", "settings", "said"),
    [
        (("prot", "atac"), {}, "atac is no modality; there is rna, prot"),
        (("rna", "prot"), {"x_rep": "X_umap"}, "X_umap is no .obsm of rna; there is X_pca"),
        (("rna", "prot"), {"x_rep": "X_pca", "stratum": "donor"}, "stratum is 'donor', and .obs has batch"),
    ],
)
def test_what_is_not_there_is_named(words, settings, said):
    with pytest.raises(ParameterError, match=said):
        scverse.check(both(), *words, **settings)


@pytest.mark.filterwarnings("ignore")  # those of the libraries are theirs
def test_objects_and_files_of_the_libraries_themselves(tmp_path):
    pytest.importorskip("anndata", reason="pip install anndata mudata, which need pandas below 3")
    mudata = pytest.importorskip("mudata", reason="pip install anndata mudata")
    data = mudata.read_h5mu("both.h5mu")
    result = scverse.check(data, "rna", "prot", x_rep="X_pca", alpha=0.05)
    data.write_h5mu(tmp_path / "out.h5mu")
    again = mudata.read_h5mu(tmp_path / "out.h5mu")
    assert again.obs["inlier"].astype(bool).tolist() == result.inlier_mask.tolist()
    assert again.uns["inlier"]["n_inliers"] == result.n_inliers
    panel = data["prot"][data["rna"].obs_names]
    fitted = CalibratedMatcher(alpha=0.05, random_state=0).fit(data["rna"].obsm["X_pca"], panel)
    np.testing.assert_array_equal(fitted.inlier_mask_, result.inlier_mask)


# ---- with the real libraries, where they are (pip install 'inlier[scverse]')


@pytest.mark.filterwarnings("ignore")  # those of the libraries are theirs
@pytest.mark.parametrize("sparse", [None, "csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("backed", [None, "r"])
def test_objects_of_the_real_libraries_in_memory_and_in_files(sparse, backed):
    anndata, mudata = (pytest.importorskip(name, reason=f"pip install {name}") for name in ("anndata", "mudata"))
    import scipy.sparse

    counts = COUNTS.astype(np.float32)
    obs = [pd.DataFrame(index=IDS), pd.DataFrame({"batch": ["p", "q"] * 30}, index=IDS[::-1])]
    rna = anndata.AnnData(counts if sparse is None else getattr(scipy.sparse, sparse)(counts), obs=obs[0])
    rna.obsm["X_pca"] = FACTORS
    prot = anndata.AnnData(PROTEINS[::-1].copy(), obs=obs[1])
    mudata.MuData({"rna": rna, "prot": prot}).write("cells.h5mu")
    mdata = mudata.read_h5mu("cells.h5mu", backed=backed)
    by_counts = scverse.check(mdata, "rna", "prot", alpha=0.1)
    by_factors = scverse.check(mdata, "rna", "prot", x_rep="X_pca", alpha=0.1, key_added="factors")
    assert by_counts.n_pairs == by_factors.n_pairs == 60
    assert by_factors.n_inliers > 30
    assert mdata.obs["factors"].sum() == by_factors.n_inliers
    assert mdata.uns["factors"]["x_rep"] == "X_pca"
    outcome = run("cells.h5mu:rna:X_pca", "cells.h5mu:prot", "--json")
    assert outcome.exit_code == 0, outcome.output
    shutil.copy("cells.h5mu", "cells.h5")
    assert "cells.h5 holds MuData. Rename it to end in .h5mu" in run("cells.h5:rna", "cells.h5:prot").stderr
    with pytest.raises(ParameterError, match=r"MuData of rna, prot. Give one of these, as in mdata\['rna'\]"):
        CalibratedMatcher().fit(mdata, prot)
