"""The benchmarks that measure the house itself: what they count, and what they change, on a small one."""

from __future__ import annotations

import ast
import re
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


def test_the_page_of_constants_says_what_the_code_says():
    from constants import PHOTO_ROOMS, ROOMS, find_constants

    package = BENCHMARKS.parent / "src" / "inlier"
    alone = find_constants(package, (*ROOMS, *PHOTO_ROOMS))
    needed = {f"{one.module}.{one.name}": one.text for one in alone if one.module != "images.pictures"}
    needed |= numbers_of(package, "estimators", "calibration")
    known = needed | numbers_of(package, *ROOMS, *PHOTO_ROOMS)
    listed, values = [], []
    for line in (BENCHMARKS.parent / "docs" / "constants.md").read_text().splitlines():
        if line.startswith("| `"):
            names, value = line.strip("| ").split(" | ")[:2]
            first, *others = re.findall(r"[\w.]+", names)
            row = [first, *(f"{first.rpartition('.')[0]}.{name.rpartition('.')[2]}" for name in others)]
            listed += row
            values.append((first, value, ", ".join(known.get(name, "gone") for name in row)))
    assert not needed.keys() - set(listed)
    assert len(listed) == len(set(listed))
    assert [row for row in values if row[1] != row[2]] == []


def numbers_of(package, *rooms):
    """Names in capitals at the top of modules whose value is made of numbers, alone or several in a line."""
    found = {}
    for path in (path for room in rooms for path in (package / room).rglob("*.py")):
        text, module = path.read_text(), ".".join(path.relative_to(package).with_suffix("").parts)
        for node in ast.parse(text).body:
            if not isinstance(node, ast.Assign):
                continue
            (target,), value = node.targets, node.value
            several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            for name, of in zip(target.elts, value.elts, strict=True) if several else [(target, value)]:
                parts = list(ast.walk(of))
                kinds = {type(part.value) for part in parts if isinstance(part, ast.Constant)}
                calls_others = any(isinstance(p, ast.Call) and isinstance(p.func, ast.Name) for p in parts)
                if getattr(name, "id", "").isupper() and kinds and kinds <= {int, float} and not calls_others:
                    found[f"{module}.{name.id}"] = ast.get_source_segment(text, of)
    return found
