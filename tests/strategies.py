"""Paired tables of every awkward kind, for hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

KINDS = ("gaussian", "rank-deficient", "badly scaled", "far from the origin")


@st.composite
def paired_tables(draw, max_rows=40, max_columns=9, kinds=KINDS):
    """(X, Y) with free shapes (n = 2, d = 1, d > n, d_x != d_y all occur) and awkward contents."""
    n = draw(st.integers(2, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return tuple(_table(rng, n, draw(st.integers(1, max_columns)), draw(st.sampled_from(kinds))) for _ in range(2))


def _table(rng, n, d, kind):
    table = rng.standard_normal((n, d))
    if kind == "rank-deficient":
        table = np.outer(table[:, 0], rng.standard_normal(d)) + 0.0
    elif kind == "badly scaled":
        table = table * 10.0 ** rng.uniform(-6, 6, size=d)
    elif kind == "far from the origin":
        table = table + rng.uniform(-1000, 1000, size=d)
    return table
