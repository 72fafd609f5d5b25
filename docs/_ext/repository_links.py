"""Links of pages that are read in the repository, too: what they point at there, they point at here.

`../SECURITY.md` is a page of the site, an example its page in the gallery; `../benchmarks/results/peers.txt` and other
files that are no pages can be downloaded from it; and what the README calls `docs/method.md` is `method.md` here.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
PAGES = {  # pages that live outside docs/
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security.md",
}
INCLUDED = re.compile(r"^```\{include\} (\.\./[\w./-]+\.md)\n```$", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def target_of(link: str, home: Path, page: Path) -> str:
    """Where a link of the file ``home`` leads, seen from the page of the site that shows it."""
    found = Path(os.path.normpath(home.parent / link))
    if not found.exists():
        return link  # Sphinx says so
    name = found.relative_to(ROOT).as_posix() if found.is_relative_to(ROOT) else ""
    if found.is_dir():
        return os.path.relpath(DOCS / "benchmarks.md", page.parent) if name.startswith("benchmarks") else link
    aim = DOCS / PAGES[name] if name in PAGES else found
    if found.parent == ROOT / "examples" and found.suffix == ".py":
        aim = DOCS / "gallery" / f"{found.stem}.rst"
    return os.path.relpath(aim, page.parent)


def rewrite(text: str, home: Path, page: Path) -> str:
    """Put the targets into a text."""
    return LINK.sub(lambda match: target_of(match[1], home, page) + (match[2] or ""), text)


def on_page(app: Any, docname: str, source: list[str]) -> None:
    """Rewrite the links of a page as it is read."""
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".md":
        return
    text = rewrite(source[0], path, path)
    for match in INCLUDED.finditer(text):
        home = Path(os.path.normpath(path.parent / match[1]))
        app.env.note_dependency(str(home))
        text = text.replace(match[0], rewrite(home.read_text(), home, path))
    source[0] = text


def setup(app: Any) -> dict[str, bool]:
    """Listen for pages."""
    app.connect("source-read", on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
