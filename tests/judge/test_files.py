"""A judge in a file: the same again, and sentences where it is none."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from inlier import CalibratedMatcher, Judge
from inlier.datasets import make_gaussian_pairs
from inlier.exceptions import UnusableFileError


@pytest.fixture(scope="module")
def judge():
    data = make_gaussian_pairs(n=300, d=4, inlier_fraction=0.9, noise=0.2, rng=0)
    return CalibratedMatcher(random_state=0).fit(data.X, data.Y).judge_


@pytest.fixture
def path(judge, tmp_path):
    judge.to_file(tmp_path / "judge.npz")
    return tmp_path / "judge.npz"


def test_it_comes_back_as_it_was(judge, path):
    X, Y = np.random.default_rng(0).normal(size=(2, 50, 4))
    again = Judge.from_file(path)
    for name, column in judge(X, Y).columns().items():
        assert (again(X, Y).columns()[name] == column).all()
    assert again.alpha == judge.alpha
    assert again.n_re_pairings == judge.n_re_pairings
    again.to_file(path)
    assert path.read_bytes()[:2] == b"PK"


def test_nothing_is_pickled(path):
    with np.load(path, allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "uif" for name in stored.files)


def test_what_is_no_judge_is_answered_in_a_sentence(path, tmp_path):
    with pytest.raises(UnusableFileError, match="there is no file"):
        Judge.from_file(tmp_path / "nowhere.npz")
    (tmp_path / "text.npz").write_text("no judge")
    with pytest.raises(UnusableFileError, match=r"text.npz holds no judge. Judge.to_file writes them"):
        Judge.from_file(tmp_path / "text.npz")
    np.savez(tmp_path / "others.npz", x=np.eye(3))
    with pytest.raises(UnusableFileError, match="holds no judge"):
        Judge.from_file(tmp_path / "others.npz")
    np.savez(tmp_path / "objects.npz", facts=np.array([{}], dtype=object))
    with pytest.raises(UnusableFileError, match="could not be read as a judge"):
        Judge.from_file(tmp_path / "objects.npz")
    with pytest.raises(UnusableFileError, match="is a directory"):
        Judge.from_file(tmp_path)


def changed(path, **facts):
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    known = json.loads(arrays.pop("facts").tobytes())
    arrays |= {name: facts.pop(name) for name in list(facts) if name in arrays}
    line = json.dumps(known | facts).encode()
    np.savez(path, facts=np.frombuffer(line, np.uint8), **arrays)
    return path


def test_a_later_version_says_so(path):
    with pytest.raises(UnusableFileError, match="is a judge of version 9, and this program reads up to version 1"):
        Judge.from_file(changed(path, version=9))


@pytest.mark.parametrize(
    "parts",
    [
        {"x_offset": np.zeros(2)},
        {"x_columns": np.array([0, 1, 2, 9], np.int32)},
        {"levels_p": np.ones(1)},
        {"views": [{"kind": "cosine"}]},
        {
            "views": [
                {
                    "kind": "law",
                    "start": 0,
                    "stop": 1,
                    "numbers": [],
                    "constants": [],
                    "weight": 1,
                    "centre": 0,
                    "spread": 1,
                }
            ]
        },
        {"alpha": "much"},
    ],
)
def test_parts_that_do_not_fit_are_refused(path, parts):
    with pytest.raises(UnusableFileError, match="damaged, or something else"):
        Judge.from_file(changed(path, **parts))


def test_damaged_files_are_refused_or_read_as_they_were(judge, path):
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[rng.integers(len(damaged))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged[: rng.integers(1, len(damaged))] if rng.random() < 0.3 else damaged))
        try:
            read = Judge.from_file(path)
        except UnusableFileError:
            continue
        assert read.n_features_in == judge.n_features_in


def test_a_pickle_holds_the_same_bytes(judge):
    assert pickle.loads(pickle.dumps(judge))._packed() == judge._packed()
    rebuild, _ = judge.__reduce__()
    with pytest.raises(UnusableFileError, match="what was pickled holds no judge"):
        rebuild(b"other")
