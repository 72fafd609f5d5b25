"""What notebooks show of results and transformations."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context

from inlier import AffineTransformation, CalibratedMatcher, Registration, RowSumMatcher, SimilarityTransformation
from inlier._cards import card
from inlier.datasets import make_gaussian_pairs


class Texts(HTMLParser):
    """The texts of a fragment; tags must be closed."""

    def __init__(self, fragment):
        super().__init__()
        self.texts, self.open = [], []
        self.feed(fragment)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def data():
    return make_gaussian_pairs(200, 5, 0.6, noise=0.1, rng=0)


def test_a_result_says_the_answer_and_names_the_worst_pairs(data):
    result = CalibratedMatcher(random_state=0).fit(data.X, data.Y).result_
    texts = Texts(result._repr_html_()).texts
    assert texts[0] == "CalibratedMatcher result"
    assert texts[1].startswith(f"{result.n_inliers} of 200 pairs called real")
    assert texts[1].endswith(f", {result.certain_mask.sum()} of them certain. Lowest scores:")
    assert texts[2:10] == ["pair", "score", "p_value", "q_value", "inlier", "certain_q_value", "certain", "n_rivals"]
    assert texts[10::8] == [str(place) for place in result.worst(5)]


def test_a_result_without_q_values_has_fewer_columns(data):
    texts = Texts(RowSumMatcher().fit(data.X, data.Y).result_._repr_html_()).texts
    assert texts[2:5] == ["pair", "score", "inlier"]
    assert "certain" not in texts[1]


def test_a_result_that_is_elsewhere_is_not_fetched_pair_by_pair(data):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    lazy = RowSumMatcher().fit(da.from_array(data.X), da.from_array(data.Y)).result_
    assert len(Texts(lazy._repr_html_()).texts) == 2


def test_a_transformation_shows_words_and_its_matrix():
    turn = SimilarityTransformation([[0, -1], [1, 0]], [3, 0], model="rigid")
    texts = Texts(turn._repr_html_()).texts
    assert texts[:2] == ["Rigid transformation", "It turns by 90 degrees counter-clockwise and moves by (3, 0)."]
    assert [float(text) for text in texts[2:]] == turn.matrix.ravel().tolist()


def test_a_large_matrix_is_not_printed_and_what_is_not_determined_is_said():
    wide = AffineTransformation(np.eye(30), np.zeros(30), determined=False)
    texts = Texts(wide._repr_html_()).texts
    assert texts[2:] == ["The pairs did not determine all of it.", "Its matrix has 31 x 31 numbers."]


def test_a_matcher_shows_its_diagram_and_once_it_is_fitted_its_answer(data):
    matcher = RowSumMatcher()
    for shown in (matcher._repr_html_(), matcher._repr_mimebundle_()["text/html"]):
        assert "sk-top-container" in shown
        assert "inlier-card" not in shown
    matcher.fit(data.X, data.Y)
    for shown in (matcher._repr_html_(), matcher._repr_mimebundle_()["text/html"]):
        assert shown.endswith(matcher.result_._repr_html_())
    with config_context(display="text"):
        assert "text/html" not in matcher._repr_mimebundle_()


def test_a_registration_shows_its_transformation_too(data):
    registration = Registration("orthogonal", random_state=0).fit(data.X, data.Y)
    assert registration._repr_html_().endswith(registration.transformation_._repr_html_())
    failed = Registration("rigid", raise_on_failure=False, random_state=0)
    failed.fit(data.X[:, :3], np.random.default_rng(0).normal(size=(200, 3)))
    assert "0 of 200 pairs called real" in failed._repr_html_()


def test_text_is_shown_not_run():
    fragment = card("<script>", ["a & b"], [{"<b>": "<i>"}])
    assert Texts(fragment).texts == ["<script>", "a & b", "<b>", "<i>"]
