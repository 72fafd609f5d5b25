"""The pages of a match and of a registration: the answer, the evidence, the pairs to look at, how to get it again."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.estimators._base import PairMatcher
from inlier.estimators.registration import Registration
from inlier.io import write_file
from inlier.repair.answer import Repair
from inlier.report.charts import path_charts, q_chart, residual_chart, score_chart
from inlier.report.match_summary import MatchSummary, summarise, versions
from inlier.report.registration_summary import RegistrationSummary, summarise_registration
from inlier.report.repair_summary import REPAIRED, repair_to_dict, rows_to_check
from inlier.report.tally import VERDICTS
from inlier.report.words import power_of_ten

_ALL_SHOWN = 1_000  # pairs up to which the table holds all of them
_WORST, _NEAREST = 500, 500  # otherwise so many of the worst, and of those nearest to the cut
_ROWS_AT_ONCE = 20
_DIGITS = 6
_REPAIRED_SHOWN = 200  # rows with a wrong partner that are listed
_GAPS_NAMED = 10  # rows that have nobody on the other side
_HOPELESS = -1e6  # scores below are all alike
_LARGEST_MATRIX = 12  # rows and columns that are printed
_WHICH, _HOW = "Which pairs are real?", "How does one set fit onto the other?"
_SHOWN = ("key", "row", "source", "target", "residual", "score", "q_value", "certain", "n_rivals")  # in the table
_HEADINGS = {"key": "pair", "q_value": "q-value", "n_rivals": "others that fit", "why_not": "refused"}
_MINOR = ("certain", "n_rivals", "why_not")  # left out on phones


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
    <MatchReport: 30... of 500 pairs are real, with at most 1 % wrong among them.>
    >>> "of 500 pairs are real" in report.html()
    True
    """

    def __init__(self, summary: MatchSummary) -> None:
        self.summary = summary

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary.answer}>"

    def html(self) -> str:
        """Return the page as one text that needs nothing else."""
        return render_page(_WHICH, _match_parts(self.summary))

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


def _match_parts(summary: MatchSummary) -> list[Part]:
    """List the sections of the page, in order."""
    charts = [score_chart(summary), q_chart(summary)]
    judged_by = "agreement" if summary.alpha is None else "score"
    found = summary.repair
    looked_at = found is not None and np.unique(found.kind == "kept").size == 2  # some accepted, some not
    looked_at &= found is None or not found.slips or rows_to_check(found).size > 0
    repair = [Part("repair.html", _repair_table(found))] if found is not None and looked_at else []
    slips = [Part("slips.html", _slips(found))] if found is not None and found.slips else []
    answer = _answer(summary, _WHICH, summary.details, summary.counts)
    return [answer, *slips, *repair, *_evidence_parts(summary, charts, judged_by)]


def _slips(repair: Repair) -> dict[str, Any]:
    """Slips as sentences, the path of the rows, and what has nobody on the other side."""
    labels = repair.labels or (np.arange(repair.kind.size), np.arange(repair.n_rows_y))
    gaps, extra = np.flatnonzero(repair.partner < 0), repair.left_over
    return {
        "slips": repair_to_dict(repair)["slips"],
        "charts": path_charts(*_as_they_stand(repair), repair.n_rows_y),
        "gaps": [str(labels[0][row]) for row in gaps[:_GAPS_NAMED]],
        "n_gaps": gaps.size,
        "extra": [str(labels[1][row]) for row in extra[:_GAPS_NAMED]],
        "n_extra": extra.size,
    }


def _as_they_stand(repair: Repair) -> tuple[Array, Array]:
    """Where the partner of each row stands, and whether it is there alone, by the place of the row."""
    if repair.places is None or repair.places[0].size != repair.partner.size:
        return repair.partner, repair.named
    place_x, place_y = repair.places
    order = np.argsort(place_x)
    return np.append(place_y, -1)[repair.partner][order], repair.named[order]


def _repair_table(repair: Repair) -> dict[str, Any]:
    """Rows that are not kept, those with a name first, then the suspects: who they are, and with whom they belong."""
    said = repair_to_dict(repair)
    return said | {
        "n_rows": len(said["rows"]),
        "rows": said["rows"][:_REPAIRED_SHOWN],
        "chains": said["chains"][:_REPAIRED_SHOWN],
        "kinds": {kind: words for kind, words in REPAIRED.items() if (repair.kind == kind).any()},
        "has": {name for row in said["rows"] for name, value in row.items() if value},  # columns that say something
        "has_names": bool(repair.named.any()),
    }


def _answer(summary: MatchSummary, question: str, details: list[str], counts: Mapping[str, int]) -> Part:
    return Part("answer.html", {"summary": summary, "question": question, "details": details, "counts": counts})


def _evidence_parts(summary: MatchSummary, charts: Sequence[dict[str, Any] | None], judged_by: str) -> list[Part]:
    """List the sections in which every page of pairs ends: the evidence, the pairs to look at, how it was made."""
    drawn = [chart for chart in charts if chart is not None]
    return [
        Part(
            "charts.html",
            {
                "charts": drawn,
                "judged_by": judged_by,
                "n_re_pairings": summary.n_re_pairings,
                "tells_wrong": summary.tells_wrong,
                "tells_certain": summary.n_certain is not None,
            },
        ),
        Part("pairs.html", _pairs_table(summary), script="pairs.js"),
        _settings(summary),
    ]


def _settings(summary: MatchSummary) -> Part:
    return Part("settings.html", {"summary": summary, "versions": versions()})


def _pairs_table(summary: MatchSummary) -> dict[str, Any]:
    """Rows for the table: all pairs of a small set; of a large one the worst, and those nearest to the cut."""
    places = shown_pairs(summary)
    columns = summary.columns() | ({} if summary.why_not is None else {"why_not": summary.why_not.astype(np.str_)})
    if "n_rivals" in columns and summary.n_certain is None:
        columns = {name: column for name, column in columns.items() if name not in ("certain", "n_rivals")}
    names = [name for name in (*_SHOWN, "why_not") if name in columns]
    order = {"score": "ascending"} if "score" in columns else {"residual": "descending"}
    values = [_short(columns[name][places], name) for name in names]
    verdicts = [summary.verdict_names[code] for code in summary.verdicts[places]]
    minor = {*_MINOR, *(["row"] if "key" in names or "source" in names else [])}
    texts = {"certain", "verdict", *(name for name in names if columns[name].dtype.kind == "U")}
    kinds = {name: " ".join(["text"] * (name in texts) + ["minor"] * (name in minor)) for name in (*names, "verdict")}
    return {
        "columns": [
            {"name": _HEADINGS.get(name, name), "kind": kind, "sorted": order.get(name)} for name, kind in kinds.items()
        ],
        "shown": _shown,
        "which": "those with the lowest scores" if "score" in columns else "those with the largest residuals",
        "rows": [list(row) for row in zip(*values, verdicts, strict=True)],
        "n_pairs": summary.n_pairs,
        "rows_at_once": _ROWS_AT_ONCE,
        "verdicts": summary.verdict_names if summary.alpha is not None else [VERDICTS[0], VERDICTS[2]],
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


def _shown(value: float, name: str) -> str:
    """A number as the table shows it; pairs.js does the same. A score far below all others says nothing by its size."""
    if name == "score" and value < _HOPELESS:
        return f"< {power_of_ten(_HOPELESS)}"
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        return power_of_ten(value)
    return f"{value:.4g}"


def _short(values: Array, name: str) -> list[Any]:
    """Numbers with as many digits as anyone reads, to keep the page small; nothing where no rivals were looked for."""
    if name == "n_rivals":
        return [value if value >= 0 else "" for value in values.tolist()]
    if values.dtype.kind == "b":
        return np.where(values, "yes", "no").tolist()
    if values.dtype.kind != "f":
        return values.tolist()
    return [float(f"{value:.{_DIGITS}g}") for value in values]


class RegistrationReport(MatchReport):
    """A report of a registration, with a picture of both sets that can be turned.

    Parameters
    ----------
    summary : RegistrationSummary
        From `summarise_registration`.

    Examples
    --------
    >>> from inlier import Registration
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=500, d=3, inlier_fraction=0.6, noise=0.01, rng=0)
    >>> Registration("orthogonal", random_state=0).fit(data.X, data.Y).report()
    <RegistrationReport: 300 of 500 pairs agree on one rotation or reflection, to within 0.03....>
    """

    summary: RegistrationSummary

    def html(self) -> str:
        """Return the page as one text that needs nothing else."""
        return render_page(_HOW, _registration_parts(self.summary))


def report_on(
    matcher: PairMatcher, keys: Any = None, X: Any = None, y: Any = None, repair: Repair | None = None
) -> MatchReport:
    """Return the report that fits a matcher; of a registration it draws some of the pairs (X, y)."""
    if isinstance(matcher, Registration):
        return RegistrationReport(summarise_registration(matcher, X, y, keys=keys))
    return MatchReport(summarise(matcher, keys=keys, repair=repair))


def _registration_parts(summary: RegistrationSummary) -> list[Part]:
    """List the sections of the page, in order."""
    transformation, overlay = summary.transformation, summary.overlay
    if transformation is None:
        return [_answer(summary, _HOW, [], {}), _settings(summary)]
    parts = [_answer(summary, _HOW, summary.about_the_pairs, summary.counts)]
    if overlay is not None:
        lines = [name for code, name in enumerate(VERDICTS) if code in overlay.view["verdicts"]]
        parts.append(Part("overlay.html", {"overlay": overlay, "lines": lines}, script="overlay.js"))
    is_small = max(transformation.matrix.shape) <= _LARGEST_MATRIX
    data = {"transformation": transformation, "sentences": summary.about_the_transformation, "is_small": is_small}
    parts.append(Part("transformation.html", data))
    judged_by = "residual" if summary.scores_are_residuals else "linear map"
    return [*parts, *_evidence_parts(summary, _charts(summary), judged_by)]


def _charts(summary: RegistrationSummary) -> list[dict[str, Any] | None]:
    registration, by_residual = summary.registration, summary.scores_are_residuals
    null = -registration.null_scores_ if by_residual else None
    return [
        residual_chart(summary, registration.residuals_, null, registration.noise_bound_),
        None if by_residual else score_chart(summary),
        None if registration.noise_bound is not None else q_chart(summary),
    ]


# ---- from parts to one page


@dataclass(frozen=True)
class Part:
    """One section of a page."""

    template: str  # file in ``templates/parts``; it finds ``data`` under that name
    data: Mapping[str, Any]  # what it shows; all text in it is escaped
    # file in ``templates`` with the part's JavaScript; included once however many parts need it
    script: str | None = None


def render_page(title: str, parts: Sequence[Part], package: str = "inlier.report") -> str:
    """Render one HTML page that needs nothing else and asks for nothing; the parts may be a package's own."""
    scripts = list(dict.fromkeys(part.script for part in parts if part.script is not None))
    return str(find_template("page.html", package).render(title=title, parts=parts, scripts=scripts))


def find_template(name: str, package: str = "inlier.report") -> Any:
    """Return a template of a package that escapes what it is given and refuses what it was not."""
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("Reports need jinja2; install it with: pip install jinja2 matplotlib") from error
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("inlier.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(name)


def data_uri(picture: bytes, kind: str = "png") -> str:
    """Return a picture as the address of an ``<img>`` that holds it."""
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
