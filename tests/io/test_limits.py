from __future__ import annotations

import os
import subprocess
import sys

import pytest

from inlier.io import UnusableFileError, limits


@pytest.fixture
def group(tmp_path, monkeypatch):
    """A folder in place of the control groups, and a machine of 64 GiB without other limits."""
    monkeypatch.setattr(limits, "_CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(limits, "_limits_of_process", list)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**24}.__getitem__)
    monkeypatch.delenv(limits.VARIABLE, raising=False)
    return tmp_path


def test_the_memory_of_the_machine(group):
    assert limits.memory_allowed() == 64 * limits.GIB
    assert limits.most_unpacked_bytes() == 32 * limits.GIB


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_container_may_have_less(group, name):
    (group / name).parent.mkdir(exist_ok=True)
    (group / name).write_text("123456\n")
    assert limits.memory_allowed() == 123456
    (group / name).write_text("max\n")
    assert limits.memory_allowed() == 64 * limits.GIB


@pytest.mark.parametrize(
    ("line", "place"),
    [("0::/job/step", "job/step/memory.max"), ("4:cpu,memory:/job", "memory/job/memory.limit_in_bytes")],
)
def test_the_group_of_this_process_counts(group, monkeypatch, line, place):
    (group / place).parent.mkdir(parents=True)
    (group / place).write_text("5000")
    read = limits._text
    monkeypatch.setattr(limits, "_text", lambda path: line if str(path) == "/proc/self/cgroup" else read(path))
    assert limits.memory_allowed() == 5000


def test_a_machine_that_does_not_say(group, monkeypatch):
    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown)
    assert limits.memory_allowed() == 8 * limits.GIB


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
def test_a_limit_of_the_process_counts():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (3 * 2**30,) * 2);"
        "from inlier.io.limits import memory_allowed; print(memory_allowed())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 3 * 2**30


def test_the_environment_decides(group, monkeypatch):
    monkeypatch.setenv("SOME_LIMIT", "0.5")
    assert limits.bytes_set_by("SOME_LIMIT", 7) == limits.GIB // 2
    assert limits.bytes_set_by("ANOTHER", 7) == 7
    for value in ("much", "inf", "nan"):
        monkeypatch.setenv("SOME_LIMIT", value)
        with pytest.raises(UnusableFileError, match=f"SOME_LIMIT must be a number of GiB; it is '{value}'"):
            limits.bytes_set_by("SOME_LIMIT", 7)


def test_what_is_let_through(group, tmp_path, monkeypatch):
    path = tmp_path / "small.npz"
    path.write_bytes(bytes(2048))
    monkeypatch.setenv(limits.VARIABLE, str(1 / 1024))  # a MiB
    limits.check_unpacked_size(path, 2**20, "copy it")
    with pytest.raises(UnusableFileError) as caught:
        limits.check_unpacked_size(path, 3 * 2**20 // 2, "copy it")
    sentence = str(caught.value)
    for fact in (str(path), "2.0 KiB on disk", "1.5 MiB", "limit of 1.0 MiB", "copy it", limits.VARIABLE):
        assert fact in sentence
