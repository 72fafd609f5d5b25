from __future__ import annotations

import sys

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
    matrix = np.column_stack([linear, centre - linear @ centre + shift])
    return Alignment(matrix, 1.0, "features").apply(photo), matrix


def corner_error(found, true, photo):
    height, width = photo.shape[:2]
    corners = np.array([[0, 0, 1], [width, 0, 1], [0, height, 1], [width, height, 1]], float)
    bend = found.bend[[0, 0, -1, -1], [0, -1, 0, -1]]
    return np.abs(corners @ (found.matrix - true).T + bend).max()


@pytest.mark.parametrize(("degrees", "shift"), [(0, (2.4, -1.7)), (0.4, (3, 2)), (0, (40, -25)), (0, (0.5, 0))])
def test_small_movements_need_no_opencv(degrees, shift, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    photo = load_sky()
    seen, matrix = turned(photo, degrees, shift=shift)
    found = align_photos(photo, seen)
    assert found.method == "small shift"
    assert found.same_scene
    assert corner_error(found, matrix, photo) < 0.5


@pytest.mark.parametrize("degrees", [12, 100])
def test_turned_photos_are_aligned_by_features(degrees):
    pytest.importorskip("cv2", reason="OpenCV, of the images extra, is not installed")
    photo = load_sky()
    seen, matrix = turned(photo, degrees, scale=1.05, shift=(8, -5))
    found = align_photos(photo, seen)
    assert found.method == "features"
    assert corner_error(found, matrix, photo) < 1.5


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
    found = Alignment(np.array([[1.01, 0.02, 3.0], [-0.02, 0.99, -2.0]]), 1.0, "small shift")
    place = np.array([10.0, 20.0])
    moved = found.matrix @ [*place, 1]
    larger = found.scaled(4).matrix @ [*(4 * (place + 0.5) - 0.5), 1]
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


def board(rng, side=640):
    """Thin parallel traces: they fit onto each other at wrong shifts too."""
    field = np.zeros((side, side))
    for start in range(20, side - 20, 24):
        field[start : start + 4, rng.integers(0, 200) : rng.integers(300, side)] = 1
        field[rng.integers(0, 300) : rng.integers(350, side), start : start + 3] = 1
    return field


@pytest.mark.parametrize("shift", [(2, -3), (3, 0), (1, 1), (-7, 9)])
def test_thin_traces_are_aligned_within_a_pixel(shift):
    rng = np.random.default_rng(0)
    traces = board(rng)
    pair = (traces, np.roll(traces, shift, (0, 1)))
    photos = [200 * field + 20 + 4 * rng.standard_normal(field.shape) for field in pair]
    before, after = (np.repeat(np.clip(photo, 0, 255).astype(np.uint8)[..., None], 3, 2) for photo in photos)
    true = np.array([[1.0, 0.0, -shift[1]], [0.0, 1.0, -shift[0]]])
    assert corner_error(align_photos(before, after), true, after) < 1.0  # and not at the next trace, 24 pixels on


def test_perspective_and_lens_are_followed_by_the_bend():
    photo = load_sky()
    height, width = photo.shape[:2]
    y, x = np.mgrid[:height, :width].astype(float)
    u, v = (x - width / 2) / width, (y - height / 2) / width
    depth = 1 + 0.02 * u - 0.015 * v + 0.01 * (u * u + v * v)
    places = [v / depth * width + height / 2, u / depth * width + width / 2]
    seen = np.stack([ndimage.map_coordinates(photo[..., c], places, order=1, mode="nearest") for c in range(3)], -1)
    found = align_photos(photo, seen)
    row, column = (found.bend.shape[0] // 2, found.bend.shape[1] * 3 // 4)  # the lake's far shore and the trees
    here = np.array(
        [np.linspace(0, width - 1, found.bend.shape[1])[column], np.linspace(0, height - 1, found.bend.shape[0])[row]]
    )
    place = found.matrix @ [*here, 1] + found.bend[row, column]
    true = [ndimage.map_coordinates(field, here[::-1, None], order=1)[0] for field in places[::-1]]
    assert np.abs(true - here).max() > 0.5
    assert np.abs(place - true).max() < 0.3


def test_whole_pixels_are_moved_exactly():
    photo = load_sky()
    found = Alignment(np.array([[1.0, 0.0, 5.0], [0.0, 1.0, -3.0]]), 1.0, "small shift")
    assert np.array_equal(found.apply(photo)[3:, :-5], photo[:-3, 5:])
    assert found.inside(*photo.shape[:2])[3:, :-5].all()
    assert not found.inside(*photo.shape[:2])[:3].any()


def test_mirrored_photos_are_another_scene():
    photo = load_sky()[:, :400]
    assert not align_photos(photo, load_sky()[:, 240:][::-1]).same_scene
