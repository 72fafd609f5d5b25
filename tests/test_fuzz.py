"""The fuzzer notices what it is there for, and what it ever found is answered as it should be."""

from __future__ import annotations

import ast
import os
import re
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fuzz.__main__ import CORPUS, Reader, Run, bytes_damaged, headers_made_up
from fuzz.mutations import damaged, payload_for, rearranged
from fuzz.seeds import make_seeds

from inlier.io import FORMATS, UnusableFileError, open_stored, read_photo, read_table

TESTS = Path(__file__).parent
FAKE = """
import os, time
from pathlib import Path
class UnusableFileError(ValueError): pass
def open_stored(path): return None
read_photo = open_stored
def read_table(path, **_):
    word = Path(path).read_text()
    if word == "raise": raise KeyError("no")
    if word == "refuse": raise UnusableFileError("one line")
    if word == "speak": raise UnusableFileError("two\\nlines")
    if word == "hang": time.sleep(60)
    if word == "die": os.abort()
    if word == "take": bytearray(b"x") * 500_000_000
    if word == "change": Path(path).write_text("changed")
    if word == "touch": Path(path).with_name("canary").touch()
    return 3
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run against readers that do whatever the file says."""
    (tmp_path / "fake" / "inlier").mkdir(parents=True)
    (tmp_path / "fake" / "inlier" / "__init__.py").touch()
    (tmp_path / "fake" / "inlier" / "io.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'fake'}{os.pathsep}{Path(__file__).parents[1]}")
    monkeypatch.setattr("fuzz.__main__.WAITING", 5.0)
    monkeypatch.setattr("fuzz.__main__._SPARE_MIB", 64)
    monkeypatch.setattr("fuzz.__main__.CORPUS", tmp_path / "corpus")
    (tmp_path / "corpus").mkdir()
    run = Run(tmp_path, time.monotonic() + 100)
    yield run
    run.reader.close()


def test_the_fuzzer_notices(run, tmp_path, capsys):
    for word in ("fine", "refuse", "raise", "speak", "die", "hang", "take", "change", "touch"):
        run.attack(".txt", lambda path, word=word: path.write_text(word))
    assert run.outcomes == {"read": 1, "refused": 1, "FAILED": 7}
    said = capsys.readouterr().out
    for what in (
        "KeyError",
        "several lines",
        "died with -6",
        "no answer in 5 s",
        "MiB of memory",
        "was changed",
        "CODE",
    ):
        assert what in said
    assert len(list((tmp_path / "corpus").iterdir())) == 7


def test_seeds_are_sound_and_of_every_format(tmp_path):
    seeds = make_seeds(tmp_path)
    suffixes = {suffix for format in FORMATS for suffix in format.suffixes}
    assert suffixes <= {"".join(seed.suffixes[-2:]) for seed in seeds} | {seed.suffix for seed in seeds}
    assert len(damaged(b"", np.random.default_rng(0), b"")) < 1000
    assert b"canary" in payload_for(tmp_path / "canary")


def test_pieces_in_disorder():
    rng, content, other = np.random.default_rng(0), b"ply 40 1.5\n" + bytes(range(200)), b"x" * 50
    made = [rearranged(content, other, rng) for _ in range(300)]
    assert all(len(mutant) <= 4 * 1024**2 for mutant in made)
    assert any(mutant.endswith(b"xx") for mutant in made)
    assert any(mutant == content[: len(mutant)] and len(mutant) < len(content) for mutant in made)
    assert any(len(mutant) > 10 * len(content) for mutant in made)
    assert any(str(2**64).encode() in mutant for mutant in made)
    assert len(rearranged(b"", b"", rng)) < 10


def test_some_mutants(tmp_path):
    """A few of those that `make fuzz` makes by the thousand."""
    seeds = make_seeds(tmp_path / "seeds")
    run = Run(tmp_path, time.monotonic() + 60)
    headers_made_up(run, tmp_path / "seeds", 60, 0)
    bytes_damaged(run, seeds, 150, np.random.default_rng(0))
    run.reader.close()
    assert run.n_mutants >= 200
    assert run.outcomes["FAILED"] == 0
    assert run.outcomes["read"] > 10
    assert run.outcomes["refused"] > 10


@pytest.mark.parametrize("path", sorted(CORPUS.glob("[!.]*")), ids=lambda path: path.name)
def test_what_was_found_before(path, monkeypatch):
    """Each file that ever ended in anything else is read, or refused in one sentence, at once."""
    monkeypatch.setenv("INLIER_MAX_UNPACKED", "0.25")
    start = sum(os.times()[:4])  # of work, here and in copies of this process
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for read in (read_table, partial(read_table, key="id"), open_stored, read_photo):
            try:
                read(path)
            except UnusableFileError as error:
                assert "\n" not in str(error)  # noqa: PT017 - some can be read
    assert sum(os.times()[:4]) - start < 10


def test_the_reader_answers(tmp_path):
    reader = Reader()
    np.save(tmp_path / "a.npy", np.ones((5, 2)))
    assert reader.ask("read", tmp_path / "a.npy") == "read"
    reader.close()


def names_in(path):
    """Tests of a file, as pytest names them."""
    body = ast.parse(path.read_text()).body
    found = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    return found | {f"{node.name}::{part.name}" for node in classes for part in node.body if hasattr(part, "name")}


def test_every_hole_that_was_found_has_a_test():
    page = (TESTS.parent / "SECURITY.md").read_text()
    rows = dict(re.findall(r"^\| ([RS]\d+) \| .* \| (.*) \|$", page, re.M))
    assert list(rows) == [*(f"R{number}" for number in range(1, 14)), "S5"]
    for hole, tests in rows.items():
        named = re.findall(r"`([\w/]+\.py)::([\w:]+)`", tests)
        assert named, hole
        for file, name in named:
            assert name in names_in(TESTS / file), (hole, file, name)
