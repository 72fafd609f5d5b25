from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from inlier.datasets import load_sky
from inlier.images import Alignment, align_photos, detect_changes


def turned(photo, degrees, scale=1.0, shift=(0.0, 0.0)):
    """The photo seen by a turned camera, and the map from places in it to places in the photo."""
    height, width = photo.shape[:2]
    angle = np.deg2rad(degrees)
    linear = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * scale
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    matrix = np.vstack([np.column_stack([linear, centre - linear @ centre + shift]), [0, 0, 1]])
    return Alignment(matrix, 1.0, "features").apply(photo), matrix


def error(found, true, photo):
    """Largest distance between where a grid of places is found and where it truly is, in the frame of ``before``."""
    height, width = photo.shape[:2]
    rows, columns = np.mgrid[0 : height : height // 24, 0 : width : width // 24].astype(float)
    bend = [
        ndimage.map_coordinates(
            found.bend[..., c],
            [
                (rows + 0.5) / height * (found.bend.shape[0] - 1),
                (columns + 0.5) / width * (found.bend.shape[1] - 1),
            ],
            order=1,
        )
        for c in range(2)
    ]
    stiff = replace(found, bend=np.zeros((*rows.shape, 2)))
    places = stiff.places(np.stack([columns, rows], axis=-1), height, width) + np.stack(bend, axis=-1)
    truly = (
        true(columns, rows)
        if callable(true)
        else replace(stiff, matrix=true, lens=0.0).places(np.stack([columns, rows], axis=-1), height, width)
    )
    seen = ((truly >= 0) & (truly <= [width - 1, height - 1])).all(axis=-1)
    return np.linalg.norm(places - truly, axis=-1)[seen].max()


@pytest.mark.parametrize(("degrees", "shift"), [(0, (2.4, -1.7)), (0.4, (3, 2)), (0, (40, -25)), (0, (0.5, 0))])
def test_small_movements_need_no_opencv(degrees, shift, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    photo = load_sky()
    seen, matrix = turned(photo, degrees, shift=shift)
    found = align_photos(photo, seen)
    assert found.method == "brightness"
    assert found.same_scene
    assert error(found, matrix, photo) < 0.5


@pytest.mark.parametrize("degrees", [12, 100])
def test_turned_photos_are_aligned_by_features(degrees):
    pytest.importorskip("cv2", reason="OpenCV, of the images extra, is not installed")
    photo = load_sky()
    seen, matrix = turned(photo, degrees, scale=1.05, shift=(8, -5))
    found = align_photos(photo, seen)
    assert found.method == "features"
    assert error(found, matrix, photo) < 1.5


def test_without_opencv_turned_photos_are_refused_with_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    photo = load_sky()
    with pytest.raises(ImportError, match=r"pip install opencv-python-headless.*--no-align"):
        align_photos(photo, turned(photo, 60)[0])


def test_equal_photos_stay():
    photo = load_sky()
    found = align_photos(photo, photo)
    assert not found.moved
    assert found.agreement == pytest.approx(1)
    assert found.shift(100, 100) == 0


def test_scaling_keeps_the_movement():
    found = Alignment(np.array([[1.01, 0.02, 3.0], [-0.02, 0.99, -2.0], [1e-4, -2e-4, 1.0]]), 1.0, "moved", lens=0.02)
    place = np.array([10.0, 20.0])
    moved = found.places(place, 300, 400)[0, 0]
    larger = found.scaled(4).places(4 * (place + 0.5) - 0.5, 1200, 1600)[0, 0]
    assert np.allclose(larger, 4 * (moved + 0.5) - 0.5)
    assert np.allclose(found.scaled(4).scaled(0.25).matrix, found.matrix)


def test_what_lies_outside_of_the_frame_is_not_called_changed():
    photo = load_sky()
    before, after = photo[:, :560], photo[:, 80:]
    changes = detect_changes(before, after)
    assert changes.alignment.matrix[0, 2] == pytest.approx(80, abs=0.3)
    assert not changes.alignment.inside(*after.shape[:2])[:, -70:].any()
    assert not changes.mask[:, -70:].any()
    assert changes.regions == []


def test_photos_of_different_scenes_are_not_trusted():
    pytest.importorskip("cv2", reason="OpenCV, of the images extra, is not installed")
    random = np.random.default_rng(0)
    blurred = Image.fromarray(random.integers(0, 255, (40, 60, 3), dtype=np.uint8)).resize((640, 427))
    assert not align_photos(load_sky(), np.asarray(blurred)).same_scene


@pytest.mark.parametrize("seed", range(3))
def test_photos_that_show_hardly_anything_are_not_moved(seed):
    """Nobody can tell whether they show one scene; a shift by which noise fits noise would mean nothing."""
    random = np.random.default_rng(seed)
    before, after = (120 + 2 * random.standard_normal((240, 320)) for _ in range(2))
    before[40:110, 60:70] = after[150:160, 120:260] = 160
    alignment = align_photos(*(np.repeat(np.round(v)[..., None], 3, 2).astype(np.uint8) for v in (before, after)))
    assert alignment.same_scene
    assert not alignment.moved


def board(rng, side=640):
    """Thin parallel traces: they fit onto each other at wrong shifts too."""
    field = np.zeros((side, side))
    for start in range(20, side - 20, 24):
        field[start : start + 4, rng.integers(0, 200) : rng.integers(300, side)] = 1
        field[rng.integers(0, 300) : rng.integers(350, side), start : start + 3] = 1
    return field


@pytest.mark.parametrize("shift", [(2, -3), (3, 0), (0, 3), (1, 1), (-7, 9)])
def test_thin_traces_are_aligned_to_a_fraction_of_a_pixel(shift):
    rng = np.random.default_rng(0)
    traces = board(rng)
    pair = (traces, np.roll(traces, shift, (0, 1)))
    photos = [200 * field + 20 + 4 * rng.standard_normal(field.shape) for field in pair]
    before, after = (np.repeat(np.clip(photo, 0, 255).astype(np.uint8)[..., None], 3, 2) for photo in photos)
    true = np.array([[1.0, 0.0, -shift[1]], [0.0, 1.0, -shift[0]], [0.0, 0.0, 1.0]])
    assert error(align_photos(before, after), true, after) < 0.3  # and not at the next trace, 24 pixels on


@pytest.mark.parametrize(("perspective", "lens"), [((0.02, -0.015), 0.01), ((-0.05, 0.03), -0.01), ((0.06, 0.06), 0)])
def test_perspective_and_lens_are_followed(perspective, lens):
    photo = load_sky()
    height, width = photo.shape[:2]

    def true(columns, rows):
        u, v = (2 * columns - width + 1) / width, (2 * rows - height + 1) / width
        u, v = (c * (1 + lens * (u * u + v * v)) for c in (u, v))
        depth = 1 + perspective[0] / 2 * u + perspective[1] / 2 * v
        return np.stack([u / depth * width + width - 1, v / depth * width + height - 1], axis=-1) / 2

    rows, columns = np.mgrid[:height, :width].astype(float)
    places = np.moveaxis(true(columns, rows), -1, 0)[::-1]
    seen = np.stack([ndimage.map_coordinates(photo[..., c], places, order=1, mode="nearest") for c in range(3)], -1)
    found = align_photos(photo, seen)
    assert np.abs(places - [rows, columns]).max() > 1.5
    assert found.lens == pytest.approx(lens, abs=0.004)
    assert error(found, true, photo) < 0.5


def test_whole_pixels_are_moved_exactly():
    photo = load_sky()
    found = Alignment(np.array([[1.0, 0.0, 5.0], [0.0, 1.0, -3.0], [0.0, 0.0, 1.0]]), 1.0, "brightness")
    assert np.array_equal(found.apply(photo)[3:, :-5], photo[:-3, 5:])
    assert found.inside(*photo.shape[:2])[3:, :-5].all()
    assert not found.inside(*photo.shape[:2])[:3].any()


def test_mirrored_photos_are_another_scene():
    photo = load_sky()[:, :400]
    found = align_photos(photo, load_sky()[:, 240:][::-1])
    assert not found.same_scene
    assert not found.moved
