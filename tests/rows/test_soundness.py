from __future__ import annotations

import numpy as np
import pytest

from inlier.rows.soundness import is_sound


def sound(table, most, least=0.0):
    limits = np.array([least, most]).view(np.int64)
    return is_sound(table.reshape(-1).view(np.int64), table.shape[1], *limits)


@pytest.mark.parametrize("shape", [(2, 1), (50, 3), (1000, 2)])
def test_only_finite_tables_whose_columns_vary_are_sound(shape):
    table = np.random.default_rng(0).normal(size=shape)
    assert sound(table, 1e300)
    assert sound(table, np.abs(table).max())
    assert not sound(table, np.abs(table).max() * (1 - 1e-15))
    assert sound(table, 1e300, least=np.abs(table).max())
    assert not sound(table, 1e300, least=np.abs(table).max() * (1 + 1e-15))
    for wrong in (np.nan, -np.nan, np.inf, -np.inf):
        spoilt = table.copy()
        spoilt[-1, -1] = wrong
        assert not sound(spoilt, 1e300)
    table[:, 0] = 2.0
    assert not sound(table, 1e300)
    table[-1, 0] = 3.0
    assert sound(table, 1e300)
