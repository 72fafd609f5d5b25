from __future__ import annotations

import subprocess
import sys
import time

import pytest

from inlier.cli import _progress
from inlier.cli._progress import bytes_read, stages, steps


@pytest.fixture
def terminal(monkeypatch):
    """A terminal, as rich sees it, and no patience."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)


def test_nothing_without_a_terminal_or_when_quiet(capsys):
    for quiet in (False, True):
        with stages(quiet=quiet) as stage:
            stage("working")
    with bytes_read(100) as on_read:
        assert on_read is None
    assert capsys.readouterr() == ("", "")


def test_the_step_when_it_takes_long(capsys, terminal):
    with stages() as stage:
        stage("matching pairs")
        time.sleep(0.4)
    out, err = capsys.readouterr()
    assert out == ""
    assert "matching pairs" in err


def test_nothing_when_it_is_quick(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with stages() as stage:
        stage("matching pairs")
    assert "matching pairs" not in capsys.readouterr().err


def test_a_bar_in_bytes(capsys, terminal):
    with bytes_read(4_000_000) as on_read:
        on_read(1_500_000)
        on_read(4_500_000)  # more than was expected
    out, err = capsys.readouterr()
    assert out == ""
    assert "6.0/6.0 MB" in err


def test_steps_are_lines_without_a_terminal(capsys):
    with steps(2) as begin:
        begin("one")
        begin("two")
    assert capsys.readouterr() == ("", "one\ntwo\n")


def test_that_numba_compiles_is_said(capsys, terminal):
    numba = pytest.importorskip("numba")
    with stages() as stage:
        stage("matching pairs")
        time.sleep(0.3)  # the bar is there before anything is compiled
        until = time.monotonic() + 1.0  # long enough for several pictures of the bar
        while time.monotonic() < until:
            numba.njit(lambda x: x + 1)(1)
    assert _progress._COMPILING in capsys.readouterr().err


def test_what_was_compiled_before_is_not_waited_for(capsys, terminal):
    numba = pytest.importorskip("numba")
    function = numba.njit(lambda x: x + 2)
    function(1)
    with stages() as stage:
        stage("matching pairs")
        until = time.monotonic() + 0.4
        while time.monotonic() < until:
            function(1)
    err = capsys.readouterr().err
    assert "matching pairs" in err
    assert _progress._COMPILING not in err


def test_the_seconds_of_compiling():
    watch = _progress._CompilerWatch()
    assert watch.seconds() == 0.0
    events = pytest.importorskip("numba.core.event")
    with events.trigger_event("numba:compile"):
        with events.trigger_event("numba:compile"):  # what the function calls
            time.sleep(0.02)
            inside = watch.seconds()
        assert watch.seconds() >= inside >= 0.02
    assert watch.seconds() == 0.0


def test_numba_is_not_imported_for_it():
    code = (
        "import sys; from inlier.cli._progress import _CompilerWatch; _CompilerWatch().seconds();"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
