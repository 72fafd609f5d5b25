"""What experiments leave behind: a table as CSV, everything as JSON, a picture as PNG and PDF, one page of them all.

And whether numbers agree with the committed baseline, as far as the standard errors of both allow.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from scipy.stats import norm, t

from inlier import plotting
from inlier.apps.reproduce.experiment import STATISTICS, Outcome, Row, point_of
from inlier.io import write_file
from inlier.report.match_summary import versions
from inlier.report.pages import data_uri, find_template

Record = Mapping[str, Any]

ALLOWED_ERRORS = 4.0  # standard errors, when these are well known; more when there were few repetitions
_SMALLEST = 1e-4  # below this a difference is rounding: a pixel on the edge of a threshold
_NOT_COMPARED = ("seconds per repetition",)  # times are the machine's, not the method's
# A run may have other repetitions, or try other points of a grid: the points that both have are compared.
_FREE_SETTINGS = ("repetitions", "dense_repetitions", "inlier_fractions", "noise_variances", "splits")


def as_record(outcome: Outcome) -> dict[str, Any]:
    """Settings, seed, data, versions, numbers and verdicts; no path of this machine."""
    return {
        "experiment": outcome.experiment.name,
        "reference": outcome.experiment.reference,
        "title": outcome.experiment.title,
        "settings": dict(outcome.run.settings),
        "seed": outcome.run.seed,
        "data": outcome.run.sources.describe(),
        "versions": versions(),
        "smaller_than_the_paper": outcome.smaller,
        "seconds": round(outcome.seconds, 2),
        "claims": [asdict(claim) for claim in outcome.claims],
        "rows": outcome.rows,
    }


def as_csv(rows: list[Row]) -> str:
    """Return the tidy table; a column that a row lacks is empty."""
    text = StringIO()
    writer = csv.DictWriter(text, [*_columns(rows), *STATISTICS], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_numbers(outcome: Outcome, folder: Path) -> None:
    """Write the record, by which the rest is known as an earlier output, and the table."""
    name = outcome.experiment.name
    write_file(folder / f"{name}.json", json.dumps(as_record(outcome), indent=1) + "\n")
    write_file(folder / f"{name}.csv", as_csv(outcome.rows))


def write_pictures(outcome: Outcome, folder: Path) -> None:
    """Draw the figure and write it as PNG and PDF. Needs matplotlib."""
    figure, name, pdf = outcome.experiment.plot(outcome.run, outcome.rows), outcome.experiment.name, BytesIO()
    figure.savefig(pdf, format="pdf", dpi=200, metadata={"CreationDate": None})
    write_file(folder / f"{name}.png", plotting.as_png(figure))
    write_file(folder / f"{name}.pdf", pdf.getvalue())


def reproduction_page(outcomes: Sequence[Outcome]) -> str:
    """Render the outcomes as one HTML page that needs nothing else."""
    return find_template("reproduction.html", "inlier.apps.reproduce").render(
        sections=[_section(outcome) for outcome in outcomes],
        n_holding=sum(claim.holds for outcome in outcomes for claim in outcome.claims),
        n_claims=sum(len(outcome.claims) for outcome in outcomes),
        n_smaller=sum(bool(outcome.smaller) for outcome in outcomes),
    )


def _section(outcome: Outcome) -> dict[str, Any]:
    return {
        **as_record(outcome),
        "notes": outcome.experiment.notes,
        "picture": data_uri(plotting.as_png(outcome.experiment.plot(outcome.run, outcome.rows), dpi=110)),
        "columns": _columns(outcome.rows),
        "headline": outcome.experiment.headline(outcome.rows),
    }


def _columns(rows: list[Row]) -> list[str]:
    """Names of what was measured, in the order in which they occur."""
    return list(dict.fromkeys(name for row in rows for name in row if name not in STATISTICS))


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
        if self.n_compared == 0:
            return "not compared: the two runs have no point in common, but for running times"
        if self.differences:
            return f"{len(self.differences)} of {self.n_compared} numbers differ from the baseline"
        return f"agrees with the baseline in all {self.n_compared} numbers"


def what_was_compared(comparisons: Sequence[Comparison]) -> str:
    """Say of how many experiments the numbers were compared, and name the others."""
    left = [comparison.name for comparison in comparisons if comparison.n_compared == 0]
    done = len(comparisons) - len(left)
    if not left:
        return f"Compared: all {done} experiments."
    if not done:
        return f"Nothing could be compared with the baseline, none of: {', '.join(left)}."
    return (
        f"Compared: {done} of {len(comparisons)} experiments. NOT compared, so nothing is known of: {', '.join(left)}."
    )


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
