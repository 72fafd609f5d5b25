"""From numbers to places on a drawing, with ticks at round numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np
from scipy.optimize import brentq

from inlier._typing import FloatArray

_MOST_TICKS = 6
_TAIL_WIDTH = 0.35  # share of the axis that a long lower tail gets


@dataclass(frozen=True)
class Scale:
    """An axis: where a value lies between 0 and 1, and which values are written beside it."""

    place: Callable[[FloatArray], FloatArray]
    ticks: list[float]
    break_at: float | None = None  # where a compressed tail ends, in [0, 1]


def linear(low: float, high: float, most_ticks: int = _MOST_TICKS) -> Scale:
    """Evenly spaced."""
    width = (high - low) or 1.0
    return Scale(lambda values: (np.asarray(values) - low) / width, round_numbers(low, high, most_ticks))


def logarithmic(low: float, high: float) -> Scale:
    """Powers of ten; both ends positive."""
    first, last = log10(low), log10(high)
    step = max(1, ceil((last - first) / _MOST_TICKS))
    ticks = [10.0**power for power in range(ceil(first - 1e-9), floor(last + 1e-9) + 1, step)]
    width = (last - first) or 1.0
    return Scale(lambda values: (np.log10(np.asarray(values)) - first) / width, ticks)


def with_lower_tail(low: float, core: float, high: float) -> Scale:
    """Linear from ``core`` to ``high``, and below that a narrow stretch in which distances grow by powers of ten.

    Both stretches are equally dense where they meet, so that a smooth histogram stays smooth.
    """
    tail, unit = core - low, high - core
    wanted = unit * _TAIL_WIDTH / (1 - _TAIL_WIDTH)
    bend = float(brentq(lambda size: size * np.log1p(tail / size) - wanted, 1e-12 * unit, unit))
    span = np.log1p(tail / bend)

    def place(values: FloatArray) -> FloatArray:
        values = np.asarray(values, dtype=np.float64)
        right = _TAIL_WIDTH + (1 - _TAIL_WIDTH) * (values - core) / unit
        left = _TAIL_WIDTH * (1 - np.log1p(np.maximum(core - values, 0) / bend) / span)
        return np.where(values >= core, right, left)

    powers = range(ceil(log10(max(core - low, unit))) - 1, -400, -1)
    ticks = [
        value for value in (-(10.0**power) for power in powers[:30]) if low <= value < core and -value >= 0.01 * unit
    ]
    some = ticks[:: max(1, ceil(len(ticks) / 3))]
    return Scale(place, [*some, *round_numbers(core, high, 5)], _TAIL_WIDTH)


def mirrored(scale: Scale) -> Scale:
    """The axis of minus the values: what was the lower tail is the upper one."""
    ticks = [-tick if tick else 0.0 for tick in reversed(scale.ticks)]
    break_at = None if scale.break_at is None else 1 - scale.break_at
    return Scale(lambda values: 1 - scale.place(-np.asarray(values)), ticks, break_at)


def round_numbers(low: float, high: float, most: int) -> list[float]:
    """At most ``most`` multiples of 1, 2 or 5 times a power of ten between two numbers."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [number * step for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def label(value: float) -> str:
    """A tick in few characters: 2,000, 0.01, -1e13."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e6:
        return f"{value:,.4f}".rstrip("0").rstrip(".").replace("-", "\N{MINUS SIGN}")
    mantissa, power = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(power)}".replace("-", "\N{MINUS SIGN}")
