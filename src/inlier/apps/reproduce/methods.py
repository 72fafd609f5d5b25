"""The five methods that Figures 1 and 3 compare, on one set of pairs."""

from __future__ import annotations

from typing import Any

from inlier._typing import Mask
from inlier.apps.reproduce.model import Record
from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher
from inlier.metrics import error_rates

EIGENVECTOR, ROW_SUM = "eigenvector, k-means", "row sum, k-means"
FIXED = {"eigenvector, t = 0.3": 0.3, "eigenvector, t = 0.5": 0.5, "eigenvector, t = 0.7": 0.7}
METHODS = (*FIXED, EIGENVECTOR, ROW_SUM)
ERRORS = ("error on G", "error on B", "error overall")


def masks_of_methods(X: Any, Y: Any) -> dict[str, Mask]:
    """Let each method say which pairs are real; the eigenvector is computed once for its four rules."""
    eigenvector = EigenvectorMatcher().fit(X, Y)
    masks = {name: eigenvector.scores_ >= t for name, t in FIXED.items()}
    return {**masks, EIGENVECTOR: eigenvector.inlier_mask_, ROW_SUM: RowSumMatcher().fit(X, Y).inlier_mask_}


def judge_methods(X: Any, Y: Any, truth: Mask) -> list[Record]:
    """Return the error rates of each method."""
    return [
        {"method": name, **dict(zip(ERRORS, error_rates(truth, mask), strict=True))}
        for name, mask in masks_of_methods(X, Y).items()
    ]
