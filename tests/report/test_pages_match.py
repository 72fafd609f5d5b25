"""The page of a match, rendered and operated in a real browser."""

from __future__ import annotations

import html
import json
import warnings

import numpy as np
import pytest
from scipy.spatial import cKDTree

from inlier import CalibratedMatcher, EigenvectorMatcher, RowSumMatcher, SplitMatcher
from inlier.datasets import make_gaussian_pairs
from inlier.exceptions import DependenceWarning
from inlier.report import MatchReport, Origin, summarise
from inlier.report.pages import shown_pairs

N = 3000
DATA = make_gaussian_pairs(N, 3, 0.5, noise=0.2, rng=0)
NASTY = "<img src=x onerror=alert(1)></script><script>alert(2)</script>'\"&\N{GREEK SMALL LETTER ALPHA}"


@pytest.fixture(scope="module")
def matcher():
    return CalibratedMatcher(alpha=0.01, random_state=0).fit(DATA.X, DATA.Y)


@pytest.fixture(scope="module")
def page_file(matcher, tmp_path_factory):
    keys = np.array([f"sample {number}" for number in range(N)], dtype="<U200")
    keys[matcher.result_.worst(1)[0]] = NASTY
    origin = Origin((NASTY, "y.csv"), f"inlier match '{NASTY}' y.csv", (f"1 id of {NASTY} is not in y.csv.",))
    path = tmp_path_factory.mktemp("report") / "report.html"
    MatchReport(summarise(matcher, keys=keys, origin=origin)).write_html(path)
    return path


def cells(page, column):
    return page.locator(f"tbody tr td:nth-child({column})").all_inner_texts()


def test_it_renders_and_says_the_answer(visit, page_file, matcher):
    page = visit(page_file)
    accepted = matcher.inlier_mask_.sum()
    expected = f"{accepted:,} of 3,000 pairs are real, with at most 1\u00a0% wrong among them."
    assert page.locator("h1").inner_text() == expected
    assert page.locator("svg").count() == 2
    assert page.locator("svg .bar").count() > 20
    assert page.locator("svg .null").count() == 1
    assert page.locator("svg .cut").count() == 1
    assert "1,000 of 3,000 pairs: those with the lowest scores" in page.locator("#pairs").inner_text()
    assert NASTY in page.locator("pre").inner_text()


def test_the_table_sorts(visit, page_file):
    page = visit(page_file)
    score = page.get_by_role("button", name="score")
    rising = [float(text) for text in cells(page, 3)]
    assert rising == sorted(rising)
    score.click()
    falling = [float(text) for text in cells(page, 3)]
    assert falling == sorted(falling, reverse=True)
    assert max(falling) > max(rising)
    assert page.locator("th[aria-sort=descending]").inner_text() == "score"
    page.get_by_role("button", name="pair").click()
    names = [text for text in cells(page, 1) if text.startswith("sample ")]
    numbers = [int(name.removeprefix("sample ")) for name in names]
    assert numbers == sorted(numbers)  # 9 before 10


def test_the_table_is_searched_and_filtered(visit, page_file, matcher):
    page = visit(page_file)
    worst = int(matcher.result_.worst(2)[1])
    page.get_by_label("Search").fill(f"SAMPLE {worst}")
    assert f"sample {worst}" in cells(page, 1)
    assert all(f"{worst}" in text for text in cells(page, 1))
    page.get_by_label("Search").fill("nobody has this name")
    assert page.locator("tbody tr").count() == 0
    assert page.get_by_role("status").inner_text() == "Nothing fits."
    page.get_by_label("Search").fill("")
    page.get_by_label("Verdict").select_option("doubtful")
    doubtful = summarise(matcher).counts["doubtful"]
    assert page.get_by_role("status").inner_text() == f"1 to {min(20, doubtful)} of {doubtful}"
    assert set(page.locator("tbody .verdict").all_inner_texts()) == {"doubtful"}


def test_pages_of_the_table(visit, page_file):
    page = visit(page_file)
    first = cells(page, 1)
    assert page.get_by_role("button", name="Previous").is_disabled()
    page.get_by_role("button", name="Next").click()
    assert page.get_by_role("status").inner_text() == "21 to 40 of 1,000"
    assert not set(first) & set(cells(page, 1))
    page.get_by_role("button", name="Previous").click()
    assert cells(page, 1) == first


def test_it_can_be_used_with_the_keyboard_alone(visit, page_file):
    page = visit(page_file)
    reached = []
    for _ in range(14):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.tagName"))
    assert {"INPUT", "score", "q-value", "verdict", "Next"} <= set(reached)
    page.get_by_role("button", name="q-value").focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=ascending]").inner_text() == "q-value"


def test_what_users_wrote_is_shown_not_run(visit, page_file):
    page = visit(page_file)  # a dialog, a request or an error would be a complaint
    assert cells(page, 1)[0] == NASTY
    assert NASTY in page.locator(".eyebrow").inner_text()
    assert NASTY in page.locator(".notes").inner_text()
    assert page.locator("img").count() == 0


@pytest.mark.parametrize(
    ("width", "scheme"), [(1180, "light"), (1180, "dark"), (390, "light"), (390, "dark"), (320, "light")]
)
def test_it_fits_every_screen_and_can_be_read_in_the_dark(visit, page_file, width, scheme):
    page = visit(page_file, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = page.evaluate(
        "['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number))"
    )
    assert (sum(ink) > sum(paper)) == (scheme == "dark")
    for name in ("real", "doubtful", "wrong"):
        colour = page.evaluate(f"getComputedStyle(document.querySelector('.swatch.{name}')).backgroundColor")
        assert colour != page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("width", [320])
def test_on_a_phone_the_verdicts_are_in_sight(verdicts_in_sight, page_file, width):
    assert verdicts_in_sight(page_file, width)


def test_on_a_phone_the_q_values_are_in_sight(visit, page_file):
    page = visit(page_file, viewport={"width": 390, "height": 800})
    table = page.locator("#pairs .wide").bounding_box()
    verdict = page.locator("tbody tr:first-child .verdict").bounding_box()
    q_value = page.locator("tbody tr:first-child td:nth-child(4)")
    assert q_value.inner_text() == cells(page, 4)[0]
    box = q_value.bounding_box()
    assert table["x"] <= box["x"]
    assert box["x"] + box["width"] <= verdict["x"]
    assert page.locator("tbody tr:first-child td:nth-child(2)").is_hidden()  # the row, which the name stands for


def test_scores_and_counts_of_any_size_can_be_read(visit, tmp_path):
    """Exact data has scores of minus ten to the thirteenth; and few real pairs stand beside thousands of wrong ones."""
    data = make_gaussian_pairs(5000, 5, 0.03, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    assert matcher.scores_.min() < -1e6
    matcher.report().write_html(tmp_path / "page.html")
    for javascript in (True, False):
        page = visit(tmp_path / "page.html", java_script_enabled=javascript)
        assert cells(page, 2)[0].strip() == "< \N{MINUS SIGN}10\N{SUPERSCRIPT SIX}"
        assert "e+" not in page.locator("main").inner_text()
        heights = [bar.bounding_box()["height"] for bar in page.locator("svg .bar.real").all()]
        assert max(heights) > 15  # pixels
        assert "on a logarithmic axis" in page.locator("#evidence").inner_text()


def test_where_nobody_can_be_called_wrong_nothing_is_drawn_so(visit, tmp_path):
    noisy = make_gaussian_pairs(600, 3, 0.5, noise=0.3, rng=0)
    CalibratedMatcher(random_state=0).fit(noisy.X, noisy.Y).report().write_html(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    assert page.locator(".bar.doubtful").count() > 0
    assert page.locator(".bar.wrong, .swatch.wrong, .share .wrong").count() == 0
    assert "right pairs may score as low" in page.locator("#evidence").inner_text()


def test_the_certain_and_how_many_others_fit(visit, page_file, matcher):
    page = visit(page_file)
    headings = [heading.strip() for heading in page.locator("thead th").all_inner_texts()]
    assert headings == ["pair", "row", "score", "q-value", "certain", "others that fit", "verdict"]
    rows = [int(text) for text in cells(page, 2)]
    assert cells(page, 5) == ["yes" if certain else "no" for certain in matcher.certain_mask_[rows]]
    assert cells(page, 6) == [str(n) for n in matcher.n_rivals_[rows]]
    page.get_by_role("button", name="others that fit").click()
    fewest = [int(text) for text in cells(page, 6)]
    assert fewest == sorted(fewest)
    assert "A pair is certain where no other row would fit" in page.locator("#evidence").inner_text()
    assert "could as well be one of" in page.locator("#answer").inner_text()


def test_where_others_were_not_compared_the_page_does_not_speak_of_them(visit, tmp_path):
    SplitMatcher(CalibratedMatcher(), 2, random_state=0).fit(DATA.X, DATA.Y).report().write_html(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    assert "others that fit" not in page.locator("thead").inner_text()
    assert "A pair is certain" not in page.locator("#evidence").inner_text()
    assert "Whether another row would fit as well was not looked at" in page.locator("#answer").inner_text()


def test_of_a_row_without_values_nothing_is_said(visit, tmp_path):
    X = DATA.X[:400].copy()
    X[7] = np.nan
    with pytest.warns(UserWarning, match="1 of the 400 pairs have a row without any value"):
        matcher = CalibratedMatcher(alpha=0.05, random_state=0).fit(X, DATA.Y[:400])
    matcher.report().write_html(tmp_path / "page.html")
    for javascript in (True, False):
        page = visit(tmp_path / "page.html", java_script_enabled=javascript)
        assert cells(page, 1)[0].strip() == "7"
        assert [cells(page, column)[0].strip() for column in (4, 5, 6)] == ["no", "", "doubtful"]


def test_what_was_refused_says_why(visit, tmp_path):
    """Rows of two unrelated sets that are each other's nearest."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((2, 1500, 3))
    of_x, of_y = cKDTree(Y).query(X)[1], cKDTree(X).query(Y)[1]
    rows = np.flatnonzero(of_y[of_x] == np.arange(1500))
    with pytest.warns(DependenceWarning):
        matcher = CalibratedMatcher(random_state=0).fit(X[rows], Y[of_x[rows]])
    matcher.report().write_html(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    assert f"{rows.size} pairs were refused: chosen because they are near." in page.locator("#answer").inner_text()
    place = page.locator("thead th").all_inner_texts().index("refused")
    assert set(cells(page, place + 1)) == {"chosen because they are near"}
    phone = visit(tmp_path / "page.html", viewport={"width": 390, "height": 800})
    assert phone.locator("thead th").nth(place).is_hidden()
    assert phone.locator("tbody tr:first-child td").nth(place).is_hidden()
    assert page.locator(".bar.wrong, .swatch.wrong, .share .wrong").count() == 0


def test_it_prints(visit, page_file):
    page = visit(page_file, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".controls").is_hidden()
    assert page.pdf().startswith(b"%PDF")


def test_without_javascript_the_worst_pairs_are_there(visit, page_file):
    page = visit(page_file, java_script_enabled=False)
    assert page.locator("tbody tr").count() == 20
    assert page.get_by_label("Search").is_hidden()


@pytest.mark.parametrize(
    "fitted",
    [
        RowSumMatcher(),
        EigenvectorMatcher(),
        SplitMatcher(RowSumMatcher(), 3, random_state=0),
        SplitMatcher(CalibratedMatcher(), 2, random_state=0),
    ],
    ids=lambda matcher: type(matcher).__name__,
)
def test_every_matcher_has_a_page(visit, tmp_path, fitted):
    fitted.fit(DATA.X, DATA.Y).report().write_html(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    assert page.locator("svg").count() == (2 if hasattr(fitted, "q_values_") else 1)
    assert page.locator("svg .cut").count() == np.unique(fitted.threshold_).size
    assert page.locator("tbody tr").count() == 20


@pytest.mark.parametrize("kind", ["nothing", "all", "few", "equal scores"])
def test_extremes(visit, tmp_path, kind):
    n, share = {"nothing": (800, 0.0), "all": (800, 1.0), "few": (5, 1.0), "equal scores": (3000, 0.0)}[kind]
    data = make_gaussian_pairs(n, 2, share, rng=0)
    matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    if kind == "equal scores":
        matcher.scores_ = np.zeros(n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher.report().write_html(tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    assert page.locator("svg .bar").count() > 0
    assert "nan" not in page.content().lower()


def test_a_million_pairs_make_a_small_page():
    n = 1_000_000
    rng = np.random.default_rng(0)
    matcher = CalibratedMatcher()
    matcher.scores_ = rng.normal(size=n) * 50 + np.where(rng.random(n) < 0.5, 300, -3e5)
    matcher.p_values_ = np.where(matcher.scores_ > 0, 1e-6, rng.random(n))
    matcher.q_values_ = np.where(matcher.scores_ > 0, 1e-6, 0.4 + 0.6 * rng.random(n))
    matcher.inlier_mask_ = matcher.scores_ > 0
    matcher.threshold_ = float(matcher.scores_[matcher.inlier_mask_].min())
    matcher.inlier_fraction_ = 0.5
    matcher.null_scores_, matcher.n_re_pairings_ = np.sort(rng.normal(size=10_000) * 50 - 3e5), 1_000_000
    keys = np.array([f"a rather long name of a sample, number {number}" for number in range(n)])
    page = matcher.report(keys=keys).html()
    assert len(page.encode()) < 5_000_000
    assert "1,000 of 1,000,000 pairs" in page


def test_which_pairs_are_shown(matcher):
    summary = summarise(matcher)
    places = shown_pairs(summary)
    assert np.unique(places).size == places.size == 1000
    assert set(matcher.result_.worst(500)) <= set(places)
    assert (np.diff(matcher.scores_[places]) >= 0).all()
    barely = np.flatnonzero(matcher.inlier_mask_)[np.argsort(matcher.scores_[matcher.inlier_mask_])[:250]]
    assert set(barely) <= set(places)


def test_nothing_of_the_page_lies_elsewhere(matcher):
    page = matcher.report().html()
    assert "://" not in page
    assert "default-src 'none'" in page  # and the browser would not fetch it


def test_notebooks(matcher):
    report = matcher.report()
    assert repr(report).startswith("<MatchReport: 1,")
    frame = report._repr_html_()
    assert frame.startswith("<iframe")
    assert html.unescape(frame.split('srcdoc="')[1].split('"></iframe>')[0]) == report.html()
    assert json.loads(report.json())["n_pairs"] == N


def test_without_jinja2_the_command_is_named(matcher, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match="pip install jinja2"):
        matcher.report().html()
