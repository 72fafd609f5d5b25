from __future__ import annotations

import pytest

from inlier.apps.reproduce.experiment import (
    Sources,
    cells_of,
    column,
    gaps,
    load_sources,
    only,
    pivot,
    point_of,
    summarise,
)


def test_cells_cover_every_repetition_of_every_point_once():
    cells = cells_of([{"r": 0.5}, {"r": 0.9}], repetitions=7, per_cell=3)
    covered = [(cell["r"], repetition) for cell in cells for repetition in range(cell["first"], cell["last"])]
    assert covered == [(r, k) for r in (0.5, 0.9) for k in range(7)]


def test_summaries():
    records = [{"r": r, "method": "a", "error": error} for r in (0.5, 0.9) for error in (0.1, 0.2, 0.6)]
    low, high = summarise(records, ["error"])
    assert point_of(low) == {"r": 0.5, "method": "a", "quantity": "error"}
    assert low["mean"] == pytest.approx(0.3)
    assert low["sd"] == pytest.approx(0.2646, abs=1e-4)  # with n - 1
    assert low["stderr"] == pytest.approx(low["sd"] / 3**0.5)
    assert low["repetitions"] == 3
    assert high["r"] == 0.9


def test_one_repetition_has_no_spread():
    (line,) = summarise([{"error": 0.5}], ["error"])
    assert (line["sd"], line["stderr"]) == (0, 0)


def test_looking_up(table_of):
    rows = table_of("error", [{"r": 0.5, "m": "a"}, {"r": 0.5, "m": "b"}, {"r": 0.9, "m": "a"}], [1.0, 2.0, 3.0])
    assert column(rows, "mean", m="a") == [1.0, 3.0]
    assert only(rows, r=0.5, m="b")["mean"] == 2.0
    with pytest.raises(ValueError, match="too many values"):
        only(rows, r=0.5)
    assert pivot(rows, ["r"], "m") == [{"r": 0.5, "a": 1.0, "b": 2.0}, {"r": 0.9, "a": 3.0}]


def test_gaps():
    assert gaps([0.1, 0.4], [0.1, 0.5]) == pytest.approx((0.05, 0.1))


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
