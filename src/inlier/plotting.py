"""Pictures of scores and pairs, drawn with matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from inlier._typing import FloatArray, Mask
from inlier.result import MatchResult

REAL, WRONG, QUIET = "#0072B2", "#D55E00", "#B8B8B8"  # told apart by colour-blind readers too


def new_figure(**options: Any) -> Any:
    """Return a figure outside pyplot's global state; matplotlib is an optional dependency."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Pictures need matplotlib; install it with: pip install 'inlier[report]'") from error
    return Figure(layout="constrained", **options)


def plot_scores(result: Any, true_mask: Mask | None = None, ax: Any = None) -> Any:
    """Draw the histogram of the scores with the threshold; real and wrong pairs apart if the truth is known.

    Parameters
    ----------
    result : MatchResult or matcher
        What a matcher found, from its ``result_``; or the matcher itself.
    true_mask : ndarray of bool, optional
        True where the pair is real.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        ax = new_figure(figsize=(5, 3.2)).subplots()
    result = getattr(result, "result_", result)
    scores, clipped = _within_sight(result)
    edges = np.histogram_bin_edges(scores, bins=60)
    if true_mask is None:
        ax.hist(scores, edges, color=QUIET)
    else:
        groups = [scores[true_mask], scores[~true_mask]]
        ax.hist(groups, edges, stacked=True, color=[REAL, WRONG], label=["real pairs", "wrong pairs"])
    for threshold in np.atleast_1d(result.threshold):
        ax.axvline(threshold, color="black", linestyle="--", linewidth=1.2)
    ax.plot([], [], color="black", linestyle="--", linewidth=1.2, label="threshold")
    xlabel = "score (lower ones at the edge)" if clipped else "score: agreement with the other pairs"
    ax.set(xlabel=xlabel, ylabel="number of pairs")
    ax.locator_params(axis="x", nbins=5)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    ax.legend(frameon=False)
    return ax


def _within_sight(result: MatchResult) -> tuple[FloatArray, bool]:
    """Clip scores that lie so far below the threshold that nothing else could be seen."""
    cut = float(np.min(result.threshold))
    lowest = cut - 2 * max(float(result.scores.max()) - cut, 1e-12)
    return np.maximum(result.scores, lowest), bool(result.scores.min() < lowest)


def plot_points(points: FloatArray, highlighted: Mask, label: str, ax: Any = None) -> Any:
    """Scatter points of a plane, some of them highlighted.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        Where they are.
    highlighted : ndarray of bool, shape (n,)
        True for those that are drawn in colour.
    label : str
        What the highlighted ones are, for the legend.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        ax = new_figure(figsize=(5, 4)).subplots()
    ax.scatter(*points[~highlighted].T, s=2, color=QUIET, linewidths=0, rasterized=True)
    ax.scatter(*points[highlighted].T, s=3, color=WRONG, linewidths=0, rasterized=True, label=label)
    ax.set_aspect("equal")
    ax.axis("off")
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.02), markerscale=3)
    return ax


def as_png(figure: Any, dpi: int = 130) -> bytes:
    """Render a figure to PNG."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": "inlier"})
    return buffer.getvalue()


def plot_map(matcher: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """Draw y beside what the learned map makes of x, in the direction of y that it predicts most of.

    Parameters
    ----------
    matcher : CalibratedMatcher or Registration
        Fitted to these pairs.
    X, y : array-like
        The tables of `fit`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> from inlier.plotting import plot_map
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=0.6, noise=0.1, rng=0)
    >>> ax = plot_map(CalibratedMatcher(random_state=0).fit(data.X, data.Y), data.X, data.Y)
    >>> ax.get_ylabel()
    'y'
    """
    if ax is None:
        ax = new_figure(figsize=(4.2, 4)).subplots()
    predicted, actual = np.asarray(matcher.transform(X), dtype=np.float64), np.asarray(y, dtype=np.float64)
    actual = actual.reshape(len(predicted), -1)
    mask = np.asarray(matcher.inlier_mask_)
    centre = predicted.mean(axis=0)
    direction = np.linalg.svd(predicted - centre, full_matrices=False)[2][0]
    across, up = (predicted - centre) @ direction, (np.nan_to_num(actual - centre)) @ direction
    for rows, colour, label in ((~mask, WRONG, "not accepted"), (mask, REAL, "accepted")):
        ax.scatter(across[rows], up[rows], s=6, color=colour, linewidths=0, alpha=0.6, label=label)
    ends = [float(across.min()), float(across.max())]
    ax.plot(ends, ends, color="black", linewidth=0.8)
    ax.set(xlabel="what the map makes of x", ylabel="y")
    ax.legend(frameon=False)
    return ax
