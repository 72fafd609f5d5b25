from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlier.metrics import ErrorRates, error_rates

pairs_of_masks = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=50)


@given(pairs_of_masks)
def test_definition_one(masks):
    truth, guess = np.array(masks).T
    G, B = {i for i, real in enumerate(truth) if real}, {i for i, real in enumerate(truth) if not real}
    accepted = {i for i, called in enumerate(guess) if called}
    rates = error_rates(truth, guess)
    if G:
        assert rates.inliers == pytest.approx(len(G - accepted) / len(G))
    if B:
        assert rates.outliers == pytest.approx(len(B & accepted) / len(B))
    assert rates.overall == pytest.approx((len(G - accepted) + len(B & accepted)) / len(truth))


def test_a_share_of_nothing_is_zero():
    assert error_rates([True, True], [True, False]) == ErrorRates(0.5, 0.0, 0.5)
    assert error_rates([False, False], [True, False]) == ErrorRates(0.0, 0.5, 0.5)


def test_zeros_and_ones_are_a_mask():
    assert error_rates([1, 0], np.array([1.0, 1.0])) == ErrorRates(0.0, 1.0, 0.5)


@pytest.mark.parametrize(
    ("truth", "guess", "message"),
    [
        ([True], [True, False], "1 entries and mask has 2"),
        ([], [], "empty"),
        ([[True]], [[True]], r"one-dimensional, but has shape \(1, 1\)"),
        ([True, False], [0, 2], "indices must be turned into a mask"),
    ],
)
def test_bad_masks(truth, guess, message):
    with pytest.raises(ValueError, match=message):
        error_rates(truth, guess)
