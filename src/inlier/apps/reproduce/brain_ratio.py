"""Figure 1: error against the inlier proportion on the brain, five methods."""

from __future__ import annotations

from typing import Any

from inlier import plotting
from inlier.apps.reproduce import style
from inlier.apps.reproduce.methods import EIGENVECTOR, ERRORS, FIXED, METHODS, ROW_SUM, judge_methods
from inlier.apps.reproduce.model import Cell, Claim, Experiment, Record, Row, Run, Settings
from inlier.apps.reproduce.tables import (
    cells_of,
    gaps,
    means,
    never_rises,
    pivot,
    repetitions_of,
    select,
    summarise,
)
from inlier.datasets import make_mispaired

_NOTHING = 0.001  # an error rate below this has nowhere to fall
OVERALL = "error overall"
_HALF = "eigenvector, t = 0.5"
_SIMILAR = 0.01  # two curves are called similar if they are on average less than this apart


def cells(settings: Settings) -> list[Cell]:
    """Cut the work by inlier fraction and repetitions."""
    points = [{"inlier_fraction": r} for r in settings["inlier_fractions"]]
    return cells_of(points, settings["repetitions"], per_cell=50)


def run_cell(run: Run, cell: Cell) -> list[Record]:
    """Mispair rows of the brain table and let the five methods judge the pairs."""
    r = cell["inlier_fraction"]
    records = []
    for repetition in repetitions_of(cell):
        random = run.generator(round(1000 * r), repetition)
        data = make_mispaired(run.sources.features, run.settings["n"], r, rng=random)
        records += [{"inlier_fraction": r, **found} for found in judge_methods(data.X, data.Y, data.inlier_mask)]
    return records


def table(run: Run, records: list[Record]) -> list[Row]:
    """Average the errors over the repetitions."""
    return summarise(records, ERRORS)


def plot(run: Run, rows: list[Row]) -> Any:
    """Draw the error on G, on B and overall, side by side."""
    figure = plotting.new_figure(figsize=(11, 4.2))
    axes = figure.subplots(1, 3)
    titles = ("real pairs missed (error on G)", "wrong pairs accepted (error on B)", "all pairs misjudged (overall)")
    for ax, quantity, title in zip(axes, ERRORS, titles, strict=True):
        for method in METHODS:
            line = select(rows, method=method, quantity=quantity)
            fractions = [row["inlier_fraction"] for row in line]
            style.plot_with_band(ax, fractions, line, **style.method_look(method))
        ax.set(title=title, xlabel="share of the pairs that are real, r", ylabel="error rate")
        ax.set_ylim(bottom=0)
    style.quiet_axes(*axes)
    style.legend_below(figure, axes[0], columns=5)
    return figure


def headline(rows: list[Row]) -> list[Row]:
    """Overall error of each method, a line a share of real pairs."""
    return pivot(rows, ["inlier_fraction"], "method", quantity=OVERALL)


def claims(rows: list[Row]) -> list[Claim]:
    """Judge what section 6.1 says about Figure 1."""
    overall = {method: means(rows, method=method, quantity=OVERALL) for method in METHODS}
    return [
        _falling(rows),
        _trade_off(rows),
        _half_is_best_fixed(rows, overall),
        _similar(
            "The k-means version of the eigenvector method performs similarly to the case t = 0.3.",
            overall,
            EIGENVECTOR,
            "eigenvector, t = 0.3",
        ),
        _best_at_the_end(rows, overall),
        _similar(
            "The row-sum method performs comparably to the eigenvector method with k-means throughout.",
            overall,
            ROW_SUM,
            EIGENVECTOR,
        ),
    ]


def _falling(rows: list[Row]) -> Claim:
    curves = {f"{m}, {q}": select(rows, method=m, quantity=q) for m in METHODS for q in ERRORS}
    at_zero = [name for name, curve in curves.items() if max(line["mean"] for line in curve) < _NOTHING]
    rising = [name for name, curve in curves.items() if name not in at_zero and not never_rises(curve)]
    lower = sum(curve[-1]["mean"] < curve[0]["mean"] for curve in curves.values())
    evidence = (
        f"{lower} of {len(curves)} curves end lower than they start; {len(rising)} rise at some step by more than "
        f"three standard errors{': ' + '; '.join(rising) if rising else ''}."
    )
    if at_zero:
        evidence += f" Below {_NOTHING} throughout, with nothing left to lower: {'; '.join(at_zero)}."
    return Claim("As r increases, all methods achieve lower error rates on G, B and the whole.", not rising, evidence)


def _trade_off(rows: list[Row]) -> Claim:
    """The paper's sentence has the two sets the wrong way round: a larger threshold accepts fewer pairs."""
    on_g = [_average(means(rows, method=method, quantity="error on G")) for method in FIXED]
    on_b = [_average(means(rows, method=method, quantity="error on B")) for method in FIXED]
    as_printed = on_g == sorted(on_g, reverse=True) and on_b == sorted(on_b)
    evidence = f"Over t = 0.3, 0.5, 0.7 the error on G goes {_arrow(on_g)} and on B {_arrow(on_b)} (means over r)."
    if on_g == sorted(on_g) and on_b == sorted(on_b, reverse=True):
        evidence += " It is the other way round, as it must be: a larger threshold accepts fewer pairs. The text slips."
    return Claim("A larger threshold decreases the error on G but increases the error on B.", as_printed, evidence)


def _half_is_best_fixed(rows: list[Row], overall: dict[str, list[float]]) -> Claim:
    fractions = sorted({line["inlier_fraction"] for line in rows})
    best = [min(FIXED, key=lambda method: overall[method][k]) for k in range(len(fractions))]
    elsewhere = [f"{r} ({method[-3:]})" for r, method in zip(fractions, best, strict=True) if method != _HALF]
    averages = [_average(overall[method]) for method in FIXED]
    evidence = f"Mean over r for t = 0.3, 0.5, 0.7: {_listed(averages)}."
    if elsewhere:
        evidence += f" Another threshold is best at r = {', '.join(elsewhere)}."
    return Claim(
        "For the overall error, t = 0.5 performs best among the three fixed thresholds.", not elsewhere, evidence
    )


def _similar(text: str, overall: dict[str, list[float]], first: str, second: str) -> Claim:
    mean, largest = gaps(overall[first], overall[second])
    evidence = f"The two overall errors are {mean:.4f} apart on average over r, and at most {largest:.4f}"
    return Claim(text, mean <= _SIMILAR, f"{evidence} (similar: {_SIMILAR} on average).")


def _best_at_the_end(rows: list[Row], overall: dict[str, list[float]]) -> Claim:
    last = max(row["inlier_fraction"] for row in rows)
    at_end = {method: overall[method][-1] for method in METHODS}
    ranked = sorted(at_end, key=at_end.__getitem__)
    return Claim(
        "Eigenvector with k-means gives the best performance when r = 0.9.",
        last == 0.9 and ranked[0] == EIGENVECTOR,
        f"At r = {last} the order is " + ", ".join(f"{method} {at_end[method]:.4f}" for method in ranked) + ".",
    )


def _average(values: list[float]) -> float:
    return sum(values) / len(values)


def _arrow(values: list[float]) -> str:
    return " -> ".join(f"{value:.3f}" for value in values)


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


EXPERIMENT = Experiment(
    name="brain-ratio",
    reference="Figure 1",
    title="Brain: error against the share of real pairs, five methods",
    full={"n": 2000, "inlier_fractions": [0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9], "repetitions": 1000},
    quick={"repetitions": 20},
    cells=cells,
    run_cell=run_cell,
    table=table,
    plot=plot,
    claims=claims,
    headline=headline,
    notes="The permutation of the outliers leaves none of them in place. The paper prints no numbers for Figure 1.",
    data=("brain",),
)
