"""Maps from one point set onto the other: as objects, and their weighted least-squares fits."""

from inlier.transforms.estimation import DegenerateConfigurationError, estimate_transformation
from inlier.transforms.objects import AffineTransformation, SimilarityTransformation, Transformation

__all__ = [
    "AffineTransformation",
    "DegenerateConfigurationError",
    "SimilarityTransformation",
    "Transformation",
    "estimate_transformation",
]
