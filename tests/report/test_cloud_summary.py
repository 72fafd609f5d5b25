"""The page of two raw clouds: what was found, or why nothing is sure."""

from __future__ import annotations

import json

import numpy as np

from inlier import CloudRegistration
from inlier.datasets import make_scans
from inlier.report import CloudReport, summarise_clouds


def test_a_motion_is_shown_with_its_evidence():
    scans = make_scans(rng=0)
    found = CloudRegistration(random_state=0).fit(scans.source, scans.target)
    page = found.report(scans.source, scans.target)
    assert isinstance(page, CloudReport)
    text = page.html()
    for words in ("data-overlay", "data:image/png", "supporting matches", "Standard errors", "120.6 degrees"):
        assert words in text
    assert f"moved the source by {found.refinement_:.2g} (root mean square)" in text
    content = json.loads(page.json())
    assert content["overlap"] == list(found.overlap_)
    np.testing.assert_allclose(content["transformation"]["matrix"], found.transformation_.matrix)
    assert content["evidence"][0]["n_supporting"] == found.evidence_[0]["n_supporting"]


def test_where_nothing_is_sure_the_page_says_why():
    plane = np.random.default_rng(0).random((3_000, 3)) * [1, 1, 0]
    found = CloudRegistration(random_state=0, raise_on_failure=False).fit(plane, plane)
    summary = summarise_clouds(found, plane, plane)
    assert summary.answer == "No motion between the two clouds is sure."
    page = CloudReport(summary).html()
    assert "do not determine" in page
    assert "Refinement on finer points" not in page
    assert json.loads(summary.json())["transformation"] is None
    assert json.loads(summary.json())["overlap"] is None
