"""Find the page templates; jinja2 is an optional dependency."""

from __future__ import annotations

from typing import Any


def template(name: str, package: str = "inlier.report") -> Any:
    """Return a template of a package that escapes what it is given and refuses what it was not."""
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("Reports need jinja2; install it with: pip install 'inlier[report]'") from error
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("inlier.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(name)
