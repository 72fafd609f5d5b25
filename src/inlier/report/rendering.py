"""From parts to one HTML page: a page is a list of parts, each a template and what it shows."""

from __future__ import annotations

import base64
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

_PACKAGES = ("inlier", "numpy", "scipy", "scikit-learn", "numba")  # that compute


@dataclass(frozen=True)
class Part:
    """One section of a page."""

    template: str  # file in ``templates/parts``; it finds ``data`` under that name
    data: Mapping[str, Any]  # what it shows; all text in it is escaped
    # file in ``templates`` with the part's JavaScript; included once however many parts need it
    script: str | None = None


def render_page(title: str, parts: Sequence[Part]) -> str:
    """Render one HTML page that needs nothing else and asks for nothing."""
    scripts = list(dict.fromkeys(part.script for part in parts if part.script is not None))
    return str(find_template("page.html").render(title=title, parts=parts, scripts=scripts))


def find_template(name: str, package: str = "inlier.report") -> Any:
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


def data_uri(picture: bytes, kind: str = "png") -> str:
    """Return a picture as the address of an ``<img>`` that holds it."""
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
