"""Could chance have done it? P-values from re-pairings, and what is learned from the pairs to get them."""

from inlier.calibration.p_values import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
