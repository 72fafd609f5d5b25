"""The drawings of a match or registration as shapes for an SVG: scores or residuals with their null, and q-values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np
from scipy.optimize import brentq

from inlier._typing import Array, FloatArray, Mask
from inlier.report.match_summary import MatchSummary
from inlier.report.tally import REAL, WRONG
from inlier.report.words import percent, power_of_ten
from inlier.result import MatchResult

_FRAME = {"width": 520.0, "height": 300.0, "left": 64.0, "right": 494.0, "top": 26.0, "bottom": 254.0}
_LETTER = 9.0  # width of a letter, generously
_BINS, _POINTS = 56, 240  # of a histogram, and of a curve: a bar is seven pixels wide, a point two from the next
_MOST_TICKS = 6
_SEEN = 0.03  # of the tallest bar: if all bars of a verdict are lower, counts go on a logarithmic axis
_MOST_CUTS = 12  # thresholds of a split match, beyond which nothing else could be seen
_LONG_TAIL = 3.0  # how many times the interesting stretch a lower tail may be, before it is compressed
_TAIL_WIDTH = 0.35  # share of the axis that a compressed tail gets
_SMALLEST_Q = 1e-9  # what is lower is drawn there


def score_chart(summary: MatchSummary) -> dict[str, Any]:
    """Histogram of the scores by verdict, the null as an outline, and where the cut is."""
    scores, null = summary.result.scores, summary.null_scores
    scale = _score_scale(scores, null, summary.result.inlier_mask)
    cuts = scale.place(np.unique(np.atleast_1d(summary.result.threshold))[:_MOST_CUTS])
    cuts = cuts[(cuts >= 0) & (cuts <= 1.0001)]
    return {
        **_histogram(summary, scores, null, scale, "score"),
        "cuts": _x(cuts).tolist(),
        "cut_label": "threshold" if cuts.size == 1 else "thresholds",
    }


def truth_chart(result: MatchResult, true_mask: Mask) -> dict[str, Any]:
    """Histogram of the scores where the truth is known: real and wrong pairs, and where the cut is."""
    scale = _score_scale(result.scores, None, result.inlier_mask)
    edges, places = np.linspace(0, 1, _BINS + 1), scale.place(result.scores)
    groups = {name: np.histogram(places[mask], edges)[0] for name, mask in ((REAL, true_mask), (WRONG, ~true_mask))}
    counts, is_log = _count_scale(groups, np.zeros(1))
    cuts = scale.place(np.unique(np.atleast_1d(result.threshold))[:_MOST_CUTS])
    return {
        **_axes(scale, counts, "score", "pairs"),
        "kind": "histogram",
        "label": "Histogram of the scores of real and of wrong pairs, with the cut",
        "bars": _bars(groups, edges, counts),
        "outline": None,
        "log_counts": is_log,
        "break": None if scale.break_at is None else _x(scale.break_at),
        "cuts": _x(cuts[(cuts >= 0) & (cuts <= 1.0001)]).tolist(),
        "cut_label": "cut",
    }


def residual_chart(
    summary: MatchSummary, residuals: FloatArray, null: FloatArray | None, noise_bound: float
) -> dict[str, Any]:
    """Histogram of the residuals by verdict, those of re-pairings as an outline, and the noise bound."""
    scale = mirrored(_score_scale(-residuals, None if null is None else -null, summary.result.inlier_mask))
    bound = float(scale.place(noise_bound))
    return {
        **_histogram(summary, residuals, null, scale, "residual"),
        "cuts": [_x(bound)] if 0 <= bound <= 1 else [],
        "cut_label": "noise bound",
    }


def _histogram(
    summary: MatchSummary, values: FloatArray, null: FloatArray | None, scale: Scale, x_label: str
) -> dict[str, Any]:
    edges = np.linspace(0, 1, _BINS + 1)
    places = np.clip(scale.place(values), 0, 1)
    verdicts, names = summary.verdicts, summary.verdict_names
    groups = {name: np.histogram(places[verdicts == code], edges)[0] for code, name in enumerate(names)}
    outline = np.zeros(_BINS)
    if null is not None and null.size > 1:
        n_wrong = summary.n_pairs * (1 - (summary.inlier_fraction or 0.0))
        outline = np.histogram(np.clip(scale.place(null), 0, 1), edges)[0] * (n_wrong / null.size)
    counts, is_log = _count_scale(groups, outline)
    return {
        **_axes(scale, counts, x_label, "pairs"),
        "kind": "histogram",
        "label": f"Histogram of the {x_label}s with the cut",
        "bars": _bars(groups, edges, counts),
        "outline": _steps(outline, edges, counts) if outline.any() else None,
        "log_counts": is_log,
        "break": None if scale.break_at is None else _x(scale.break_at),
        "verdicts": [name for name in names if groups[name].any()],
    }


def _count_scale(groups: dict[str, Any], outline: FloatArray) -> tuple[Scale, bool]:
    """The axis of counts, and whether it is logarithmic: where a kind of pairs could not be seen otherwise."""
    tallest = float(max(np.sum(list(groups.values()), axis=0).max(), outline.max(), 1))
    smallest = min((float(group.max()) for group in groups.values() if group.any()), default=tallest)
    is_log = smallest < _SEEN * tallest
    return from_zero_in_powers(tallest) if is_log else linear(0, tallest, 5), is_log


def q_chart(summary: MatchSummary) -> dict[str, Any] | None:
    """How many pairs would be accepted at each alpha; None without q-values."""
    if summary.result.q_values is None or summary.alpha is None:
        return None
    q, n, alpha = np.maximum(np.sort(summary.result.q_values), _SMALLEST_Q), summary.n_pairs, summary.alpha
    # The curve may jump where few points are drawn: both ends of its steepest steps are kept.
    steepest = np.argsort(-np.diff(np.log(q), prepend=np.log(q[0])))[:20]
    evenly = np.linspace(1, n, min(n, _POINTS)).round().astype(int)
    counts = np.unique(np.concatenate([evenly, steepest + 1, np.maximum(steepest, 1)]))
    low = 10.0 ** np.floor(np.log10(min(q[0], max(alpha, _SMALLEST_Q)) * 0.999))
    across, up = linear(0, n, 5), logarithmic(low, 1.0)
    points = zip(_x(across.place(counts)), _y(up.place(q[counts - 1])), strict=True)
    accepted = summary.n_inliers
    reached = max(alpha, float(summary.result.q_values[summary.result.inlier_mask].max(initial=0.0)))
    return {
        **_axes(across, up, "pairs accepted", "alpha"),
        "kind": "curve",
        "label": "Pairs accepted at each alpha",
        "line": "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points),
        "alpha": _y(up.place(max(alpha, low))),
        "alpha_label": f"alpha = {alpha:g}",
        "label_on_the_left": accepted > n / 2,  # where the curve is not
        "dot": _x(across.place(accepted)),
        "dot_height": _y(up.place(max(reached, low))),
        "dot_label": f"{accepted:,} accepted with at most {percent(reached)} wrong",
    }


def path_charts(partner: Array, alone: Mask, n_y: int) -> list[dict[str, Any]]:
    """Which row of y belongs to each row of X, after slips: as places in the two tables, and how far apart they are.

    Rows that moved ``alone`` are not what the second is scaled for.
    """
    rows, n = np.flatnonzero(partner >= 0), partner.size
    far = max(1.0, float(np.abs((partner - np.arange(n))[(partner >= 0) & ~alone]).max(initial=0)))
    down = np.clip(partner[rows] - rows, -far, far)
    across, up = linear(0, n, 5), linear(0, n_y, 5)
    apart = linear(-far, far, 5)
    return [
        {
            **_axes(across, up, "row of X", "row of y"),
            "kind": "path",
            "label": "Rows of X against the rows of y that belong to them",
            "before": f"M{_x(0):.1f} {_y(0):.1f}L{_x(min(n_y / n, 1)):.1f} {_y(min(n / n_y, 1)):.1f}",
            "line": _strokes(rows, across.place(rows), up.place(partner[rows]), np.abs(np.diff(partner[rows])) <= 1),
        },
        {
            **_axes(across, apart, "row of X", "down"),
            "kind": "path",
            "label": "By how many rows what belongs to each row of X stands further down in y",
            "before": f"M{_x(0):.1f} {_y(0.5):.1f}L{_x(1):.1f} {_y(0.5):.1f}",
            "line": _strokes(rows, across.place(rows), apart.place(down), np.abs(np.diff(down)) <= 2),
        },
    ]


def _strokes(rows: Array, x: FloatArray, y: FloatArray, goes_on: Mask) -> str:
    """A line through rows that stand one after the other, in a piece where it goes on; single rows as dots."""
    goes_on = np.append(goes_on & (np.diff(rows) == 1), False)
    path, is_down = [], False
    for at, height, onward in zip(_x(x), _y(y), goes_on, strict=True):
        path.append(f"{'L' if is_down else 'M'}{at:.1f} {height:.1f}" + ("" if is_down or onward else "h.1"))
        is_down = bool(onward)
    return "".join(path)


def _axes(across: Scale, up: Scale, x_label: str, y_label: str) -> dict[str, Any]:
    """Axes and ticks, the same for every drawing."""
    x_ticks = _apart([{"at": _x(place), "label": text} for place, text in across.placed_ticks()])
    y_ticks = [{"at": _y(place), "label": text} for place, text in up.placed_ticks()]
    return {**_FRAME, "x_label": x_label, "y_label": y_label, "x_ticks": x_ticks, "y_ticks": y_ticks}


def _apart(ticks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the ticks whose labels would run into the one to their right."""
    kept: list[dict[str, Any]] = []
    for tick in reversed(ticks):
        half = _LETTER * (len(tick["label"]) + 2) / 2
        if not kept or tick["at"] + half <= kept[-1]["at"] - _LETTER * len(kept[-1]["label"]) / 2:
            kept.append(tick)
    return kept[::-1]


def _bars(groups: dict[str, Any], edges: FloatArray, counts: Scale) -> list[dict[str, Any]]:
    """Stacked bars, each with a sentence for whoever points at it."""
    lefts, width, below = _x(edges[:-1]) + 0.5, _x(edges[1]) - _x(edges[0]) - 1, np.zeros(_BINS)
    bars = []
    for name in reversed(groups):  # the accepted, which come first, on top
        bottoms, tops = _y(counts.place(below)), _y(counts.place(below + groups[name]))
        below = below + groups[name]
        for left, bottom, top, count in zip(lefts, bottoms, tops, groups[name], strict=True):
            if count:
                title = f"{count:,} {'pair' if count == 1 else 'pairs'}, {name}"
                box = {"x": left, "y": top, "width": width, "height": max(bottom - top, 0.75)}
                bars.append({**box, "verdict": name, "title": title})
    return bars


def _steps(heights: FloatArray, edges: FloatArray, counts: Scale) -> str:
    """An outline over the bins, as the path of an SVG."""
    path, is_up, ground = [], False, _FRAME["bottom"]
    for left, right, height in zip(_x(edges[:-1]), _x(edges[1:]), heights, strict=True):
        if height > 0:
            y = _y(counts.place(height))
            start = "" if is_up else f"M{left:.1f} {ground:.1f}"
            path.append(f"{start}L{left:.1f} {y:.1f}L{right:.1f} {y:.1f}")
        elif is_up:
            path.append(f"L{left:.1f} {ground:.1f}")
        is_up = height > 0
    return "".join([*path, f"L{_FRAME['right']:.1f} {ground:.1f}" if is_up else ""])


def _x(place: Any) -> Any:
    """Pixels from the left of a place in [0, 1] on the lower axis."""
    return _FRAME["left"] + place * (_FRAME["right"] - _FRAME["left"])


def _y(place: Any) -> Any:
    """Pixels from the top of a place in [0, 1] on the left axis."""
    return _FRAME["bottom"] - place * (_FRAME["bottom"] - _FRAME["top"])


@dataclass(frozen=True)
class Scale:
    """An axis: where a value lies between 0 and 1, and which values are written beside it."""

    place: Callable[[Any], FloatArray]
    ticks: list[float]
    break_at: float | None = None  # where a compressed tail ends, in [0, 1]

    def placed_ticks(self) -> list[tuple[float, str]]:
        """The ticks that lie on the axis: where, and what is written there."""
        places = self.place(np.array(self.ticks)).tolist()
        return [(at, label(tick)) for at, tick in zip(places, self.ticks, strict=True) if -0.001 <= at <= 1.001]


def linear(low: float, high: float, most_ticks: int = _MOST_TICKS) -> Scale:
    """Evenly spaced."""
    width = (high - low) or 1.0
    return Scale(lambda values: (values - low) / width, round_numbers(low, high, most_ticks))


def logarithmic(low: float, high: float) -> Scale:
    """Powers of ten; both ends positive."""
    first, last = log10(low), log10(high)
    step = max(1, ceil((last - first) / _MOST_TICKS))
    ticks = [10.0**power for power in range(ceil(first - 1e-9), floor(last + 1e-9) + 1, step)]
    width = (last - first) or 1.0
    return Scale(lambda values: (np.log10(values) - first) / width, ticks)


def from_zero_in_powers(high: float) -> Scale:
    """Zero at the bottom, then powers of ten: where one has to be seen beside ten thousand."""
    top = log10(1 + high)
    powers = [10.0**power for power in range(0, floor(log10(high) + 1e-9) + 1)]
    step = max(1, ceil(len(powers) / _MOST_TICKS))
    return Scale(lambda values: np.log10(1 + np.asarray(values, dtype=float)) / top, [0.0, *powers[::step]])


def with_lower_tail(low: float, core: float, high: float) -> Scale:
    """Linear from ``core`` to ``high``, and below that a narrow stretch in which distances grow by powers of ten.

    Both stretches are equally dense where they meet, so that a smooth histogram stays smooth.
    """
    tail, unit = core - low, high - core
    wanted = unit * _TAIL_WIDTH / (1 - _TAIL_WIDTH)
    bend = float(brentq(lambda size: size * np.log1p(tail / size) - wanted, 1e-12 * unit, unit))
    span = np.log1p(tail / bend)

    def place(values: FloatArray) -> FloatArray:
        right = _TAIL_WIDTH + (1 - _TAIL_WIDTH) * (values - core) / unit
        left = _TAIL_WIDTH * (1 - np.log1p(np.maximum(core - values, 0) / bend) / span)
        return np.where(values >= core, right, left)

    first = ceil(log10(max(tail, unit))) - 1
    powers = [-(10.0**power) for power in range(first, first - 30, -1)]
    ticks = [value for value in powers if low <= value < core and -value >= 0.01 * unit]
    some = ticks[:: max(1, ceil(len(ticks) / 3))]
    return Scale(place, [*some, *round_numbers(core, high, 5)], _TAIL_WIDTH)


def mirrored(scale: Scale) -> Scale:
    """The axis of minus the values: what was the lower tail is the upper one."""
    ticks = [-tick if tick else 0.0 for tick in reversed(scale.ticks)]
    break_at = None if scale.break_at is None else 1 - scale.break_at
    return Scale(lambda values: 1 - scale.place(-values), ticks, break_at)


def _score_scale(scores: FloatArray, null: FloatArray | None, inlier_mask: Mask) -> Scale:
    """Linear where everything interesting can be seen so; otherwise with the lower tail compressed."""
    everything = scores if null is None else np.concatenate([scores, null])
    low, high = float(everything.min()), float(everything.max())
    if high == low:
        return linear(low - 0.5, high + 0.5)
    accepted = scores[inlier_mask]
    # The interesting stretch: nearly all of the accepted pairs, and as much again below them.
    core = 2 * float(np.quantile(accepted, 0.02)) - high if accepted.size else float(np.quantile(scores, 0.25))
    if not low < core < high or core - low <= _LONG_TAIL * (high - core):
        return linear(low, high)
    return with_lower_tail(low, core, high)


def round_numbers(low: float, high: float, most: int) -> list[float]:
    """At most ``most`` multiples of 1, 2 or 5 times a power of ten between two numbers."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [number * step for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def label(value: float) -> str:
    """A tick in few characters: 2,000, 0.01, -10 to the 13th."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e6:
        return f"{value:,.4f}".rstrip("0").rstrip(".").replace("-", "\N{MINUS SIGN}")
    return power_of_ten(value, digits=0)
