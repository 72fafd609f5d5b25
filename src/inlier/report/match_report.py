"""The page of a match: the answer, the evidence, the pairs to look at, and how to get it again."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.io import write_file
from inlier.report.charts import q_chart, score_chart
from inlier.report.match_summary import DOUBTFUL, VERDICTS, MatchSummary
from inlier.report.page import Part, render_page
from inlier.report.versions import versions

_ALL_SHOWN = 1_000  # pairs up to which the table holds all of them
_WORST, _NEAREST = 500, 500  # otherwise so many of the worst, and of those nearest to the cut
_ROWS_AT_ONCE = 20
_DIGITS = 6
_QUESTION = "Which pairs are real?"
_SHOWN = {"key": "pair", "row": "row", "source": "source", "target": "target", "residual": "residual"} | {
    "score": "score",
    "q_value": "q-value",
}  # columns of the table, and their headings


class MatchReport:
    """A report that can be looked at in a notebook, read by programs, or written to a file.

    Parameters
    ----------
    summary : MatchSummary
        From `summarise`.

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=0.6, noise=0.1, rng=0)
    >>> report = CalibratedMatcher(random_state=0).fit(data.X, data.Y).report()
    >>> report
    <MatchReport: 300 of 500 pairs are real, with at most 1 % wrong among them.>
    >>> "300 of 500 pairs are real" in report.html()
    True
    """

    def __init__(self, summary: MatchSummary) -> None:
        self.summary = summary

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary.answer}>"

    def html(self) -> str:
        """Return the page as one text that needs nothing else."""
        return render_page(_QUESTION, match_parts(self.summary))

    def json(self, indent: int | None = None) -> str:
        """Return the summary and all pairs as JSON."""
        return self.summary.json(indent)

    def write_html(self, path: str | Path) -> None:
        """Write the page to a file."""
        write_file(Path(path), self.html())

    def _repr_html_(self) -> str:
        """Show the page in a frame of its own, so that its style and the notebook's do not meet."""
        return (
            f'<iframe title="inlier report" style="width: 100%; height: 42rem; border: 1px solid #8884" '
            f'sandbox="allow-scripts" srcdoc="{html.escape(self.html())}"></iframe>'
        )


def match_parts(summary: MatchSummary) -> list[Part]:
    """List the sections of the page, in order."""
    charts = [score_chart(summary), q_chart(summary)]
    return [Part("answer.html", answer(summary, _QUESTION)), *evidence_parts(summary, charts, _explanation(summary))]


def evidence_parts(summary: MatchSummary, charts: Sequence[dict[str, Any] | None], explanation: str) -> list[Part]:
    """List the sections in which every page of pairs ends: the evidence, the pairs to look at, how it was made."""
    drawn = [chart for chart in charts if chart is not None]
    return [
        Part("charts.html", {"charts": drawn, "explanation": explanation}),
        Part("pairs.html", _pairs_table(summary), script="pairs.js"),
        Part("settings.html", settings(summary)),
    ]


def _explanation(summary: MatchSummary) -> str:
    if summary.alpha is None:
        return (
            "A pair's score is how well it agrees with all the others about who is near whom. The paper's methods cut "
            "the scores in two; they do not say how many pairs above the cut are wrong."
        )
    return (
        f"A wrong pair scores as a re-paired one does, x of one pair with y of another{tried(summary)}, unless the "
        f"wrong ones agree with each other. What scores higher is no accident."
    )


def tried(summary: MatchSummary) -> str:
    """How many re-pairings there were, in brackets."""
    return f" ({summary.n_re_pairings:,} of them were tried)" if summary.n_re_pairings else ""


def answer(summary: MatchSummary, question: str) -> dict[str, Any]:
    """What the head of the page says."""
    counts = {name: count for name, count in summary.counts.items() if count}
    return {
        "question": question,
        "sources": summary.origin.sources,
        "answer": summary.answer,
        "details": summary.details,
        "notes": summary.origin.notes,
        "n_pairs": summary.result.n_pairs,
        "counts": counts,
    }


def _pairs_table(summary: MatchSummary) -> dict[str, Any]:
    """Rows for the table: all pairs of a small set; of a large one the worst, and those nearest to the cut."""
    places = shown_pairs(summary)
    columns = summary.columns()
    names = [name for name in _SHOWN if name in columns]
    sort = {"score": "ascending"} if "score" in columns else {"residual": "descending"}
    values = [_short(columns[name][places]) for name in names]
    verdicts = [VERDICTS[code] for code in summary.verdicts[places]]
    return {
        "columns": [
            *({"name": _SHOWN[name], "is_text": name == "key", "sorted": sort.get(name)} for name in names),
            {"name": "verdict", "is_text": True, "sorted": None},
        ],
        "which": "those with the lowest scores" if "score" in columns else "those with the largest residuals",
        "rows": [list(row) for row in zip(*values, verdicts, strict=True)],
        "n_pairs": summary.result.n_pairs,
        "n_doubtful": summary.counts[DOUBTFUL],
        "rows_at_once": _ROWS_AT_ONCE,
        "verdicts": VERDICTS if summary.alpha is not None else [VERDICTS[0], VERDICTS[2]],
    }


def shown_pairs(summary: MatchSummary) -> Array:
    """Places of the pairs that the table holds, the worst first."""
    scores = summary.result.scores
    if scores.size <= _ALL_SHOWN:
        return summary.result.worst(scores.size)
    order = np.argsort(scores, kind="stable")
    cut = int(np.searchsorted(scores[order], float(np.min(summary.result.threshold))))
    near = order[max(cut - _NEAREST // 2, 0) : cut + _NEAREST // 2]
    chosen = np.zeros(scores.size, dtype=bool)
    chosen[order[:_WORST]] = chosen[near] = True
    return order[chosen[order]]


def _short(values: Array) -> list[Any]:
    """Numbers with as many digits as anyone reads, to keep the page small."""
    if values.dtype.kind != "f":
        return values.tolist()
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def settings(summary: MatchSummary) -> dict[str, Any]:
    """How the page was made."""
    return {
        "settings": {"method": summary.method, **summary.settings},
        "versions": versions(),
        "command": summary.origin.command,
    }
