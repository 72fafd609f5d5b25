"""Shared fixtures; hypothesis is derandomised so that a run can be repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60, print_blob=True)
settings.load_profile("repeatable")

REAL_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def real_data():
    """Folder of real data kept beside the project, not in it."""
    if not REAL_DATA.is_dir():
        pytest.skip("the real data that is kept beside the project (not in it) is absent")
    return REAL_DATA


@pytest.fixture
def small_blocks(monkeypatch):
    """Force several blocks on small data: ``small_blocks(7)`` makes blocks of 7 rows."""
    return lambda rows: monkeypatch.setattr("inlier.rows.threads.rows_per_block", lambda width: rows)
