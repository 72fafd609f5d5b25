"""What halving and doubling each constant of the photos does to what is found; or setting it to nothing.

    python benchmarks/photo_constants.py [words of names] [--factors 0 0.5 2] [--size 320] [--count 3] [--jobs 4]

A constant is a number, or numbers, with a name in capitals at the top of a module of ``inlier.images``. It is changed
in the running package, in every module that knows it. Figures: pairs with a change in which a region meets it, pairs
without one in which a region is reported, mean average precision, and mean intersection over union of the masks. The
pairs are those of the development half, with even seeds, shrunk: made ones, hard ones, ones held in the hand, boards,
two rooms, and pictures against themselves at other gains and with noise.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from PIL import Image
from sklearn.metrics import average_precision_score

import inlier.images
from inlier.images import detect_changes
from photo_pairs import DEVELOPMENT, PhotoPair, board_pairs, hard_pairs, held_pairs, made_pairs, photos_of, real_pairs
from same_photos import clothes, pictures

_OTHERS = ("pictures", "diff_command")  # of the page and the command line
_NO_CHOICE = ["STAY", "MOST_LISTED", "_MEDIAN_OF_MEAN_SQUARE", "_OF_NOISE", "_GREY", "_TINY"]
_AS_COUNTS = ("found", "reported")


@dataclass(frozen=True)
class Constant:
    """A number, or several, and every module that knows it."""

    name: str
    value: Any
    modules: tuple[ModuleType, ...]

    def times(self, factor: float) -> Any:
        """The number times a factor; whole numbers stay whole. None where that is the same number."""
        changed = _times(self.value, factor)
        return None if np.array_equal(np.asarray(changed), np.asarray(self.value)) else changed

    def set(self, value: Any) -> None:
        """Let every module know."""
        for module in self.modules:
            setattr(module, self.name.rpartition(".")[2], value)


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_times(one, factor) for one in value)
    return round(value * factor) if isinstance(value, int) else value * factor


def constants() -> list[Constant]:
    """All constants of the photos, in the order of the modules."""
    names = [name for _, name, _ in pkgutil.iter_modules(inlier.images.__path__) if name not in _OTHERS]
    modules = {name: importlib.import_module(f"inlier.images.{name}") for name in names}
    found = []
    for name, module in modules.items():
        for known, value in vars(module).items():
            numbers = isinstance(value, (int, float, tuple, np.ndarray)) and not isinstance(value, bool)
            if not (known.isupper() and numbers) or known in _NO_CHOICE or _holds_words(value):
                continue
            others = tuple(other for other in modules.values() if vars(other).get(known) is value)
            if not any(one.name.endswith(f".{known}") for one in found):
                found.append(Constant(f"{name}.{known}", value, others))
    return found


def _holds_words(value: Any) -> bool:
    return isinstance(value, tuple) and any(isinstance(one, str) for one in value)


def small_pairs(size: int, count: int) -> Iterator[PhotoPair]:
    """So many pairs of every kind, and as many without a change, with ``size`` pixels along their longer side."""
    photos = photos_of(DEVELOPMENT)
    for changed, seed in ((True, 0), (False, 2)):
        for kind in (made_pairs, hard_pairs, held_pairs):
            yield from (_shrunk(pair, size) for pair in kind(photos, count, seed, changed))
        yield from (_shrunk(pair, size) for pair in board_pairs(count, seed, changed))
    yield from (_shrunk(pair, size) for pair in real_pairs(DEVELOPMENT))
    for number, picture in enumerate(pictures("development")[:: max(1, 12 // count)]):
        rng = np.random.default_rng([0, number])
        ways = [way for way in clothes(picture, rng) if not way[0].startswith(("itself", "saved"))]
        kind, first, second, _ = ways[number % len(ways)]
        values = picture.values[:size, :size]
        before, after = first(values), second(values)
        yield PhotoPair(f"{picture.name}, {kind}", before, after, np.zeros(after.shape[:2], bool))


def _shrunk(pair: PhotoPair, size: int) -> PhotoPair:
    def smaller(values: np.ndarray) -> np.ndarray:
        image = Image.fromarray(values)
        image.thumbnail((size, size), Image.Resampling.BOX)
        return np.asarray(image)

    return PhotoPair(pair.name, smaller(pair.before), smaller(pair.after), smaller(pair.truth * np.uint8(255)) > 127)


def figures(pairs: list[PhotoPair]) -> dict[str, float]:
    """What is found in all pairs."""
    warnings.simplefilter("ignore")
    found, reported, precision, overlap = 0, 0, [], []
    for pair in pairs:
        changes = detect_changes(pair.before, pair.after)
        if not pair.changed:
            reported += bool(changes.regions) or changes.verdict == "different scenes"
            continue
        found += bool((changes.mask & pair.truth).any())
        precision.append(average_precision_score(pair.truth.ravel(), changes.scores.ravel()))
        overlap.append((changes.mask & pair.truth).sum() / (changes.mask | pair.truth).sum())
    return {"found": found, "reported": reported, "av.prec.": np.mean(precision), "IoU": np.mean(overlap)}


def main() -> None:
    """Print a row per constant, a column per factor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="constants whose module and name contain one of these; default: all")
    parser.add_argument("--factors", nargs="*", type=float, default=[0.5, 2], help="that constants are multiplied with")
    parser.add_argument("--size", type=int, default=320, help="pixels of the longer side of the pairs")
    parser.add_argument("--count", type=int, default=3, help="pairs of each kind")
    parser.add_argument("--jobs", type=int, default=1, help="constants that are varied at a time")
    options = parser.parse_args()
    chosen = [one for one in constants() if not options.words or any(word in one.name for word in options.words)]
    pairs = list(small_pairs(options.size, options.count))
    as_it_is = figures(pairs)
    print(f"{len(pairs)} pairs, {options.size} pixels; as it is: {_said(as_it_is)}", flush=True)
    with ProcessPoolExecutor(options.jobs) as workers:
        row = partial(_row, pairs=pairs, factors=options.factors, as_it_is=as_it_is)
        for told in workers.map(row, [constant.name for constant in chosen]):
            print(told, flush=True)


def _row(name: str, pairs: list[PhotoPair], factors: list[float], as_it_is: dict[str, float]) -> str:
    constant = next(one for one in constants() if one.name == name)
    told = [_difference(constant, factor, pairs, as_it_is) for factor in factors]
    return f"{name:36}" + "".join(f"{one:60}" for one in told).rstrip()


def _difference(constant: Constant, factor: float, pairs: list[PhotoPair], as_it_is: dict[str, float]) -> str:
    value = constant.times(factor)
    if value is None:
        return "-"
    try:
        constant.set(value)
        return _said(figures(pairs), as_it_is)
    except Exception as error:  # a constant may not bear it, and that is an answer
        return f"fails: {type(error).__name__}"
    finally:
        constant.set(constant.value)


def _said(now: dict[str, float], before: dict[str, float] | None = None) -> str:
    before = before or dict.fromkeys(now, 0)
    parts = []
    for name, value in now.items():
        difference = value - before[name]
        if abs(difference) >= (1 if name in _AS_COUNTS else 5e-4):
            parts.append(f"{name} {difference:+.0f}" if name in _AS_COUNTS else f"{name} {difference:+.3f}")
    return ", ".join(parts) or "no change"


if __name__ == "__main__":
    main()
