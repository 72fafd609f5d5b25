"""Figure 2: the photo, the changed photo and the changed noisy photo, for both scenarios."""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier import plotting
from inlier.apps.reproduce import style
from inlier.apps.reproduce.model import Cell, Claim, Experiment, Record, Row, Run, Settings
from inlier.apps.reproduce.sky_pairs import PERMUTATION, SCENARIOS, SWAP, Photo, squares_of
from inlier.apps.reproduce.tables import point_of, row
from inlier.datasets import random_cycle

SHARE = "share of the pixels that move"
_PAPER_SHARE = {SWAP: 0.25, PERMUTATION: 0.185}
_SHOWN_WIDTH = 195  # the paper shows its photos at 130 x 195, where the noise can be seen


def cells(settings: Settings) -> list[Cell]:
    """One cell a scenario."""
    return [{"scenario": scenario} for scenario in SCENARIOS]


def run_cell(run: Run, cell: Cell) -> list[Record]:
    """Count the pixels that move."""
    squares = squares_of(cell["scenario"], *run.sources.photo.shape[:2])
    _, unmoved = squares.rearrange(_origin(run, cell["scenario"]))
    return [{"scenario": cell["scenario"], "side in pixels": squares.side, SHARE: float(np.mean(~unmoved))}]


def table(run: Run, records: list[Record]) -> list[Row]:
    """One line a scenario, beside the paper's share."""
    return [
        row(
            {name: record[name] for name in ("scenario", "side in pixels")},
            SHARE,
            record[SHARE],
            paper=_PAPER_SHARE[record["scenario"]],
        )
        for record in records
    ]


def plot(run: Run, rows: list[Row]) -> Any:
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


def headline(rows: list[Row]) -> list[Row]:
    """Share of the pixels that move, beside the paper's."""
    return [{**point_of(line), "here": line["mean"], "paper": line["paper"]} for line in rows]


def claims(rows: list[Row]) -> list[Claim]:
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


EXPERIMENT = Experiment(
    name="sky-images",
    reference="Figure 2",
    title="Sky: the photo, changed, and changed and noisy, in both scenarios",
    full={"noise_variance": 100.0},
    quick={},
    cells=cells,
    run_cell=run_cell,
    table=table,
    plot=plot,
    claims=claims,
    headline=headline,
    notes="The paper does not say where its squares are: here they are in the middle of the cells of an even grid, "
    "in proportion to the photo. The pictures are thinned to about 195 pixels a row, as the paper shows them.",
    data=("sky",),
)
