"""Each script in examples/ runs as it would in a notebook, and finds what was hidden in its data."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.fixture
def run(monkeypatch):
    """Run a script; what it has defined, and the figures that it has drawn."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")  # what a docstring's example has drawn is none of the script's

    def run(name):
        found = runpy.run_path(str(EXAMPLES / f"{name}.py"))
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert len(figures) == 1
        figures[0].canvas.draw()
        assert np.ptp(np.asarray(figures[0].canvas.buffer_rgba())[..., :3]) > 100  # something is on it
        return found

    return run


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short_and_can_be_pasted(name):
    text = (EXAMPLES / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 60
    tree = ast.parse(text)
    title, rule = ast.get_docstring(tree).splitlines()[:2]
    assert rule == "=" * len(title)
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert not [module for module in imported if any(part.startswith("_") for part in module.split("."))]
    assert "plt.show()" in text


def test_there_are_enough_examples_and_each_is_tested_here():
    assert len(NAMES) >= 10
    text = Path(__file__).read_text()
    assert [name for name in NAMES if f'run("{name}")' not in text] == []


def test_mispaired_brain(run):
    found = run("mispaired_brain")
    assert found["misjudged"] <= 5
    certain = found["matcher"].certain_mask_
    assert certain.mean() > 0.5
    assert (certain & ~found["data"].inlier_mask).sum() <= 0.01 * certain.sum()


def test_swapped_samples(run):
    found = run("swapped_samples")
    assert set(np.flatnonzero(found["swapped"])) <= set(found["suspects"])
    assert found["suspects"].size <= 11


def test_swaps_within_plates(run):
    found = run("swaps_within_plates")
    accepted, swapped = found["told"].inlier_mask_, found["swapped"]
    assert (accepted & swapped).sum() <= 0.02 * accepted.sum()
    assert accepted[~swapped].mean() > 0.98
    alone = found["alone"].inlier_mask_
    assert (alone & swapped).sum() > 0.01 * alone.sum()  # or there would be nothing to tell
    assert not (found["alone"].certain_mask_ & swapped).any()
    assert np.median(found["alone"].n_rivals_) > 10
    assert found["told"].certain_mask_[~swapped].mean() > 0.9


def test_table_out_of_step(run):
    found = run("table_out_of_step")
    assert found["right_before"] < 0.4
    assert found["right_after"] > 0.99
    assert [slip.kind for slip in found["repaired"].slips].count("reversed") == 1


def test_align_embeddings(run):
    found = run("align_embeddings")
    accepted, right = found["accepted"], found["right"]
    assert (accepted & ~right).sum() <= 0.02 * accepted.sum()
    assert (right & ~accepted).sum() <= 5
    every, kept, clean = found["fits"].values()
    assert every < 0.5
    assert kept > clean - 0.01


def test_register_scans(run):
    found = run("register_scans")
    scans, move = found["scans"], found["move"]
    np.testing.assert_allclose(move.rotation, scans.rotation, atol=0.005)
    assert np.linalg.norm(move.translation - scans.translation) < 0.3
    assert scans.inlier_mask[found["registration"].inlier_mask_].mean() > 0.98


def test_register_stars(run):
    found = run("register_stars")
    assert found["registration"].transformation_.angle == pytest.approx(40, abs=0.5)
    assert found["registration"].transformation_.scale == pytest.approx(0.6, abs=0.01)
    assert found["agree"][:7].all()


def test_two_motions(run):
    first, second = run("two_motions")["found"]
    assert first.size == pytest.approx(600, abs=15)
    assert (first < 600).mean() > 0.98
    assert ((second >= 600) & (second < 900)).mean() > 0.98


def test_what_changed(run):
    changes = run("what_changed")["changes"]
    assert len(changes.regions) == 1
    assert 352 <= (changes.regions[0].left + changes.regions[0].right) // 2 <= 552
    assert 0.002 < changes.changed_share < 0.2


def test_moved_squares(run):
    found = run("moved_squares")
    assert 0.18 < 1 - found["unmoved"].mean() < 0.19
    assert found["errors"].overall < 0.15


def test_overlap_matrix(run):
    found = run("overlap_matrix")
    H, real = found["H"], found["data"].inlier_mask
    assert H[np.ix_(real, real)].mean() > 3 * H[np.ix_(~real, ~real)].mean()


def test_linear_time(run):
    found = run("linear_time")
    sizes, linear, dense = found["sizes"], found["linear"], found["dense"]
    assert dense[-1] > linear[len(dense) - 1]
    assert linear[-1] / linear[0] < sizes[-1] / sizes[0]


def test_how_sure(run):
    found = run("how_sure")
    assert (found["mean"] <= 1.5 * found["alphas"]).all()


def test_own_scores(run):
    found = run("own_scores")
    share, error = found["found"].inlier_fraction, found["found"].inlier_fraction_error
    assert abs(share - (1 - found["wrong"].mean())) < 4 * error


def test_repair_mix_ups(run):
    found = run("repair_mix_ups")
    assert set(np.flatnonzero(found["repair"].named)) >= {10, 11, 50, 60, 70}
    assert np.all(found["fixed"] == found["proteins"], axis=1).sum() >= 398


def test_register_raw_scans(run):
    found = run("register_raw_scans")
    np.testing.assert_allclose(found["move"].rotation, found["scans"].rotation, atol=0.005)
    assert found["far"].transformation_.angle == pytest.approx(found["move"].angle, abs=0.05)
    assert not found["nothing"].success_


def test_dirty_dictionary(run):
    found = run("dirty_dictionary")
    accepted, is_right = found["accepted"], found["is_right"]
    assert (accepted & ~is_right).sum() <= 0.1 * accepted.sum()
    assert accepted[is_right].mean() > 0.8
    assert found["named"].mean() > 0.8
    assert found["judged"].inlier_mask[20:].sum() <= 2


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*var_names:UserWarning", "ignore:.*is sparse:UserWarning")
def test_single_cells(run):
    for package in ("anndata", "mudata"):
        pytest.importorskip(package, reason="pip install 'inlier[scverse]'")
    found = run("single_cells")
    assert found["found"][~found["shifted"]].mean() > 0.9
    assert found["found"][found["shifted"]].sum() <= 0.1 * found["found"].sum()
    assert found["mdata"].uns["inlier"]["n_inliers"] == found["found"].sum()
