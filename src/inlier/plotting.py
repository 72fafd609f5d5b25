"""Pictures of scores, pairs and alignments, drawn with matplotlib: axes in, axes out."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from inlier._typing import FloatArray, Mask
from inlier.result import MatchResult
from inlier.rows.backend import to_host

_NEEDED = "Pictures need matplotlib; install it with: pip install matplotlib"
_MOST_LINES = 300  # between pairs, beyond which nothing else could be seen
REAL, WRONG, QUIET = "#0072B2", "#D55E00", "#B8B8B8"  # told apart by colour-blind readers too
SOURCE, TARGET = "#A2308F", "#59636D"  # the colours of the page of a registration


def new_figure(**options: Any) -> Any:
    """Return a figure outside pyplot's global state; matplotlib is an optional dependency."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(_NEEDED) from error
    return Figure(layout="constrained", **options)


def _or_new(ax: Any, figsize: tuple[float, float]) -> Any:
    """The axes given, or those of a new pyplot figure, which notebooks show."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(_NEEDED) from error
    return plt.subplots(figsize=figsize, layout="constrained")[1]


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

    Examples
    --------
    >>> from inlier import RowSumMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> from inlier.plotting import plot_scores
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=0.6, rng=0)
    >>> ax = plot_scores(RowSumMatcher().fit(data.X, data.Y).result_, data.inlier_mask)
    >>> ax.get_ylabel()
    'number of pairs'
    """
    ax = _or_new(ax, (5, 3.2))
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

    Examples
    --------
    >>> import numpy as np
    >>> from inlier.plotting import plot_points
    >>> points = np.random.default_rng(0).normal(size=(100, 2))
    >>> ax = plot_points(points, points[:, 0] > 1, "to the right")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['to the right']
    """
    if np.ndim(points) != 2 or np.shape(points)[1] != 2:
        raise ValueError(f"points have the shape {np.shape(points)}, not (n, 2): choose two columns.")
    ax = _or_new(ax, (5, 4))
    ax.scatter(*points[~highlighted].T, s=2, color=QUIET, linewidths=0, rasterized=True)
    ax.scatter(*points[highlighted].T, s=3, color=WRONG, linewidths=0, rasterized=True, label=label)
    ax.set_aspect("equal")
    ax.axis("off")
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.02), markerscale=3)
    return ax


def plot_accepted(result: MatchResult, alpha: float | None = None, ax: Any = None) -> Any:
    """Draw how many pairs would be accepted at each alpha.

    Parameters
    ----------
    result : MatchResult, CalibratedMatcher or Registration
        A fitted one, or its ``result_``.
    alpha : float, optional
        Marked, if it is given.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> from inlier.plotting import plot_accepted
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=0.6, noise=0.1, rng=0)
    >>> ax = plot_accepted(CalibratedMatcher(random_state=0).fit(data.X, data.Y).result_, alpha=0.01)
    >>> ax.get_xscale()
    'log'
    """
    result = getattr(result, "result_", result)
    if result.q_values is None:
        raise ValueError(f"{result.method} gives no q-values; CalibratedMatcher and Registration do.")
    ax = _or_new(ax, (5, 3.2))
    q = np.sort(to_host(result.q_values))
    lowest = max(float(q[0]), 1e-9)
    ax.step(np.maximum(q, lowest), np.arange(1, q.size + 1), where="post", color=REAL)
    if alpha is not None:
        ax.axvline(alpha, color="black", linestyle="--", linewidth=1.2, label=f"alpha = {alpha:g}")
        ax.legend(frameon=False)
    ax.set(xscale="log", xlabel="alpha: share of wrong pairs put up with", ylabel="pairs accepted")
    ax.set_ylim(bottom=0)
    return ax


def plot_alignment(X: Any, y: Any, transformation: Any = None, inlier_mask: Mask | None = None, ax: Any = None) -> Any:
    """Draw two sets of points on top of each other, the first as it came or moved by a transformation.

    Parameters
    ----------
    X, y : array-like of shape (n_x, d_x), (n_y, d_y)
        The points. Rows are joined by lines only where ``inlier_mask`` says which of them are pairs.
    transformation : callable, optional
        What carries ``X`` onto ``y``: the ``transformation_`` of a registration, for one.
    inlier_mask : ndarray of bool, optional
        True where row i of ``X`` and row i of ``y`` are a real pair: these are joined in blue, some others in orange.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. With more than two dimensions, and axes that have two, the
        directions are drawn in which ``y`` varies most.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from inlier import Registration
    >>> from inlier.datasets import make_scans
    >>> from inlier.plotting import plot_alignment
    >>> scans = make_scans(rng=0)
    >>> X, y = scans.source[scans.pairs[:, 0]], scans.target[scans.pairs[:, 1]]
    >>> registration = Registration("rigid", random_state=0).fit(X, y)
    >>> ax = plot_alignment(scans.source, scans.target, registration.transformation_)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['source, moved', 'target']
    """
    ax = _or_new(ax, (5, 4))
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    moved = X if transformation is None else np.asarray(transformation(X))
    if moved.shape[1] != y.shape[1]:
        raise ValueError(
            f"X has {moved.shape[1]} columns and y has {y.shape[1]}: points of one space can be drawn together. "
            f"Give a transformation that carries X there."
        )
    moved, y = _in_sight(moved, y, 3 if ax.name == "3d" else 2)
    size = float(np.clip(3000 / max(len(moved), len(y)), 1, 25))
    style = {"s": size, "linewidths": 0, "alpha": 0.7, "rasterized": True}
    ax.scatter(*moved.T, color=SOURCE, label="source" if transformation is None else "source, moved", **style)
    ax.scatter(*y.T, color=TARGET, label="target", **style)
    if inlier_mask is not None:
        _join(ax, moved, y, np.asarray(inlier_mask, dtype=bool))
    ax.set_aspect("equal")
    ax.axis("off")
    ax.legend(frameon=False, markerscale=float(np.clip(4 / size**0.5, 1, 4)))
    return ax


def _in_sight(X: FloatArray, Y: FloatArray, n_axes: int) -> tuple[FloatArray, FloatArray]:
    """Both sets along as many directions as can be drawn: those in which the second varies most."""
    if Y.shape[1] <= n_axes:
        pad = ((0, 0), (0, n_axes - Y.shape[1]))
        return np.pad(X, pad), np.pad(Y, pad)
    middle = Y.mean(axis=0)
    directions = np.linalg.svd(Y - middle, full_matrices=False)[2][:n_axes].T
    return (X - middle) @ directions, (Y - middle) @ directions


def _join(ax: Any, X: FloatArray, Y: FloatArray, mask: Mask) -> None:
    """Lines between pairs, evenly chosen where they are many; the wrong ones below the others."""
    for rows, colour, width in ((np.flatnonzero(~mask), WRONG, 0.4), (np.flatnonzero(mask), REAL, 0.7)):
        for row in rows[:: max(1, rows.size // _MOST_LINES)]:
            ax.plot(*np.stack([X[row], Y[row]]).T, color=colour, linewidth=width, alpha=0.6, zorder=0.5)


def plot_repair(repair: Any, ax: Any = None, most: int = 40) -> Any:
    """Draw who belongs to whom: rows of X on the left, of y on the right, a line from each that moved to its partner.

    Parameters
    ----------
    repair : Repair
        From ``CalibratedMatcher.repair``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    most : int, default=40
        Rows that are drawn at most: those that are not kept, the surest first; those that are not clear in grey.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> from inlier.plotting import plot_repair
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=1, noise=0.1, rng=0)
    >>> y = data.Y.copy()
    >>> y[[3, 7]] = y[[7, 3]]
    >>> ax = plot_repair(CalibratedMatcher(random_state=0).fit(data.X, y).repair())
    >>> len(ax.lines)
    2
    """
    if not hasattr(repair, "partner"):
        raise TypeError(f"plot_repair draws what `CalibratedMatcher.repair` returns; got {type(repair).__name__}.")
    moved = np.flatnonzero(repair.kind != "kept")
    moved = moved[np.argsort(repair.q_values[moved], kind="stable")][:most]
    rows = np.union1d(moved, repair.partner[moved][repair.partner[moved] >= 0])
    place = {int(row): -height for height, row in enumerate(rows)}
    labels = (range(repair.kind.size), range(repair.n_rows_y)) if repair.labels is None else repair.labels
    ax = _or_new(ax, (4.5, 0.6 + 0.22 * max(len(rows), 3)))
    for row, height in place.items():
        for names, at, side in zip(labels, (-0.02, 1.02), ("right", "left"), strict=True):
            if row < len(names):
                ax.annotate(str(names[row]), (at, height), ha=side, va="center", fontsize=8)
    for row in moved.tolist():
        partner = int(repair.partner[row])
        if partner >= 0:
            stays = partner == row
            ax.plot([0, 1], [place[row], place[partner]], color=QUIET if stays else WRONG, linewidth=1.4)
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
    ax = _or_new(ax, (4.2, 4))
    predicted, actual = (np.asarray(to_host(table), dtype=np.float64) for table in (matcher.transform(X), y))
    actual = actual.reshape(len(predicted), -1)
    mask = to_host(matcher.inlier_mask_)
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
