"""A page with every public name of tests/public_names.txt: none is left out, whatever the reference lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
SNAPSHOT = DOCS.parent / "tests" / "public_names.txt"
HEAD = """# All names

Every public name, one after another. What is not here may change without a word.
"""


def public_names() -> list[str]:
    """Classes and functions, with the module that they are imported from."""
    lines = [line for line in SNAPSHOT.read_text().splitlines() if not line.startswith((" ", "module ", "fitted "))]
    return [line.removeprefix("class ").partition("(")[0] for line in lines]


def listed_in(page: str) -> set[str]:
    """Names that the tables of a page list, and give a page of their own."""
    found, module = set(), ""
    for line in page.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.removeprefix(".. currentmodule:: ")
        elif re.fullmatch(r"   [A-Za-z]\w*", line):
            found.add(f"{module}.{line.strip()}")
    return found


def table(names: list[str], options: str = "") -> str:
    """A table with a line for each name."""
    lines = "\n".join(f"   {name}" for name in names)
    return f"\n```{{eval-rst}}\n.. autosummary::\n{options}\n{lines}\n```\n" if names else ""


def write_page(app: Any, config: Any) -> None:
    """Write the page; names that no table lists get their own pages from here."""
    names, listed = public_names(), listed_in((DOCS / "api" / "index.md").read_text())
    known = [name for name in names if name in listed]
    others = [name for name in names if name not in listed]
    text = HEAD + table(known) + table(others, "   :toctree: generated\n")
    path = DOCS / "api" / "all.md"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app: Any) -> dict[str, bool]:
    """Write the page before pages are looked for."""
    app.connect("config-inited", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
