"""The page that ``inlier demo`` leaves behind."""

from __future__ import annotations

import base64

from inlier import display
from inlier.demo import DemoOutcome
from inlier.report.templates_of import template


def demo_page(outcome: DemoOutcome) -> str:
    """Render the demo's outcome as one HTML page that needs nothing else."""
    picture = base64.b64encode(display.as_png(outcome.figure())).decode()
    return template("demo.html").render(outcome=outcome.to_dict(), picture=picture)
