"""Figures 2 and 3, section 6.3: pixels of a photo paired with those of the same photo, changed and noisy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inlier import plotting
from inlier._typing import Mask, Photo
from inlier.apps.reproduce import methods as style
from inlier.apps.reproduce.experiment import (
    Claim,
    Experiment,
    Record,
    Row,
    Run,
    Settings,
    column,
    gaps,
    pivot,
    point_of,
    select,
)
from inlier.apps.reproduce.methods import EIGENVECTOR, ERRORS, FIXED, METHODS, OVERALL, ROW_SUM, SIMILAR, judge_methods
from inlier.datasets import MovableSquares, permuted_squares, random_cycle, swapped_squares

SWAP, PERMUTATION = "1: two squares swapped", "2: thirty squares permuted"
SCENARIOS = (SWAP, PERMUTATION)
SHARE = "share of the pixels that move"
_PAPER_SHARE = {SWAP: 0.25, PERMUTATION: 0.185}
_SHOWN_WIDTH = 195  # the paper shows its photos at 130 x 195, where the noise can be seen
_Curves = dict[tuple[str, str], list[float]]


class PixelPairs(NamedTuple):
    """Colours of pixels before and after, and which of them stayed in place."""

    X: Photo
    Y: NDArray[np.float32]
    unmoved: Mask


@lru_cache(maxsize=4)
def squares_of(scenario: str, height: int, width: int) -> MovableSquares:
    """Return the squares that move in a scenario."""
    return {SWAP: swapped_squares, PERMUTATION: permuted_squares}[scenario](height, width)


def draw_pairs(
    photo: Photo, scenario: str, noise_variance: float, n: int | None, random: np.random.Generator
) -> PixelPairs:
    """Move the squares by a random permutation without fixed points, add noise, and sample n pixels, or all.

    Truth is where a pixel comes from: one that moved is a wrong pair even where the new colour is the old one.
    """
    squares = squares_of(scenario, *photo.shape[:2])
    colours = photo.reshape(-1, 3)
    origin = random_cycle(len(squares.corners), random)
    pixels = np.arange(len(colours)) if n is None else random.choice(len(colours), size=n, replace=False)
    source, unmoved = squares.rearrange(origin, pixels)
    noise = random.standard_normal((len(pixels), 3), dtype=np.float32)
    changed = colours[source] + np.float32(noise_variance**0.5) * noise
    return PixelPairs(colours[pixels], changed, unmoved)


class SkyImages(Experiment):
    """Figure 2: the photo, the changed photo and the changed noisy photo, for both scenarios."""

    name = "sky-images"
    reference = "Figure 2"
    title = "Sky: the photo, changed, and changed and noisy, in both scenarios"
    full: ClassVar[Settings] = {"noise_variance": 100.0}
    quick: ClassVar[Settings] = {}
    quantities = (SHARE,)
    notes = (
        "The paper does not say where its squares are: here they are in the middle of the cells of an even grid, in "
        "proportion to the photo. The pictures are thinned to about 195 pixels a row, as the paper shows them."
    )
    data = ("sky",)

    def points(self, settings: Settings) -> list[dict[str, Any]]:
        """One a scenario."""
        return [{"scenario": scenario} for scenario in SCENARIOS]

    def measure(self, run: Run, point: Mapping[str, Any], repetition: int) -> list[Record]:
        """Count the pixels that move."""
        squares = squares_of(point["scenario"], *run.sources.photo.shape[:2])
        _, unmoved = squares.rearrange(_origin(run, point["scenario"]))
        return [{"side in pixels": squares.side, SHARE: float(np.mean(~unmoved))}]

    def table(self, run: Run, records: list[Record]) -> list[Row]:
        """One line a scenario, beside the paper's share."""
        return [{**line, "paper": _PAPER_SHARE[line["scenario"]]} for line in super().table(run, records)]

    def plot(self, run: Run, rows: list[Row]) -> Any:
        """Draw three photos a scenario, with the boxes."""
        photo = run.sources.photo
        height, width, _ = photo.shape
        figure = plotting.new_figure(figsize=(11, 2 * (11 / 3) * height / width + 0.9))
        variance = run.settings["noise_variance"]
        titles = ("the photo", "squares moved", f"squares moved, noise of variance {variance:g}")
        for axes, scenario in zip(figure.subplots(2, 3), SCENARIOS, strict=True):
            squares = squares_of(scenario, height, width)
            source, _ = squares.rearrange(_origin(run, scenario))
            changed = photo.reshape(-1, 3)[source].reshape(photo.shape)
            small = _shrunk(changed)
            noise = variance**0.5 * run.generator(2, SCENARIOS.index(scenario)).standard_normal(small.shape)
            noisy = np.clip(small + noise, 0, 255).astype(np.uint8)
            for ax, picture, title in zip(axes, (_shrunk(photo), small, noisy), titles, strict=True):
                ax.imshow(picture, extent=(0, width, height, 0), interpolation="nearest")
                ax.set(title=title, xticks=[], yticks=[])
                _draw_boxes(ax, squares.corners, squares.side)
            axes[0].set_ylabel(f"scenario {scenario}")
        return figure

    def headline(self, rows: list[Row]) -> list[Row]:
        """Share of the pixels that move, beside the paper's."""
        return [{**point_of(line), "here": line["mean"], "paper": line["paper"]} for line in rows]

    def claims(self, rows: list[Row]) -> list[Claim]:
        """The squares must take the share that the paper gives."""
        off = max(abs(line["mean"] - line["paper"]) for line in rows)
        shares = " and ".join(f"{line['mean']:.1%}" for line in rows)
        return [Claim("The squares take 25 % and 18.5 % of the pixels.", off < 0.005, f"Here {shares}.")]


def _origin(run: Run, scenario: str) -> Any:
    squares = squares_of(scenario, *run.sources.photo.shape[:2])
    return random_cycle(len(squares.corners), run.generator(1, SCENARIOS.index(scenario)))


def _shrunk(photo: Photo) -> Photo:
    step = max(1, round(photo.shape[1] / _SHOWN_WIDTH))
    return photo[::step, ::step]


def _draw_boxes(ax: Any, corners: Any, side: int) -> None:
    from matplotlib.patches import Rectangle

    for top, left in corners:
        ax.add_patch(Rectangle((left, top), side, side, fill=False, edgecolor=style.VERMILION, linewidth=1.2))


class OverNoise(Experiment):
    """What an experiment finds on the sky photo, in both scenarios, over the noise that is added to it."""

    data = ("sky",)
    legend_columns: int

    def points(self, settings: Settings) -> list[dict[str, Any]]:
        """One a scenario and noise level."""
        return [{"scenario": s, "noise_variance": v} for s in SCENARIOS for v in settings["noise_variances"]]

    def plot(self, run: Run, rows: list[Row]) -> Any:
        """Draw the overall error against the noise, a panel a scenario."""
        figure, axes = style.panels(2, 10, 4.4, sharey=True)
        for ax, scenario in zip(axes, SCENARIOS, strict=True):
            self.draw(ax, select(rows, scenario=scenario, quantity=OVERALL))
            ax.set(title=f"scenario {scenario}", xlabel="variance of the noise on red, green and blue")
        axes[0].set_ylabel("share of pixels misjudged")
        axes[0].set_ylim(bottom=0)
        return style.legend_below(figure, axes[0], self.legend_columns)

    @abstractmethod
    def draw(self, ax: Any, rows: list[Row]) -> None:
        """Draw the overall errors of one scenario."""


class SkyNoise(OverNoise):
    """Figure 3: overall error against the noise on the photo, five methods, both scenarios."""

    name = "sky-noise"
    reference = "Figure 3"
    title = "Sky: overall error against the noise, five methods, both scenarios"
    full: ClassVar[Settings] = {"n": 5000, "noise_variances": [float(v) for v in range(0, 101, 5)], "repetitions": 1000}
    quick: ClassVar[Settings] = {"noise_variances": [0.0, 25.0, 50.0, 75.0, 100.0], "repetitions": 20}
    quantities = ERRORS
    per_cell = 100
    notes = (
        "In scenario 2 the squares are permuted anew in each repetition, by one random cycle, so that none stays in "
        "place and 18.5 % of the pixels move. Truth is where a pixel comes from, even where the colours are equal. "
        "The same pixels and permutations serve every noise level. The paper's photo is not public, and it prints no "
        "numbers for Figure 3."
    )
    legend_columns = 3
    takes = ("thresholds",)

    def measure(self, run: Run, point: Mapping[str, Any], repetition: int) -> list[Record]:
        """Draw pixels, move squares, add noise, judge. A repetition has the same pixels at every noise level."""
        random = run.generator(SCENARIOS.index(point["scenario"]), repetition)
        pairs = draw_pairs(run.sources.photo, **point, n=run.settings["n"], random=random)
        return judge_methods(*pairs, run.settings.get("thresholds", ()))

    def draw(self, ax: Any, rows: list[Row]) -> None:
        """Draw a line a method."""
        for method in style.methods_in(rows):
            line = select(rows, method=method)
            style.plot_with_band(ax, column(line, "noise_variance"), line, **style.method_look(method))

    def headline(self, rows: list[Row]) -> list[Row]:
        """Overall error of each method, a line a scenario and noise level."""
        return pivot(rows, ["scenario", "noise_variance"], "method", quantity=OVERALL)

    def claims(self, rows: list[Row]) -> list[Claim]:
        """Judge what section 6.3 says about Figure 3."""
        overall = {
            (scenario, method): column(rows, "mean", scenario=scenario, method=method, quantity=OVERALL)
            for scenario in SCENARIOS
            for method in METHODS
        }
        both = [_rising(overall), _larger_is_worse(overall)]
        return both + _claims_about_the_swap(overall) + _claims_about_the_permutation(overall)


def _rising(overall: _Curves) -> Claim:
    falling = [
        f"{method} in scenario {scenario[0]}" for (scenario, method), curve in overall.items() if curve[-1] <= curve[0]
    ]
    row_sums = ((scenario[0], overall[scenario, ROW_SUM]) for scenario in SCENARIOS)
    kmeans = [f"{number}: {curve[0]:.4f} to {curve[-1]:.4f}" for number, curve in row_sums]
    return Claim(
        "For both scenarios the overall error increases as the noise becomes larger.",
        not falling,
        f"From the lowest to the highest noise the row-sum error goes, in scenario {'; in scenario '.join(kmeans)}."
        + (f" It does not rise for {'; '.join(falling)}." if falling else " It rises for all ten curves."),
    )


def _larger_is_worse(overall: _Curves) -> Claim:
    curves = [[overall[scenario, method] for method in FIXED] for scenario in SCENARIOS]
    holds = all(a < b < c for three in curves for a, b, c in zip(*three, strict=True))
    averages = ["; ".join(f"{fmean(curve):.3f}" for curve in three) for three in curves]
    return Claim(
        "For any fixed noise level a larger threshold produces a larger overall error.",
        holds,
        f"Means over the noise for t = 0.3; 0.5; 0.7: scenario 1: {averages[0]}, scenario 2: {averages[1]}.",
    )


def _claims_about_the_swap(overall: _Curves) -> list[Claim]:
    mean, largest = gaps(overall[SWAP, EIGENVECTOR], overall[SWAP, ROW_SUM])
    worst_kmeans = [max(pair) for pair in zip(overall[SWAP, EIGENVECTOR], overall[SWAP, ROW_SUM], strict=True)]
    best_fixed = [min(three) for three in zip(*(overall[SWAP, method] for method in FIXED), strict=True)]
    wins = sum(a < b for a, b in zip(worst_kmeans, best_fixed, strict=True))
    return [
        Claim(
            "In scenario 1 the k-means versions of both methods perform similarly.",
            mean <= SIMILAR,
            f"They are {mean:.4f} apart on average over the noise, at most {largest:.4f} (similar: {SIMILAR} on "
            f"average).",
        ),
        Claim(
            "In scenario 1 both k-means versions outperform the fixed-threshold rules.",
            wins == len(best_fixed),
            f"At {wins} of {len(best_fixed)} noise levels; means over the noise: the worse of the k-means versions "
            f"{fmean(worst_kmeans):.3f}, the best fixed threshold {fmean(best_fixed):.3f}.",
        ),
    ]


def _claims_about_the_permutation(overall: _Curves) -> list[Claim]:
    row_sum = overall[PERMUTATION, ROW_SUM]
    others = (overall[PERMUTATION, method] for method in METHODS if method != ROW_SUM)
    best_other = [min(values) for values in zip(*others, strict=True)]
    lead = [other - own for other, own in zip(best_other, row_sum, strict=True)]
    wins, largest = sum(ahead > 0 for ahead in lead), lead.index(max(lead))
    return [
        Claim(
            "In scenario 2 the row-sum method with k-means gives the best performance among all methods.",
            wins == len(lead),
            f"At {wins} of {len(lead)} noise levels; means over the noise: row sum {fmean(row_sum):.4f}, best of the "
            f"others {fmean(best_other):.4f}.",
        ),
        Claim(
            "In scenario 2 the row sum's lead is largest at intermediate noise levels.",
            lead[largest] > 0 and 0 < largest < len(lead) - 1,
            f"Its lead over the best other method is {lead[0]:.4f} without noise, {lead[len(lead) // 2]:.4f} in the "
            f"middle and {lead[-1]:.4f} at the highest noise.",
        ),
    ]
