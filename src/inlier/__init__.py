"""Given two sets of paired points, which pairs are real?

Start with `CalibratedMatcher`; ``fit(X, y)``, then look at ``inlier_mask_``.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

from inlier._lazy import attach

if TYPE_CHECKING:
    from inlier import datasets, metrics
    from inlier.estimators.calibrated import CalibratedMatcher
    from inlier.estimators.clouds import CloudRegistration
    from inlier.estimators.paper import (
        EigenvectorMatcher,
        RowSumMatcher,
        SplitMatcher,
        eigenvector_threshold,
        row_sum_threshold,
    )
    from inlier.estimators.registration import Registration
    from inlier.exceptions import DegenerateConfigurationError, NoConsensusError
    from inlier.judge import Judge
    from inlier.overlap import GramOverlap
    from inlier.progress import set_progress
    from inlier.repair.answer import Repair
    from inlier.result import MatchResult
    from inlier.scans.model import Model
    from inlier.scans.register import register_scans
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
    "CloudRegistration",
    "DegenerateConfigurationError",
    "EigenvectorMatcher",
    "GramOverlap",
    "Judge",
    "MatchResult",
    "Model",
    "NoConsensusError",
    "Registration",
    "Repair",
    "RowSumMatcher",
    "SimilarityTransformation",
    "SplitMatcher",
    "Transformation",
    "datasets",
    "eigenvector_threshold",
    "estimate_transformation",
    "metrics",
    "register_scans",
    "row_sum_threshold",
    "set_progress",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "datasets": "datasets",
        "estimators.calibrated": "CalibratedMatcher",
        "estimators.clouds": "CloudRegistration",
        "estimators.paper": "EigenvectorMatcher RowSumMatcher SplitMatcher eigenvector_threshold row_sum_threshold",
        "estimators.registration": "Registration",
        "repair.answer": "Repair",
        "exceptions": "DegenerateConfigurationError NoConsensusError",
        "judge": "Judge",
        "metrics": "metrics",
        "overlap": "GramOverlap",
        "progress": "set_progress",
        "result": "MatchResult",
        "scans.model": "Model",
        "scans.register": "register_scans",
        "transforms": "AffineTransformation SimilarityTransformation Transformation estimate_transformation",
    },
)
