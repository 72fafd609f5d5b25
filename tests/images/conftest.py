"""A small scene, photographed twice: other light, noise, a moved camera, a new object."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import ndimage

from inlier.datasets import load_sky
from inlier.images.change_evidence import View

BOX = np.s_[150:200, 300:370]


@dataclass(frozen=True)
class Camera:
    """Takes photos of scikit-learn's china.jpg at half size."""

    scene: np.ndarray

    def __call__(self, seed, *, thing=None, gain=(1.0, 1.0, 1.0), gamma=1.0, shift=(0.0, 0.0), noise=3.0, field=0.0):
        view = self.scene.copy()
        if thing is not None:
            view[BOX] = thing
        view = 255 * (view / 255) ** gamma * np.array(gain)
        if field:
            view = view * np.exp(field * np.linspace(-1, 1, view.shape[1]))[None, :, None]
        if any(shift):
            view = ndimage.shift(view, (*shift, 0), order=1, mode="nearest")
        view = view + noise * np.random.default_rng(seed).standard_normal(view.shape)
        return np.clip(np.round(view), 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def camera():
    return Camera(load_sky()[60:380, 100:580].astype(np.float64))


@pytest.fixture(scope="session")
def truth(camera):
    mask = np.zeros(camera.scene.shape[:2], bool)
    mask[BOX] = True
    return mask


def view(values, bits=8):
    """A photo as the steps of the comparison see it."""
    values = np.asarray(values, np.float32)
    return View(values, (values >= 1).astype(np.float32), 1 / (2**bits - 1))
