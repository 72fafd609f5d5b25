"""The page of ``inlier diff``, driven in a real browser where there is one."""

from __future__ import annotations

import shutil
from html import escape

import pytest

from inlier.datasets import make_scenes
from inlier.images import detect_changes
from inlier.images.pictures import change_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    photos = make_scenes().photos
    changes = detect_changes(photos[0], photos[1])
    content = {"before": "<b>before.png", "after": 'aft"er.png', "seed": 0, **changes.to_dict()}
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(change_page(changes, content))
    return path


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium to drive")
    with playwright.sync_playwright() as session:
        browser = session.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(params=["desktop", "phone"])
def page(request, browser, page_file):
    """The open page; the test fails if it logs an error or asks for anything outside of itself."""
    width = {"desktop": 1200, "phone": 390}[request.param]
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme="dark")
    page = context.new_page()
    troubles = []
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda sent: None if sent.url.startswith(("file:", "data:")) else troubles.append(sent.url))
    page.goto(page_file.as_uri())
    yield page
    context.close()
    assert troubles == []


def test_names_are_escaped_and_nothing_is_linked(page_file):
    text = page_file.read_text()
    assert "<b>before" not in text
    assert escape("<b>") in text
    assert "://" not in text
    assert len(text) < 2_000_000


def test_the_slider_moves_by_keyboard_and_by_pointer(page):
    def cut():
        return page.eval_on_selector("#stage", "element => element.style.getPropertyValue('--cut')")

    assert cut() == "50%"
    page.focus("#slider")
    page.keyboard.press("ArrowRight")
    assert cut() == "51%"
    page.keyboard.press("Home")
    assert cut() == "0%"
    place = page.locator("#stage").bounding_box()
    page.mouse.click(place["x"] + 0.25 * place["width"], place["y"] + 0.5 * place["height"])
    assert cut() == "25%"
    assert page.input_value("#slider") == "25"


def test_the_mask_can_be_hidden_and_a_region_shown(page):
    assert page.locator("#marks img").is_visible()
    assert page.locator("#box-1 span").inner_text() == "1"
    page.uncheck("#show")
    assert not page.locator("#marks img").is_visible()
    assert not page.locator("#box-1 span").is_visible()
    button = page.locator("[data-box]").first
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert "shown" in page.locator("#box-1").get_attribute("class")
    page.keyboard.press("Enter")
    assert "shown" not in page.locator("#box-1").get_attribute("class")


def test_pictures_load_and_the_page_fits_its_width(page):
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
