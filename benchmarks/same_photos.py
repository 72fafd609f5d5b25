"""Photos against themselves: saved again, brighter, darker, with noise, and with a patch pasted in.

python benchmarks/same_photos.py [--half development] [--words moon coins] [--every] [--jobs 4]

Sixty pictures: those that come with scikit-image, matplotlib and scikit-learn, the photos kept beside the project, and
deeper ones, of 10, 12 and 16 bits, that are means of blocks of those. Each is written to files and read again. Nothing
has changed between a picture and itself in other clothes; a patch that was pasted in has. The pictures are dealt in two
halves in turn, those of one scene together; the second was set aside while the code was changed.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image
from scipy import ndimage

from inlier.images import detect_changes, read_photo
from inlier.io import write_table
from photo_pairs import DATA

HALVES = ("development", "aside")
_SAMPLES = "mpl-data/sample_data"
_LONGEST = 400  # pixels: the middle of larger ones
_VISIBLE = 12 / 255  # of the range, by which a patch differs from what it covers, in the mean
_SCIKIT_IMAGE = (
    "astronaut brick camera cell chelsea clock_motion coffee coins color grass gravel hubble_deep_field ihc logo moon "
    "motorcycle_left page retina rocket text horse phantom"
)
_DEEP = (  # what is averaged, over blocks of so many pixels, and the bits that are kept
    *((name, 2, 10) for name in ("retina", "hubble_deep_field", "cuisine_reference", "0_original", "gravel", "moon")),
    *((name, 4, 12) for name in ("lomiri_sunset_by_Aitzol_Berasategi", "popos_kait-herzog-8242", "cuisine_6564_B")),
    *((name, 2, 12) for name in ("motorcycle_left", "china", "coffee", "brick")),
    *((name, 2, 16) for name in ("flower", "ihc", "astronaut", "cuisine_6563_B", "grass")),
)


@dataclass(frozen=True, eq=False)
class Picture:
    """Whole numbers from 0 to 2^bits - 1, grey or coloured."""

    name: str
    values: np.ndarray
    bits: int

    @property
    def top(self) -> int:
        """The largest number there could be."""
        return 2**self.bits - 1

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """As a camera of as many bits stores them: what is too bright is white."""
        return np.clip(np.round(values), 0, self.top).astype(self.values.dtype)


def pictures(half: str | None = None) -> list[Picture]:
    """Return the pictures of one half, or all; those that are not installed are left out."""
    whole = {name: values for name, values in _whole_pictures() if values is not None}
    found = [Picture(n, _middle(values), max(8, int(values.max()).bit_length())) for n, values in whole.items()]
    for name, side, bits in _DEEP:
        if name in whole:
            found.append(_deeper(name, whole[name], side, bits))
    sources = sorted({_source(picture.name) for picture in found})
    kept = sources if half is None else sources[HALVES.index(half) :: 2]
    return sorted((picture for picture in found if _source(picture.name) in kept), key=lambda picture: picture.name)


def _source(name: str) -> str:
    """What several pictures are of lies in one half."""
    one_scene = {"0_original": "bowl", "1_bowl": "bowl", "2_bowl_cup": "bowl", "3_bowl_cup_light": "bowl"}
    return "cuisine" if name.startswith("cuisine") else one_scene.get(name.split(",")[0], name.split(",")[0])


def _whole_pictures() -> Iterator[tuple[str, np.ndarray | None]]:
    for package, folder, names in (
        ("skimage", "data", _SCIKIT_IMAGE.split()),
        ("sklearn", "datasets/images", ["china", "flower"]),
        ("matplotlib", _SAMPLES, ["grace_hopper", "Minduka_Present_Blue_Pack", "logo2"]),
    ):
        for name in names:
            yield name, _stored(_in_package(package, folder, f"{name}.*"))
    yield "lfw_subset", _faces(_in_package("skimage", "data", "lfw_subset.npy"))
    for name, values in (("jacksboro_fault_dem", "elevation"), ("topobathy", "topo")):
        yield name, _heights(_in_package("matplotlib", _SAMPLES, f"{name}.npz"), values)
    yield "s1045", _of_sixteen_bits(_in_package("matplotlib", _SAMPLES, "s1045.ima.gz"))
    for path in sorted([*DATA.glob("change/*/*"), *DATA.glob("sky/*.jpg")]):
        if "mask" not in path.name:
            yield path.stem, _stored(path)


def _in_package(package: str, folder: str, pattern: str) -> Path | None:
    """A file that an installed package brings, without importing it."""
    spec = find_spec(package)
    return next(Path(spec.origin).parent.joinpath(folder).glob(pattern), None) if spec else None


def _stored(path: Path | None) -> np.ndarray | None:
    if path is None:
        return None
    with Image.open(path) as image:
        return np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"))


def _faces(path: Path | None) -> np.ndarray | None:
    """A sheet of small faces, which are kept as fractions."""
    if path is None:
        return None
    faces = np.load(path)[:100]
    return np.round(255 * faces.reshape(10, 10, 25, 25).swapaxes(1, 2).reshape(250, 250)).astype(np.uint8)


def _of_sixteen_bits(path: Path | None) -> np.ndarray | None:
    if path is None:
        return None
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), ">u2").reshape(256, 256).astype(np.uint8)


def _heights(path: Path | None, name: str) -> np.ndarray | None:
    if path is None:
        return None
    whole = np.nan_to_num(np.load(path)[name]).astype(np.float64)
    return (whole - whole.min()).astype(np.uint16)


def _middle(values: np.ndarray) -> np.ndarray:
    top, left = (max(0, (side - _LONGEST) // 2) for side in values.shape[:2])
    return values[top : top + _LONGEST, left : left + _LONGEST]


def _deeper(name: str, values: np.ndarray, side: int, bits: int) -> Picture:
    """Means of blocks know more levels than their pixels."""
    height, width = (size // side * side for size in values.shape[:2])
    blocks = values[:height, :width].reshape(height // side, side, width // side, side, -1)
    means = _middle(blocks.mean(axis=(1, 3))) * ((2**bits - 1) / 255)
    return Picture(f"{name}, {bits} bits", np.round(means).squeeze().astype(np.uint16), bits)


def _saved(values: np.ndarray, kind: str, folder: Path, name: str) -> np.ndarray:
    """Write a picture to a file of some kind, and read it."""
    path = folder / f"{name}.{kind.split()[0]}"
    is_colour = values.ndim == 3
    if kind == "jpg":
        Image.fromarray(values).save(path, quality=95)
    elif kind == "png":
        write_table(path, values)
    elif kind == "tif planar" and is_colour:
        tifffile.imwrite(path, np.moveaxis(values, -1, 0), planarconfig="separate", photometric="rgb")
    else:
        tifffile.imwrite(path, values, photometric="rgb" if is_colour else "minisblack")
    return read_photo(path)


def clothes(picture: Picture, rng: np.random.Generator) -> Iterator[tuple[str, Callable, Callable, str]]:
    """Yield in what way the second photo differs, how both are made of the values, and how the second is saved."""

    def same(values: np.ndarray) -> np.ndarray:
        return values

    def noisy(strength: float) -> Callable:
        return lambda values: picture.rounded(values + strength / 255 * picture.top * rng.standard_normal(values.shape))

    yield "itself", same, same, "png"
    yield "itself, as tiff, planes apart", same, same, "tif planar"
    if picture.bits == 8:
        yield "saved again, jpeg 95", same, same, "jpg"
    for gain in (0.9, 1.1):
        yield f"gain {gain}", same, lambda values, gain=gain: picture.rounded(gain * values), "tif"
    for strength in (0.3, 1, 2, 4):
        yield f"noise {strength}/255", noisy(strength), noisy(strength), "png"


def with_patch(values: np.ndarray, top: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Copy a square of the picture to another place, where it can be seen."""
    height, width = values.shape[:2]
    for _ in range(300):
        side = round(max(height, width) * rng.uniform(0.07, 0.15))
        (row, column), (there, beside) = (rng.integers(0, (height - side, width - side)) for _ in range(2))
        piece = values[there : there + side, beside : beside + side]
        place = np.s_[row : row + side, column : column + side]
        if np.abs(values[place].astype(float) - piece).mean() > _VISIBLE * top:
            break
    else:  # a picture of hardly anything: a bright square
        piece = np.minimum(values[place].astype(float) + 0.2 * top, top)
    changed, truth = values.copy(), np.zeros(values.shape[:2], bool)
    changed[place], truth[place] = piece, True
    return changed, truth


def judgements(picture: Picture, number: int, seed: int) -> list[dict]:
    """What is said of a picture and itself in all clothes; every third, in turn, with a patch: others say the same."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        return list(_judgements(picture, number, seed, Path(folder)))


def _judgements(picture: Picture, number: int, seed: int, folder: Path) -> Iterator[dict]:
    rng = np.random.default_rng([seed, number])
    for way, (kind, first, second, saved_as) in enumerate(clothes(picture, rng)):
        before = _saved(first(picture.values), "png", folder, "before")
        changes = detect_changes(before, _saved(second(picture.values), saved_as, folder, "after"))
        told = {"picture": picture.name, "kind": kind, "called": changes.verdict != "unchanged"}
        if (number + way) % 3 == 0:
            changed, truth = with_patch(picture.values, picture.top, rng)
            mask = detect_changes(before, _saved(second(changed), saved_as, folder, "after")).mask
            beside = ndimage.label(mask)[0][~ndimage.binary_dilation(truth, iterations=20)]
            told |= {"found": bool((mask & truth).any()), "beside": bool(beside.any())}
        yield told


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--words", nargs="*", default=[], help="pictures whose name contains one of these")
    parser.add_argument("--every", action="store_true", help="name each picture that is misjudged")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="pictures that are judged at a time")
    options = parser.parse_args()
    chosen = [p for p in pictures(options.half) if not options.words or any(w in p.name for w in options.words)]
    print(f"{len(chosen)} pictures, seed {options.seed}", flush=True)
    with ProcessPoolExecutor(options.jobs) as workers:
        judged = workers.map(partial(judgements, seed=options.seed), chosen, range(len(chosen)))
        told = [record for records in judged for record in records]
    _print_table(told, options.every)


def _print_table(told: list[dict], every: bool) -> None:
    for record in told:
        for wrong, said in ((record["called"], "called changed"), (not record.get("found", True), "patch missed")):
            if wrong and every:
                print(f"  {record['picture']:44}{record['kind']:32}{said}")
    print(f"{'':34}{'called changed':>16}{'patch found':>14}{'regions beside it':>20}")
    for kind in (*dict.fromkeys(record["kind"] for record in told), "all"):
        cells = []
        for name, width in (("called", 16), ("found", 14), ("beside", 20)):
            values = [record[name] for record in told if kind in (record["kind"], "all") and name in record]
            cells.append(f"{f'{sum(values)} of {len(values)}':>{width}}")
        print(f"{kind:34}" + "".join(cells))


if __name__ == "__main__":
    main()
