"""The page that ``inlier demo`` leaves behind."""

from __future__ import annotations

import base64
from typing import Any

from inlier.demo import DemoOutcome


def demo_page(outcome: DemoOutcome, picture: bytes) -> str:
    """Render the demo's outcome and its picture as one HTML page that needs nothing else."""
    return _template("demo.html").render(outcome=outcome.to_dict(), picture=base64.b64encode(picture).decode())


def _template(name: str) -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("Reports need jinja2; install it with: pip install 'inlier[report]'") from error
    environment = Environment(
        loader=PackageLoader("inlier.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(name)
