"""The data of the experiments: what ships with the packages, or what the user brings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inlier._typing import FloatArray
from inlier.datasets import Scenes, load_brain, load_scenes, load_sky, make_scenes

PathName = str | PathLike[str]
Photo = NDArray[np.uint8]

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
        return Sources({name: self._given(name) for name in names})

    @property
    def features(self) -> FloatArray:
        """The brain's table, of shape (m, 6)."""
        return self._given("brain").data

    @property
    def photo(self) -> Photo:
        """The photo with much sky, of shape (height, width, 3)."""
        return self._given("sky").data

    @property
    def three_scenes(self) -> Scenes:
        """The photos of the case study."""
        return self._given("scenes").data

    def describe(self) -> dict[str, dict[str, str]]:
        """Return name and fingerprint of each, for the record; names carry no folders."""
        return {name: {"name": source.name, "fingerprint": source.fingerprint} for name, source in self.items()}

    def _given(self, name: str) -> Source:
        if name not in self:
            raise ValueError(f"This experiment was not given its data: {name}.")
        return self[name]


def load_sources(
    needed: Sequence[str] = ("brain", "sky", "scenes"),
    *,
    brain: PathName | None = None,
    photos: Sequence[PathName] = (),
) -> Sources:
    """Load what the experiments need.

    Parameters
    ----------
    needed : sequence of {"brain", "sky", "scenes"}
        What to load.
    brain : path, optional
        A Workbench folder or ``.npz`` for `load_brain`; the table that ships with the package by default.
    photos : sequence of paths
        One: the photo with much sky. Three: the photos of the case study. None: those that need no download.

    Returns
    -------
    Sources

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
    loaders: dict[str, Callable[[], Source]] = {
        "brain": lambda: _source(_base_name(brain) or DEFAULT_BRAIN, load_brain(brain).features),
        "sky": lambda: _source(_base_name(sky) or DEFAULT_SKY, load_sky(sky)),
        "scenes": lambda: _scenes(three),
    }
    return Sources({name: load() for name, load in loaders.items() if name in needed})


def _check_all_are_used(needed: Sequence[str], given: dict[str, Any]) -> None:
    """Refuse data that no chosen experiment reads: its numbers would silently be those of other data."""
    options = {"brain": "--brain", "sky": "one --photo", "scenes": "three --photo"}
    idle = [options[name] for name, value in given.items() if value is not None and name not in needed]
    if idle:
        wanted = ", ".join(options[name] for name in needed if name in options) or "no data"
        raise ValueError(f"{' and '.join(idle)} was given, but the chosen experiments read {wanted}. Leave it out.")


def _scenes(paths: Sequence[PathName] | None) -> Source:
    scenes = make_scenes() if paths is None else load_scenes(paths)
    name = DEFAULT_SCENES if paths is None else ", ".join(Path(path).name for path in paths)
    return Source(name, scenes, fingerprint(*scenes.photos))


def _source(name: str, data: NDArray[Any]) -> Source:
    return Source(name, data, fingerprint(data))


def _base_name(path: PathName | None) -> str | None:
    return None if path is None else Path(path).resolve().name


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return a short hash of the arrays' shapes and values."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
