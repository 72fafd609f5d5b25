"""Two photos of one scene: which pixels are still pairs, and what has changed."""

from typing import TYPE_CHECKING

from inlier._lazy import attach

if TYPE_CHECKING:
    from inlier.images.alignment import Alignment, align_photos
    from inlier.images.changes import METHODS, Changes, detect_changes
    from inlier.images.rasters import Photo, read_photo
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
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "alignment": "Alignment align_photos",
        "changes": "METHODS Changes detect_changes",
        "rasters": "Photo read_photo",
        "regions": "Region",
    },
)
