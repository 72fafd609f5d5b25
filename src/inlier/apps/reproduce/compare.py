"""Does a new run agree with the committed baseline, as far as the standard errors of both allow?"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from scipy.stats import norm, t

from inlier.apps.reproduce.tidy import Row, point_of

Record = Mapping[str, Any]

ALLOWED_ERRORS = 4.0  # standard errors, when these are well known; more when there were few repetitions
_SMALLEST = 1e-4  # below this a difference is rounding: a pixel on the edge of a threshold
_NOT_COMPARED = ("seconds per repetition",)  # times are the machine's, not the method's
# A run may have other repetitions, or try other points of a grid: the points that both have are compared.
_FREE_SETTINGS = ("repetitions", "dense_repetitions", "inlier_fractions", "noise_variances", "splits")


@dataclass(frozen=True)
class Comparison:
    """What came of comparing one experiment with its baseline: how many numbers, which differ, or why none was."""

    name: str
    n_compared: int = 0
    differences: tuple[str, ...] = ()
    not_compared: str = ""

    @property
    def summary(self) -> str:
        """The result in a line."""
        if self.not_compared:
            return f"not compared: {self.not_compared}"
        if self.differences:
            return f"{len(self.differences)} of {self.n_compared} numbers differ from the baseline"
        return f"agrees with the baseline in all {self.n_compared} numbers"


def load_baselines(name: str) -> list[Record]:
    """Return the committed full runs of an experiment, one for each data source it was run on."""
    folder = files("inlier.apps.reproduce") / "baseline"
    found = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda path: path.name)
    records = (json.loads(path.read_text()) for path in found)
    return [record for record in records if record["experiment"] == name]


def compare(record: Record, baselines: Sequence[Record]) -> Comparison:
    """Compare a run, as `output.as_record` gives it, with the baseline of the same data.

    A number differs if the difference is larger than ``ALLOWED_ERRORS`` joint standard errors; where these
    come from few repetitions, by as many more as Student's distribution asks for.
    """
    name, settings = record["experiment"], record["settings"]
    if not baselines:
        return Comparison(name, not_compared="there is no baseline for it")
    same_data = [baseline for baseline in baselines if baseline["data"] == record["data"]]
    if not same_data:
        known = " and on ".join(_names(baseline["data"]) for baseline in baselines)
        return Comparison(name, not_compared=f"it ran on {_names(record['data'])}, and the baseline on {known}")
    before = same_data[0]["settings"]
    fixed = sorted({*settings, *before} - set(_FREE_SETTINGS))
    other = [setting for setting in fixed if settings.get(setting) != before.get(setting)]
    if other:
        return Comparison(name, not_compared=f"its settings are not the baseline's ({', '.join(other)})")
    return _compare_rows(name, record["rows"], same_data[0]["rows"])


def _compare_rows(name: str, rows: list[Row], baseline_rows: list[Row]) -> Comparison:
    known = {_label(row): row for row in baseline_rows}
    shared = {label: row for row in rows if (label := _label(row)) in known and row["quantity"] not in _NOT_COMPARED}
    differences = []
    for label, row in shared.items():
        here, before, allowed = row["mean"], known[label]["mean"], allowed_difference(row, known[label])
        if abs(here - before) > allowed:
            differences.append(f"{label}: {here:.5g} here, {before:.5g} in the baseline (allowed: {allowed:.2g})")
    return Comparison(name, len(shared), tuple(differences))


def allowed_difference(first: Row, second: Row) -> float:
    """How far two means may be apart before they differ by more than chance.

    If nothing has changed both runs draw from one distribution, so its spread is estimated from both together:
    a few repetitions without a single error do not claim to know that there are none.
    """
    freedom = first["repetitions"] + second["repetitions"] - 2
    if freedom == 0:  # fitted numbers, which bring their standard errors, or numbers without chance
        return max(_SMALLEST, ALLOWED_ERRORS * math.hypot(first["stderr"], second["stderr"]))
    variance = sum((row["repetitions"] - 1) * row["sd"] ** 2 for row in (first, second)) / freedom
    error = math.sqrt(variance * sum(1 / row["repetitions"] for row in (first, second)))
    return max(_SMALLEST, float(t.isf(norm.sf(ALLOWED_ERRORS), freedom)) * error)


def _label(row: Row) -> str:
    return ", ".join(f"{name} {value}" if name != "quantity" else str(value) for name, value in point_of(row).items())


def _names(data: Mapping[str, Mapping[str, str]]) -> str:
    return ", ".join(source["name"] for source in data.values())
