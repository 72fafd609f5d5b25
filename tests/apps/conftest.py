"""Pages of programs are opened in the same browser as reports."""

from tests.report.conftest import browser, visit  # noqa: F401
