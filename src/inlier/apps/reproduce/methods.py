"""The five methods that Figures 1 and 3 compare, and how the pictures look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from inlier import plotting
from inlier._typing import Mask
from inlier.apps.reproduce.experiment import Record, Row, column
from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher
from inlier.metrics import error_rates

EIGENVECTOR, ROW_SUM = "eigenvector, k-means", "row sum, k-means"
FIXED = {"eigenvector, t = 0.3": 0.3, "eigenvector, t = 0.5": 0.5, "eigenvector, t = 0.7": 0.7}
METHODS = (*FIXED, EIGENVECTOR, ROW_SUM)
_AT = "eigenvector, t = "
OVERALL, SECONDS = "error overall", "seconds per repetition"
ERRORS = ("error on G", "error on B", OVERALL)
SIMILAR = 0.01  # two curves are called similar if they are on average less than this apart

# Colours that colour-blind readers tell apart (Okabe and Ito), and one look per method.
BLACK, ORANGE, SKY_BLUE, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
_COLOURS = dict(zip(METHODS, (SKY_BLUE, ORANGE, PURPLE, VERMILION, BLUE), strict=True))
_MARKERS = dict(zip(METHODS, ("v", "s", "^", "o", "D"), strict=True))
BAND_IN_ERRORS = 2  # half width of the bands, in standard errors


def judge_methods(X: Any, Y: Any, truth: Mask, thresholds: Sequence[float] = ()) -> list[Record]:
    """Return the error rates of each method, and at further thresholds; the eigenvector is computed once for all."""
    eigenvector = EigenvectorMatcher().fit(X, Y)
    rules = FIXED | {f"{_AT}{t:g}": t for t in thresholds}
    masks = {name: eigenvector.scores_ >= t for name, t in rules.items()}
    masks |= {EIGENVECTOR: eigenvector.inlier_mask_, ROW_SUM: RowSumMatcher().fit(X, Y).inlier_mask_}
    return [
        {"method": name, **dict(zip(ERRORS, error_rates(truth, mask), strict=True))} for name, mask in masks.items()
    ]


def methods_in(rows: Iterable[Row]) -> tuple[str, ...]:
    """The methods of the paper, and the further thresholds that were tried."""
    return (*METHODS, *dict.fromkeys(row["method"] for row in rows if row["method"] not in METHODS))


def method_look(method: str) -> dict[str, Any]:
    """Colour, marker and line of a method, the same in all pictures; k-means rules are drawn solid."""
    solid = method in (EIGENVECTOR, ROW_SUM)
    return {
        "color": _COLOURS.get(method, BLACK),
        "marker": _MARKERS.get(method, "x"),
        "markersize": 4.5,
        "linestyle": "-" if solid else "--",
        "linewidth": 1.6 if solid else 1.2,
        "label": method,
    }


def plot_with_band(ax: Any, x: Sequence[float], rows: list[Row], **look: Any) -> None:
    """Draw the means as a line with a band of two standard errors to either side."""
    mean, half = np.array(column(rows, "mean")), BAND_IN_ERRORS * np.array(column(rows, "stderr"))
    ax.plot(x, mean, **look)
    ax.fill_between(x, mean - half, mean + half, color=look["color"], alpha=0.2, linewidth=0)


def legend_below(figure: Any, ax: Any, columns: int) -> Any:
    """Put one legend for all panels under them; return the figure."""
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False)
    return figure


def log_axes_over_sizes(ax: Any, sizes: Sequence[int]) -> None:
    """Make both axes logarithmic: labels at the sizes below, at 1, 2 and 5 beside, all in plain numbers."""
    from matplotlib.ticker import LogLocator

    ax.set(xscale="log", yscale="log", xlabel="number of pairs, n")
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.minorticks_off()
    ax.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def panels(count: int, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    """Return a figure and its panels, side by side, without the frames' upper and right lines and with a light grid."""
    figure = plotting.new_figure(figsize=(width, height))
    axes = figure.subplots(1, count, **options)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, axes
