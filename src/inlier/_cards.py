"""What notebooks show of results: a sentence, a bar, a small table; readable on light and on dark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_REAL, _OTHERS = "#0072B2", "#8886"  # as in all pictures; of the others nothing is said
_CELL = "padding: .15rem .7rem; text-align: right; background: none; border-bottom: 1px solid #8884"


def card(
    title: str,
    sentences: Iterable[str],
    rows: Sequence[Mapping[str, Any]] = (),
    share: float | None = None,
    *,
    headings: bool = True,
) -> str:
    """Return a fragment of HTML for ``_repr_html_``; all text is escaped."""
    parts = [f'<div style="font-weight: 600">{escape(title)}</div>']
    if share is not None:
        ends = f"background: linear-gradient(to right, {_REAL} {share:.2%}, {_OTHERS} {share:.2%})"
        parts.append(f'<div style="height: 8px; max-width: 24rem; border-radius: 4px; margin: .35rem 0; {ends}"></div>')
    parts += [f"<div>{escape(sentence)}</div>" for sentence in sentences]
    if rows:
        lines = ["".join(f'<td style="{_CELL}">{escape(shown(value))}</td>' for value in row.values()) for row in rows]
        if headings:
            names = "".join(f'<th style="{_CELL}; font-weight: 600">{escape(name)}</th>' for name in rows[0])
            lines.insert(0, names)
        body = "".join(f'<tr style="background: none">{line}</tr>' for line in lines)
        style = "border-collapse: collapse; margin: .4rem 0; font-variant-numeric: tabular-nums"
        parts.append(f'<table style="{style}">{body}</table>')
    return f'<div class="inlier-card" style="font-size: .95em; line-height: 1.5">{"".join(parts)}</div>'


def shown(value: Any) -> str:
    """A cell: numbers with as many digits as anyone reads."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
