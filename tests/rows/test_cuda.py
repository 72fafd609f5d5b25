from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from inlier.rows._cuda import Cuda


def test_the_kernels_in_numba_s_simulation_of_a_device():
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    program = [sys.executable, str(Path(__file__).with_name("cuda_in_simulation.py"))]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_arrays_of_the_host_are_not_for_them():
    assert not Cuda().takes(np.ones((10_000, 3)))
