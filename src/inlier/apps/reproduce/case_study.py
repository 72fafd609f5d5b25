"""Figure 4: three photos of one scene, compared two by two; what differs is painted yellow."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from inlier import plotting
from inlier._typing import Mask
from inlier.apps.reproduce import style
from inlier.apps.reproduce.methods import EIGENVECTOR, ROW_SUM
from inlier.apps.reproduce.model import Cell, Claim, Experiment, Record, Row, Run, Settings
from inlier.apps.reproduce.tables import pivot, row, select
from inlier.estimators.paper import EigenvectorMatcher, RowSumMatcher

FLAGGED = "share of pixels called different"
FOUND, WRONGLY = "share of the new objects found", "share of the other pixels called different"
_TASKS = tuple(combinations(range(3), 2))
_IN_THEM = ("the scene", "with one object", "with two objects")
_YELLOW = (255, 255, 0)
_FOUND_ENOUGH, _FEW = 0.8, 0.02


def cells(settings: Settings) -> list[Cell]:
    """One cell a pair of photos and method."""
    return [{"first": a, "second": b, "method": method} for a, b in _TASKS for method in (EIGENVECTOR, ROW_SUM)]


def differing(run: Run, first: int, second: int, method: str) -> Mask:
    """Return the pixels that a method calls different between two photos."""
    photos = run.sources.three_scenes.photos
    matcher = {EIGENVECTOR: EigenvectorMatcher, ROW_SUM: RowSumMatcher}[method]()
    matcher.fit(photos[first].reshape(-1, 3), photos[second].reshape(-1, 3))
    return ~matcher.inlier_mask_.reshape(photos[first].shape[:2])


def run_cell(run: Run, cell: Cell) -> list[Record]:
    """Compare two photos; where the objects' places are known, count how much of them is found."""
    flagged = differing(run, cell["first"], cell["second"], cell["method"])
    names = _names(run)
    point = {"first photo": names[cell["first"]], "second photo": names[cell["second"]], "method": cell["method"]}
    record = {**point, FLAGGED: float(flagged.mean())}
    truth = run.sources.three_scenes.changed(cell["first"], cell["second"])
    if truth is not None:
        record |= {FOUND: float(flagged[truth].mean()), WRONGLY: float(flagged[~truth].mean())}
    return [record]


def table(run: Run, records: list[Record]) -> list[Row]:
    """One line a comparison, method and quantity."""
    return [
        row({name: record[name] for name in ("first photo", "second photo", "method")}, quantity, record[quantity])
        for record in records
        for quantity in (FLAGGED, FOUND, WRONGLY)
        if quantity in record
    ]


def plot(run: Run, rows: list[Row]) -> Any:
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
        _framed(axes[i, j], picture, colour, title)
    return figure


def _names(run: Run) -> list[str]:
    """Number the photos, and say what is in them if that is known."""
    known = run.sources.three_scenes.objects is not None
    return [f"{number}: {content}" if known else str(number) for number, content in enumerate(_IN_THEM, start=1)]


def _framed(ax: Any, picture: Any, colour: str, title: str) -> None:
    step = max(1, picture.shape[1] // 900)
    ax.imshow(picture[::step, ::step], interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=10, color=colour)
    for spine in ax.spines.values():
        spine.set(edgecolor=colour, linewidth=4)


def headline(rows: list[Row]) -> list[Row]:
    """What each method found, a line a comparison."""
    return pivot(rows, ["first photo", "second photo", "method"], "quantity")


def claims(rows: list[Row]) -> list[Claim]:
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
            f"less), most of them on things of strong colour that nobody touched: a pixel is judged by how much its "
            f"colour speaks for the common rotation, and k-means always cuts in two.",
        ),
    ]


EXPERIMENT = Experiment(
    name="case-study",
    reference="Figure 4",
    title="Case study: what differs between photos of one scene",
    full={},
    quick={},
    cells=cells,
    run_cell=run_cell,
    table=table,
    plot=plot,
    claims=claims,
    headline=headline,
    notes="The paper's photos of a room are not public. By default scikit-learn's china.jpg is the scene, into which a "
    "yellow box and an orange cushion are drawn, with soft shadows, slightly other light and sensor noise in each "
    "photo; the objects' places are known to the pixel. Give three photos of your own with --photo, three times.",
    data=("scenes",),
)
