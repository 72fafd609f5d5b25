"""What a release is made of: workflows, templates and recipe by their schemas; one version, one list of needs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = (ROOT / "conda" / "recipe.yaml").read_text()


def test_workflows_templates_and_recipe_are_valid():
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed (extra release)")
    pytest.importorskip("rattler_build", reason="py-rattler-build is not installed (extra release)")
    command = [sys.executable, str(ROOT / "tools" / "check_package_files.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_is_the_same_everywhere():
    version = PROJECT["version"]
    assert f'version: "{version}"' in RECIPE
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_conda_asks_for_what_pip_asks_for():
    needed = {re.sub(r"\s", "", line) for line in re.findall(r"^    - (.*)$", RECIPE, re.MULTILINE)}
    assert set(PROJECT["dependencies"]) <= needed
    extras = [need for extra in ("io", "report") for need in PROJECT["optional-dependencies"][extra]]
    named = {re.split(r"[<>=]", need)[0]: need for need in extras}
    wanted = {need for need in needed if re.split(r"[<>=]", need)[0] in named}
    assert wanted == {named[re.split(r"[<>=]", need)[0]] for need in wanted}  # of the extras, the same versions


def test_every_python_from_the_oldest_to_the_newest_is_named_and_tested():
    versions = re.findall(r":: 3\.(\d+)", "\n".join(PROJECT["classifiers"]))
    assert versions == [str(minor) for minor in range(int(versions[0]), int(versions[-1]) + 1)]
    assert PROJECT["requires-python"] == f">=3.{versions[0]}"
    tests = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert f'python: ["3.{versions[0]}", "3.{versions[-1]}"]' in tests


def test_workflows_call_targets_that_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {
        target
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for target in re.findall(r"run: make ([\w-]+)", path.read_text())
    }
    assert called
    assert called <= targets


def test_releasing_takes_eight_lines():
    lines = (ROOT / "RELEASING.md").read_text().splitlines()
    assert [line[0] for line in lines if line[:1].isdigit()] == list("12345678")


@pytest.mark.parametrize(
    ("package", "lowest"), [("scipy", (1, 15, 2)), ("zarr", (3, 1)), ("click", (8, 2)), ("numcodecs", (0, 16, 6))]
)
def test_versions_that_are_known_to_fail_are_not_allowed(package, lowest):
    """R4: below these a registration, an output to zarr or the tests failed; numcodecs unpickled what it was given."""
    needed = [
        *PROJECT["dependencies"],
        *(need for needs in PROJECT["optional-dependencies"].values() for need in needs),
    ]
    floors = [re.fullmatch(rf"{package}(?:\[\w+\])?>=([\d.]+)", need) for need in needed]
    found = [tuple(map(int, floor[1].split("."))) for floor in floors if floor]
    assert found
    assert min(found) >= lowest
