"""The page of a registration, rendered and operated in a real browser."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import special_ortho_group

from inlier import Registration
from inlier.datasets import make_scans
from inlier.report import Origin, RegistrationReport, summarise_registration

NASTY = "<img src=x onerror=alert(1)></script><script>alert(2)</script>'\"&"


def moved_points(n, d, share, seed=0, shift=3.0):
    """A box of points, moved; the given share of the pairs is real."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d)) * np.arange(1, d + 1)
    rotation = special_ortho_group.rvs(d, random_state=rng) if d > 1 else np.eye(1)
    Y = X @ rotation.T + shift + 0.01 * rng.standard_normal((n, d))
    wrong = rng.permutation(n)[round(share * n) :]
    Y[wrong] = Y[rng.permutation(n)][wrong]
    return X, Y


@pytest.fixture
def visit(visit):
    """A smaller window, which is quicker to draw."""
    return lambda path, **options: visit(path, **{"viewport": {"width": 700, "height": 560}, **options})


def scan_pairs():
    scans = make_scans(2000, 1200, 0.4, rng=0)
    return scans.source[scans.pairs[:, 0]], scans.target[scans.pairs[:, 1]]


@pytest.fixture(scope="module")
def registration():
    fitted = Registration(random_state=0).fit(*scan_pairs())
    fitted.uncertainty_ = SimpleNamespace(rotation=np.full(3, 0.04), translation=np.array([0.1, 0.2, 0.3]), scale=0.0)
    return fitted


@pytest.fixture(scope="module")
def page_file(registration, tmp_path_factory):
    scans = make_scans(6000, 1200, 0.4, rng=0)
    keys = np.array([f"spot {number}" for number in range(1200)], dtype="<U200")
    keys[registration.result_.worst(1)[0]] = NASTY
    origin = Origin((NASTY, "target.ply"), f"inlier register '{NASTY}' target.ply", (f"1 id of {NASTY} is not there.",))
    summary = summarise_registration(
        registration, *scan_pairs(), keys=keys, clouds=(scans.source, scans.target), origin=origin
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    RegistrationReport(summary).write_html(path)
    return path


@pytest.fixture(scope="module")
def flat_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "flat.html"
    X, Y = moved_points(600, 2, 0.5)
    Registration(random_state=0).fit(X, Y).report(X=X, y=Y).write_html(path)
    return path


def shown(page):
    """How the viewer stands, once it has drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return json.loads(page.locator("canvas").get_attribute("data-shown"))


def pixels(page):
    shown(page)
    return page.evaluate("document.querySelector('canvas').toDataURL()")


def drag(page, dx, dy):
    page.locator("canvas").scroll_into_view_if_needed()
    box = page.locator("canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y + dy, steps=3)
    page.mouse.up()
    page.mouse.move(x, y)  # without the button nothing turns


def test_it_renders_and_says_the_answer(visit, page_file, registration):
    page = visit(page_file)
    assert page.locator("h1").inner_text() == registration.report().summary.answer
    words = page.locator("#transformation").inner_text()
    assert "It turns by 120." in words
    assert "Standard errors: 0.04 degrees, (0.1, 0.2, 0.3) in the translation." in words
    matrix = page.locator(".matrix td").all_inner_texts()
    numbers = [float(text.replace("\N{MINUS SIGN}", "-")) for text in matrix]
    np.testing.assert_allclose(np.reshape(numbers, (4, 4)), registration.transformation_.matrix, rtol=1e-4, atol=1e-9)
    assert page.locator("svg").count() == 2
    assert page.locator("svg").first.get_attribute("aria-label") == "Histogram of the residuals with the cut"
    assert page.locator("svg .null").count() == 1
    assert page.locator("svg .cut").count() == 1
    assert "noise bound" in page.locator("svg").first.text_content()
    assert "Drawn: 4,000 of 6,000 points of the source, " in page.locator("#overlay").inner_text()


def test_dragging_turns_the_picture(visit, page_file):
    page = visit(page_file)
    first, picture = shown(page), pixels(page)
    drag(page, 100, -50)
    now = shown(page)
    assert now["yaw"] - first["yaw"] == pytest.approx(40)
    assert now["pitch"] - first["pitch"] == pytest.approx(-20)
    assert now["zoom"] == first["zoom"]
    assert pixels(page) != picture
    drag(page, 0, 2000)
    assert shown(page)["pitch"] == 90  # not over the top
    page.keyboard.down("Shift")
    drag(page, 30, 20)
    assert (shown(page)["x"], shown(page)["y"]) == pytest.approx((30, 20))
    page.get_by_role("button", name="Show all").click()
    assert shown(page) == first
    assert pixels(page) == picture


def test_the_keyboard_turns_and_zooms_it(visit, page_file):
    page = visit(page_file)
    first, picture = shown(page), pixels(page)
    page.locator("canvas").focus()
    for key, name, change in (("ArrowRight", "yaw", 8), ("ArrowLeft", "yaw", -8), ("ArrowDown", "pitch", 8)):
        before = shown(page)[name]
        page.keyboard.press(key)
        assert shown(page)[name] - before == pytest.approx(change)
    page.keyboard.press("+")
    assert shown(page)["zoom"] == pytest.approx(1.25)
    assert pixels(page) != picture
    page.keyboard.press("-")
    page.keyboard.press("Shift+ArrowLeft")
    assert shown(page)["x"] == pytest.approx(24)
    page.keyboard.press("Home")
    assert shown(page) == first
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Zoom in"


def test_the_wheel_zooms_only_once_the_picture_is_chosen(visit, page_file):
    page = visit(page_file)
    page.locator("canvas").scroll_into_view_if_needed()
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(100)
    assert shown(page)["zoom"] == 1
    page.locator("canvas").click()
    page.mouse.wheel(0, -200)
    page.wait_for_function("JSON.parse(document.querySelector('canvas').dataset.shown).zoom > 1.2")
    page.get_by_role("button", name="Zoom out").click()
    assert shown(page)["zoom"] == pytest.approx(0.8 * np.exp(0.3))


def test_the_slider_goes_from_before_to_after(visit, page_file):
    page = visit(page_file)
    slider = page.get_by_role("slider")
    after = pixels(page)
    assert shown(page)["progress"] == 1
    slider.fill("0")
    before = pixels(page)
    assert shown(page)["progress"] == 0
    slider.press("End")
    slider.press("ArrowLeft")
    assert shown(page)["progress"] == pytest.approx(0.99)
    slider.fill("100")
    assert before != after == pixels(page)


def test_lines_can_be_left_out(visit, page_file):
    page = visit(page_file)
    page.get_by_role("slider").fill("0")
    real = pixels(page)
    page.get_by_role("checkbox", name="real pairs").uncheck()
    none = pixels(page)
    page.get_by_role("checkbox", name="wrong pairs").check()
    assert len({real, none, pixels(page)}) == 3


def test_fingers(visit, page_file):
    page = visit(page_file, viewport={"width": 390, "height": 800}, has_touch=True)
    page.locator("canvas").scroll_into_view_if_needed()
    touch = """([id, type, x, y]) => document.querySelector('canvas').dispatchEvent(new PointerEvent(type, {
        pointerId: id, pointerType: 'touch', clientX: x, clientY: y, bubbles: true }))"""
    page.evaluate("document.querySelector('canvas').setPointerCapture = () => {}")  # for made-up fingers there is none
    first = shown(page)
    for step in ([1, "pointerdown", 100, 300], [1, "pointermove", 150, 300]):
        page.evaluate(touch, step)
    assert shown(page)["yaw"] - first["yaw"] == pytest.approx(20)
    for step in ([2, "pointerdown", 250, 300], [2, "pointermove", 350, 300]):
        page.evaluate(touch, step)
    assert shown(page)["zoom"] == pytest.approx(2)
    assert shown(page)["yaw"] - first["yaw"] == pytest.approx(20)
    assert page.evaluate("getComputedStyle(document.querySelector('canvas')).touchAction") == "none"


def test_two_dimensions_are_moved_not_turned(visit, flat_file):
    page = visit(flat_file)
    assert "move about" in page.locator("#overlay-hint").inner_text()
    drag(page, 40, 10)
    page.locator("canvas").press("ArrowRight")
    now = shown(page)
    assert (now["x"], now["y"]) == pytest.approx((16, 10))
    assert (now["yaw"], now["pitch"]) == (0, 90)
    assert "clockwise" in page.locator("#transformation").inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(1180, "light"), (390, "dark"), (320, "light")])
def test_it_fits_every_screen_and_takes_its_colours(visit, page_file, width, scheme):
    page = visit(page_file, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture = pixels(page)
    page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
    assert pixels(page) != picture


@pytest.mark.parametrize("width", [375, 320])
def test_on_a_phone_the_verdicts_are_in_sight(verdicts_in_sight, page_file, width):
    assert verdicts_in_sight(page_file, width)


def test_it_prints_and_has_words_for_those_who_cannot_see_it(visit, page_file):
    page = visit(page_file)
    assert "apart (median) before, and are 0." in page.locator("canvas").get_attribute("aria-label")
    page.emulate_media(media="print")
    assert page.get_by_role("slider").is_hidden()
    assert page.pdf().startswith(b"%PDF")


def test_without_javascript_the_rest_is_there(visit, page_file):
    page = visit(page_file, java_script_enabled=False)
    assert page.locator("canvas").is_hidden()
    assert page.locator("#pairs tbody tr").count() == 20
    assert page.get_by_text("The picture of both sets needs JavaScript.").is_visible()


def test_what_users_wrote_is_shown_not_run(visit, page_file):
    page = visit(page_file)  # a dialog, a request or an error would be a complaint
    assert NASTY in page.locator("#pairs tbody tr").first.inner_text()
    assert NASTY in page.locator(".notes").inner_text()


def test_the_largest_residuals_come_first(visit, page_file, registration):
    page = visit(page_file)
    column = page.locator("#pairs tbody tr td:nth-child(3)")
    residuals = [float(text) for text in column.all_inner_texts()]
    assert residuals == sorted(residuals, reverse=True)
    assert residuals[0] == pytest.approx(registration.residuals_.max(), rel=1e-3)
    page.get_by_role("button", name="residual").click()
    assert max(float(text) for text in column.all_inner_texts()) < residuals[-1]


@pytest.mark.parametrize(
    "kind", ["1-D", "5-D", "12-D by matching", "to fewer", "all real", "given bound", "mirrored", "failed"]
)
def test_every_kind_has_a_page(visit, tmp_path, kind):
    d = {"1-D": 1, "5-D": 5, "12-D by matching": 12}.get(kind, 3)
    X, Y = moved_points(500, d, {"all real": 1.0, "failed": 0.0}.get(kind, 0.5))
    registration = Registration(random_state=0)
    if kind == "1-D":
        Y = X + 2 + 1e-3 * (Y - X)
    elif kind in ("12-D by matching", "to fewer"):
        registration.set_params(model="affine")
        Y = Y[:, :2] if kind == "to fewer" else Y
    elif kind == "given bound":
        registration.set_params(noise_bound=0.03)
    elif kind == "mirrored":
        registration.set_params(reflection=True)
        Y = Y * [-1, 1, 1]
    elif kind == "failed":
        registration.set_params(raise_on_failure=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registration.fit(X, Y).report(X=X, y=Y).write_html(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    assert page.locator("canvas").count() == (kind not in ("1-D", "failed"))
    assert page.get_by_role("slider").count() == (kind not in ("1-D", "failed", "to fewer"))
    assert page.locator("svg").count() == {"12-D by matching": 3, "given bound": 1, "failed": 0}.get(kind, 2)
    assert "nan" not in page.locator("main").inner_text().lower()
    if kind == "failed":
        assert page.locator("h1").inner_text() == "The 500 pairs do not agree on any rigid motion."


def test_a_million_pairs_make_a_small_page():
    X, Y = moved_points(1_000_000, 3, 0.5)
    registration = Registration(random_state=0).fit(X, Y)
    page = registration.report(X=X, y=Y).html()
    assert len(page.encode()) < 1_000_000
    assert "3,000 of 1,000,000 points of the source" in page
    assert "1,000 of 1,000,000 pairs" in page


def test_nothing_of_the_page_lies_elsewhere(registration):
    page = registration.report().html()
    assert "://" not in page
    assert "default-src 'none'" in page


def test_notebooks(registration):
    X, Y = scan_pairs()
    report = registration.report(X=X, y=Y)
    assert repr(report).startswith("<RegistrationReport: ")
    assert "data-overlay" in report._repr_html_()
    assert "data-overlay" not in registration.report().html()  # the tables are the user's, and are not kept
    assert json.loads(report.json())["transformation"]["model"] == "rigid"
