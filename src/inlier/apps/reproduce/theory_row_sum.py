"""New: the phase transition of Theorem 2 and Corollary 2, exact recovery by row sums."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression

from inlier import plotting
from inlier.apps.reproduce import style
from inlier.apps.reproduce.gaussian_model import draw_rows
from inlier.apps.reproduce.model import Cell, Claim, Experiment, Record, Row, Run, Settings
from inlier.apps.reproduce.slopes import log_log_slope
from inlier.apps.reproduce.tables import cells_of, only, repetitions_of, row, select
from inlier.overlap import GramOverlap

RECOVERY = "probability of exact recovery"
HALF = "inliers at which half of the trials succeed"
SLOPE, CONSTANT = "slope of the transition", "constant before the paper's curve"
PROPORTIONAL, LOGARITHMIC, QUADRATIC = "d = n / 2", "d = 20 log n", "d = n^2 / (64 log n)"
_LARGEST_SIZES = 3  # the slope is fitted on these
_TOLERANCE = 0.15


def dimension(regime: str, n: int) -> int:
    """Return the dimension that goes with n points."""
    log_n = math.log(n)
    return round({PROPORTIONAL: n / 2, LOGARITHMIC: 20 * log_n, QUADRATIC: n**2 / (64 * log_n)}[regime])


def papers_curve(n: int, d: int) -> float:
    """sqrt(n log n) + sqrt(d log n): the order of the fewest inliers that section 4.2 asks for."""
    return math.sqrt(n * math.log(n)) + math.sqrt(d * math.log(n))


def cells(settings: Settings) -> list[Cell]:
    """Cut the work by regime, n, number of inliers and trials; the largest first."""
    points = []
    for regime, sizes in settings["sizes"].items():
        for n in sorted(sizes, reverse=True):
            d = dimension(regime, n)
            counts = {round(multiple * papers_curve(n, d)) for multiple in settings["multiples"]}
            points += [{"regime": regime, "n": n, "d": d, "inliers": g} for g in sorted(counts) if g <= n - 2]
    return cells_of(points, settings["repetitions"], per_cell=10)


def run_cell(run: Run, cell: Cell) -> list[Record]:
    """Draw pairs; exact recovery means that some threshold on the row sums parts inliers and outliers."""
    n, d, g = cell["n"], cell["d"], cell["inliers"]
    regime_number = list(run.settings["sizes"]).index(cell["regime"])
    records = []
    for trial in repetitions_of(cell):
        X, Y = draw_rows(n, d, g, run.generator(regime_number, n, g, trial))
        S = GramOverlap(X, Y).row_sums()
        point = {name: cell[name] for name in ("regime", "n", "d", "inliers")}
        records.append({**point, RECOVERY: bool(S[:g].min() > S[g:].max())})
    return records


def table(run: Run, records: list[Record]) -> list[Row]:
    """Probabilities, then the transition at each n, then its slope in each regime."""
    rows = _probabilities(records)
    for regime in run.settings["sizes"]:
        transitions = [
            _transition(select(rows, regime=regime, n=n, quantity=RECOVERY))
            for n in sorted(run.settings["sizes"][regime])
        ]
        found = [transition for transition in transitions if transition is not None]
        rows += [
            row({"regime": regime, "n": t.n, "d": t.d}, HALF, t.inliers, stderr=t.inliers * t.relative_error)
            for t in found
        ]
        if len(found) >= 2:
            rows += _fitted(regime, found)
    return rows


class Transition(NamedTuple):
    """Where, at one n, exact recovery becomes more likely than not."""

    n: int
    d: int
    inliers: float
    relative_error: float


def _probabilities(records: list[Record]) -> list[Row]:
    trials: dict[tuple[Any, ...], list[bool]] = {}
    for record in records:
        point = tuple((name, value) for name, value in record.items() if name != RECOVERY)
        trials.setdefault(point, []).append(record[RECOVERY])
    rows = []
    for point, successes in trials.items():
        count = len(successes)
        shrunk = (sum(successes) + 1) / (count + 2)  # so that 0 of 30 does not claim an error of 0
        sd = math.sqrt(shrunk * (1 - shrunk))
        rows.append(row(dict(point), RECOVERY, sum(successes) / count, sd, count))
    return rows


def _transition(line: list[Row]) -> Transition | None:
    """Interpolate the monotone fit of the probabilities at one half, in the logarithm of the inliers."""
    log_g = np.log([point["inliers"] for point in line])
    p = isotonic_regression([point["mean"] for point in line])
    above = int(np.argmax(p >= 0.5))
    if above == 0 or p[above] < 0.5:  # the transition is not inside the range that was tried
        return None
    steepness = (p[above] - p[above - 1]) / (log_g[above] - log_g[above - 1])
    middle = log_g[above - 1] + (0.5 - p[above - 1]) / steepness
    error = 0.5 / math.sqrt(line[0]["repetitions"]) / steepness
    return Transition(line[0]["n"], line[0]["d"], float(np.exp(middle)), float(error))


def _fitted(regime: str, found: list[Transition]) -> list[Row]:
    largest = found[-_LARGEST_SIZES:]
    sizes, curve = [t.n for t in largest], [papers_curve(t.n, t.d) for t in largest]
    slope = log_log_slope(sizes, [t.inliers for t in largest], [t.relative_error for t in largest])
    theory = log_log_slope(sizes, curve).value
    constant = float(np.exp(np.mean([math.log(t.inliers / papers_curve(t.n, t.d)) for t in found])))
    error = constant * float(np.sqrt(np.sum([t.relative_error**2 for t in found]))) / len(found)
    return [
        row({"regime": regime}, SLOPE, slope.value, stderr=slope.stderr, paper=theory),
        row({"regime": regime}, CONSTANT, constant, stderr=error),
    ]


def plot(run: Run, rows: list[Row]) -> Any:
    """Draw the probability of exact recovery over n and the number of inliers, a panel a regime."""
    regimes = list(run.settings["sizes"])
    figure = plotting.new_figure(figsize=(4 * len(regimes), 4.6))
    axes = np.atleast_1d(figure.subplots(1, len(regimes)))
    shades = None
    for ax, regime in zip(axes, regimes, strict=True):
        shades = _plot_regime(ax, rows, regime)
    axes[0].set_ylabel("number of inliers")
    figure.colorbar(shades, ax=list(axes), label="probability of exact recovery", shrink=0.8, pad=0.02)
    style.legend_below(figure, axes[0], columns=2)
    return figure


def _plot_regime(ax: Any, rows: list[Row], regime: str) -> Any:
    tried = select(rows, regime=regime, quantity=RECOVERY)
    shades = ax.scatter(
        [line["n"] for line in tried],
        [line["inliers"] for line in tried],
        c=[line["mean"] for line in tried],
        cmap="cividis",
        vmin=0,
        vmax=1,
        marker="s",
        s=110,
        linewidths=0,
    )
    half = select(rows, regime=regime, quantity=HALF)
    ax.errorbar(
        [line["n"] for line in half],
        [line["mean"] for line in half],
        yerr=[style.BAND_IN_ERRORS * line["stderr"] for line in half],
        fmt="o",
        color=style.VERMILION,
        markeredgecolor="white",
        markersize=7,
        capsize=3,
        label="half of the trials succeed",
    )
    slope = select(rows, regime=regime, quantity=SLOPE)
    if slope:
        constant = only(rows, regime=regime, quantity=CONSTANT)["mean"]
        sizes = np.unique(np.geomspace(min(line["n"] for line in tried), max(line["n"] for line in tried), 40).round())
        curve = [constant * papers_curve(int(n), dimension(regime, int(n))) for n in sizes]
        ax.plot(sizes, curve, color=style.VERMILION, linestyle="--", label="constant x (sqrt(n log n) + sqrt(d log n))")
        ax.set_title(f"{regime}\nslope {slope[0]['mean']:.2f}, theory {slope[0]['paper']:.2f}")
    else:
        ax.set_title(regime)
    ax.set(xscale="log", yscale="log", xlabel="number of pairs, n")
    sizes_tried = sorted({line["n"] for line in tried})
    ax.set_xticks(sizes_tried, [f"{n:,}" for n in sizes_tried])
    ax.minorticks_off()
    style.plain_log_axis(ax.yaxis)
    ax.margins(0.14, 0.06)
    return shades


def headline(rows: list[Row]) -> list[Row]:
    """Slope of the transition beside the theory's, a line a regime."""
    return [
        {
            "regime": line["regime"],
            "slope of the transition": line["mean"],
            "standard error": line["stderr"],
            "slope of the paper's curve": line["paper"],
            CONSTANT: only(rows, regime=line["regime"], quantity=CONSTANT)["mean"],
        }
        for line in select(rows, quantity=SLOPE)
    ]


def claims(rows: list[Row]) -> list[Claim]:
    """Judge Theorem 2 and Corollary 2 by the transition's slope in each regime."""
    return [_slope_claim(line) for line in select(rows, quantity=SLOPE)] + [_vanishing(rows)]


def _slope_claim(line: Row) -> Claim:
    return Claim(
        f"Exact recovery asks for inliers of the order sqrt(n log n) + sqrt(d log n): {line['regime']}.",
        abs(line["mean"] - line["paper"]) <= _TOLERANCE,
        f"On the largest sizes the transition grows as n to the power {line['mean']:.3f} (standard error "
        f"{line['stderr']:.3f}), the paper's curve as {line['paper']:.3f} (allowed: {_TOLERANCE}).",
    )


def _vanishing(rows: list[Row]) -> Claim:
    half = select(rows, regime=PROPORTIONAL, quantity=HALF)
    shares = [line["mean"] / line["n"] for line in half]
    return Claim(
        "With d of the order of n, exact recovery is possible even when the inlier fraction vanishes.",
        len(shares) >= 2 and all(a > b for a, b in pairwise(shares)),
        "The share of inliers at the transition is "
        + ", ".join(f"{share:.2f} at n = {line['n']:,}" for share, line in zip(shares, half, strict=True))
        + ".",
    )


EXPERIMENT = Experiment(
    name="theory-row-sum",
    reference="Theorem 2, Corollary 2 (new)",
    title="Theory: exact recovery by row sums over the number of inliers and n, in three regimes of d",
    full={
        "sizes": {
            PROPORTIONAL: [400, 800, 1600, 3200],
            LOGARITHMIC: [1000, 4000, 16_000, 64_000],
            QUADRATIC: [300, 600, 1200, 2400],
        },
        "multiples": [float(m) for m in np.geomspace(2.0, 5.0, 10).round(3)],
        "repetitions": 30,
    },
    quick={
        "sizes": {
            PROPORTIONAL: [200, 400, 800, 1200],
            LOGARITHMIC: [1000, 2000, 4000, 8000],
            QUADRATIC: [300, 600, 900],
        },
        "multiples": [float(m) for m in np.geomspace(2.0, 5.0, 8).round(3)],
        "repetitions": 10,
    },
    cells=cells,
    run_cell=run_cell,
    table=table,
    plot=plot,
    claims=claims,
    headline=headline,
    notes="Rows are drawn from Assumption 1 and not normalised. A trial succeeds if the smallest row sum of an inlier "
    "exceeds the largest of an outlier, so that some threshold parts them. The tried numbers of inliers are multiples "
    "of the paper's curve, which is drawn with one fitted constant; the slope is that of the least squares line "
    "through log inliers against log n on the three largest sizes, and the theory's slope is that of the curve, "
    "logarithms included, on the same sizes.",
)
