"""The page that ``inlier demo`` leaves behind."""

from __future__ import annotations

import base64

from inlier.apps.demo import DemoOutcome
from inlier.report.rendering import find_template


def demo_page(outcome: DemoOutcome, picture: bytes) -> str:
    """Render the demo's outcome and its picture as one HTML page that needs nothing else."""
    return find_template("demo.html", "inlier.apps").render(
        outcome=outcome.to_dict(), picture=base64.b64encode(picture).decode()
    )
