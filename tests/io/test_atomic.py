from __future__ import annotations

from pathlib import Path

import pytest

from inlier.io import write_file


def test_folders_are_made_and_content_replaced(tmp_path):
    path = tmp_path / "a" / "b.txt"
    write_file(path, "old")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in path.parent.iterdir()] == ["b.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "b.txt"
    write_file(path, "old")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["b.txt"]


def test_permissions_are_the_usual_ones(tmp_path):
    (tmp_path / "usual").write_text("")
    write_file(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode
