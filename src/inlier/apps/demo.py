"""The main job on data that ships with the package: find the mispaired vertices of a brain."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

from inlier import plotting
from inlier.datasets import BrainTable, PairedData, load_brain, make_mispaired
from inlier.estimators._base import PairMatcher
from inlier.estimators.calibrated import CalibratedMatcher
from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher
from inlier.metrics import ErrorRates, error_rates
from inlier.report.pages import data_uri, find_template
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


def demo_page(outcome: DemoOutcome, picture: bytes) -> str:
    """Render the demo's outcome and its picture (PNG) as one HTML page that needs nothing else."""
    page = find_template("demo.html", "inlier.apps").render(outcome=outcome.to_dict(), picture=data_uri(picture))
    return str(page)


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
