"""Check the workflows, the templates, the citation and the conda recipe by their schemas.

python tools/check_package_files.py

The schemas come with check-jsonschema and py-rattler-build (extra "release"); nothing is fetched.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "custom.github-workflows-require-timeout": ".github/workflows/*.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.dependabot": ".github/dependabot.yml",
    "vendor.citation-file-format": "CITATION.cff",
}


def check_schemas() -> None:
    """Compare each file with the schema of its kind."""
    for schema, pattern in SCHEMAS.items():
        files = [str(path) for path in sorted(ROOT.glob(pattern))]
        if not files:
            raise SystemExit(f"No file is named like {pattern}.")
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
        command += ["--default-filetype", "yaml", *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{schema}: {done.stdout}{done.stderr}")
        print(f"{schema}: {len(files)} valid")


def check_recipe() -> None:
    """Let the program that conda-forge builds with parse and render the recipe."""
    from rattler_build import Stage0Recipe

    variants = Stage0Recipe.from_file(str(ROOT / "conda" / "recipe.yaml")).render()
    print(f"conda/recipe.yaml: {len(variants)} package to build")


if __name__ == "__main__":
    check_schemas()
    check_recipe()
