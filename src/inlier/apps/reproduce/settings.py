"""Settings that whoever reads the paper wants to try: sizes, noise, thresholds, as the command line takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from typing import Any

import click

# what an experiment may call it; the first is a list of values
_NAMES = {
    "n": ("n", "sample"),
    "sizes": ("sizes",),
    "fraction": ("inlier_fractions", "inlier_fraction"),
    "noise": ("noise_variances", "noise_variance"),
    "splits": ("splits",),
    "threshold": ("thresholds",),
}
_WHOLE = ("n", "sizes", "splits")
_RANGES = {"noise": (0.0, inf), "fraction": (0.0, 1.0), "threshold": (0.0, 1.0)}
_MOST_VALUES = 1000


class Values(click.ParamType):  # type: ignore[type-arg]
    """Numbers between commas, or FROM:TO:STEP with both ends."""

    name = "values"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The numbers that are meant."""
        if isinstance(value, tuple):
            return value
        try:
            if ":" in value:
                start, stop, step = map(float, value.split(":"))
                count = round((stop - start) / step) + 1
                values = [round(start + step * k, 10) for k in range(count) if k < _MOST_VALUES]
            else:
                values = [float(part) for part in value.split(",")]
        except (ValueError, ZeroDivisionError, OverflowError):
            values = []
        if not values or not all(map(isfinite, values)) or len(values) >= _MOST_VALUES:
            self.fail(f"{value!r} is no list of numbers, such as 0,50,100 or 0:50:5 (from, to, step).", param, ctx)
        return tuple(values)


def setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that change the paper's settings, each for the experiments that have it."""
    texts = {
        "n": "Number of pairs; of pixels in the sample beside whole photos.",
        "sizes": "Numbers of pairs over which the theorems are watched.",
        "fraction": "Shares of real pairs.",
        "noise": "Variances of the noise on the photo, such as 0:50:5.",
        "splits": "Numbers of parts.",
        "threshold": "Further thresholds of the eigenvector's scores, beside 0.3, 0.5 and 0.7.",
    }
    for name, text in reversed(texts.items()):
        command = click.option(f"--{name}", type=Values(), metavar="VALUES", help=text)(command)
    return command


def changed(
    settings: Mapping[str, Any], takes: Sequence[str], values: Mapping[str, tuple[float, ...]]
) -> dict[str, Any]:
    """Settings with other values, of those that the experiment has; ``takes`` are such that it has no value for yet.

    Examples
    --------
    >>> from inlier.apps.reproduce.settings import changed
    >>> changed({"n": 5000, "repetitions": 3}, (), {"n": (2000.0,), "noise": (0.0, 5.0)})
    {'n': 2000, 'repetitions': 3}
    """
    found = dict(settings)
    for option, given in values.items():
        name = place_of(option, settings, takes)
        if name is None:
            continue
        low, high = _RANGES.get(option, (1.0, inf))
        numbers: list[Any] = [int(value) if option in _WHOLE else value for value in given]
        if any(not low <= value <= high for value in given) or (option in _WHOLE and numbers != list(given)):
            kind = "whole numbers from 1 on" if option in _WHOLE else f"numbers from {low:g} to {high:g}"
            raise ValueError(f"--{option} takes {kind}; got {', '.join(f'{value:g}' for value in given)}.")
        before = settings.get(name, [])
        if isinstance(before, Mapping):
            found[name] = dict.fromkeys(before, numbers)
        elif isinstance(before, (list, tuple)):
            found[name] = numbers
        elif len(numbers) == 1:
            found[name] = numbers[0]
        else:
            raise ValueError(f"--{option} takes one value in this experiment; got {len(numbers)}.")
    return found


def place_of(option: str, settings: Mapping[str, Any], takes: Sequence[str]) -> str | None:
    """What the experiment calls that setting; None where it has none."""
    return next((name for name in _NAMES[option] if name in settings or name in takes), None)
