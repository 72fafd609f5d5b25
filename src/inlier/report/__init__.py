"""One self-contained HTML page: summary, then template, then file."""

from inlier.report.change_page import change_page
from inlier.report.demo_page import demo_page
from inlier.report.reproduction_page import reproduction_page

__all__ = ["change_page", "demo_page", "reproduction_page"]
