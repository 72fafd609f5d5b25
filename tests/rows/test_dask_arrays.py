from __future__ import annotations

import numpy as np
import pytest

from inlier import CalibratedMatcher, EigenvectorMatcher, RowSumMatcher
from inlier.estimators import calibrated

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array")


@pytest.mark.parametrize(
    "matcher",
    [RowSumMatcher(whiten=True), EigenvectorMatcher(solver="operator"), CalibratedMatcher(random_state=0)],
    ids=lambda matcher: type(matcher).__name__,
)
def test_a_key_means_the_same_task_in_every_pass_over_slices_of_one_array(matcher, monkeypatch):
    """Otherwise a scheduler that still knows the last pass says so, and may take the one for the other."""
    monkeypatch.setattr(calibrated, "MOST_ONE_BY_ONE", 300)
    X = np.random.default_rng(0).normal(size=(800, 3))
    both = da.from_array(np.hstack([X, X[:, ::-1]]), chunks=(200, 6)).map_blocks(np.copy)
    waits_for: dict[object, set[object]] = {}

    def compute_and_remember(graph, keys, **options):
        tasks = dict(graph.__dask_graph__() if hasattr(graph, "__dask_graph__") else graph)
        for key, task in tasks.items():
            needed = set(task.dependencies)
            assert waits_for.setdefault(key, needed) == needed
        return dask.get(tasks, keys, **options)

    with dask.config.set(scheduler=compute_and_remember):
        matcher.fit(both[:, :3], both[:, 3:]).inlier_mask_.compute()
    assert len(waits_for) > 20
