"""What experiments leave behind: a table as CSV, everything as JSON, a picture as PNG and PDF, one page of them all."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from inlier import plotting
from inlier.apps.reproduce.experiment import Outcome
from inlier.apps.reproduce.tidy import STATISTICS, Row
from inlier.io import write_file
from inlier.report.rendering import data_uri, find_template, versions


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
    """Write the table and the record."""
    name = outcome.experiment.name
    write_file(folder / f"{name}.csv", as_csv(outcome.rows))
    write_file(folder / f"{name}.json", json.dumps(as_record(outcome), indent=1) + "\n")


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
