"""The overlap of two similarity matrices, never formed."""

from inlier.overlap.eigenvector import Eigenpair
from inlier.overlap.gram import GramOverlap

__all__ = ["Eigenpair", "GramOverlap"]
