from __future__ import annotations

import dataclasses
import json
import pickle
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from inlier import CalibratedMatcher, EigenvectorMatcher, MatchResult, RowSumMatcher, SplitMatcher
from inlier.datasets import make_gaussian_pairs


@pytest.fixture
def result():
    scores = np.array([0.5, -1.0, 2.0, -1.0, 0.0])
    return MatchResult("RowSumMatcher", scores >= 0.5, scores, 0.5)


def test_repr_is_a_sentence(result):
    assert repr(result) == "<RowSumMatcher result: 2 of 5 pairs called real (40.0%)>"


def test_worst_first_ties_by_row(result):
    assert result.worst(3).tolist() == [1, 3, 4]
    assert result.worst(0).tolist() == []
    assert result.worst(99).tolist() == [1, 3, 4, 0, 2]
    with pytest.raises(ValueError, match="k must not be negative"):
        result.worst(-1)


def test_frame(result):
    frame = result.to_frame()
    assert frame.index.name == "pair"
    assert frame["score"].tolist() == result.scores.tolist()
    assert frame["inlier"].tolist() == [True, False, True, False, False]


def test_frame_and_json_say_what_is_certain():
    data = make_gaussian_pairs(300, 10, 0.8, noise=0.02, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    result = matcher.result_
    frame, content = result.to_frame(), json.loads(result.to_json())
    told = {"certain_q_value": "certain_q_values_", "certain": "certain_mask_", "n_rivals": "n_rivals_"}
    for name, attribute in told.items():
        assert frame[name].tolist() == content[name] == getattr(matcher, attribute).tolist()
    assert result.n_certain == frame["certain"].sum()
    assert not (frame["certain"] & ~frame["inlier"]).any()


def test_where_others_were_not_compared_nobody_counts_the_certain(result):
    assert result.n_certain is None
    some = np.zeros(5, dtype=bool)
    assert dataclasses.replace(result, certain_mask=some, n_rivals=np.full(5, -1)).n_certain is None
    assert dataclasses.replace(result, certain_mask=some, n_rivals=np.zeros(5, int)).n_certain == 0


def test_frame_without_pandas_names_the_command(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_frame()


def test_json(result):
    content = json.loads(result.to_json(indent=2))
    assert content == {
        "method": "RowSumMatcher",
        "n_pairs": 5,
        "n_inliers": 2,
        "threshold": 0.5,
        "inlier": [True, False, True, False, False],
        "score": [0.5, -1.0, 2.0, -1.0, 0.0],
    }


def test_frozen(result):
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.threshold = 1.0


@pytest.mark.parametrize("matcher", [RowSumMatcher(), EigenvectorMatcher(), SplitMatcher(RowSumMatcher(), 2)])
def test_every_matcher_has_one(matcher):
    with pytest.raises(NotFittedError):
        _ = matcher.result_
    data = make_gaussian_pairs(60, 4, 0.5, rng=0)
    matcher.fit(data.X, data.Y)
    result = pickle.loads(pickle.dumps(matcher)).result_
    assert result.method == type(matcher).__name__
    assert result.n_inliers == matcher.inlier_mask_.sum()
    assert json.loads(result.to_json())["score"] == matcher.scores_.tolist()
    assert "of 60 pairs called real" in repr(result)
    with pytest.raises(ValueError, match="read-only"):
        result.inlier_mask[:] = False
