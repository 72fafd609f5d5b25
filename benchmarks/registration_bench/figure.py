"""One figure: success against the outlier rate for each n and placement, and time against n."""

from __future__ import annotations

import numpy as np

from inlier.plotting import as_png, new_figure
from registration_bench.grid import RATES, SIZES
from registration_bench.methods import METHODS, OURS
from registration_bench.problems import PLACEMENTS

COLOURS = ("#000000", "#555555", "#BBBBBB", "#56B4E9", "#0072B2", "#009E73", "#7FC97F", "#D55E00", "#E69F00",
           "#CC79A7", "#882255", "#AA4499", "#999933", "#661100")  # fmt: skip
MARKERS = "oosv^<>DPXd*ph"
TIMED_RATES = (0.5, 0.9, 0.95, 0.99, 0.995)
GOOD = 0.9  # a filled mark in the panels of time: success of at least this share


def draw(grid) -> bytes:
    """Draw the panels for the sizes that were run."""
    sizes = [n for n in SIZES if any(key[0] == n for key in grid)]
    figure = new_figure(figsize=(16, 16))
    axes = figure.subplots(4, 5, squeeze=False)
    lines = {}
    for row, placement in enumerate(PLACEMENTS):
        for ax, n in zip(axes[row], SIZES, strict=True):
            if n not in sizes:
                ax.axis("off")
                continue
            success_panel(ax, grid, n, placement, lines)
    for ax, rate in zip(axes[3], TIMED_RATES, strict=True):
        time_panel(ax, grid, sizes, rate)
    axes[3, 0].set_ylabel("median seconds\n(hollow: success under 0.9)")
    order = [name for name in METHODS if name in lines]
    figure.legend(
        [lines[name] for name in order], order, loc="outside lower center", ncols=5, frameon=False, fontsize=11
    )
    return as_png(figure, dpi=90)


def style(name: str) -> dict:
    """Line of a method; ours is thick."""
    index = list(METHODS).index(name)
    ours = name.startswith(OURS)
    return {
        "color": COLOURS[index],
        "marker": MARKERS[index],
        "markersize": 5,
        "linewidth": 3 if name == OURS else 1.3,
        "linestyle": "--" if ours and name != OURS else "-",
        "zorder": 5 if ours else 3,
    }


def success_panel(ax, grid, n: int, placement: str, lines: dict) -> None:
    """Success by rate; lines are set slightly apart, since many lie at 0 or 1."""
    places = np.arange(len(RATES))
    names = [name for name in METHODS if any(key[0] == n and key[3] == name for key in grid)]
    for name in names:
        cells = [grid.get((n, rate, placement if rate else PLACEMENTS[0], name)) for rate in RATES]
        values = np.array([np.nan if value is None else value.success for value in cells])
        apart = 0.006 * (list(METHODS).index(name) - len(METHODS) / 2)
        (lines[name],) = ax.plot(places, values - apart, **style(name))
    ax.set_xticks(places, [f"{100 * rate:g}" for rate in RATES])
    ax.set(ylim=(-0.08, 1.08), title=f"n = {n:,}, outliers {placement}", xlabel="outliers in %")
    ax.title.set_fontsize(11)
    ax.set_yticks([0, 0.5, 1])
    if n == SIZES[0]:
        ax.set_ylabel("success")
    _plain(ax)


def time_panel(ax, grid, sizes, rate: float) -> None:
    """Time by number of pairs, outliers uniform."""
    for name in METHODS:
        cells = [(n, grid.get((n, rate, PLACEMENTS[0], name))) for n in sizes]
        known = [(n, value.seconds, value.success >= GOOD) for n, value in cells if value and value.answered]
        if not known:
            continue
        look = style(name)
        marker = {key: look.pop(key) for key in ("marker", "markersize")}
        ax.plot([k[0] for k in known], [k[1] for k in known], **look)
        for n, seconds, good in known:
            face = look["color"] if good else "white"
            ax.plot(n, seconds, **marker, color=look["color"], markerfacecolor=face, zorder=look["zorder"] + 1)
    ax.set(xscale="log", yscale="log", xlabel="n", title=f"time, {100 * rate:g} % outliers, uniform")
    ax.title.set_fontsize(11)
    _plain(ax)


def _plain(ax) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#EEEEEE")
    ax.set_axisbelow(True)
