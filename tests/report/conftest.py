"""A real browser to open pages in."""

from __future__ import annotations

import shutil

import pytest


def browser_path():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser():
    if browser_path() is None:
        pytest.skip("there is no Chromium on this machine to open the page in")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    """Open a file; what the page complains about and asks for is collected, and must be nothing."""
    complaints, contexts = [], []

    def visit(path, **options):
        context = browser.new_context(**{"viewport": {"width": 1180, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        address = path.as_uri()
        page.on("request", lambda request: complaints.append(request.url) if request.url != address else None)
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def verdicts_in_sight(visit):
    """Whether the verdicts of a page can be read at a width, wherever its table of pairs is scrolled to."""

    def verdicts_in_sight(path, width):
        page = visit(path, viewport={"width": width, "height": 800})
        table = page.locator("#pairs .wide")
        assert table.evaluate("place => place.scrollWidth > place.clientWidth")  # otherwise there is nothing to see
        in_sight = True
        for end in ("0", "place.scrollWidth"):
            table.evaluate(f"place => place.scrollLeft = {end}")
            frame, verdict = table.bounding_box(), page.locator("tbody tr:first-child .verdict").bounding_box()
            in_sight &= frame["x"] <= verdict["x"]
            in_sight &= verdict["x"] + verdict["width"] <= frame["x"] + frame["width"]
        return in_sight

    return verdicts_in_sight
