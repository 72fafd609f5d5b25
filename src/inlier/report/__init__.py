"""One self-contained HTML page: summary, then template, then file."""

from typing import TYPE_CHECKING

from inlier._lazy import attach

if TYPE_CHECKING:
    from inlier.report.cloud_summary import CloudReport, CloudSummary, report_on_clouds, summarise_clouds
    from inlier.report.match_summary import (
        MatchSummary,
        Origin,
        StreamedSummary,
        summarise,
        summarise_streamed,
    )
    from inlier.report.pages import MatchReport, Part, RegistrationReport, render_page, report_on
    from inlier.report.registration_summary import RegistrationSummary, summarise_registration
    from inlier.report.scans_page import ScansReport
    from inlier.report.tally import Tally

__all__ = [
    "CloudReport",
    "CloudSummary",
    "MatchReport",
    "MatchSummary",
    "Origin",
    "Part",
    "RegistrationReport",
    "RegistrationSummary",
    "ScansReport",
    "StreamedSummary",
    "Tally",
    "render_page",
    "report_on",
    "report_on_clouds",
    "summarise",
    "summarise_clouds",
    "summarise_registration",
    "summarise_streamed",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "cloud_summary": "CloudReport CloudSummary report_on_clouds summarise_clouds",
        "match_summary": "MatchSummary Origin StreamedSummary summarise summarise_streamed",
        "pages": "MatchReport Part RegistrationReport render_page report_on",
        "registration_summary": "RegistrationSummary summarise_registration",
        "scans_page": "ScansReport",
        "tally": "Tally",
    },
)
