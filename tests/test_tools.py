"""The tools that keep pages honest: which results are older than their code, and which links lead nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"


@pytest.fixture(autouse=True)
def _tools_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))


def git(folder, *words):
    who = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    """Results of a benchmark, the code it speaks of, another benchmark that the index does not know, and a page."""
    texts = {
        "benchmarks/results/index.toml": '[a]\ncommand = "python a.py"\nfiles = ["a.txt"]\ncode = ["src/inlier/rows"]',
        "benchmarks/results/a.txt": "1\n",
        "benchmarks/results/b.txt": "python benchmarks/b.py --fast\n2\n",
        "src/inlier/rows/x.py": "",
        "src/inlier/io/y.py": "",
        "docs/page.md": "[numbers](../benchmarks/results/a.txt)",
        "README.md": "nothing",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def change(folder, name):
    (folder / name).write_text("changed\n")
    git(folder, "commit", "-q", "-a", "-m", f"change {name}")


def test_results_are_older_once_their_code_has_changed_and_not_before(checkout):
    from check_results import pages_that_show, results

    a, b = results(checkout)
    assert not a.is_older
    assert not b.is_older
    assert b.command == "python benchmarks/b.py --fast"
    change(checkout, "src/inlier/io/y.py")
    a, b = results(checkout)
    assert not a.is_older  # it does not speak of io
    assert b.is_older  # nobody said what it speaks of
    change(checkout, "src/inlier/rows/x.py")
    a, _ = results(checkout)
    assert a.later_changes == 1
    assert "has changed once since" in a.provenance
    assert pages_that_show("a.txt", checkout) == ["docs/page.md"]
    change(checkout, "benchmarks/results/a.txt")
    assert not results(checkout)[0].is_older


def test_results_without_a_repository_are_of_no_known_commit(checkout):
    import shutil

    from check_results import results

    shutil.rmtree(checkout / ".git")
    assert results(checkout)[0].provenance == "Printed by `python a.py`, not committed yet."


def made(checkout, *words):
    return subprocess.run(
        [sys.executable, str(TOOLS / "make_results.py"), "--root", str(checkout), *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_results_are_made_again_by_one_command_and_a_failed_one_leaves_the_old_file(checkout):
    results = checkout / "benchmarks" / "results"
    entry = '[{0}]\nfiles = ["{0}.txt"]\nrun = {1}\ncode = ["src/inlier/rows"]\n'
    runs = {"a": '["a.py --jobs {jobs}", "a.py twice"]', "b": '["b.py"]', "c": '["a.py"]\nneeds = ["gpu"]'}
    (results / "index.toml").write_text("".join(entry.format(*run) for run in runs.items()))
    (checkout / "benchmarks" / "a.py").write_text("import sys; print('said', sys.argv[1:])")
    (checkout / "benchmarks" / "b.py").write_text("print(1); raise SystemExit('no luck')")
    plan = made(checkout, "--plan")
    assert plan.returncode == 0
    assert "python benchmarks/a.py --jobs 2" in plan.stdout
    assert "c.txt  left out, needs gpu" in plan.stdout
    assert (results / "a.txt").read_text() == "1\n"  # a plan runs nothing
    done = made(checkout, "--jobs", "3")
    assert done.returncode == 1
    assert "failed (1): python benchmarks/b.py: no luck" in done.stdout
    assert (results / "b.txt").read_text().endswith("2\n")
    parts = [
        "$ python benchmarks/a.py --jobs 3\n\nsaid ['--jobs', '3']\n",
        "$ python benchmarks/a.py twice\n\nsaid ['twice']\n",
    ]
    assert (results / "a.txt").read_text() == "\n".join(parts)
    assert "3 at a time  python benchmarks/a.py" in made(checkout, "--plan", "--only", "a.txt").stdout  # what it took


def test_every_file_of_results_can_be_made_again_by_what_the_index_says():
    from check_results import COSTS, entries

    folder = TOOLS.parent / "benchmarks" / "results"
    named = {file for entry in entries().values() if entry.get("run") for file in entry["files"]}
    there = {path.name for path in folder.iterdir()} - {"index.toml", COSTS}
    assert there - named == set()
    code = [path for entry in entries().values() for path in entry["code"]]
    scripts = [f"benchmarks/{command.split()[0]}" for entry in entries().values() for command in entry.get("run", ())]
    assert [path for path in code + scripts if not (TOOLS.parent / path).exists()] == []


def blocks_of(page):
    """The fenced blocks of a page that name no language."""
    block, opened = [], None
    for line in page.read_text().splitlines():
        if not line.startswith("```"):
            block.append(line)
        elif opened is None:
            block, opened = [], line
        else:
            if opened == "```":
                yield block
            opened = None


def test_what_pages_quote_of_results_is_what_the_results_say():
    root = TOOLS.parent
    results = {path.name: path.read_text().splitlines() for path in (root / "benchmarks" / "results").glob("*.txt")}
    n_quoted = 0
    for page in (root / "README.md", *(root / "docs").glob("*.md")):
        for block in blocks_of(page):
            source = next((name for name, lines in results.items() if block[0].strip() and block[0] in lines), None)
            if source:
                n_quoted += 1
                assert [line for line in block if line not in results[source]] == [], f"{page.name} and {source}"
    assert n_quoted >= 4


def test_links_that_lead_nowhere_are_named(tmp_path):
    from check_links import broken_links

    (tmp_path / "index.html").write_text(
        '<h1 id="top-of-it">a</h1><a href="#top-of-it">1</a><a href="b.html#part">2</a><a href="b.html#none">3</a>'
        '<a href="gone.html">4</a><img src="gone.png"><a href="https://elsewhere.example">5</a><a href="sub/">6</a>'
    )
    (tmp_path / "b.html").write_text('<p id="part">b</p>')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text('<a href="../index.html">up</a>')
    broken, followed = broken_links(tmp_path)
    assert followed == 7
    assert [sentence.split()[1] for sentence in broken] == ["b.html#none", "gone.html", "gone.png"]
