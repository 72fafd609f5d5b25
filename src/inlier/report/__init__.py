"""One self-contained HTML page: summary, then template, then file."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inlier.report.match_report import MatchReport
    from inlier.report.match_summary import MatchSummary, Origin, summarise
    from inlier.report.page import Part, render_page
    from inlier.report.registration_report import RegistrationReport, report_on
    from inlier.report.registration_summary import RegistrationSummary, summarise_registration
    from inlier.report.streamed_summary import StreamedSummary, Tally, summarise_streamed

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
    "MatchReport": "match_report",
    "MatchSummary": "match_summary",
    "Origin": "match_summary",
    "Part": "page",
    "RegistrationReport": "registration_report",
    "RegistrationSummary": "registration_summary",
    "StreamedSummary": "streamed_summary",
    "Tally": "streamed_summary",
    "render_page": "page",
    "report_on": "registration_report",
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
