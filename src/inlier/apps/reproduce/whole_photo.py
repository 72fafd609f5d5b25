"""New: the sky experiment on every pixel of the photo, where the paper could only sample 5,000."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from inlier import plotting
from inlier.apps.reproduce import style
from inlier.apps.reproduce.methods import EIGENVECTOR, ROW_SUM
from inlier.apps.reproduce.model import Cell, Claim, Experiment, Record, Row, Run, Settings
from inlier.apps.reproduce.sky_pairs import SCENARIOS, draw_pairs, scenarios_and_noises
from inlier.apps.reproduce.tables import cells_of, pivot, repetitions_of, select, summarise
from inlier.estimators._base import PairMatcher
from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher
from inlier.metrics import error_rates

ERROR, SECONDS = "error overall", "seconds per repetition"
ALL, SAMPLE = "all pixels", "sampled pixels"
_LOOKS: dict[str, dict[str, Any]] = {
    EIGENVECTOR: {"color": style.VERMILION, "marker": "o"},
    ROW_SUM: {"color": style.BLUE, "marker": "D"},
}
_SAME = 0.005


def cells(settings: Settings) -> list[Cell]:
    """One cell a scenario, noise level and repetition."""
    return cells_of(scenarios_and_noises(settings["noise_variances"]), settings["repetitions"], per_cell=1)


def run_cell(run: Run, cell: Cell) -> list[Record]:
    """Judge all pixels, and a sample of them, with both methods."""
    photo, scenario, variance = run.sources.photo, cell["scenario"], cell["noise_variance"]
    records = []
    for repetition in repetitions_of(cell):
        random = run.generator(SCENARIOS.index(scenario), repetition)
        pairs = draw_pairs(photo, scenario, variance, None, random)
        sample = random.choice(len(pairs.unmoved), size=min(run.settings["sample"], len(pairs.unmoved)), replace=False)
        for which, (X, Y, unmoved) in ((ALL, pairs), (SAMPLE, tuple(part[sample] for part in pairs))):
            point = {"scenario": scenario, "noise_variance": variance, "pixels": which, "n": len(unmoved)}
            for name, matcher in ((EIGENVECTOR, EigenvectorMatcher()), (ROW_SUM, RowSumMatcher())):
                seconds = _fit_seconds(matcher, X, Y)
                error = error_rates(unmoved, matcher.inlier_mask_).overall
                records.append({**point, "method": name, ERROR: error, SECONDS: seconds})
    return records


def _fit_seconds(matcher: PairMatcher, X: Any, Y: Any) -> float:
    start = perf_counter()
    matcher.fit(X, Y)
    return perf_counter() - start


def table(run: Run, records: list[Record]) -> list[Row]:
    """Average errors and times."""
    return summarise(records, [ERROR, SECONDS])


def plot(run: Run, rows: list[Row]) -> Any:
    """Draw the error on all pixels and on the sample against the noise, a panel a scenario."""
    figure = plotting.new_figure(figsize=(10, 4.4))
    axes = figure.subplots(1, 2, sharey=True)
    for ax, scenario in zip(axes, SCENARIOS, strict=True):
        for method, look in _LOOKS.items():
            whole, sample = (
                select(rows, scenario=scenario, method=method, pixels=pixels, quantity=ERROR)
                for pixels in (ALL, SAMPLE)
            )
            noise = [row["noise_variance"] for row in whole]
            style.plot_with_band(ax, noise, whole, label=f"{method}, all {whole[0]['n']:,} pixels", **look)
            hollow = {**look, "markerfacecolor": "white", "markersize": 8, "linestyle": "none", "zorder": 1}
            label = f"{method}, a sample of {sample[0]['n']:,}"
            ax.plot(noise, [row["mean"] for row in sample], label=label, **hollow)
        ax.set(title=f"scenario {scenario}", xlabel="variance of the noise on red, green and blue")
    axes[0].set_ylabel("share of pixels misjudged")
    axes[0].set_ylim(bottom=0)
    style.quiet_axes(*axes)
    style.legend_below(figure, axes[0], columns=2)
    return figure


def headline(rows: list[Row]) -> list[Row]:
    """Error of both methods, on all pixels and on a sample, a line a scenario and noise level."""
    return pivot(rows, ["scenario", "noise_variance", "pixels", "n"], "method", quantity=ERROR)


def claims(rows: list[Row]) -> list[Claim]:
    """Judge whether all pixels can be done, and whether they tell the same as a sample."""
    seconds = {
        method: max(row["mean"] for row in select(rows, method=method, pixels=ALL, quantity=SECONDS))
        for method in _LOOKS
    }
    n = select(rows, pixels=ALL)[0]["n"]
    gap = max(
        abs(a["mean"] - b["mean"]) - 2 * (a["stderr"] + b["stderr"])
        for a, b in zip(
            select(rows, pixels=ALL, quantity=ERROR), select(rows, pixels=SAMPLE, quantity=ERROR), strict=True
        )
    )
    return [
        Claim(
            f"New: every pixel can be judged; the dense matrix would take {8 * n**2 / 1e12:,.1f} terabytes.",
            True,
            f"{n:,} pixels take {seconds[ROW_SUM]:.2f} s by row sums and {seconds[EIGENVECTOR]:.2f} s by eigenvector "
            f"at most, k-means included.",
        ),
        Claim(
            "New: a random sample of the pixels misjudges the same share as all of them.",
            gap < _SAME,
            f"Beyond twice their standard errors the two differ by at most {max(gap, 0):.4f}.",
        ),
    ]


EXPERIMENT = Experiment(
    name="whole-photo",
    reference="new",
    title="Sky: every pixel of the photo instead of a sample",
    full={"noise_variances": [0.0, 20.0, 40.0, 60.0, 80.0, 100.0], "sample": 5000, "repetitions": 8},
    quick={"noise_variances": [0.0, 100.0], "repetitions": 2},
    cells=cells,
    run_cell=run_cell,
    table=table,
    plot=plot,
    claims=claims,
    headline=headline,
    notes="As sky-noise, but on all pixels; a sample of 5,000 from the same changed photo is judged beside it.",
    data=("sky",),
    whole_machine=True,
)
