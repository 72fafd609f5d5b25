from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from inlier.rows._cuda import kernels_on_cuda

WIDE_ROWS = """
import numpy as np
from inlier.rows import _cuda_kernels as cuda_kernels, _cuda as on_cuda
from inlier.rows.columns import summarise_columns
from inlier.rows.algebra import bilinear, cross_moment, gram_step, leave_one_out
from inlier.rows.row_maps import unit_rows
from inlier.rows.block_work import PairMap, PairSum

cuda_kernels.THREADS, on_cuda._BLOCKS, on_cuda._STRIPS, on_cuda._MOST_KEPT = 4, 2, 2, 4
on_cuda.kernels_on_cuda = lambda *tables: cuda_kernels
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((11, 19)) + 3, rng.standard_normal((11, 17))
X[4] = X.mean(axis=0)
maps = [unit_rows(summarise_columns(T)) for T in (X, Y)]
x, y = (row_map(T) for row_map, T in zip(maps, (X, Y)))
U = rng.standard_normal((19, 17))
np.testing.assert_allclose(on_cuda.cuda_unit_rows(X, maps[0].mean, maps[0].shortest, np.float64), x)
np.testing.assert_allclose(on_cuda.cuda_sum(PairSum(cross_moment, *maps), X, Y, ()), x.T @ y, atol=1e-12)
stepped = on_cuda.cuda_sum(PairSum(gram_step, *maps, U), X, Y, ())
np.testing.assert_allclose(stepped, gram_step(x, y, matrix=U), atol=1e-12)
for score in (bilinear, leave_one_out):
    found = on_cuda.cuda_map(PairMap(score, *maps, U, 2.5), X, Y)
    np.testing.assert_allclose(found, 2.5 * score(x, y, matrix=U), atol=1e-12)
for found, expected in zip(on_cuda.cuda_columns(cuda_kernels, X), (X.sum(axis=0), X.min(axis=0), X.max(axis=0))):
    np.testing.assert_allclose(found, expected)
"""


@pytest.mark.parametrize(
    "program",
    [[str(Path(__file__).with_name("cuda_in_simulation.py"))], ["-c", WIDE_ROWS]],
    ids=["narrow rows", "wide rows"],
)
def test_the_kernels_in_numba_s_simulation_of_a_device(program):
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, *program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_arrays_of_the_host_are_not_for_them():
    assert kernels_on_cuda(np.ones((10, 3))) is None
