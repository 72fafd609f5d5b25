from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from inlier.engine.on_cuda import kernels_on_cuda


def test_the_kernels_in_numba_s_simulation_of_a_device():
    script = Path(__file__).with_name("cuda_in_simulation.py")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_arrays_of_the_host_are_not_for_them():
    assert kernels_on_cuda(np.ones((10, 3))) is None
