"""How the pictures look: colours that colour-blind readers tell apart (Okabe and Ito), and one look per method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inlier.apps.reproduce.methods import EIGENVECTOR, METHODS, ROW_SUM
from inlier.apps.reproduce.model import Row

BLACK, ORANGE, SKY_BLUE, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"

_COLOURS = dict(zip(METHODS, (SKY_BLUE, ORANGE, PURPLE, VERMILION, BLUE), strict=True))
_MARKERS = dict(zip(METHODS, ("v", "s", "^", "o", "D"), strict=True))
BAND_IN_ERRORS = 2  # half width of the bands, in standard errors


def method_look(method: str) -> dict[str, Any]:
    """Colour, marker and line of a method, the same in all pictures; k-means rules are drawn solid."""
    solid = method in (EIGENVECTOR, ROW_SUM)
    return {
        "color": _COLOURS[method],
        "marker": _MARKERS[method],
        "markersize": 4.5,
        "linestyle": "-" if solid else "--",
        "linewidth": 1.6 if solid else 1.2,
        "label": method,
    }


def plot_with_band(ax: Any, x: Sequence[float], rows: list[Row], **look: Any) -> None:
    """Draw the means as a line with a band of two standard errors to either side."""
    mean = np.array([row["mean"] for row in rows])
    half = BAND_IN_ERRORS * np.array([row["stderr"] for row in rows])
    ax.plot(x, mean, **look)
    ax.fill_between(x, mean - half, mean + half, color=look["color"], alpha=0.2, linewidth=0)


def legend_below(figure: Any, ax: Any, columns: int) -> None:
    """Put one legend for all panels under them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def plain_log_axis(axis: Any) -> None:
    """Label a logarithmic axis at 1, 2 and 5, with plain numbers."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def quiet_axes(*axes: Any) -> None:
    """Take away the frame's upper and right lines, and draw a light grid."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
