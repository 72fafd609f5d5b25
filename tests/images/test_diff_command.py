from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from inlier.cli import main
from inlier.datasets import make_scenes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for name, photo in zip(("before", "after", "more"), make_scenes().photos, strict=True):
        Image.fromarray(photo).save(folder / f"{name}.png")
    return folder


@pytest.fixture
def run(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *arguments: CliRunner().invoke(main, ["diff", *arguments, "-o", str(tmp_path / "out")])


def test_everything_is_written_and_exit_code_0_says_something_changed(run, tmp_path):
    outcome = run("before.png", "after.png")
    assert outcome.exit_code == 0, outcome.output
    assert "1 region has changed" in outcome.stdout
    assert "Page: " in outcome.stderr
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["mask.png", "overlay.png", "regions.json", "report.html", "scores.png"]
    (region,) = json.loads((tmp_path / "out" / "regions.json").read_text())["regions"]
    assert region["left"] < 400 < region["right"]
    assert region["top"] < 265 < region["bottom"]
    mask = np.asarray(Image.open(tmp_path / "out" / "mask.png").convert("L")) > 0
    assert mask.sum() == region["area"]
    assert "://" not in (tmp_path / "out" / "report.html").read_text()  # self-contained


def test_exit_code_1_says_nothing_changed(run):
    outcome = run("before.png", "before.png")
    assert outcome.exit_code == 1
    assert "The photos are identical" in outcome.stdout


def test_exit_code_1_says_that_the_scenes_differ(run, folder):
    noise = np.random.default_rng(0).integers(0, 255, (427, 640, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((640, 427)).save(folder / "stranger.png")
    outcome = run("before.png", "stranger.png", "--no-align")
    assert outcome.exit_code == 1
    assert "do not show the same scene" in outcome.stdout
    assert outcome.output.count("do not show the same scene") == 1
    content = json.loads(run("before.png", "stranger.png", "--no-align", "--json", "--quiet", "--force").stdout)
    assert content["verdict"] == "different scenes"
    promised = run("before.png", "stranger.png", "--no-align", "--same-scene", "--force")
    assert "do not show the same scene" not in promised.output
    assert "because you say that they show one scene" in promised.stderr


def test_without_opencv_the_cure_comes_before_any_verdict(run, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    noise = np.random.default_rng(0).integers(0, 255, (427, 640, 3), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "stranger.png")
    outcome = run("before.png", "stranger.png")
    assert outcome.exit_code == 2
    assert "pip install opencv-python-headless" in " ".join(outcome.stderr.split())
    assert outcome.stdout == ""
    assert not (tmp_path / "out").exists()


def test_what_was_found_in_the_files_is_said(run, folder):
    tifffile = pytest.importorskip("tifffile")
    photo = np.asarray(Image.open(folder / "before.png")).astype(np.uint16)[..., 0] * 4
    tifffile.imwrite(folder / "pages.tif", np.stack([photo, photo]), photometric="minisblack")
    outcome = run("pages.tif", "pages.tif")
    said = " ".join(outcome.stderr.split())
    assert said.count("Note: pages.tif has 2 pages; the first is read.") == 1
    assert "Note: Values have 10 bits, as the largest" in said
    assert "12 bits as asked for" in run("pages.tif", "pages.tif", "--bits", "12", "--force").stderr
    assert run("pages.tif", "pages.tif", "--bits", "9", "--force").exit_code == 2


def test_json_goes_to_stdout_and_quiet_says_nothing_else(run, tmp_path):
    outcome = run("before.png", "more.png", "--json", "--quiet", "--no-align", "--seed", "5")
    content = json.loads(outcome.stdout)
    assert outcome.stderr == ""
    assert content["seed"] == 5
    assert content["before"] == "before.png"
    assert content["alignment"]["method"] == "none"
    assert 0.35 < content["alignment"]["agreement"] < 1
    assert content == json.loads((tmp_path / "out" / "regions.json").read_text())
    assert run("before.png", "more.png", "--quiet").output == ""


@pytest.mark.parametrize("method", ["row-sum", "eigenvector"])
def test_the_papers_methods(run, method):
    outcome = run("before.png", "after.png", "--method", method)
    assert outcome.exit_code == 0, outcome.output
    assert "more in regions.json" in outcome.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["before.png", "after.png", "-o", "/proc/x"],
            "could not be written: no file can be made in the folder /proc",
            marks=pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no /proc"),
        ),
        (["mask.png", "after.png", "-o", "."], "mask.png is read by this command, and would be overwritten"),
        (
            ["mask.png", "after.png", "-o", "sub/.."],
            "sub/../mask.png is read by this command, and would be overwritten",
        ),
        (["before.png", "absent.png"], "There is no photo at absent.png"),
        (["before.png", "words.png"], "words.png could not be read as an image"),
        (["before.png", "small.png"], "at least 32 x 32"),
        (["before.png", "tall.png"], "different shapes"),
        (["before.png"], "Missing argument"),
        (["before.png", "after.png", "--alpha", "0"], "not in the range"),
        (["before.png", "after.png", "--method", "magic"], "is not one of"),
        (["before.png", "after.png", "-o", "words.png"], "Error: words.png is a file, but a folder is needed to"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "words.png").write_text("no picture")
    Image.new("RGB", (10, 7)).save(folder / "small.png")
    Image.new("RGB", (100, 300)).save(folder / "tall.png")
    outcome = CliRunner().invoke(main, ["diff", *arguments])
    assert outcome.exit_code == 2
    assert message in " ".join(outcome.stderr.split())
    assert "Traceback" not in outcome.output


def test_without_the_report_extra_all_but_the_page_is_written(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    outcome = run("before.png", "after.png")
    assert outcome.exit_code == 0
    assert "pip install jinja2" in outcome.stderr
    assert not (tmp_path / "out" / "report.html").exists()
    assert (tmp_path / "out" / "mask.png").exists()


def test_an_interrupted_run_is_not_taken_for_an_answer(run, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("inlier.images.detect_changes", interrupted)
    assert run("before.png", "after.png").exit_code == 130
    assert not (tmp_path / "out").exists()
