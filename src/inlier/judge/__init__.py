"""What was learned, small and frozen, to be taken to where the other pairs are."""

from inlier.judge.drift import Drift
from inlier.judge.judge import Judge

__all__ = ["Drift", "Judge"]
