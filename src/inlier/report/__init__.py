"""One self-contained HTML page: summary, then template, then file."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inlier.report.match_summary import MatchSummary, Origin, Tally, summarise
    from inlier.report.pages import MatchReport, RegistrationReport, report_on
    from inlier.report.registration_summary import RegistrationSummary, summarise_registration
    from inlier.report.rendering import Part, render_page
    from inlier.report.streamed_summary import StreamedSummary, summarise_streamed

__all__ = [
    "MatchReport",
    "MatchSummary",
    "Origin",
    "Part",
    "RegistrationReport",
    "RegistrationSummary",
    "StreamedSummary",
    "Tally",
    "render_page",
    "report_on",
    "summarise",
    "summarise_registration",
    "summarise_streamed",
]

_HOME = {
    "MatchReport": "pages",
    "MatchSummary": "match_summary",
    "Origin": "match_summary",
    "Part": "rendering",
    "RegistrationReport": "pages",
    "RegistrationSummary": "registration_summary",
    "StreamedSummary": "streamed_summary",
    "Tally": "match_summary",
    "render_page": "rendering",
    "report_on": "pages",
    "summarise": "match_summary",
    "summarise_registration": "registration_summary",
    "summarise_streamed": "streamed_summary",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a match without a page needs none of the pages."""
    if name not in _HOME:
        raise AttributeError(f"module 'inlier.report' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"inlier.report.{_HOME[name]}"), name)
    return value
