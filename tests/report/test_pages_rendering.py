from __future__ import annotations

import base64
import platform
from types import SimpleNamespace

import pytest
from jinja2 import UndefinedError

from inlier.report import Origin, Part, render_page
from inlier.report.match_summary import versions
from inlier.report.pages import data_uri, find_template

SUMMARY = SimpleNamespace(method="calibrated", settings={"alpha": "<0.01>"}, origin=Origin())
SETTINGS = {"summary": SUMMARY, "versions": {"python": "3"}}


def test_what_is_shown_is_escaped():
    page = render_page("<Title>", [Part("settings.html", SETTINGS)])
    assert "<title>&lt;Title&gt;</title>" in page
    assert "&lt;0.01&gt;" in page
    assert "<0.01>" not in page


def test_a_script_is_included_once_however_many_parts_need_it():
    part = Part("settings.html", SETTINGS, script="pairs.js")
    assert render_page("", [part, part]).count("const perPage") == 1
    assert render_page("", [part, part]).count("<section") == 2
    assert "const perPage" not in render_page("", [Part("settings.html", SETTINGS)])
    assert "<section" not in render_page("", [])


def test_what_a_template_is_not_given_is_an_error():
    with pytest.raises(UndefinedError, match="versions"):
        render_page("", [Part("settings.html", {"summary": SUMMARY})])


def test_a_package_may_bring_its_own_templates_and_use_those_of_the_report():
    assert find_template("parts/demo_answer.html", "inlier.apps").name == "parts/demo_answer.html"
    assert find_template("page.html", "inlier.apps").name == "page.html"


def test_a_picture_is_its_own_address():
    kind, content = data_uri(b"\x89PNG", "png").split(";base64,")
    assert kind == "data:image/png"
    assert base64.b64decode(content) == b"\x89PNG"


def test_versions():
    found = versions()
    assert found["python"] == platform.python_version()
    assert {"inlier", "numpy", "scipy", "scikit-learn", "numba"} < set(found)
