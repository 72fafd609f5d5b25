"""Whole photos: every pixel of the sky photo, where the paper could only sample (new), and Figure 4, what differs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from inlier import plotting
from inlier._typing import Mask
from inlier.apps.reproduce import methods as style
from inlier.apps.reproduce.experiment import Claim, Experiment, Record, Row, Run, Settings, column, pivot, select
from inlier.apps.reproduce.methods import EIGENVECTOR, OVERALL, ROW_SUM, SECONDS
from inlier.apps.reproduce.swapped_sky import SCENARIOS, OverNoise, draw_pairs
from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher
from inlier.metrics import error_rates

ALL, SAMPLE = "all pixels", "sampled pixels"
_LOOKS: dict[str, dict[str, Any]] = {
    EIGENVECTOR: {"color": style.VERMILION, "marker": "o"},
    ROW_SUM: {"color": style.BLUE, "marker": "D"},
}
_KINDS = {EIGENVECTOR: EigenvectorMatcher, ROW_SUM: RowSumMatcher}
_SAME = 0.005  # share of the pixels by which a sample may be off
FLAGGED = "share of pixels called different"
FOUND, WRONGLY = "share of the new objects found", "share of the other pixels called different"
_TASKS = tuple(combinations(range(3), 2))
_IN_THEM = ("the scene", "with one object", "with two objects")
_YELLOW = (255, 255, 0)
_FOUND_ENOUGH, _FEW = 0.8, 0.02


class WholePhoto(OverNoise):
    """New: the sky experiment on every pixel of the photo, where the paper could only sample 5,000."""

    name = "whole-photo"
    reference = "new"
    title = "Sky: every pixel of the photo instead of a sample"
    full: ClassVar[Settings] = {
        "noise_variances": [0.0, 20.0, 40.0, 60.0, 80.0, 100.0],
        "sample": 5000,
        "repetitions": 8,
    }
    quick: ClassVar[Settings] = {"noise_variances": [0.0, 100.0], "repetitions": 2}
    quantities = (OVERALL, SECONDS)
    notes = "As sky-noise, but on all pixels; a sample of 5,000 from the same changed photo is judged beside it."
    legend_columns = 2
    whole_machine = True

    def measure(self, run: Run, point: Mapping[str, Any], repetition: int) -> list[Record]:
        """Judge all pixels, and a sample of them, with both methods."""
        random = run.generator(SCENARIOS.index(point["scenario"]), repetition)
        pairs = draw_pairs(run.sources.photo, **point, n=None, random=random)
        n = len(pairs.unmoved)
        sample = random.choice(n, size=min(run.settings["sample"], n), replace=False)
        records = []
        for which, (X, Y, unmoved) in ((ALL, pairs), (SAMPLE, tuple(part[sample] for part in pairs))):
            for name, kind in _KINDS.items():
                start = perf_counter()
                mask = kind().fit(X, Y).inlier_mask_
                found = {SECONDS: perf_counter() - start, OVERALL: error_rates(unmoved, mask).overall}
                records.append({"pixels": which, "n": len(unmoved), "method": name, **found})
        return records

    def draw(self, ax: Any, rows: list[Row]) -> None:
        """Draw the error on all pixels as a line, that on the sample as hollow marks."""
        for method, look in _LOOKS.items():
            whole, sample = (select(rows, method=method, pixels=pixels) for pixels in (ALL, SAMPLE))
            noise = column(whole, "noise_variance")
            style.plot_with_band(ax, noise, whole, label=f"{method}, all {whole[0]['n']:,} pixels", **look)
            hollow = {**look, "markerfacecolor": "white", "markersize": 8, "linestyle": "none", "zorder": 1}
            ax.plot(noise, column(sample, "mean"), label=f"{method}, a sample of {sample[0]['n']:,}", **hollow)

    def headline(self, rows: list[Row]) -> list[Row]:
        """Error of both methods, on all pixels and on a sample, a line a scenario and noise level."""
        return pivot(rows, ["scenario", "noise_variance", "pixels", "n"], "method", quantity=OVERALL)

    def claims(self, rows: list[Row]) -> list[Claim]:
        """Judge whether all pixels can be done, and whether they tell the same as a sample."""
        seconds = {
            method: max(row["mean"] for row in select(rows, method=method, pixels=ALL, quantity=SECONDS))
            for method in _LOOKS
        }
        n = select(rows, pixels=ALL)[0]["n"]
        whole, sample = (select(rows, pixels=pixels, quantity=OVERALL) for pixels in (ALL, SAMPLE))
        gap = max(
            abs(a["mean"] - b["mean"]) - 2 * (a["stderr"] + b["stderr"]) for a, b in zip(whole, sample, strict=True)
        )
        return [
            Claim(
                f"New: every pixel can be judged; the dense matrix would take {8 * n**2 / 1e12:,.1f} terabytes.",
                True,
                f"{n:,} pixels take {seconds[ROW_SUM]:.2f} s by row sums and {seconds[EIGENVECTOR]:.2f} s by "
                f"eigenvector at most, k-means included.",
            ),
            Claim(
                "New: a random sample of the pixels misjudges the same share as all of them.",
                gap < _SAME,
                f"Beyond twice their standard errors the two differ by at most {max(gap, 0):.4f}.",
            ),
        ]


class CaseStudy(Experiment):
    """Figure 4: three photos of one scene, compared two by two; what differs is painted yellow."""

    name = "case-study"
    reference = "Figure 4"
    title = "Case study: what differs between photos of one scene"
    full: ClassVar[Settings] = {}
    quick: ClassVar[Settings] = {}
    quantities = (FLAGGED, FOUND, WRONGLY)
    notes = (
        "The paper's photos of a room are not public. By default scikit-learn's china.jpg is the scene, into which a "
        "yellow box and an orange cushion are drawn, with soft shadows, slightly other light and sensor noise in each"
        " photo; the objects' places are known to the pixel. Give three photos of your own with --photo, three times."
    )
    data = ("scenes",)

    def points(self, settings: Settings) -> list[dict[str, Any]]:
        """One a pair of photos, by their numbers, and method."""
        return [{"first photo": a, "second photo": b, "method": name} for a, b in _TASKS for name in _KINDS]

    def measure(self, run: Run, point: Mapping[str, Any], repetition: int) -> list[Record]:
        """Compare two photos; where the objects' places are known, count how much of them is found."""
        first, second, names = point["first photo"], point["second photo"], _names(run)
        flagged = differing(run, first, second, point["method"])
        record = {"first photo": names[first], "second photo": names[second], FLAGGED: float(flagged.mean())}
        truth = run.sources.three_scenes.changed(first, second)
        if truth is not None:
            record |= {FOUND: float(flagged[truth].mean()), WRONGLY: float(flagged[~truth].mean())}
        return [record]

    def plot(self, run: Run, rows: list[Row]) -> Any:
        """Draw the 3 x 3 panel: photos on the diagonal, row sums above it, eigenvectors below."""
        photos = run.sources.three_scenes.photos
        height, width, _ = photos[0].shape
        figure = plotting.new_figure(figsize=(11, 11 * height / width + 1.1))
        axes = figure.subplots(3, 3)
        for i, j in np.ndindex(3, 3):
            first, second = min(i, j), max(i, j)
            if i == j:
                picture, colour, title = photos[i], style.BLACK, f"photo {_names(run)[i]}"
            else:
                method, colour = (ROW_SUM, style.GREEN) if j > i else (EIGENVECTOR, style.VERMILION)
                picture = photos[second].copy()
                picture[differing(run, first, second, method)] = _YELLOW
                title = f"photos {first + 1} and {second + 1}, {method.split(',')[0]}"
            step = max(1, width // 900)
            axes[i, j].imshow(picture[::step, ::step], interpolation="nearest")
            axes[i, j].set(xticks=[], yticks=[])
            axes[i, j].set_title(title, fontsize=10, color=colour)
            axes[i, j].spines[:].set(edgecolor=colour, linewidth=4)
        return figure

    def headline(self, rows: list[Row]) -> list[Row]:
        """What each method found, a line a comparison."""
        return pivot(rows, ["first photo", "second photo", "method"], "quantity")

    def claims(self, rows: list[Row]) -> list[Claim]:
        """Judge section 7 where the objects' places are known."""
        found, wrongly = select(rows, quantity=FOUND), select(rows, quantity=WRONGLY)
        if not found:
            return []
        worst, most = min(found, key=lambda line: line["mean"]), max(wrongly, key=lambda line: line["mean"])
        few = min(line["mean"] for line in wrongly)
        return [
            Claim(
                "For both methods the added objects are detected in all three comparisons.",
                worst["mean"] >= _FOUND_ENOUGH,
                f"At least {worst['mean']:.0%} of the new objects' pixels are found, in every comparison "
                f"(detected: {_FOUND_ENOUGH:.0%} or more).",
            ),
            Claim(
                "Only the differing regions, and some pixels in shadow, are called different.",
                most["mean"] <= _FEW,
                f"{few:.1%} to {most['mean']:.1%} of all other pixels are called different too (few: {_FEW:.0%} or "
                f"less), most of them on things of strong colour that nobody touched: a pixel is judged by how much "
                f"its colour speaks for the common rotation, and k-means always cuts in two.",
            ),
        ]


def differing(run: Run, first: int, second: int, method: str) -> Mask:
    """Return the pixels that a method calls different between two photos."""
    photos = run.sources.three_scenes.photos
    matcher = _KINDS[method]()
    matcher.fit(photos[first].reshape(-1, 3), photos[second].reshape(-1, 3))
    return ~matcher.inlier_mask_.reshape(photos[first].shape[:2])


def _names(run: Run) -> list[str]:
    """Number the photos, and say what is in them if that is known."""
    known = run.sources.three_scenes.objects is not None
    return [f"{number}: {content}" if known else str(number) for number, content in enumerate(_IN_THEM, start=1)]
