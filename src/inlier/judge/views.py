"""How the features of both sides become a score: a sum over views, each a stretch of the features of either side.

Features come as (r, n) arrays, a row for each feature: they are added one after the other, so that the sum of a pair
does not depend on how many pairs there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import FloatArray


@dataclass(frozen=True, eq=False)
class View:
    """One way to compare: (score - centre) / spread, times a weight.

    ``kind`` is "likelihood" (the features of x predict those of y, with a noise variance each), "cosine", or
    "agreement": of inner products with anchors, the first ``numbers.size`` features, of rows whose length the others
    tell.
    """

    kind: str
    start: int
    stop: int
    numbers: FloatArray  # noise variances, none, or the weights of the anchors
    constants: FloatArray  # none, none, or the correlation and what is left of a squared length, of x and of y
    weight: float = 1.0
    centre: float = 0.0
    spread: float = 1.0

    def scores(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Score each pair, given all features."""
        plain = KINDS[self.kind](self, a[self.start : self.stop], b[self.start : self.stop])
        return self.weight * (plain - self.centre) / self.spread


def _likelihood(view: View, predicted: FloatArray, y: FloatArray) -> FloatArray:
    """log N(y; predicted, variance) - log N(y; 0, 1), summed over coordinates."""
    each = (
        own * own - (own - other) * (own - other) / variance - np.log(variance)
        for own, other, variance in zip(y, predicted, view.numbers.tolist(), strict=True)
    )
    return _sum(each, predicted.shape[1]) / 2


def _cosine(view: View, a: FloatArray, b: FloatArray) -> FloatArray:
    product, of_a, of_b = (_sum(map(np.multiply, one, other), a.shape[1]) for one, other in ((a, b), (a, a), (b, b)))
    lengths = np.sqrt(of_a) * np.sqrt(of_b)
    return np.divide(product, lengths, out=np.zeros_like(product), where=lengths > 0)


def _agreement(view: View, a: FloatArray, b: FloatArray) -> FloatArray:
    """Log likelihood ratio of inner products with the anchors, of Student's t with two degrees."""
    m, n = view.numbers.size, a.shape[1]
    rho, *rests = view.constants.tolist()
    lengths = []
    for side, rest in zip((a[m:], b[m:]), rests, strict=True):
        length = np.sqrt(_sum(map(np.multiply, side, side), n) + rest)
        lengths.append(np.where(length > 0, length, np.inf))
    left = 1 - rho**2

    def ratio(g: FloatArray, h: FloatArray) -> FloatArray:
        apart = g * g + h * h
        together = (apart - (2 * rho) * g * h) / left
        ratio: FloatArray = 2 * (np.log1p(apart / 2) - np.log1p(together / 2)) - np.log(left) / 2
        return ratio

    each = (
        weight * ratio(g / lengths[0], h / lengths[1])
        for weight, g, h in zip(view.numbers.tolist(), a[:m], b[:m], strict=True)
    )
    return _sum(each, n)


KINDS: dict[str, Callable[[View, FloatArray, FloatArray], FloatArray]] = {
    "likelihood": _likelihood,
    "cosine": _cosine,
    "agreement": _agreement,
}


def _sum(each: Iterable[FloatArray], n: int) -> FloatArray:
    total = np.zeros(n)
    for part in each:
        total += part
    return total


def as_dict(view: View) -> dict[str, Any]:
    """What is stored of a view, in JSON."""
    stored = {name: getattr(view, name) for name in ("kind", "start", "stop", "weight", "centre", "spread")}
    return stored | {"numbers": view.numbers.tolist(), "constants": view.constants.tolist()}


def of_dict(stored: dict[str, Any], width: int) -> View:
    """The same view again; ValueError where it does not fit."""
    numbers, constants = (np.array(stored[name], dtype=np.float64) for name in ("numbers", "constants"))
    plain = (float(stored[name]) for name in ("weight", "centre", "spread"))
    view = View(str(stored["kind"]), int(stored["start"]), int(stored["stop"]), numbers, constants, *plain)
    n = view.stop - view.start
    needed = {"likelihood": (n, 0), "cosine": (0, 0), "agreement": (min(numbers.size, n), 3)}
    if not 0 <= view.start < view.stop <= width or needed.get(view.kind) != (numbers.size, constants.size):
        raise ValueError("a view does not fit the features")
    return view
