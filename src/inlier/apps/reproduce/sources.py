"""The data of the experiments: what ships with the packages, or what the user brings."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inlier._typing import FloatArray, Photo
from inlier.datasets import Scenes, load_brain, load_scenes, load_sky, make_scenes

PathName = str | PathLike[str]

DEFAULT_BRAIN = "conte69 left hemisphere (shipped)"
DEFAULT_SKY = "china.jpg (scikit-learn)"
DEFAULT_SCENES = "china.jpg (scikit-learn) with two drawn objects"


@dataclass(frozen=True, eq=False)
class Source:
    """Data with a name, and a fingerprint of its values that tells whether two runs used the same."""

    name: str
    data: Any
    fingerprint: str


class Sources(dict[str, Source]):
    """Data by name: "brain" (features), "sky" (a photo with much of it), "scenes" (three photos of one scene)."""

    def only(self, names: Sequence[str]) -> Sources:
        """Keep the named ones."""
        return Sources({name: self[name] for name in names})

    @property
    def features(self) -> FloatArray:
        """The brain's table, of shape (m, 6)."""
        return self["brain"].data

    @property
    def photo(self) -> Photo:
        """The photo with much sky, of shape (height, width, 3)."""
        return self["sky"].data

    @property
    def three_scenes(self) -> Scenes:
        """The photos of the case study."""
        return self["scenes"].data

    def describe(self) -> dict[str, dict[str, str]]:
        """Return name and fingerprint of each, for the record; names carry no folders."""
        return {name: {"name": source.name, "fingerprint": source.fingerprint} for name, source in self.items()}

    def __missing__(self, name: str) -> Source:
        raise ValueError(f"This experiment was not given its data: {name}.")


def load_sources(
    needed: Sequence[str] = ("brain", "sky", "scenes"),
    *,
    brain: PathName | None = None,
    photos: Sequence[PathName] = (),
) -> Sources:
    """Load what the experiments need, by default what needs no download.

    ``brain`` is a Workbench folder or ``.npz`` for `load_brain`; ``photos`` are one, with much sky, or the three of the
    case study.

    Examples
    --------
    >>> from inlier.apps.reproduce import load_sources
    >>> load_sources(["brain"]).features.shape
    (29268, 6)
    """
    if len(photos) not in (0, 1, 3):
        raise ValueError(
            f"{len(photos)} photos were given; give one for the sky experiments, or three of one scene for the "
            f"case study."
        )
    sky = photos[0] if len(photos) == 1 else None
    three = photos if len(photos) == 3 else None
    _check_all_are_used(needed, {"brain": brain, "sky": sky, "scenes": three})
    sources = Sources()
    if "brain" in needed:
        sources["brain"] = _source(DEFAULT_BRAIN, brain, load_brain(brain).features)
    if "sky" in needed:
        sources["sky"] = _source(DEFAULT_SKY, sky, load_sky(sky))
    if "scenes" in needed:
        scenes = make_scenes() if three is None else load_scenes(three)
        name = DEFAULT_SCENES if three is None else ", ".join(Path(path).name for path in three)
        sources["scenes"] = Source(name, scenes, fingerprint(*scenes.photos))
    return sources


def _check_all_are_used(needed: Sequence[str], given: dict[str, Any]) -> None:
    """Refuse data that no chosen experiment reads: its numbers would silently be those of other data."""
    options = {"brain": "--brain", "sky": "one --photo", "scenes": "three --photo"}
    idle = [options[name] for name, value in given.items() if value is not None and name not in needed]
    if idle:
        wanted = ", ".join(options[name] for name in needed if name in options) or "no data"
        raise ValueError(f"{' and '.join(idle)} was given, but the chosen experiments read {wanted}. Leave it out.")


def _source(default_name: str, path: PathName | None, data: NDArray[Any]) -> Source:
    return Source(default_name if path is None else Path(path).resolve().name, data, fingerprint(data))


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return a short hash of the arrays' shapes and values."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
