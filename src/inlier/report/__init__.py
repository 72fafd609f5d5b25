"""One self-contained HTML page: summary, then template, then file."""

from inlier.report.demo_page import demo_page

__all__ = ["demo_page"]
