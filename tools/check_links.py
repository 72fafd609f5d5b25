"""Follow every link inside of the built site: pages, anchors, pictures and downloads must be there.

    python tools/check_links.py docs/_build/html

Links that leave the site are not followed: nothing is fetched.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ADDRESSES = {"a": "href", "link": "href", "img": "src", "script": "src"}


class Page(HTMLParser):
    """What a page points at, and what can be pointed at in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an address or an anchor."""
        values = dict(attrs)
        self.anchors |= {values[name] or "" for name in ("id", "name") if name in values}
        if values.get(ADDRESSES.get(tag, "")):
            self.links.append(values[ADDRESSES[tag]] or "")


def broken_links(site: Path) -> tuple[list[str], int]:
    """Sentences about links that lead nowhere, and how many were followed."""
    pages = {
        path.resolve(): Page(path.read_text()) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    }
    broken, followed = [], 0
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            fragment = unquote(parts.fragment)
            if not target.exists():
                broken.append(f"{path.relative_to(site.resolve())}: {link} is not there")
            elif target in pages and fragment not in pages[target].anchors:
                broken.append(f"{path.relative_to(site.resolve())}: {link} names no part of that page")
    return broken, followed


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1], "index.html").exists():
        sys.exit("Give the folder of a built site: python tools/check_links.py docs/_build/html")
    found, number = broken_links(Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{number:,} links inside of the site were followed; {len(found)} lead nowhere.")
    sys.exit(1 if found else 0)
