from __future__ import annotations

import numpy as np
import pytest

from inlier.engine.soundness import is_sound


@pytest.mark.parametrize("shape", [(2, 1), (50, 3), (1000, 2)])
def test_only_finite_tables_whose_columns_vary_are_sound(shape):
    table = np.random.default_rng(0).normal(size=shape)
    assert is_sound(table, 1e300)
    assert is_sound(table, np.abs(table).max())
    assert not is_sound(table, np.abs(table).max() * (1 - 1e-15))
    for wrong in (np.nan, -np.nan, np.inf, -np.inf):
        spoilt = table.copy()
        spoilt[-1, -1] = wrong
        assert not is_sound(spoilt, 1e300)
    table[:, 0] = 2.0
    assert not is_sound(table, 1e300)
    table[-1, 0] = 3.0
    assert is_sound(table, 1e300)
