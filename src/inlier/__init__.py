"""Given two sets of paired points, which pairs are real?

Start with `CalibratedMatcher`; ``fit(X, y)``, then look at ``inlier_mask_``.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inlier import datasets, metrics
    from inlier.estimators.calibrated import CalibratedMatcher
    from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher, eigenvector_threshold, row_sum_threshold
    from inlier.estimators.registration import Registration
    from inlier.estimators.split import SplitMatcher
    from inlier.exceptions import DegenerateConfigurationError, NoConsensusError
    from inlier.overlap import GramOverlap
    from inlier.result import MatchResult
    from inlier.transforms import (
        AffineTransformation,
        SimilarityTransformation,
        Transformation,
        estimate_transformation,
    )

__version__ = version("inlier")

__all__ = [
    "AffineTransformation",
    "CalibratedMatcher",
    "DegenerateConfigurationError",
    "EigenvectorMatcher",
    "GramOverlap",
    "MatchResult",
    "NoConsensusError",
    "Registration",
    "RowSumMatcher",
    "SimilarityTransformation",
    "SplitMatcher",
    "Transformation",
    "datasets",
    "eigenvector_threshold",
    "estimate_transformation",
    "metrics",
    "row_sum_threshold",
]

_HOME = {
    "AffineTransformation": "transforms",
    "CalibratedMatcher": "estimators.calibrated",
    "DegenerateConfigurationError": "exceptions",
    "EigenvectorMatcher": "estimators.paper",
    "GramOverlap": "overlap",
    "MatchResult": "result",
    "NoConsensusError": "exceptions",
    "Registration": "estimators.registration",
    "RowSumMatcher": "estimators.paper",
    "SimilarityTransformation": "transforms",
    "SplitMatcher": "estimators.split",
    "Transformation": "transforms",
    "eigenvector_threshold": "estimators.paper",
    "estimate_transformation": "transforms",
    "row_sum_threshold": "estimators.paper",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``inlier --help`` need not wait for SciPy."""
    if name not in __all__:
        raise AttributeError(f"module 'inlier' has no attribute {name!r}")
    module = import_module(f"inlier.{_HOME.get(name, name)}")
    globals()[name] = value = getattr(module, name) if name in _HOME else module
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
