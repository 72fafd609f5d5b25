"""Every kind of bad input, through the front door of every matcher: the message says what was seen and the cure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from inlier import CalibratedMatcher, EigenvectorMatcher, RowSumMatcher, SplitMatcher, estimate_transformation

GOOD = np.random.default_rng(0).standard_normal((12, 3))


def with_value(value, row=4, column=1):
    table = GOOD.copy()
    table[row, column] = value
    return table


def with_cell(cell):
    table = GOOD.astype(object)
    table[2, 0] = cell
    return table


def masked_at(row, column):
    table = np.ma.masked_array(GOOD)
    table[row, column] = np.ma.masked
    return table


BAD = {
    "unequal": (GOOD, GOOD[:9], ValueError, "X has 12 rows and y has 9.*drop the rows without a partner"),
    "nan": (with_value(np.nan), GOOD, ValueError, r"X contains NaN or infinity: 1 value\(s\).*row 4, column 1"),
    "infinity": (GOOD, with_value(-np.inf), ValueError, r"y contains NaN or infinity: .*\(-inf\) in row 4, column 1"),
    "one pair": (GOOD[:1], GOOD[:1], ValueError, "At least [24] pairs are needed.*there is 1 .*: give more rows"),
    "no pairs": (GOOD[:0], GOOD[:0], ValueError, "At least [24] pairs are needed.*there are 0 .*: give more rows"),
    "no columns": (GOOD[:, :0], GOOD, ValueError, r"X has no columns.*shape=\(12, 0\)"),
    "constant rows": (np.ones((12, 3)), GOOD, ValueError, "X is constant: all 12 rows are the same"),
    "constant y": (GOOD, np.full(12, 7), ValueError, "y is constant: all 12 rows are the same"),
    "one dimension": (GOOD[:, 0], GOOD, ValueError, r"X must be a table.*shape \(12,\).*reshape\(-1, 1\)"),
    "three dimensions": (GOOD, GOOD.reshape(12, 3, 1), ValueError, r"y must be a table.*shape \(12, 3, 1\)"),
    "strings": (np.array([["a", "b"]] * 12), GOOD, ValueError, "column 0 of X does not hold numbers .*'a'"),
    "a word": (with_cell("six"), GOOD, ValueError, "of X does not hold numbers .*six"),
    "objects": (GOOD, with_cell({}), TypeError, "y could not be read as a table of numbers"),
    "dates": (np.full((12, 2), "2020-01-01", "M8[D]"), GOOD, ValueError, "X holds datetime64"),
    "complex": (GOOD + 1j, GOOD, ValueError, "Complex data not supported: X.*real and imaginary parts"),
    "sparse": (scipy.sparse.csr_array(GOOD), GOOD, TypeError, "(?i)sparse data was passed.*toarray"),
    "sparse y": (GOOD, scipy.sparse.csr_matrix(GOOD), TypeError, "(?i)sparse data was passed.*toarray"),
    "masked": (masked_at(4, 1), GOOD, ValueError, r"X: 1 value\(s\) are masked, .* row 4, column 1\. Drop or fill"),
    "masked y": (GOOD, masked_at(3, 0)[:, 0], ValueError, r"y: 1 value\(s\) are masked, the first in row 3\."),
    "missing y": (GOOD, None, ValueError, "requires y to be passed"),
    "missing values": (pd.DataFrame(GOOD).mask(GOOD > 1), GOOD, ValueError, "X contains NaN"),
    "overflow": (with_value(1.7e308), GOOD, ValueError, "X has values as large as .*Divide it"),
    "ragged": ([[1, 2], [3]], GOOD[:2], ValueError, "X could not be read as a table"),
    "nothing": (None, GOOD, ValueError, "X holds object values"),
}


GAPS = ("nan", "missing values", "overflow")  # what the calibrated matcher takes as missing


@pytest.mark.parametrize(
    "matcher", [RowSumMatcher(), EigenvectorMatcher(), SplitMatcher(RowSumMatcher(), 2), CalibratedMatcher()]
)
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_answered_in_a_sentence(matcher, case):
    X, y, error, message = BAD[case]
    if isinstance(matcher, CalibratedMatcher) and case in GAPS:
        pytest.skip("gaps are filled, and absurd values count as gaps: tests/estimators/test_calibrated.py")
    with pytest.raises(error, match=message):
        matcher.fit(X, y)


@pytest.mark.parametrize("matcher", [RowSumMatcher(), EigenvectorMatcher(whiten=True)])
def test_a_constant_column_is_named_and_changes_nothing(matcher):
    X = np.insert(GOOD, 1, 1.0, axis=1)  # a homogeneous coordinate
    with pytest.warns(UserWarning, match=r"1 of the 4 columns of X holds a single value, or none \(column 1\)"):
        scores = matcher.fit(X, GOOD).scores_
    expected = matcher.fit(GOOD, GOOD).scores_
    scale = 4 / 3 if isinstance(matcher, RowSumMatcher) else 1  # the row-sum scale counts d_x = 4 dimensions
    np.testing.assert_allclose(scores, scale * expected, atol=1e-9 * np.abs(expected).max())


def test_many_constant_columns_are_listed_in_part():
    X = np.hstack([np.zeros((12, 8)), GOOD])
    with pytest.warns(UserWarning, match=r"8 of the 11 columns of X .*\(column 0, 1, 2, 3, 4, \.\.\.\)"):
        RowSumMatcher().fit(X, GOOD)


def test_the_first_of_many_bad_values_is_located_in_a_later_block(small_blocks):
    small_blocks(5)
    X = with_value(np.nan, row=11, column=2)
    X[7, 1] = np.inf
    with pytest.raises(ValueError, match=r"2 value\(s\), the first \(inf\) in row 7, column 1"):
        RowSumMatcher().fit(X, GOOD)


def test_a_masked_array_with_nothing_masked_is_an_array():
    scores = RowSumMatcher().fit(np.ma.masked_array(GOOD, np.zeros(GOOD.shape, bool)), np.ma.masked_array(GOOD)).scores_
    np.testing.assert_array_equal(scores, RowSumMatcher().fit(GOOD, GOOD).scores_)


def test_masked_weights_are_refused():
    weights = np.ma.masked_array(np.ones(12), np.arange(12) == 7)
    with pytest.raises(ValueError, match=r"weights: 1 value\(s\) are masked, the first in row 7\."):
        estimate_transformation("rigid", GOOD, GOOD, weights)


def test_masked_values_in_dask_are_refused():
    dask_array = pytest.importorskip("dask.array", reason="the extra dask is not installed")
    with pytest.raises(ValueError, match=r"X is a Dask array of masked values\. .*dask\.array\.ma\.filled"):
        RowSumMatcher().fit(dask_array.from_array(masked_at(4, 1)), GOOD)
