"""The paper's thresholds for people who know what share of their pairs is real."""

from __future__ import annotations

from inlier._checks import check_count, check_number


def eigenvector_threshold(inlier_fraction: float) -> float:
    """t = 1 / (2 sqrt(r)), which minimises the error bound of Corollary 1.

    Parameters
    ----------
    inlier_fraction : float
        r = |G| / n, in (0, 1].

    Examples
    --------
    >>> from inlier import EigenvectorMatcher, eigenvector_threshold
    >>> eigenvector_threshold(0.25)
    1.0
    >>> matcher = EigenvectorMatcher(threshold=eigenvector_threshold(0.8))
    """
    return float(1 / (2 * _fraction(inlier_fraction) ** 0.5))


def row_sum_threshold(n: int, d: int, inlier_fraction: float) -> float:
    """T = d (r n + 1) / 2, half way between the expected scores of outliers and inliers (section 4.1).

    Parameters
    ----------
    n : int
        Number of pairs.
    d : int
        Dimension of the points; the larger of the two where they differ.
    inlier_fraction : float
        r = |G| / n, in (0, 1].

    Examples
    --------
    >>> from inlier import RowSumMatcher, row_sum_threshold
    >>> row_sum_threshold(n=999, d=6, inlier_fraction=1 / 3)
    1002.0
    >>> matcher = RowSumMatcher(threshold=row_sum_threshold(12_000, 6, 0.8))
    """
    n, d = check_count(n, "n"), check_count(d, "d")
    return d * (_fraction(inlier_fraction) * n + 1) / 2


def _fraction(inlier_fraction: float) -> float:
    fraction = check_number(inlier_fraction, "inlier_fraction", low=0, high=1)
    if fraction == 0:
        raise ValueError("inlier_fraction must be above 0: with no inlier there is nothing to separate.")
    return fraction
