"""A page is a list of parts; each part is a template and what it shows. New kinds of pages are new lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inlier.report.templates_of import template


@dataclass(frozen=True)
class Part:
    """One section of a page.

    Attributes
    ----------
    template : str
        File in ``templates/parts``; it finds ``data`` under that name.
    data : mapping
        What it shows; all text in it is escaped.
    script : str, optional
        File in ``templates`` with the part's JavaScript; included once however many parts need it.
    """

    template: str
    data: Mapping[str, Any]
    script: str | None = None


def render_page(title: str, parts: Sequence[Part]) -> str:
    """Render one HTML page that needs nothing else and asks for nothing."""
    scripts = list(dict.fromkeys(part.script for part in parts if part.script is not None))
    return str(template("page.html").render(title=title, parts=parts, scripts=scripts))
