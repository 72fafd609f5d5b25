"""Two photos of one scene: which pixels are still pairs, and what has changed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inlier.images.alignment import Alignment, align_photos
    from inlier.images.changes import METHODS, Changes, detect_changes
    from inlier.images.reading import Photo, read_photo, read_photos
    from inlier.images.regions import Region

__all__ = [
    "METHODS",
    "Alignment",
    "Changes",
    "Photo",
    "Region",
    "align_photos",
    "detect_changes",
    "read_photo",
    "read_photos",
]

_HOME = {
    "Alignment": "alignment",
    "Changes": "changes",
    "METHODS": "changes",
    "Photo": "reading",
    "Region": "regions",
    "align_photos": "alignment",
    "detect_changes": "changes",
    "read_photo": "reading",
    "read_photos": "reading",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: ``inlier --help`` need not wait for it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value
