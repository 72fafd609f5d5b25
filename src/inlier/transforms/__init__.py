"""Maps from one point set onto the other: as objects, and their weighted least-squares fits."""

from inlier.transforms.estimation import estimate_transformation
from inlier.transforms.least_squares import MapModel
from inlier.transforms.transformations import AffineTransformation, SimilarityTransformation, Transformation

__all__ = [
    "AffineTransformation",
    "MapModel",
    "SimilarityTransformation",
    "Transformation",
    "estimate_transformation",
]
