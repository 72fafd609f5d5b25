from __future__ import annotations

import logging
import sys

import numpy as np
import pytest

import inlier
from inlier.datasets import make_gaussian_pairs
from inlier.progress import set_progress, shown_by, track


@pytest.fixture(autouse=True)
def _silent_again():
    yield
    set_progress(None)


@pytest.fixture(scope="module")
def data():
    return make_gaussian_pairs(1500, 5, 0.6, rng=0)


def test_a_fit_tells_where_it_is_and_when_it_is_over(data):
    told = []
    set_progress(lambda *step: told.append(step))
    inlier.CalibratedMatcher(n_folds=4, random_state=0).fit(data.X, data.Y)
    assert told == [("folds", done, 4) for done in range(5)]


def test_files_are_told_stretch_by_stretch(data, tmp_path):
    from inlier.estimators.streaming import stream_mask

    for name, side in (("x", data.X), ("y", data.Y)):
        np.save(tmp_path / f"{name}.npy", side)
    told = []
    with shown_by(lambda *step: told.append(step)):
        stream_mask(inlier.RowSumMatcher(), tmp_path / "x.npy", tmp_path / "y.npy", tmp_path / "mask.npy")
    assert {step for step, *_ in told} == {"stretches of the files"}
    assert sum(done == total for _, done, total in told) >= 3  # each reading ends


def test_the_answer_does_not_depend_on_who_listens(data):
    quiet = inlier.CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    set_progress("rich")
    shown = inlier.CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    np.testing.assert_array_equal(shown.q_values_, quiet.q_values_)


def test_bars_come_and_go(capsys):
    set_progress("rich")
    assert list(track("things", [1, 2, 3])) == [1, 2, 3]
    from inlier import progress

    assert progress._callback._bars == {}
    assert progress._callback._display is None
    assert capsys.readouterr().out == ""  # standard output is for answers


def test_bars_of_tqdm():
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    set_progress("tqdm")
    assert list(track("things", iter("abc"), 3)) == list("abc")


def test_tqdm_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        set_progress("tqdm")


def test_something_else_is_refused():
    with pytest.raises(ValueError, match='"rich", "tqdm", a function or None; got \'loud\''):
        set_progress("loud")


@pytest.mark.parametrize("total", [3, None])
def test_a_step_that_ends_early_is_over_all_the_same(total):
    told = []
    with shown_by(lambda *step: told.append(step)):
        for item in track("things", iter(range(3)), total):
            if item == 1:
                break
    assert told[-1][1] == told[-1][2]


def test_what_the_callback_raises_ends_the_fit(data):
    def enough(step, done, total):
        if done == 2:
            raise KeyboardInterrupt

    set_progress(enough)
    with pytest.raises(KeyboardInterrupt):
        inlier.CalibratedMatcher(random_state=0).fit(data.X, data.Y)


def test_steps_are_logged_under_the_name_of_the_package(data, caplog):
    with caplog.at_level(logging.DEBUG, logger="inlier"):
        inlier.CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert any(record.name == "inlier" and "folds: 5 of them in" in record.getMessage() for record in caplog.records)


def test_nobody_is_told_unless_asked(data, capsys, caplog):
    inlier.CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
