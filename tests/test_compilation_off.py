"""Compiled loops are Python too: with compilation switched off every estimator gives the same answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from inlier import CalibratedMatcher, EigenvectorMatcher, Registration, RowSumMatcher
from inlier.datasets import make_gaussian_pairs

ROOT = Path(__file__).parents[1]


def answers() -> dict[str, np.ndarray]:
    """Masks and scores of all estimators on small data, on which each finds something and leaves something."""
    easy, sparse = (make_gaussian_pairs(n, 3, real, noise=0.02, rng=0) for n, real in ((120, 0.7), (80, 0.3)))
    fitted = {
        "row sums": RowSumMatcher().fit(easy.X, easy.Y),
        "eigenvector": EigenvectorMatcher().fit(easy.X, easy.Y),
        "calibrated": CalibratedMatcher(alpha=0.05, random_state=0).fit(easy.X, easy.Y),
        "orthogonal": Registration("orthogonal", random_state=0).fit(easy.X, easy.Y),
        "rigid": Registration("rigid", reflection=True, random_state=0).fit(sparse.X, sparse.Y),
    }
    scores = {f"{name} scores": one.scores_ for name, one in fitted.items()}
    masks = {f"{name} mask": one.inlier_mask_ for name, one in fitted.items()}
    moved = {f"{name} moved": one.transform(easy.X) for name, one in fitted.items() if isinstance(one, Registration)}
    return {**scores, **masks, **moved}


def test_answers_are_the_same_without_compilation(tmp_path):
    path = tmp_path / "answers.npz"
    command = [sys.executable, "-c", f"import numpy as np, {__name__} as t; np.savez({str(path)!r}, **t.answers())"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plain = np.load(path)
    for name, expected in answers().items():
        assert 0 < expected.mean() < 1 or not name.endswith("mask"), name
        np.testing.assert_allclose(plain[name], expected, rtol=1e-6, atol=1e-9, err_msg=name)
