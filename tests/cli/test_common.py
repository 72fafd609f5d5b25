"""What all commands share: names of columns and keys, bad numbers, places to write to, and whose fault it was."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import click
import numpy as np
import pytest

from inlier.cli._common import (
    Job,
    answering,
    check_numbers,
    columns_of_both,
    for_both,
    read_both,
)
from inlier.cli._outputs import BadInput, Output, never
from inlier.cli.match import match
from inlier.exceptions import ParameterError, ParameterWarning
from inlier.io import Pairing, Table, write_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job(output=None, report=None, as_json=False, others=()):
    return Job(click.Context(match), ("a.csv", "b.npz:y"), output, report, as_json, False, False, others)


class TestNames:
    def test_once_for_both_or_once_for_each(self):
        assert for_both((), "--key") == (None, None)
        assert for_both(("id",), "--key") == ("id", "id")
        assert for_both(("id", "name"), "--key") == ("id", "name")
        with pytest.raises(BadInput, match=r"--key was given 3 times"):
            for_both(("a", "b", "c"), "--key")

    def test_names_between_commas(self):
        assert columns_of_both(()) == (None, None)
        assert columns_of_both(('a, b,"c, d"',)) == (["a", "b", "c, d"],) * 2
        assert columns_of_both(("a", "^b")) == (["a"], ["^b"])

    @pytest.mark.parametrize(("names", "reason"), [("", "names no column"), ("a\nb", "could not be read as names")])
    def test_what_is_no_name(self, names, reason):
        with pytest.raises(BadInput, match=reason):
            columns_of_both((names,))

    def test_two_tables_are_read(self):
        write_table("x.csv", {"id": np.array(["p", "q"]), "u": np.array([1.0, 2.0])})
        write_table("y.csv", {"name": np.array(["q", "p"]), "v": np.array([3.0, 4.0]), "w": np.array([5.0, 6.0])})
        x, y = read_both("x.csv", "y.csv", ("id", "name"), ("u", "^v"))
        assert (x.columns, x.keys.tolist()) == (("u",), ["p", "q"])
        assert (y.columns, y.keys.tolist()) == (("w",), ["q", "p"])


class TestNumbers:
    def pairing(self, **bad):
        sides = {name: np.zeros((4, 2)) for name in "XY"}
        for name, places in bad.items():
            for row, column in places:
                sides[name][row, column] = np.inf
        return Pairing(sides["X"], sides["Y"], np.arange(10, 14), rows_y=np.array([20, 21, 21, 23]))

    def check(self, pairing, columns=None, keys=None):
        tables = [Table(np.zeros((30, 2)), columns, keys, Path(name)) for name in ("x.npy", "y.npy")]
        check_numbers(pairing, ("x.npy", "y.npy"), tables)

    def test_finite_ones_pass(self):
        self.check(self.pairing())

    def test_the_row_of_the_file_is_named(self):
        with pytest.raises(BadInput, match=r"^x\.npy .*: 1 value\(s\), the first \(inf\) in row 12, column 1\."):
            self.check(self.pairing(X=[(2, 1)]))

    def test_a_row_of_several_pairs_counts_once(self):
        with pytest.raises(BadInput, match=r"^y\.npy .*: 1 value\(s\), the first \(inf\) in row 21, column v\."):
            self.check(self.pairing(Y=[(1, 1), (2, 1)]), ("u", "v"))

    def test_ids_and_whole_numbers(self):
        pairing = Pairing(np.array([[1], [2]]), np.array([[np.nan], [0.0]]), np.arange(2), np.array(["ada", "bob"]))
        with pytest.raises(BadInput, match=r"\(nan\) in id ada, column 0"):
            self.check(pairing, keys=np.array(["ada", "bob"]))


class TestOutputs:
    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ({"output": Path("-"), "as_json": True}, "both print to standard output"),
            ({"output": Path("a.png")}, "would hold a picture"),
            ({"report": Path("a.pdf")}, "which is HTML"),
            ({"output": Path("a.html"), "report": Path("a.html")}, r"ends in '\.html'"),
            (
                {"output": Path("a.npy"), "others": (Output("-t", "Matrix", Path("sub/../a.npy"), never),)},
                "-t and -o would both write a.npy",
            ),
        ],
    )
    def test_what_cannot_be_written_is_said_before(self, given, reason):
        with pytest.raises((BadInput, ValueError), match=reason):
            job(**given).check_outputs()

    def test_what_can(self, folder):
        job(Path("-"), Path("page.html")).check_outputs()
        job(Path("pairs.json"), as_json=True).check_outputs()
        job(Path("mask.npy"), None, others=(Output("-t", "Matrix", Path("t.txt"), never),)).check_outputs()
        assert list(folder.iterdir()) == []


class TestWhoseFault:
    """Errors and warnings of the library have fields; the command line puts its own names there."""

    @pytest.mark.parametrize(
        ("error", "sentence"),
        [
            (ParameterError("X", "is constant."), "a.csv is constant."),
            (ParameterError("y", "is 1.", before="The largest value of "), "The largest value of b.npz:y is 1."),
            (ParameterError("inlier_fraction", "must be above 0."), "--inlier-fraction must be above 0."),
            (ParameterError("n_splits", "=9 is too many."), "--splits=9 is too many."),
            (ParameterError("scale", "must be 1."), "scale must be 1."),  # no option of this command
        ],
    )
    def test_files_and_options_are_named(self, error, sentence):
        with pytest.raises(BadInput) as caught, job().noting():
            raise error
        assert caught.value.message == sentence

    def test_warnings_become_notes(self):
        noted = job()
        with noted.noting():
            for _ in range(2):
                warnings.warn(ParameterWarning("X", "has a column that says nothing."), stacklevel=1)
            warnings.warn("Two pages.", UserWarning, stacklevel=1)
        assert noted.notes == ["a.csv has a column that says nothing.", "Two pages."]

    def test_notes_are_kept_when_it_fails(self):
        def fail():
            warnings.warn("Two pages.", UserWarning, stacklevel=1)
            raise KeyError

        noted = job()
        with pytest.raises(KeyError), noted.noting():
            fail()
        assert noted.notes == ["Two pages."]

    @pytest.mark.parametrize("kind", [ParameterError, ParameterWarning])
    def test_fields_survive_another_process(self, kind):
        again = pickle.loads(pickle.dumps(kind("alpha", "must be small.", before="Here ")))
        assert (again.parameter, again.reason, str(again)) == ("alpha", "must be small.", "Here alpha must be small.")


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ValueError("a is wrong."), 2, "a is wrong."),
        (ImportError("b is absent."), 2, "b is absent."),
        (OSError(28, "No space left on device", "c.csv"), 2, "c.csv could not be written or read: No space left"),
        (MemoryError(), 2, "not enough memory"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_how_a_command_ends(error, code, sentence):
    with pytest.raises((BadInput, SystemExit)) as caught, answering():
        raise error
    ended = caught.value
    assert (ended.exit_code if isinstance(ended, BadInput) else ended.code) == code
    assert sentence in str(ended)
