"""One self-contained HTML page: summary, then template, then file."""

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
