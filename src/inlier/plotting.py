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


def plot_scores(result: MatchResult, true_mask: Mask | None = None, ax: Any = None) -> Any:
    """Draw the histogram of the scores with the threshold; real and wrong pairs apart if the truth is known.

    Parameters
    ----------
    result : MatchResult
        What a matcher found, from its ``result_``.
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


def plot_repair(repair: Any, ax: Any = None, most: int = 40) -> Any:
    """Draw who belongs to whom: rows of X on the left, of y on the right, a line from each that moved to its partner.

    Parameters
    ----------
    repair : Repair
        From ``CalibratedMatcher.repair``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    most : int, default=40
        Rows that are drawn at most: those that are not kept, the surest first.

    Returns
    -------
    matplotlib Axes
    """
    moved = np.flatnonzero(~np.isin(repair.kind, ("kept", "poor")))
    moved = moved[np.argsort(repair.q_values[moved], kind="stable")][:most]
    rows = np.union1d(moved, repair.partner[moved][repair.partner[moved] >= 0])
    place = {int(row): -height for height, row in enumerate(rows)}
    of_x, of_y = (None, None) if repair.labels is None else repair.labels
    if ax is None:
        ax = new_figure(figsize=(4.5, 0.6 + 0.22 * max(len(rows), 3))).subplots()
    for row, height in place.items():
        ax.annotate(str(row if of_x is None else of_x[row]), (-0.02, height), ha="right", va="center", fontsize=8)
        ax.annotate(str(row if of_y is None else of_y[row]), (1.02, height), ha="left", va="center", fontsize=8)
    for row in moved.tolist():
        partner = int(repair.partner[row])
        if partner >= 0:
            ax.plot([0, 1], [place[row], place[partner]], color=WRONG, linewidth=1.4)
        else:
            ax.annotate(repair.kind[row], (0.02, place[row]), va="center", fontsize=7, color="#555555")
    ax.set(xlim=(-0.3, 1.3), ylim=(-max(len(rows), 1), 1), title="row of X and its partner in y")
    ax.axis("off")
    return ax


def as_png(figure: Any, dpi: int = 130) -> bytes:
    """Render a figure to PNG."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": "inlier"})
    return buffer.getvalue()
