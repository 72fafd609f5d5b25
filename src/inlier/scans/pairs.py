"""Ask one pair of scans: the motion between them, or why there is none; and keep what was answered."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from inlier._typing import FloatArray
from inlier.clouds.errors import in_units
from inlier.clouds.octaves import Clock, Finding, search_on
from inlier.consensus.search import as_generator
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.estimators.clouds import CloudRegistration
from inlier.exceptions import ParameterError
from inlier.scans.prepared import Prepared, PreparedPair
from inlier.transforms import SimilarityTransformation

_HEAD = b'{"pair":'  # of a line
_FEW_DEGREES = 6.0  # of freedom, of an error that nothing tells: a cell


@dataclass(frozen=True, eq=False)
class Edge:
    """What was found between two scans.

    Attributes
    ----------
    target, source : int
        Numbers of the scans.
    motion : SimilarityTransformation or None
        target = motion(source); None where nothing is sure.
    errors : MotionUncertainty or None
        Standard errors of the motion.
    p_value : float
        Chance that scans of different places support a motion as well.
    overlap : tuple of two floats
        Share of the surface of source and of target that touches the other.
    why_not : str or None
        Why there is no motion, or why the edge was taken out; None where it is kept.
    """

    target: int
    source: int
    motion: SimilarityTransformation | None
    errors: MotionUncertainty | None
    p_value: float
    overlap: tuple[float, float]
    why_not: str | None = None

    @property
    def ends(self) -> tuple[int, int]:
        """Both scans."""
        return self.target, self.source

    def to_dict(self) -> dict[str, Any]:
        """All of it in numbers that JSON holds."""
        found, errors = self.motion, self.errors
        return {
            "target": self.target,
            "source": self.source,
            "matrix": None if found is None else found.matrix.tolist(),
            "p_value": self.p_value,
            "overlap": None if found is None else list(self.overlap),
            "centre": None if errors is None else errors.centre.tolist(),
            "covariance_at_centre": None if errors is None else errors.covariance_at_centre.tolist(),
            "degrees_of_freedom": None if errors is None else errors.degrees_of_freedom,
            "why_not": self.why_not,
        }

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Edge:
        """What `to_dict` wrote."""
        ends = int(content["target"]), int(content["source"])
        if content["matrix"] is None:
            return Edge(*ends, None, None, content["p_value"], (np.nan, np.nan), content["why_not"])
        matrix = np.array(content["matrix"])
        motion = SimilarityTransformation(matrix[:3, :3], matrix[:3, 3], model="rigid")
        spread, centre = np.array(content["covariance_at_centre"]), np.array(content["centre"])
        errors = in_units(spread, content["degrees_of_freedom"], 0.0, motion, centre)
        return Edge(*ends, motion, errors, content["p_value"], tuple(content["overlap"]), content["why_not"])


class _PairSearch(CloudRegistration):
    """The search of `CloudRegistration`, on clouds that were prepared before."""

    def __init__(self, pair: PreparedPair, random_state: int) -> None:
        super().__init__(random_state, raise_on_failure=False)
        self.pair = pair

    def _search(self, source: FloatArray, target: FloatArray, clock: Clock) -> tuple[FloatArray, FloatArray, Finding]:
        self._scale = 1.0
        finding = search_on(self.pair.views, self.pair.level_at, as_generator(self.random_state), clock)
        return source, target, finding


def ask(source: Prepared, target: Prepared, ends: tuple[int, int], seed: int) -> Edge:
    """Search one pair; both scans have what it takes. ``ends`` are the numbers of target and source."""
    search = _PairSearch(PreparedPair(source, target), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a motion that refinement would move: it has no errors
        search.fit(source.points, target.points)
    motion = search.transformation_
    if motion is None:
        return Edge(*ends, None, None, search.detection_p_value_, (np.nan, np.nan), search.why_not_)
    errors = search.uncertainty_
    if errors is None:  # nothing tells how far it is off: by a cell, and what that turns
        turn = search.spacing_ / source.size
        spread = np.diag([turn**2] * 3 + [search.spacing_**2] * 3)
        errors = in_units(spread, _FEW_DEGREES, 0.0, motion, source.origin)
    return Edge(*ends, motion, errors, search.detection_p_value_, search.overlap_)


class Answers:
    """What pairs have answered, by what the scans hold; in a file, so that a run can go on after a stop.

    A line each: what is half written at the end is asked again.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._known = path, dict[str, dict[str, Any]]()
        if path is not None and path.exists():
            if not path.is_file() or not is_cache(path):
                raise ParameterError("cache", f"names {path}, which holds something else. Choose another name.")
            self._known = dict(_lines_of(path))

    @staticmethod
    def name(source: Prepared, target: Prepared, seed: int) -> str:
        """The same for the same points and seed."""
        return f"{source.digest.hex()}-{target.digest.hex()}-{seed}"

    def get(self, name: str, ends: tuple[int, int]) -> Edge | None:
        """What is known of a pair."""
        found = self._known.get(name)
        return None if found is None else Edge.from_dict({**found, "target": ends[0], "source": ends[1]})

    def add(self, name: str, edge: Edge) -> Self:
        """Keep an answer."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"pair": name, **edge.to_dict()}) + "\n")
        return self


def is_cache(path: Path) -> bool:
    """Whether a file holds answers of pairs, or nothing."""
    with path.open("rb") as stream:
        head = stream.read(len(_HEAD))
    return head in (b"", _HEAD)


def _lines_of(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict) and "pair" in content:
            yield content.pop("pair"), content


__all__ = ["Answers", "Edge", "ask"]
