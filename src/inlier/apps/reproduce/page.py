"""The page of ``inlier reproduce --all``: every figure, every number beside the paper's, a verdict per claim."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from inlier import plotting
from inlier.apps.reproduce import Outcome
from inlier.apps.reproduce.output import as_record
from inlier.apps.reproduce.tables import STATISTICS
from inlier.report.rendering import find_template


def reproduction_page(outcomes: Sequence[Outcome]) -> str:
    """Render the outcomes as one HTML page that needs nothing else."""
    return find_template("reproduction.html", "inlier.apps.reproduce").render(
        sections=[_section(outcome) for outcome in outcomes],
        n_holding=sum(claim.holds for outcome in outcomes for claim in outcome.claims),
        n_claims=sum(len(outcome.claims) for outcome in outcomes),
    )


def _section(outcome: Outcome) -> dict[str, Any]:
    rows = outcome.rows
    return {
        **as_record(outcome),
        "notes": outcome.experiment.notes,
        "picture": base64.b64encode(plotting.as_png(outcome.figure(), dpi=110)).decode(),
        "columns": list(dict.fromkeys(name for row in rows for name in row if name not in STATISTICS)),
        "headline": outcome.headline(),
    }
