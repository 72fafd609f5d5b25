"""The page that a newcomer sees first, in a real browser."""

from __future__ import annotations

import pytest

from inlier.apps.demo import demo_page, run_demo


@pytest.fixture(scope="module")
def outcome():
    return run_demo(n=2000)


@pytest.fixture(scope="module")
def page_file(outcome, tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "report.html"
    path.write_text(demo_page(outcome, "inlier demo --pairs 2000"))
    return path


def test_every_point_and_every_pair_is_drawn(outcome):
    page = demo_page(outcome)
    assert page.count("h0M") + 2 == 2000
    for method in outcome.methods:
        assert f"{method.name}: <strong>{100 * method.errors.overall:.2f}&nbsp;% misjudged" in page
    assert "://" not in page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390, 320])
def test_it_fits_every_screen(visit, page_file, width, scheme):
    page = visit(page_file, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg").count() == 4
    for chart in page.locator("figure").all():
        box = chart.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    ink, paper = page.evaluate(
        "['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number))"
    )
    assert (sum(ink) > sum(paper)) == (scheme == "dark")


def test_it_says_what_was_found(visit, page_file, outcome):
    page = visit(page_file)
    right = round((1 - outcome.methods[-1].errors.overall) * 2000)
    assert page.locator("h1").inner_text() == f"{right:,} of 2,000 pairs were judged correctly."
    assert "400 wrong in truth" in page.locator("#answer").inner_text()
    assert page.locator("svg .bar.wrong").count() > 10
