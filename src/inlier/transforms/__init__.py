"""Maps from one point set onto the other: as objects, and their weighted least-squares fits."""

from inlier.transforms.least_squares import DegenerateConfigurationError, estimate_transformation
from inlier.transforms.transformations import AffineTransformation, SimilarityTransformation, Transformation

__all__ = [
    "AffineTransformation",
    "DegenerateConfigurationError",
    "SimilarityTransformation",
    "Transformation",
    "estimate_transformation",
]
