"""From which row on are pairs unlike the fit?"""

from __future__ import annotations

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.datasets import make_gaussian_pairs


def stream(seed, n=4000, noise=0.5, share=0.7):
    data = make_gaussian_pairs(n=500 + n, d=10, inlier_fraction=0.7, noise=0.5, rng=seed)
    judge = CalibratedMatcher(random_state=seed).fit(data.X[:500], data.Y[:500]).judge_
    return judge, data.X[500:], data.Y[500:]


@pytest.mark.seeds
def test_a_stream_like_the_fit_is_not_called_unlike_it(seed, promise):
    judge, X, Y = stream(seed)
    watch = judge.drift(error=0.05).update(judge(X, Y))
    promise("false alarms", int(watch.from_row is not None), 1, 0.05)
    assert watch.n == 4000


@pytest.mark.seeds
def test_a_change_is_told_with_its_row(seed, promise):
    judge, X, Y = stream(seed)
    Y = Y.copy()
    Y[2000:] += 2 * np.random.default_rng(seed).normal(size=(2000, 10))
    watch = judge.drift().update(judge(X, Y))
    promise("changes missed", int(watch.from_row is None), 1, 0.05)
    promise("rows far off", int(watch.from_row is not None and abs(watch.from_row - 2000) > 300), 1, 0.2)
    assert "unlike those of the fit" in repr(watch)


def test_batches_are_a_stream():
    judge, X, Y = stream(0, n=1000)
    whole, parts = judge.drift(), judge.drift()
    whole.update(judge(X, Y))
    for start in range(0, 1000, 256):
        parts.update(judge(X[start : start + 256], Y[start : start + 256]))
    assert (parts.n, parts.evidence, parts.from_row) == (whole.n, whole.evidence, whole.from_row)
    assert judge.drift().update([]).n == 0


def test_fewer_real_pairs_are_a_change_too():
    judge, X, Y = stream(1)
    Y = Y.copy()
    Y[1000:] = np.random.default_rng(0).permutation(Y[1000:])
    watch = judge.drift().update(judge(X, Y).scores)
    assert watch.from_row is not None
    assert 700 < watch.from_row < 1300
    assert watch.evidence > 100
