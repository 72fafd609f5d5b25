"""A folder with two tables whose pairs are all real."""

from __future__ import annotations

import numpy as np
import pytest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ np.linalg.qr(RNG.normal(size=(3, 3)))[0] + 0.01 * RNG.normal(size=X.shape)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with ``x.npy`` and ``y.npy`` in it."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("y.npy", Y)
    return tmp_path
