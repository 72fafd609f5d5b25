"""The page of a registration: the answer, the transformation, both sets on top of each other, the evidence."""

from __future__ import annotations

from typing import Any

from inlier.estimators._base import PairMatcher
from inlier.estimators.registration import Registration
from inlier.report.charts import q_chart, residual_chart, score_chart
from inlier.report.match_report import MatchReport, answer, evidence_parts, settings, tried
from inlier.report.match_summary import VERDICTS, summarise
from inlier.report.overlay import Overlay
from inlier.report.page import Part, render_page
from inlier.report.registration_summary import RegistrationSummary, summarise_registration
from inlier.transforms import Transformation

_QUESTION = "How does one set fit onto the other?"
_LARGEST_MATRIX = 12  # rows and columns that are printed


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
        return render_page(_QUESTION, registration_parts(self.summary))


def report_on(matcher: PairMatcher, keys: Any = None) -> MatchReport:
    """Return the report that fits a matcher."""
    if isinstance(matcher, Registration):
        return RegistrationReport(summarise_registration(matcher, keys=keys))
    return MatchReport(summarise(matcher, keys=keys))


def registration_parts(summary: RegistrationSummary) -> list[Part]:
    """List the sections of the page, in order."""
    head = answer(summary, _QUESTION)
    if summary.transformation is None:
        return [Part("answer.html", {**head, "counts": {}}), Part("settings.html", settings(summary))]
    parts = [Part("answer.html", {**head, "details": summary.about_the_pairs})]
    if summary.overlay is not None:
        parts.append(Part("overlay.html", _overlay(summary.overlay), script="overlay.js"))
    parts.append(Part("transformation.html", _transformation(summary, summary.transformation)))
    return [*parts, *evidence_parts(summary, _charts(summary), _explanation(summary))]


def _charts(summary: RegistrationSummary) -> list[dict[str, Any] | None]:
    assert summary.residuals is not None
    assert summary.noise_bound is not None
    by_residual = summary.scores_are_residuals
    null = -summary.null_scores if by_residual and summary.null_scores is not None else None
    return [
        residual_chart(summary, summary.residuals, null, summary.noise_bound),
        None if by_residual else score_chart(summary),
        None if summary.bound_was_given else q_chart(summary),
    ]


def _explanation(summary: RegistrationSummary) -> str:
    if not summary.scores_are_residuals:
        return (
            f"In many dimensions the pairs are first judged by a linear map. A wrong pair scores as a re-paired one "
            f"does{tried(summary)}; what scores higher is no accident."
        )
    return (
        f"A wrong pair ends up as far off as a re-paired one does, the source's point of one pair with the target's of "
        f"another{tried(summary)}, unless the wrong ones agree with each other. What lies nearer is no accident."
    )


def _transformation(summary: RegistrationSummary, transformation: Transformation) -> dict[str, Any]:
    matrix = transformation.matrix
    small = max(matrix.shape) <= _LARGEST_MATRIX
    return {
        "sentences": summary.about_the_transformation,
        "determined": transformation.determined,
        "matrix": [[_number(value) for value in row] for row in matrix] if small else None,
        "shape": matrix.shape,
    }


def _number(value: float) -> str:
    text = f"{value:.6g}" if abs(value) >= 1e-12 else "0"
    return text.replace("-", "\N{MINUS SIGN}")


def _overlay(overlay: Overlay) -> dict[str, Any]:
    return {
        "view": overlay.view,
        "is_flat": overlay.is_flat,
        "has_before": overlay.has_before,
        "sentences": _sentences(overlay),
        "lines": [name for code, name in enumerate(VERDICTS) if code in overlay.view["verdicts"]],
    }


def _sentences(overlay: Overlay) -> list[str]:
    sentences = []
    if overlay.distances is not None:
        before, after = overlay.distances
        sentences.append(f"The real pairs were {before:.3g} apart (median) before, and are {after:.3g} apart now.")
    if overlay.drawn_nearer:
        sentences.append("Before, the source is drawn nearer to the target than it came.")
    if overlay.projected_from is not None:
        sentences.append(f"Of {overlay.projected_from} dimensions the three are shown in which the target varies most.")
    parts = [*zip(overlay.drawn, overlay.existing, ("source", "target"), strict=True)]
    counts = [f"{drawn:,} of {all_of:,} points of the {name}" for drawn, all_of, name in parts if drawn < all_of]
    if overlay.lines[0] < overlay.lines[1]:
        counts.append(f"{overlay.lines[0]:,} of {overlay.lines[1]:,} pairs as lines")
    if counts:
        sentences.append(f"Drawn: {', '.join(counts)}.")
    return sentences
