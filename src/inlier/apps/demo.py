"""The main job on data that ships with the package: find the mispaired vertices of a brain."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from inlier import plotting
from inlier._typing import FloatArray, Mask
from inlier.datasets import BrainTable, PairedData, load_brain, make_mispaired
from inlier.estimators._base import PairMatcher
from inlier.estimators.calibrated import CalibratedMatcher
from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher
from inlier.metrics import ErrorRates, error_rates
from inlier.report.charts import truth_chart
from inlier.report.match_summary import versions
from inlier.report.pages import Part, render_page
from inlier.result import MatchResult


@dataclass(frozen=True)
class MethodOutcome:
    """How one matcher did."""

    name: str
    result: MatchResult
    errors: ErrorRates
    seconds: float

    @property
    def pairs_per_second(self) -> float:
        """Pairs decided in a second."""
        return self.result.n_pairs / self.seconds


@dataclass(frozen=True)
class DemoOutcome:
    """The problem that was posed and what each matcher made of it."""

    brain: BrainTable
    data: PairedData
    methods: list[MethodOutcome]

    @property
    def explanation(self) -> str:
        """What happened, in words."""
        n = len(self.data.X)
        wrong = int((~self.data.inlier_mask).sum())
        mispaired = f"{wrong:,} of them with the wrong partner" if wrong else "none of them with the wrong partner"
        right = [1 - method.errors.overall for method in self.methods]
        return (
            f"{n:,} points of a brain surface were paired with a rotated copy of themselves, "
            f"{mispaired}; without being told the rotation or the number of wrong pairs, the paper's two methods "
            f"judged {right[0]:.1%} and {right[1]:.1%} of all pairs correctly, the calibrated one {right[2]:.1%}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything that is printed, for programs."""
        return {
            "source": self.brain.source,
            "n_pairs": len(self.data.X),
            "n_wrong": int((~self.data.inlier_mask).sum()),
            "methods": [
                {
                    "name": method.name,
                    **{f"error_{kind}": share for kind, share in method.errors._asdict().items()},
                    "seconds": method.seconds,
                    "pairs_per_second": method.pairs_per_second,
                }
                for method in self.methods
            ],
            "explanation": self.explanation,
        }

    def figure(self) -> Any:
        """Draw what was wrong, and how the scores tell."""
        figure = plotting.new_figure(figsize=(14, 3.4))
        surface, *histograms = figure.subplots(1, 1 + len(self.methods))
        side_view = self.data.X[:, [1, 2]]
        plotting.plot_points(side_view, ~self.data.inlier_mask, "paired with the wrong point", surface)
        surface.set_title("The problem")
        for method, ax in zip(self.methods, histograms, strict=True):
            plotting.plot_scores(method.result, self.data.inlier_mask, ax)
            ax.set_title(f"{method.name}: {method.errors.overall:.2%} misjudged")
        return figure


def demo_page(outcome: DemoOutcome, command: str = "inlier demo") -> str:
    """Render the demo's outcome as one HTML page that needs nothing else."""
    truth, best = outcome.data.inlier_mask, outcome.methods[-1]
    wrongly = round(best.errors.overall * truth.size)
    charts = [{"chart": truth_chart(method.result, truth)} for method in outcome.methods]
    answer = {
        "headline": f"{truth.size - wrongly:,} of {truth.size:,} pairs were judged correctly.",
        "counts": {"real": int(truth.sum()), "wrong": int((~truth).sum())},
        "explanation": outcome.explanation,
    }
    evidence = {
        "surface": _surface(outcome.data.X[:, [1, 2]], truth),
        "methods": [{**words, **chart} for words, chart in zip(outcome.to_dict()["methods"], charts, strict=True)],
        "source": outcome.brain.source,
        "command": command,
        "versions": versions(),
    }
    parts = [Part("demo_answer.html", answer), Part("demo_methods.html", evidence)]
    return render_page("inlier demo", parts, "inlier.apps")


def _surface(points: FloatArray, right: Mask) -> dict[str, Any]:
    """Points of a plane as two paths of dots, for an SVG as wide as the other drawings."""
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    width, margin = 520.0, 12.0
    places = margin + (points - low) / size[0] * (width - 2 * margin)
    height = float(places[:, 1].max() + margin)
    places[:, 1] = height - places[:, 1]

    def dots(mask: Mask) -> str:
        return "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places[mask])

    return {"width": width, "height": round(height), "right": dots(right), "wrong": dots(~right)}


def run_demo(n: int = 12_000, inlier_fraction: float = 0.8, seed: int = 0) -> DemoOutcome:
    """Mispair a share of the brain table's rows; let both of the paper's matchers and the calibrated one find them."""
    brain = load_brain()
    data = make_mispaired(brain.features, n, inlier_fraction, rng=seed)
    methods = [
        ("Row sum", RowSumMatcher()),
        ("Eigenvector", EigenvectorMatcher()),
        ("Calibrated", CalibratedMatcher(random_state=seed)),
    ]
    return DemoOutcome(brain, data, [_time_and_judge(name, matcher, data) for name, matcher in methods])


def _time_and_judge(name: str, matcher: PairMatcher, data: PairedData) -> MethodOutcome:
    seconds = float("inf")
    for _ in range(2):  # the first fit may also load compiled code
        start = perf_counter()
        matcher.fit(data.X, data.Y)
        seconds = min(seconds, perf_counter() - start)
    return MethodOutcome(name, matcher.result_, error_rates(data.inlier_mask, matcher.inlier_mask_), seconds)
