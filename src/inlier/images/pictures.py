"""What has changed as pictures (the overlay, the mask, the scores) and as the page of ``inlier diff``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo
from scipy import ndimage

from inlier._typing import Mask
from inlier.images.changes import Changes
from inlier.images.rasters import Photo
from inlier.images.regions import Region
from inlier.report.pages import data_uri, find_template

COLOUR = (255, 94, 0)  # of what has changed
_PAPER = (20, 20, 20)
_QUIETER, _DARKER = 0.7, 0.85  # how far the unchanged part fades to grey, and its brightness
_OUTLINE_SIZE = 1600  # pixels of the longer side at which outlines are drawn
_THICKNESS = 3  # of an outline at that size
_MOST_NUMBERS = 20
_ON_THE_PAGE = 1600  # pixels of the longer side of the photos there
_CROP = 220  # and of a region's picture
_MOST_ON_THE_PAGE = 24


def mask_png(changes: Changes) -> bytes:
    """White where something changed, black elsewhere, at full size."""
    return _png(_as_image(changes.mask).convert("1"))


def scores_png(changes: Changes) -> bytes:
    """Evidence of change in 16 bits, from the smallest to the largest."""
    low, high = float(changes.scores.min()), float(changes.scores.max())
    levels = (changes.scores - low) * (65535 / max(high - low, 1e-12))
    return _png(Image.fromarray(np.round(levels).astype(np.uint16)))


def overlay_png(changes: Changes) -> bytes:
    """Return the second photo with the changed regions in full colour, outlined and numbered; the rest is faded."""
    photo = Image.fromarray(changes.after)
    quiet = Image.blend(photo, photo.convert("L").convert("RGB"), _QUIETER).point(lambda value: int(value * _DARKER))
    picture = Image.composite(photo, quiet, _as_image(changes.mask)) if changes.mask.any() else quiet
    picture.paste(COLOUR, mask=_as_image(_outline(changes.mask)).resize(picture.size))
    _number(picture, changes.regions[:_MOST_NUMBERS])
    return _png(picture)


def _outline(mask: Mask) -> Mask:
    """Return the border of the regions at a size fit to look at."""
    inside = _fitting_mask(mask, _OUTLINE_SIZE)
    width = max(1, round(_THICKNESS * max(inside.shape) / _OUTLINE_SIZE))
    return np.asarray(ndimage.binary_dilation(inside, iterations=width) & ~inside)


def tint_png(changes: Changes, longest: int) -> bytes:
    """Return a transparent picture of the mask, to lay over the photos: tinted, with a firm outline."""
    small = _fitting_mask(changes.mask, longest)
    edge = np.asarray(_as_image(_outline(changes.mask)).resize((small.shape[1], small.shape[0]))) > 0
    levels = np.zeros(small.shape, np.uint8)
    levels[small], levels[edge] = 1, 2
    picture = Image.fromarray(levels)
    picture.putpalette([0, 0, 0, *COLOUR, *COLOUR] + [0] * 759)
    return _encoded(picture, "PNG", optimize=True, transparency=bytes([0, 70, 255]))


def photo_jpeg(photo: Photo, longest: int) -> bytes:
    """Return the photo at a size fit for a page."""
    return _encoded(_fitting(Image.fromarray(photo), longest), "JPEG", quality=84)


def crop_jpeg(photo: Photo, region: Region, longest: int) -> bytes:
    """Return a region of the photo with some of its surroundings."""
    height, width = photo.shape[:2]
    side = max(region.right - region.left, region.bottom - region.top, round(0.04 * max(height, width)))
    reach = 0.75 * side
    column, row = (region.left + region.right) / 2, (region.top + region.bottom) / 2
    left, top = max(0, round(column - reach)), max(0, round(row - reach))
    right, bottom = min(width, round(column + reach)), min(height, round(row + reach))
    return photo_jpeg(np.ascontiguousarray(photo[top:bottom, left:right]), longest)


def _number(picture: Image.Image, regions: list[Region]) -> None:
    """Write each region's number beside its upper left corner."""
    draw = ImageDraw.Draw(picture)
    size = max(12, round(max(picture.size) / 45))
    font = ImageFont.load_default(size)
    for number, region in enumerate(regions, start=1):
        text = str(number)
        wide = draw.textlength(text, font=font) + 0.6 * size
        left = min(max(0.0, region.left - 0.2 * size), picture.width - wide)
        top = region.top - 1.4 * size if region.top > 1.4 * size else min(region.bottom, picture.height - 1.4 * size)
        draw.rounded_rectangle((left, top, left + wide, top + 1.3 * size), radius=0.3 * size, fill=COLOUR)
        draw.text((left + wide / 2, top + 0.65 * size), text, font=font, fill=_PAPER, anchor="mm")


def _fitting(image: Image.Image, longest: int) -> Image.Image:
    factor = longest / max(image.size)
    if factor >= 1:
        return image
    size = max(1, round(image.width * factor)), max(1, round(image.height * factor))
    return image.resize(size, Image.Resampling.BOX, reducing_gap=2.0)


def _as_image(mask: Mask) -> Image.Image:
    return Image.fromarray(mask.astype(np.uint8) * np.uint8(255))


def _fitting_mask(mask: Mask, longest: int) -> Mask:
    return np.asarray(_fitting(_as_image(mask), longest)) > 127


def _png(image: Image.Image) -> bytes:
    maker = PngInfo()
    maker.add_text("Software", "inlier")  # by which an earlier output is known
    return _encoded(
        image, "PNG", compress_level=1, pnginfo=maker
    )  # photos hardly shrink further, at many times the cost


def _encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def change_page(changes: Changes, content: Mapping[str, Any]) -> str:
    """Render the changes as one HTML page that needs nothing else; ``content`` is the record in regions.json."""
    page = find_template("change.html", "inlier.images")  # before the pictures are made: it may be missing
    return str(
        page.render(
            sentence=changes.sentence,
            said=[line for line in (changes.caution, *changes.notes) if line],
            content=content,
            before=data_uri(photo_jpeg(changes.before, _ON_THE_PAGE), "jpeg"),
            after=data_uri(photo_jpeg(changes.after, _ON_THE_PAGE), "jpeg"),
            tint=data_uri(tint_png(changes, _ON_THE_PAGE), "png"),
            colour="#{:02x}{:02x}{:02x}".format(*COLOUR),
            listed=[_listed(changes, number) for number in range(min(len(changes.regions), _MOST_ON_THE_PAGE))],
            names=[Path(str(content[side])).name for side in ("before", "after")],
            shift=round(changes.alignment.shift(*changes.mask.shape), 1),
            version=version("inlier"),
        )
    )


def _listed(changes: Changes, number: int) -> dict[str, Any]:
    region = changes.regions[number]
    height, width = changes.mask.shape
    return {
        "number": number + 1,
        "region": region,
        "before": data_uri(crop_jpeg(changes.before, region, _CROP), "jpeg"),
        "after": data_uri(crop_jpeg(changes.after, region, _CROP), "jpeg"),
        "left": round(100 * region.left / width, 3),
        "top": round(100 * region.top / height, 3),
        "width": round(100 * (region.right - region.left) / width, 3),
        "height": round(100 * (region.bottom - region.top) / height, 3),
    }
