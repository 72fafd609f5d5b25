from __future__ import annotations

import pytest

from inlier.apps.reproduce import load_sources
from inlier.apps.reproduce.sources import Sources


def test_only_what_is_needed_is_loaded():
    sources = load_sources(["sky"])
    assert list(sources) == ["sky"]
    assert sources.photo.shape == (427, 640, 3)
    assert list(sources.describe()) == ["sky"]
    with pytest.raises(ValueError, match="was not given its data: brain"):
        _ = sources.features


def test_the_fingerprint_tells_data_apart(tmp_path):
    from PIL import Image

    photo = load_sources(["sky"])
    changed = photo.photo.copy()
    changed[0, 0, 0] ^= 1
    Image.fromarray(changed).save(tmp_path / "china.png")
    other = load_sources(["sky"], photos=[tmp_path / "china.png"])
    assert other.describe()["sky"]["name"] == "china.png"
    assert other.describe()["sky"]["fingerprint"] != photo.describe()["sky"]["fingerprint"]


def test_two_photos_are_neither_one_nor_three():
    with pytest.raises(ValueError, match="2 photos were given; give one for the sky experiments, or three"):
        load_sources(["sky"], photos=["a.jpg", "b.jpg"])


def test_three_photos_leave_the_sky_as_it_is(tmp_path):
    from PIL import Image

    Image.new("RGB", (5, 4)).save(tmp_path / "a.png")
    sources = load_sources(photos=[tmp_path / "a.png"] * 3)
    assert sources.photo.shape == (427, 640, 3)
    assert sources.three_scenes.photos[0].shape == (4, 5, 3)
    assert sources.three_scenes.changed(0, 1) is None


def test_empty():
    assert Sources().describe() == {}
