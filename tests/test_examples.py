"""Each script in examples/ runs and finds what was hidden in its data."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

EXAMPLES = Path(__file__).parents[1] / "examples"


def words_of(name, *arguments):
    """What a script prints; it must end well and warn of nothing."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def blue_and_orange(path):
    """How many pixels of a picture have the colour of real things, and how many that of wrong ones."""
    red, _, blue = np.moveaxis(np.asarray(Image.open(path).convert("RGB")).astype(int), -1, 0)
    assert red.size > 200_000
    return np.sum(blue - red > 60), np.sum(red - blue > 60)


def number(pattern, text):
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in:\n{text}"
    return float(found[1].replace(",", ""))


def test_scans_are_registered_from_mostly_wrong_matches(tmp_path):
    words = words_of("register_scans", "--out", tmp_path)
    assert number(r"([\d.]+)% of them join", words) < 30
    assert number(r"([\d.]+)% of those join", words) > 93
    assert number(r"off by ([\d.]+) degrees", words) < 0.5
    assert number(r"translation by ([\d.]+) cm", words) < 3  # the published motion itself is good to some centimetres
    assert min(blue_and_orange(tmp_path / "register_scans.png")) > 200


def test_embeddings_are_aligned_as_well_as_with_a_clean_dictionary(tmp_path):
    words = words_of("align_embeddings", "--out", tmp_path)
    accepted, wrong = number(r"([\d,]+) entries accepted", words), number(r"accepted; (\d+) of those", words)
    assert wrong <= 0.02 * accepted
    assert number(r"and (\d+) right ones were missed", words) <= 5
    every, kept, right = (
        number(rf"{name}: +([\d.]+)%", words) for name in ("all entries", "accepted entries", "right entries")
    )
    assert every < 50
    assert kept > right - 1
    assert min(blue_and_orange(tmp_path / "align_embeddings.png")) > 200


def test_swapped_samples_are_named_with_their_partners(tmp_path):
    words = words_of("swapped_samples", "--out", tmp_path)
    assert 9 <= number(r"columns; (\d+) seem not to go together", words) <= 11
    assert words.count("in the row of") == 9
    assert "[wrong]" not in words
    assert "0 of them were missed" in words
    assert min(blue_and_orange(tmp_path / "swapped_samples.png")) > 200


def test_new_things_are_found_in_other_light(tmp_path):
    words = words_of("what_changed", "--out", tmp_path)
    assert "1 region has changed" in words
    assert 2 < number(r"moved by ([\d.]+) pixels", words) < 3  # two to the side and one down
    assert 352 < number(r"around column (\d+)", words) < 552
    assert {path.name for path in tmp_path.iterdir()} == {"before.png", "after.png", "overlay.png", "mask.png"}
    mask = np.asarray(Image.open(tmp_path / "mask.png"))
    assert 0.002 < mask.mean() < 0.2
    assert mask.shape == np.asarray(Image.open(tmp_path / "overlay.png")).shape[:2]


@pytest.mark.parametrize("name", ["swapped_samples", "what_changed"])
def test_an_example_writes_nothing_unless_asked(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "picture" not in words_of(name)
    assert not list(tmp_path.iterdir())
    assert not list(EXAMPLES.rglob("*.png"))
