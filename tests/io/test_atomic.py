from __future__ import annotations

from pathlib import Path

import pytest

from inlier.io import write_file, written_beside


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


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError("no room")])
def test_a_full_disk_names_the_file_that_was_asked_for(tmp_path, monkeypatch, error):
    path = tmp_path / "b.txt"
    write_file(path, "old")

    def full(*_):
        raise error

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"(No space left on device|no room).*b\.txt") as caught:
        write_file(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["b.txt"]


def test_a_folder_replaces_a_folder(tmp_path):
    path = tmp_path / "store.zarr"
    for content in ("old", "new"):
        with written_beside(path) as beside:
            beside.mkdir()
            (beside / content).touch()
    assert [p.name for p in path.iterdir()] == ["new"]
    assert [p.name for p in tmp_path.iterdir()] == ["store.zarr"]


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    with pytest.raises(IsADirectoryError) as caught:
        write_file(tmp_path, "content")
    assert caught.value.filename == str(tmp_path)


def test_permissions_are_the_usual_ones(tmp_path):
    (tmp_path / "usual").write_text("")
    write_file(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode
