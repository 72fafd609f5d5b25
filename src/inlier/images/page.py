"""The page of ``inlier diff``: both photos under a slider, what has changed, and a list of it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inlier.images import Changes
from inlier.images.pictures import COLOUR, crop_jpeg, photo_jpeg, tint_png
from inlier.report.rendering import find_template

_LONGEST = 1600  # pixels of the pictures on the page
_CROP = 220
_MOST_LISTED = 24


def change_page(changes: Changes, content: Mapping[str, Any]) -> str:
    """Render the changes as one HTML page that needs nothing else.

    Parameters
    ----------
    changes : Changes
        What was found.
    content : mapping
        The record that regions.json holds: file names and settings.
    """
    page = find_template("change.html", "inlier.images")  # before the pictures are made: it may be missing
    return str(
        page.render(
            sentence=changes.sentence,
            content=content,
            before=_data(photo_jpeg(changes.before, _LONGEST), "jpeg"),
            after=_data(photo_jpeg(changes.after, _LONGEST), "jpeg"),
            tint=_data(tint_png(changes, _LONGEST), "png"),
            colour="#{:02x}{:02x}{:02x}".format(*COLOUR),
            listed=[_listed(changes, number) for number in range(min(len(changes.regions), _MOST_LISTED))],
            names=[Path(str(content[side])).name for side in ("before", "after")],
            shift=round(changes.alignment.shift(*changes.mask.shape), 1),
            doubtful=not changes.alignment.trustworthy,
            version=version("inlier"),
        )
    )


def _listed(changes: Changes, number: int) -> dict[str, Any]:
    region = changes.regions[number]
    height, width = changes.mask.shape
    return {
        "number": number + 1,
        "region": region,
        "before": _data(crop_jpeg(changes.before, region, _CROP), "jpeg"),
        "after": _data(crop_jpeg(changes.after, region, _CROP), "jpeg"),
        "left": round(100 * region.left / width, 3),
        "top": round(100 * region.top / height, 3),
        "width": round(100 * (region.right - region.left) / width, 3),
        "height": round(100 * (region.bottom - region.top) / height, 3),
    }


def _data(picture: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
