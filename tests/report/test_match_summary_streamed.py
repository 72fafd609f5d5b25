from __future__ import annotations

import json

import numpy as np
import pytest

from inlier import CalibratedMatcher, RowSumMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.estimators.streaming import fit_files
from inlier.report import Origin, Tally, summarise, summarise_streamed
from inlier.rows.files import StoredRows

DATA = make_gaussian_pairs(3000, 4, 0.6, noise=0.2, rng=0)


@pytest.fixture(scope="module")
def streamed():
    """The summary of rows that are read in stretches, and that of the same rows in memory."""
    rows = (StoredRows(values, keep_vectors=False) for values in (DATA.X, DATA.Y))
    fitted, tally = fit_files(RowSumMatcher(), *rows), Tally()
    for block in fitted.blocks():
        tally.add(block, block["score"])
    origin = Origin(("x.npy", "y.npy"), "inlier match", ('with "0" and a\nline',))
    return summarise_streamed(fitted, tally, origin), summarise(RowSumMatcher().fit(DATA.X, DATA.Y), origin=origin)


def test_what_is_said_is_the_same(streamed):
    in_files, in_memory = streamed
    assert in_files.answer == in_memory.answer
    assert in_files.counts == in_memory.counts
    assert [pair["row"] for pair in in_files.worst(5)] == [pair["row"] for pair in in_memory.worst(5)]
    assert in_files.scores_differ


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_json_in_parts_is_json_in_one(streamed, indent):
    for summary in streamed:
        text = "".join(summary.json_parts(indent))
        content = json.loads(text)
        assert text == summary.json(indent) == json.dumps(content, indent=indent, ensure_ascii=False)
        assert content["notes"] == ['with "0" and a\nline']
        assert content["pairs"]["inlier"] == streamed[1].result.inlier_mask.tolist()
        np.testing.assert_allclose(content["pairs"]["score"], streamed[1].result.scores)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_blocks_add_up_to_the_whole(size):
    rng = np.random.default_rng(size)
    q = rng.choice([0.001, 0.001, 0.2, 0.4, 1.0], 1000)
    columns = {"row": np.arange(1000), "score": -np.round(q, 1), "q_value": q, "inlier": q < 0.01}
    whole, parts = Tally(), Tally()
    whole.add(columns, columns["score"])
    for first in range(0, 1000, size):
        block = {name: column[first : first + size] for name, column in columns.items()}
        parts.add(block, block["score"])
    assert (
        parts.counts.tolist()
        == whole.counts.tolist()
        == [(q < 0.01).sum(), ((q > 0.1) & (q < 0.5)).sum(), (q == 1).sum()]
    )
    assert parts.lowest_q == whole.lowest_q == (0.001, (q == 0.001).sum())
    assert parts.worst["row"].tolist() == whole.worst["row"].tolist() == np.flatnonzero(q == 1)[:10].tolist()
    assert (parts.lowest_score, parts.highest_score) == (-1.0, 0.0)


def test_a_matcher_in_memory_is_counted_in_the_same_way():
    summary = summarise(CalibratedMatcher(random_state=0).fit(DATA.X, DATA.Y))
    q = summary.result.q_values
    assert summary.tally.lowest_q == (q.min(), (q == q.min()).sum())
    assert [pair["row"] for pair in summary.worst()] == summary.result.worst(10).tolist()
