"""Figure 3: overall error against the noise on the photo, five methods, both scenarios."""

from __future__ import annotations

from typing import Any

from inlier import plotting
from inlier.apps.reproduce import style
from inlier.apps.reproduce.methods import EIGENVECTOR, ERRORS, FIXED, METHODS, ROW_SUM, judge_methods
from inlier.apps.reproduce.model import Cell, Claim, Experiment, Record, Row, Run, Settings
from inlier.apps.reproduce.sky_pairs import PERMUTATION, SCENARIOS, SWAP, draw_pairs, scenarios_and_noises
from inlier.apps.reproduce.tables import cells_of, gaps, means, pivot, repetitions_of, select, summarise

OVERALL = "error overall"
_SIMILAR = 0.01  # two curves are called similar if they are on average less than this apart


def cells(settings: Settings) -> list[Cell]:
    """Cut the work by scenario, noise and repetitions."""
    return cells_of(scenarios_and_noises(settings["noise_variances"]), settings["repetitions"], per_cell=100)


def run_cell(run: Run, cell: Cell) -> list[Record]:
    """Draw pixels, move squares, add noise, judge. A repetition has the same pixels at every noise level."""
    scenario, variance = cell["scenario"], cell["noise_variance"]
    records = []
    for repetition in repetitions_of(cell):
        random = run.generator(SCENARIOS.index(scenario), repetition)
        pairs = draw_pairs(run.sources.photo, scenario, variance, run.settings["n"], random)
        found = judge_methods(*pairs)
        records += [{"scenario": scenario, "noise_variance": variance, **errors} for errors in found]
    return records


def table(run: Run, records: list[Record]) -> list[Row]:
    """Average the errors over the repetitions."""
    return summarise(records, ERRORS)


def plot(run: Run, rows: list[Row]) -> Any:
    """Draw the overall error against the noise, a panel a scenario."""
    figure = plotting.new_figure(figsize=(10, 4.4))
    axes = figure.subplots(1, 2, sharey=True)
    for ax, scenario in zip(axes, SCENARIOS, strict=True):
        for method in METHODS:
            line = select(rows, scenario=scenario, method=method, quantity=OVERALL)
            style.plot_with_band(ax, [row["noise_variance"] for row in line], line, **style.method_look(method))
        ax.set(title=f"scenario {scenario}", xlabel="variance of the noise on red, green and blue")
    axes[0].set_ylabel("share of pixels misjudged")
    axes[0].set_ylim(bottom=0)
    style.quiet_axes(*axes)
    style.legend_below(figure, axes[0], columns=3)
    return figure


def headline(rows: list[Row]) -> list[Row]:
    """Overall error of each method, a line a scenario and noise level."""
    return pivot(rows, ["scenario", "noise_variance"], "method", quantity=OVERALL)


def claims(rows: list[Row]) -> list[Claim]:
    """Judge what section 6.3 says about Figure 3."""
    overall = {
        (scenario, method): means(rows, scenario=scenario, method=method, quantity=OVERALL)
        for scenario in SCENARIOS
        for method in METHODS
    }
    return [
        _rising(overall),
        _larger_is_worse(overall),
        _alike_in_swap(overall),
        _kmeans_wins_in_swap(overall),
        _row_sum_wins_in_permutation(overall),
        _lead_in_the_middle(overall),
    ]


Curves = dict[tuple[str, str], list[float]]


def _rising(overall: Curves) -> Claim:
    falling = [
        f"{method} in scenario {scenario[0]}" for (scenario, method), curve in overall.items() if curve[-1] <= curve[0]
    ]
    kmeans = [f"{scenario[0]}: {_ends(overall[scenario, ROW_SUM])}" for scenario in SCENARIOS]
    return Claim(
        "For both scenarios the overall error increases as the noise becomes larger.",
        not falling,
        f"From the lowest to the highest noise the row-sum error goes, in scenario {'; in scenario '.join(kmeans)}."
        + (f" It does not rise for {'; '.join(falling)}." if falling else " It rises for all ten curves."),
    )


def _larger_is_worse(overall: Curves) -> Claim:
    curves = [[overall[scenario, method] for method in FIXED] for scenario in SCENARIOS]
    holds = all(a < b < c for three in curves for a, b, c in zip(*three, strict=True))
    averages = ["; ".join(f"{_average(curve):.3f}" for curve in three) for three in curves]
    return Claim(
        "For any fixed noise level a larger threshold produces a larger overall error.",
        holds,
        f"Means over the noise for t = 0.3; 0.5; 0.7: scenario 1: {averages[0]}, scenario 2: {averages[1]}.",
    )


def _alike_in_swap(overall: Curves) -> Claim:
    mean, largest = gaps(overall[SWAP, EIGENVECTOR], overall[SWAP, ROW_SUM])
    return Claim(
        "In scenario 1 the k-means versions of both methods perform similarly.",
        mean <= _SIMILAR,
        f"They are {mean:.4f} apart on average over the noise, at most {largest:.4f} (similar: {_SIMILAR} on average).",
    )


def _kmeans_wins_in_swap(overall: Curves) -> Claim:
    worst_kmeans = [max(pair) for pair in zip(overall[SWAP, EIGENVECTOR], overall[SWAP, ROW_SUM], strict=True)]
    best_fixed = [min(three) for three in zip(*(overall[SWAP, method] for method in FIXED), strict=True)]
    wins = sum(a < b for a, b in zip(worst_kmeans, best_fixed, strict=True))
    return Claim(
        "In scenario 1 both k-means versions outperform the fixed-threshold rules.",
        wins == len(best_fixed),
        f"At {wins} of {len(best_fixed)} noise levels; means over the noise: the worse of the k-means versions "
        f"{_average(worst_kmeans):.3f}, the best fixed threshold {_average(best_fixed):.3f}.",
    )


def _row_sum_wins_in_permutation(overall: Curves) -> Claim:
    others = [overall[PERMUTATION, method] for method in METHODS if method != ROW_SUM]
    best_other = [min(values) for values in zip(*others, strict=True)]
    wins = sum(a < b for a, b in zip(overall[PERMUTATION, ROW_SUM], best_other, strict=True))
    return Claim(
        "In scenario 2 the row-sum method with k-means gives the best performance among all methods.",
        wins == len(best_other),
        f"At {wins} of {len(best_other)} noise levels; means over the noise: row sum "
        f"{_average(overall[PERMUTATION, ROW_SUM]):.4f}, best of the others {_average(best_other):.4f}.",
    )


def _lead_in_the_middle(overall: Curves) -> Claim:
    others = [overall[PERMUTATION, method] for method in METHODS if method != ROW_SUM]
    lead = [min(values) - own for *values, own in zip(*others, overall[PERMUTATION, ROW_SUM], strict=True)]
    largest = lead.index(max(lead))
    return Claim(
        "In scenario 2 the row sum's lead is largest at intermediate noise levels.",
        lead[largest] > 0 and 0 < largest < len(lead) - 1,
        f"Its lead over the best other method is {lead[0]:.4f} without noise, {lead[len(lead) // 2]:.4f} in the middle "
        f"and {lead[-1]:.4f} at the highest noise.",
    )


def _average(values: list[float]) -> float:
    return sum(values) / len(values)


def _ends(curve: list[float]) -> str:
    return f"{curve[0]:.4f} to {curve[-1]:.4f}"


EXPERIMENT = Experiment(
    name="sky-noise",
    reference="Figure 3",
    title="Sky: overall error against the noise, five methods, both scenarios",
    full={"n": 5000, "noise_variances": [float(v) for v in range(0, 101, 5)], "repetitions": 1000},
    quick={"noise_variances": [0.0, 25.0, 50.0, 75.0, 100.0], "repetitions": 20},
    cells=cells,
    run_cell=run_cell,
    table=table,
    plot=plot,
    claims=claims,
    headline=headline,
    notes="In scenario 2 the squares are permuted anew in each repetition, by one random cycle, so that none stays in "
    "place and 18.5 % of the pixels move. Truth is where a pixel comes from, even where the colours are equal. The "
    "same pixels and permutations serve every noise level. The paper's photo is not public, and it prints no numbers "
    "for Figure 3.",
    data=("sky",),
)
