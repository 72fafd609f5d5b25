"""The benchmarks that measure the house itself: what they count, and what they change, on a small one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def package(tmp_path):
    """Three modules in a chain, one of them a leaf that is imported in a function only."""
    texts = {
        "__init__.py": "",
        "rows/__init__.py": "",
        "rows/low.py": "_SIZE = 2**4  # why\nNAME = 'x'\n_RATE: float = 0.5\n\n\ndef f():\n    pass\n",
        "rows/high.py": "from inlier.rows.low import _SIZE\n\n_ONE = 1\n\n\nclass A:\n    pass\n",
        "cli/top.py": "from inlier.rows import high\n\nWIDTH = 80\n\n\ndef g():\n    import inlier.cli.other\n",
        "cli/other.py": "from inlier.cli import top\n",
    }
    folder = tmp_path / "src" / "inlier"
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_house_is_measured(package):
    from traces import measure_house

    house = measure_house(package)
    assert house["Python files"] == 6
    assert house["lines"] == 7 + 7 + 7 + 1
    assert house["longest import chain"] == 4  # other, top, high, low
    assert (house["classes"], house["functions"]) == (1, 2)
    assert (house["numeric knobs"], house["numeric knobs of the core"]) == (4, 3)
    assert house["layers of the import contract"] == 0  # no contract


def test_a_constant_is_changed_as_text_and_changed_back(package, tmp_path, monkeypatch):
    from constants import ROOMS, Copy, find_constants

    found = {constant.name: constant for constant in find_constants(package, ROOMS)}
    assert list(found) == ["_ONE", "_SIZE", "_RATE"]
    assert [found["_SIZE"].times(0.5), found["_RATE"].times(2.0), found["_ONE"].times(0.5)] == [8, 1.0, 0]
    copy = Copy(package, tmp_path / "copy", ["--draws", "1"])
    seen = []
    monkeypatch.setattr(Copy, "figures", lambda self, cache: seen.append((self.package / "rows/low.py").read_text()))
    before = (copy.package / "rows/low.py").stat().st_mtime_ns
    copy.figures_with(found["_SIZE"], 8)
    copy.figures_with(found["_RATE"], 1.0)
    assert "_SIZE = 8  # why\n" in seen[0]
    assert "_RATE: float = 1.0\n" in seen[1]
    assert "_SIZE = 2**4" in seen[1]
    assert (copy.package / "rows/low.py").read_text() == (package / "rows/low.py").read_text()
    assert (copy.package / "rows/low.py").stat().st_mtime_ns == before  # or compiled code would be made anew


def test_changes_of_figures_are_told():
    from constants import difference

    before = {"motions found": 12, "recall": 0.7, "time, row sums": 2.0}
    assert difference(before, dict(before)) == "no change"
    assert difference(before, None) == "fails"
    after = {"motions found": 12, "recall": 0.65, "time, row sums": 4.0}
    assert difference(before, after) == "recall 0.7 -> 0.65; time, row sums x 2.00"


def test_the_page_of_constants_is_what_its_command_prints():
    from constants import MEASURED, PAGE, page

    printed = page(BENCHMARKS.parent / "src" / "inlier", json.loads(MEASURED.read_text()))
    assert PAGE.read_text() == printed, "write it again: python benchmarks/constants.py --page"


def test_constants_are_shown_with_their_comments_and_what_was_measured_of_their_values(tmp_path, monkeypatch):
    import constants

    text = (
        "_A, _WIDE = 3, 0.5  # rows; of them\n"
        "# Why it\n# is so.\n_GRID = (1, 2)\nNAME = 'x'\n_AT_ONCE = 7\n"
        "_B = np.array(\n    [1.0, 2.0]\n)  # a|b\n_OF = (_A,) * 2\n_D = other(3)\n"
    )
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "low.py").write_text(text)
    monkeypatch.setattr(constants, "ON_THE_PAGE", {"rows": "Set by hand."})
    run = {"commit": "abc", "command": "do", "as it is": "recall 1"}
    of_a, stale = ({"value": value, "halved": "no change", "doubled": "fails", "run": "r"} for value in ("3", "0.4"))
    measured = {"runs": {"r": run}, "constants": {"rows.low._A": of_a, "rows.low._WIDE": stale}}
    page = constants.page(tmp_path, measured)
    assert "- Measured with the code of commit abc: `do`. As it is: recall 1." in page
    assert page.endswith(
        "## rows\n\n5 constants. Set by hand.\n\n"
        "constant | value | what and why | halved | doubled\n--- | --- | --- | --- | ---\n"
        "`low._A`, `low._WIDE` | `3, 0.5` | rows; of them | no change | fails\n"
        "`low._GRID` | `(1, 2)` | Why it is so.\n"
        "`low._B` | `np.array( [1.0, 2.0] )` | a\\|b\n"
        "`low._OF` | `(_A,) * 2` | -\n"
    )


def test_constants_that_share_a_line_are_changed_one_by_one(tmp_path, monkeypatch):
    from constants import Copy, find_constants

    package = tmp_path / "src" / "inlier"
    (package / "rows").mkdir(parents=True)
    (package / "rows" / "low.py").write_text("_A, _B = 3, 3  # \u00e9\n")
    copy, seen = Copy(package, tmp_path / "copy", []), []
    monkeypatch.setattr(Copy, "figures", lambda self, cache: seen.append((self.package / "rows/low.py").read_text()))
    for constant in find_constants(package, ("rows",)):
        copy.figures_with(constant, 6)
    assert seen == ["_A, _B = 6, 3  # \u00e9\n", "_A, _B = 3, 6  # \u00e9\n"]
