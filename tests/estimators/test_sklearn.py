"""scikit-learn's own checks on every estimator; where one is expected to fail, it is listed with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from inlier import CalibratedMatcher, EigenvectorMatcher, Registration, RowSumMatcher, SplitMatcher


class MovedRegistration(Registration):
    """The default model. It keeps the dimension, but the checks give y one column: here y is X, moved."""

    def fit(self, X, y, sample_weight=None):
        """Fit to X and X + 1, unless something else is wrong with what the check gives."""
        table = np.asarray(X)
        if table.dtype.kind == "O":
            try:
                table = table.astype(np.float64)
            except (TypeError, ValueError):
                return super().fit(X, y, sample_weight)
        fits = y is not None and table.ndim == 2 and table.dtype.kind in "iuf" and len(table) == len(np.asarray(y))
        return super().fit(X, table + 1 if fits else y, sample_weight)

    def score(self, X, y, sample_weight=None):
        """Likewise."""
        return super().score(X, np.asarray(X) + 1, sample_weight)


ESTIMATORS = [
    RowSumMatcher(),
    RowSumMatcher(whiten=True),
    EigenvectorMatcher(),
    EigenvectorMatcher(threshold=0.5, solver="operator"),
    SplitMatcher(RowSumMatcher(), n_splits=2, random_state=0),
    CalibratedMatcher(random_state=0),
    CalibratedMatcher(whiten=False, random_state=0),
    Registration("affine", raise_on_failure=False, random_state=0),
    MovedRegistration(),
]

TOO_FEW = "so few different pairs prove no motion, and `fit` says so"
EXPECTED = {
    "check_sample_weights_shape": f"4 different pairs in the plane: {TOO_FEW}",
    "check_sample_weights_not_overwritten": f"4 different pairs in the plane: {TOO_FEW}",
    "check_sample_weight_equivalence_on_dense_data": f"9 different pairs in 30 dimensions: {TOO_FEW}",
}


NEW_PAIRS = "score_samples judges pairs: it takes X and y, and the check gives X alone"
OF_PAIRS = {
    "check_methods_sample_order_invariance": NEW_PAIRS,
    "check_methods_subset_invariance": NEW_PAIRS,
}
WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": "a weight is the chance of being learned from, in proportion",
}


def expected_failures(estimator):
    if isinstance(estimator, MovedRegistration):
        return OF_PAIRS | EXPECTED
    if isinstance(estimator, Registration):
        return OF_PAIRS
    return OF_PAIRS | WEIGHTS if isinstance(estimator, CalibratedMatcher) else {}


@pytest.mark.filterwarnings("ignore:.*columns of . hold a single value")
@pytest.mark.filterwarnings("ignore:.*pairs have a row equal to the mean")
@pytest.mark.filterwarnings("ignore:whiten=True has nothing to compare")
@pytest.mark.filterwarnings("ignore:. holds no negative number")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)  # reports by raising
