"""The built site in a real browser: navigation, search, the gallery, both themes, a phone, nothing on the console."""

from __future__ import annotations

import threading
import zlib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.report.conftest import browser  # noqa: F401

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = ["index", "start", "guide/index", "guide/swapped-samples", "gallery/index", "gallery/register_scans", "method"]
PAGES += [
    "registration",
    "reproducing",
    "api/index",
    "api/generated/inlier.CalibratedMatcher",
    "benchmarks",
    "glossary",
]

COLOURS = """['color', 'backgroundColor'].map(
    name => getComputedStyle(document.body)[name].match(/\\d+/g).slice(0, 3).map(Number))"""

pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site has not been built (make docs)")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        """Say nothing."""


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def opened(browser, address):  # noqa: F811
    """Open a page; complaints on the console and requests that leave the site are collected, and must be none."""
    complaints, contexts = [], []

    def is_elsewhere(url):
        return not url.startswith((address, "data:"))

    def note(message):
        if not message.text.startswith("[PST]"):  # the theme tells which of its themes it has chosen
            complaints.append(message.text)

    def opened(name, **options):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("response", lambda response: complaints.append(response.url) if response.status >= 400 else None)
        page.on("request", lambda request: complaints.append(request.url) if is_elsewhere(request.url) else None)
        page.goto(f"{address}/{name}.html")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def test_one_finds_the_way_from_the_start_to_a_class(opened):
    page = opened("index")
    assert page.locator("h1").first.inner_text().startswith("Which pairs are real?")
    page.locator("header").get_by_role("link", name="API", exact=True).click()
    page.locator("article").get_by_role("link", name="CalibratedMatcher").first.click()
    assert "alpha=0.01" in page.locator("dt.sig").first.inner_text()
    assert ">>> " in page.locator("article").inner_text()


def test_the_start_page_needs_no_more_than_five_lines(opened):
    commands = opened("index").locator("article pre").first.inner_text().strip().splitlines()
    assert 1 <= len(commands) <= 5
    assert "inlier match x.csv y.csv" in commands[-1]


def test_search_finds_pages_by_their_words(opened):
    page = opened("search", viewport={"width": 1200, "height": 900})
    page.goto(page.url + "?q=strata")
    page.locator("#search-results li a").first.wait_for(timeout=20_000)
    found = page.locator("#search-results").inner_text()
    assert "plate" in found or "How sure" in found


def test_a_gallery_page_has_a_picture_a_result_and_a_notebook(opened):
    page = opened("gallery/register_scans")
    picture = page.locator("article img.sphx-glr-single-img").first
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 400
    assert "matches agree" in page.locator(".sphx-glr-script-out").first.inner_text()
    links = page.locator("a.download[href$='.ipynb'], a[href$='.ipynb']")
    assert links.count() >= 1


def test_every_example_has_its_page():
    examples = sorted(path.stem for path in (SITE.parents[2] / "examples").glob("*.py"))
    assert len(examples) >= 10
    assert [name for name in examples if not (SITE / "gallery" / f"{name}.html").exists()] == []


def test_coding_agents_find_every_page_as_text():
    lines = (SITE / "llms.txt").read_text().splitlines()
    links = [line.rpartition("(")[2].rstrip(")") for line in lines if line.startswith("- [")]
    assert len(links) >= 20
    assert [link for link in links if not (SITE / link).exists()] == []
    assert "CalibratedMatcher" in (SITE / "llms-full.txt").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_pages_fit_the_screen_in_both_themes(opened, width, scheme):
    page = opened("index", viewport={"width": width, "height": 900}, color_scheme=scheme)
    here = page.url.removesuffix("/index.html")
    for name in PAGES:
        page.goto(f"{here}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        ink, paper = page.evaluate(COLOURS)
        assert (sum(ink) > sum(paper)) == (scheme == "dark"), name
        assert page.locator("article h1").first.is_visible()


def test_on_a_phone_the_menu_opens(opened):
    page = opened("index", viewport={"width": 390, "height": 800})
    page.locator("button.primary-toggle").first.click()
    page.get_by_role("link", name="Guide").locator("visible=true").first.click()
    page.wait_for_url("**/guide/index.html")


def test_formulas_are_drawn_without_a_script(opened):
    page = opened("method")
    assert page.locator("math").count() >= 5
    assert page.locator(".formula math").first.bounding_box()["width"] > 100
    assert page.locator("script[src*=mathjax i]").count() == 0


def test_every_public_name_is_in_the_reference():
    inventory = (SITE / "objects.inv").read_bytes()
    names = zlib.decompress(inventory.split(b"\n", 4)[4]).decode()
    known = {line.split(" ")[0] for line in names.splitlines() if " py:" in line}
    lines = (Path(__file__).parents[1] / "public_names.txt").read_text().splitlines()
    named = [
        line.removeprefix("class ").partition("(")[0]
        for line in lines
        if not line.startswith(("module", "fitted", " "))
    ]
    assert len(named) > 30
    assert [name for name in named if name not in known] == []
