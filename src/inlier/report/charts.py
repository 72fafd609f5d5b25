"""The drawings of a match or registration as shapes for an SVG: scores or residuals with their null, and q-values."""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier._typing import FloatArray, Mask
from inlier.report.match_summary import DOUBTFUL, REAL, VERDICTS, WRONG, MatchSummary, percent
from inlier.report.scales import Scale, label, linear, logarithmic, mirrored, with_lower_tail

WIDTH, HEIGHT = 520.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 26.0, 26.0, 46.0
_LETTER = 9.0  # width of a letter, generously
_BINS = 56
_POINTS = 240
_MOST_CUTS = 12
_LONG_TAIL = 3.0  # how many times the interesting stretch a lower tail may be, before it is compressed
_SMALLEST_Q = 1e-9


def score_chart(summary: MatchSummary) -> dict[str, Any]:
    """Histogram of the scores by verdict, the null as an outline, and where the cut is."""
    scores, null = summary.result.scores, summary.null_scores
    cuts = np.unique(np.atleast_1d(summary.result.threshold))
    scale = _score_scale(scores, null, summary.result.inlier_mask)
    drawn = _histogram(summary, scores, null, scale, "score")
    drawn["cuts"] = [_x(place) for place in scale.place(cuts[:_MOST_CUTS]) if 0 <= place <= 1.0001]
    drawn["cut_label"] = "threshold" if len(drawn["cuts"]) == 1 else "thresholds"
    drawn["caption"] = "Scores of the pairs, larger for real ones."
    drawn["compressed"] = "Left of the dotted line the axis is compressed."
    return drawn


def residual_chart(
    summary: MatchSummary, residuals: FloatArray, null: FloatArray | None, noise_bound: float
) -> dict[str, Any]:
    """Histogram of the residuals by verdict, those of re-pairings as an outline, and the noise bound."""
    scale = mirrored(_score_scale(-residuals, None if null is None else -null, summary.result.inlier_mask))
    drawn = _histogram(summary, residuals, null, scale, "residual")
    place = float(scale.place(np.array(noise_bound)))
    drawn["cuts"] = [_x(place)] if 0 <= place <= 1 else []
    drawn["cut_label"] = "noise bound"
    drawn["caption"] = "How far each point of the source, moved, lies from its partner."
    drawn["compressed"] = "Right of the dotted line the axis is compressed."
    return drawn


def _histogram(
    summary: MatchSummary, values: FloatArray, null: FloatArray | None, scale: Scale, x_label: str
) -> dict[str, Any]:
    edges = np.linspace(0, 1, _BINS + 1)
    places = np.clip(scale.place(values), 0, 1)
    groups = {name: np.histogram(places[summary.verdicts == code], edges)[0] for code, name in enumerate(VERDICTS)}
    outline = np.zeros(_BINS)
    if null is not None and null.size > 1:
        n_wrong = summary.result.n_pairs * (1 - (summary.inlier_fraction or 0.0))
        outline = np.histogram(np.clip(scale.place(null), 0, 1), edges)[0] * (n_wrong / null.size)
    highest = max(float(sum(groups.values()).max()), float(outline.max()), 1.0)  # type: ignore[union-attr]
    counts = linear(0, highest, 5)
    drawn = _frame(scale, counts, x_label, "pairs")
    drawn["kind"], drawn["label"] = "histogram", f"Histogram of the {x_label}s with the cut"
    drawn["bars"] = _bars(groups, edges, counts)
    drawn["outline"] = _steps(outline, edges, counts) if outline.any() else None
    drawn["break"] = None if scale.break_at is None else _x(scale.break_at)
    drawn["verdicts"] = [name for name in (REAL, DOUBTFUL, WRONG) if groups[name].any()]
    return drawn


def q_chart(summary: MatchSummary) -> dict[str, Any] | None:
    """How many pairs would be accepted at each alpha; None without q-values."""
    if summary.result.q_values is None or summary.alpha is None:
        return None
    q = np.sort(summary.result.q_values)
    n = q.size
    counts = np.unique(np.linspace(1, n, min(n, _POINTS)).round().astype(int))
    # The curve may jump where few points are drawn: keep both ends of its steepest steps.
    steepest = np.argsort(-np.diff(np.log(np.maximum(q, _SMALLEST_Q)), prepend=np.log(max(q[0], _SMALLEST_Q))))[:20]
    counts = np.unique(np.concatenate([counts, steepest + 1, np.maximum(steepest, 1)]))
    heights = np.maximum(q[counts - 1], _SMALLEST_Q)
    low = 10.0 ** np.floor(np.log10(min(heights[0], max(summary.alpha, _SMALLEST_Q)) * 0.999))
    across, up = linear(0, n, 5), logarithmic(low, 1.0)
    drawn = _frame(across, up, "pairs accepted", "alpha")
    drawn["kind"], drawn["label"] = "curve", "Pairs accepted at each alpha"
    points = zip(across.place(counts), up.place(heights), strict=True)
    drawn["line"] = "M" + "L".join(f"{_x(x):.1f} {_y(y):.1f}" for x, y in points)
    accepted, q_of_accepted = summary.result.n_inliers, summary.result.q_values[summary.result.inlier_mask]
    drawn["alpha"] = _y(float(up.place(np.array(max(summary.alpha, low)))))
    drawn["label_on_the_left"] = accepted > n / 2  # where the curve is not
    drawn["alpha_label"] = f"alpha = {summary.alpha:g}"
    reached = max(summary.alpha, float(q_of_accepted.max()) if q_of_accepted.size else 0.0)
    drawn["dot"] = _x(float(across.place(np.array(accepted))))
    drawn["dot_height"] = _y(float(up.place(np.array(max(reached, low)))))
    drawn["dot_label"] = f"{accepted:,} accepted with at most {percent(reached)} wrong"
    return drawn


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


def _x(place: float) -> float:
    return _LEFT + float(place) * (WIDTH - _LEFT - _RIGHT)


def _y(place: float) -> float:
    return HEIGHT - _BOTTOM - float(place) * (HEIGHT - _TOP - _BOTTOM)


def _frame(across: Scale, up: Scale, x_label: str, y_label: str) -> dict[str, Any]:
    """Axes and ticks, the same for every drawing."""
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": _LEFT,
        "right": WIDTH - _RIGHT,
        "top": _TOP,
        "bottom": HEIGHT - _BOTTOM,
        "x_label": x_label,
        "y_label": y_label,
        "x_ticks": _apart([{"at": _x(place), "label": text} for place, text in _placed_ticks(across)]),
        "y_ticks": [{"at": _y(place), "label": text} for place, text in _placed_ticks(up)],
    }


def _placed_ticks(scale: Scale) -> list[tuple[float, str]]:
    places = scale.place(np.array(scale.ticks))
    return [
        (float(place), label(tick)) for place, tick in zip(places, scale.ticks, strict=True) if -0.001 <= place <= 1.001
    ]


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
    width = _x(edges[1]) - _x(edges[0])
    bars = []
    for place, left in enumerate(edges[:-1]):
        floor = 0.0
        for name in (WRONG, DOUBTFUL, REAL):
            count = int(groups[name][place])
            if count:
                bottom, top = (_y(float(counts.place(np.array(value)))) for value in (floor, floor + count))
                bars.append(
                    {
                        "x": _x(left) + 0.5,
                        "y": top,
                        "width": width - 1,
                        "height": max(bottom - top, 0.75),
                        "verdict": name,
                        "title": f"{count:,} {'pair' if count == 1 else 'pairs'}, {name}",
                    }
                )
                floor += count
    return bars


def _steps(heights: FloatArray, edges: FloatArray, counts: Scale) -> str:
    """An outline over the bins, as the path of an SVG."""
    path, is_up = [], False
    for left, right, height in zip(edges[:-1], edges[1:], heights, strict=True):
        if height > 0:
            y = _y(float(counts.place(np.array(height))))
            start = "" if is_up else f"M{_x(left):.1f} {_y(0):.1f}"
            path.append(f"{start}L{_x(left):.1f} {y:.1f}L{_x(right):.1f} {y:.1f}")
        elif is_up:
            path.append(f"L{_x(left):.1f} {_y(0):.1f}")
        is_up = height > 0
    return "".join([*path, f"L{_x(1):.1f} {_y(0):.1f}" if is_up else ""])
