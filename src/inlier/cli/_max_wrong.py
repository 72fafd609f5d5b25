"""``inlier match --max-wrong``: for pipelines, exit code 1 where more of the pairs are wrong than may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from inlier.cli._outputs import say

if TYPE_CHECKING:
    from inlier.report import MatchSummary

max_wrong_option = click.option(
    "--max-wrong",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="For pipelines: exit with 1 if more than this share of all pairs is wrong, by the estimate (calibrated).",
)


def too_many_wrong(summary: MatchSummary, max_wrong: float) -> bool:
    """Whether the estimated share of wrong pairs is larger than it may be; says so."""
    from inlier.report.words import percent, rounded_up

    share = 1 - (summary.inlier_fraction or 0.0)
    if share <= max_wrong:
        return False
    say(f"About {percent(rounded_up(share))} of the pairs are wrong, more than --max-wrong {max_wrong:g}.")
    return True
