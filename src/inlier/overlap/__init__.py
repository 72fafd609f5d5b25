"""The overlap of two similarity matrices, never formed."""

from inlier.overlap.gram import Eigenpair, GramOverlap

__all__ = ["Eigenpair", "GramOverlap"]
