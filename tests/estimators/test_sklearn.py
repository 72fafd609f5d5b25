"""scikit-learn's own checks on every estimator, with no expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from inlier import CalibratedMatcher, EigenvectorMatcher, Registration, RowSumMatcher, SplitMatcher

ESTIMATORS = [
    RowSumMatcher(),
    RowSumMatcher(whiten=True),
    EigenvectorMatcher(),
    EigenvectorMatcher(threshold=0.5, solver="operator"),
    SplitMatcher(RowSumMatcher(), n_splits=2, random_state=0),
    CalibratedMatcher(random_state=0),
    CalibratedMatcher(whiten=False, random_state=0),
    Registration("affine", raise_on_failure=False, random_state=0),
    Registration(),
]


@pytest.mark.filterwarnings("ignore:.*columns of . hold a single value")
@pytest.mark.filterwarnings("ignore:.*pairs have a row equal to the mean")
@pytest.mark.filterwarnings("ignore:whiten=True has nothing to compare")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)  # reports by raising
