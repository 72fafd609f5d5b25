"""A folder of scans in, one model out.

`register_scans` is: read and prepare each scan -> rank pairs by what scans look like -> ask some, look what is
connected, ask on (`choice`) -> take out what breaks loops (`graph`) -> poses with errors, part by part -> all surfaces
at once (`joint`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from inlier._checks import check_count
from inlier._typing import FloatArray
from inlier.exceptions import ParameterError
from inlier.progress import track
from inlier.rows.threads import single_threaded_blas
from inlier.scans.choice import Choice, Pair
from inlier.scans.graph import Checked, Pose, checked_by_loops, parts_of, poses_of
from inlier.scans.joint import Joint, Walls
from inlier.scans.model import Model
from inlier.scans.pairs import Answers, Edge, ask
from inlier.scans.prepared import Key, Prepared, PreparedPair, alikeness
from inlier.scans.scan import Scan, scans_of

_CONFIRMED = 0.05  # chance, over all searches, that an edge in no loop is wrong
_UNCONFIRMED = (
    "No loop confirms it, and a chance of {p:.1g} in each of {n} searches is too much for a scan to hang on. A scan "
    "between the two would tell."
)


def register_scans(
    scans: Any,
    *,
    names: Sequence[str] | None = None,
    depth: Sequence[float] | None = None,
    cache: str | PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Model:
    """Register many scans of one place, or of several, in any order: find who belongs together, and how.

    Parameters
    ----------
    scans : list, or str
        Each an array of shape (n, 3), an object with ``points`` or ``vertices``, an array with the fields x, y and z,
        or the name of a file; or the name of one folder, or a pattern such as ``"scans/*.ply"``. All in one unit.
    names : list of str, optional
        What the scans are called; otherwise as their files are.
    depth : list of float, optional
        Where scans are images of depth: fx, fy, cx and cy of the camera in pixels and, if it is not 1000 for whole
        numbers and 1 for others, how many units make a metre.
    cache : str, optional
        A file that keeps what each pair has answered, so that a run can go on after a stop.
    n_jobs : int, optional
        Processes that work at once, as in joblib; one by default, all processors with -1.
    random_state : int, default=0
        Seed of all choices.

    Returns
    -------
    Model
        Poses and their errors, edges with their evidence, the parts that are connected, and what was refused.

    Examples
    --------
    >>> import inlier
    >>> from inlier.datasets import make_scans
    >>> scans = make_scans(rng=0)
    >>> model = inlier.register_scans([scans.source, scans.target])
    >>> model.parts
    [[0, 1]]
    >>> bool(abs(model.poses[1].rotation - scans.rotation.T).max() < 0.01)
    True
    """
    check_count(random_state, "random_state", low=0)
    start = perf_counter()
    given = scans_of(scans, names, depth)
    if len(given) < 2:
        raise ParameterError("scans", f"must be two or more, but there {'is one' if given else 'are none'}.")
    with single_threaded_blas():
        read = _Read.of(given)
        search = _Search(read.prepared, Answers(None if cache is None else Path(cache)), n_jobs, random_state)
        checked = search.run()
        return _model(given, read, checked, search, start)


@dataclass(frozen=True, eq=False)
class _Read:
    """The scans that can be used, as numbers of those that were given, and why the others cannot."""

    numbers: list[int]
    prepared: list[Prepared]
    refused: dict[int, str]

    @staticmethod
    def of(given: Sequence[Scan]) -> _Read:
        """Read one after the other, and prepare it; of equal ones the first."""
        numbers, prepared, refused = list[int](), list[Prepared](), dict[int, str]()
        known: dict[bytes, int] = {}
        for number, scan in track("reading scans", list(enumerate(given))):
            try:
                found = Prepared.of(scan.points())
            except (ParameterError, ValueError) as error:
                refused[number] = str(error)
                continue
            first = known.setdefault(found.points.tobytes(), number)
            if first != number:
                refused[number] = f"{scan.name} holds the same points as {given[first].name}."
                continue
            numbers.append(number)
            prepared.append(found)
        if len(numbers) < 2:
            said = " ".join(dict.fromkeys(refused.values()))
            raise ParameterError("scans", f"must be two or more that can be used. {said}")
        return _Read(numbers, prepared, refused)


class _Search:
    """Pair searches, batch after batch."""

    def __init__(self, prepared: list[Prepared], answers: Answers, n_jobs: int | None, seed: int) -> None:
        self._scans, self._answers, self._seed = prepared, answers, seed
        self._parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        self._centres = np.array([scan.origin for scan in prepared])
        self.edges = list[Edge]()  # all that was answered

    @property
    def centres(self) -> FloatArray:
        """Middles of the scans."""
        return self._centres

    def run(self) -> Checked:
        """Ask until all is said, and check what was answered by its loops."""
        choice = Choice(alikeness(self._scans))
        pairs = choice.first()
        while pairs:
            self._ask(pairs)
            checked = self._checked()
            pairs = choice.next(self._scans, checked.kept, self._centres)
        return self._confirmed(checked) if self.edges else Checked([], [], [], 1.0)

    def _checked(self) -> Checked:
        found = [edge for edge in self.edges if edge.motion is not None]
        return checked_by_loops(found, self._centres)

    def _confirmed(self, checked: Checked) -> Checked:
        """Without edges that no loop confirms and that so many searches may bring by chance."""
        n = len(self.edges)
        in_loops = {id(edge) for loop in checked.loops for edge in loop.edges}
        weak = [edge for edge in checked.kept if id(edge) not in in_loops and edge.p_value * n > _CONFIRMED]
        said = [replace(edge, why_not=_UNCONFIRMED.format(p=edge.p_value, n=n)) for edge in weak]
        kept = [edge for edge in checked.kept if edge not in weak]
        return replace(checked, kept=kept, taken_out=[*checked.taken_out, *said])

    def _ask(self, pairs: Sequence[Pair]) -> None:
        """Prepare what the pairs take, and ask them."""
        open_pairs = []
        for pair in map(self._oriented, pairs):
            name = self._answers.name(*self._both(pair), self._seed)
            known = self._answers.get(name, pair)
            if known is not None:
                self.edges.append(known)
            else:
                open_pairs.append((pair, name))
        self._prepare([pair for pair, _ in open_pairs])
        jobs = (delayed(_asked)(*self._for(pair), pair, name, self._seed) for pair, name in open_pairs)
        for name, edge in track("pairs of scans", self._parallel(jobs), len(open_pairs)):
            self._answers.add(name, edge)
            self.edges.append(edge)
        self.edges.sort(key=lambda edge: edge.ends)

    def _oriented(self, pair: Pair) -> Pair:
        """Target and source, whatever the order in which the scans were given."""
        target, source = sorted(pair, key=lambda scan: self._scans[scan].digest)
        return target, source

    def _both(self, pair: Pair) -> tuple[Prepared, Prepared]:
        """Source and target."""
        return self._scans[pair[1]], self._scans[pair[0]]

    def _for(self, pair: Pair) -> tuple[Prepared, Prepared]:
        """The same, with no more than their search takes."""
        keys = PreparedPair(*self._both(pair)).keys
        source, target = (replace(scan, parts={key: scan.parts[key] for key in keys}) for scan in self._both(pair))
        return source, target

    def _prepare(self, pairs: Sequence[Pair]) -> None:
        """Work out what pairs take, each once."""
        wanted: dict[int, set[Key]] = {}
        for pair in pairs:
            for scan in pair:
                wanted.setdefault(scan, set()).update(PreparedPair(*self._both(pair)).keys)
        missing = {scan: keys - self._scans[scan].parts.keys() for scan, keys in wanted.items()}
        jobs = (delayed(_worked_out)(scan, self._scans[scan], keys) for scan, keys in missing.items() if keys)
        n_jobs = sum(bool(keys) for keys in missing.values())
        for scan, parts in track("features of scans", self._parallel(jobs), n_jobs):
            self._scans[scan].parts.update(parts)


def _asked(source: Prepared, target: Prepared, pair: Pair, name: str, seed: int) -> tuple[str, Edge]:
    return name, ask(source, target, pair, seed)


def _worked_out(number: int, scan: Prepared, keys: set[Key]) -> tuple[int, dict[Key, Any]]:
    with single_threaded_blas():
        return number, replace(scan, parts={}).worked_out(sorted(keys))


def _model(given: list[Scan], read: _Read, checked: Checked, search: _Search, start: float) -> Model:
    """Poses of each part, refined together; numbers are those of the scans that were given from here on."""
    poses: dict[int, Pose] = {}
    walls, apart = list[tuple[Walls, Walls]](), dict[int, float]()
    parts = parts_of(checked.kept, len(read.prepared))
    for part in track("placing parts", [part for part in parts if len(part) > 1]):
        placed = poses_of(part, checked.kept, search.centres, checked.inflation)
        placed, before, after, of_scans = Joint(read.prepared, placed).refined()
        poses |= {read.numbers[scan]: pose for scan, pose in placed.items()}
        apart |= {read.numbers[scan]: value for scan, value in of_scans.items()}
        walls.append((before, after))
    taken_out = {edge.ends for edge in checked.taken_out}
    no_motion = [edge for edge in search.edges if edge.motion is None and edge.ends not in taken_out]

    def numbered(edge: Edge) -> Edge:
        return replace(edge, target=read.numbers[edge.target], source=read.numbers[edge.source])

    alone = [[number] for number in read.refused]
    return Model(
        scans=given,
        edges=[numbered(edge) for edge in checked.kept],
        refused_edges=[numbered(edge) for edge in [*checked.taken_out, *no_motion]],
        refused_scans=read.refused,
        parts=sorted(
            [*([read.numbers[one] for one in part] for part in parts), *alone], key=lambda one: (-len(one), one)
        ),
        placed=poses,
        sizes={number: scan.size for number, scan in zip(read.numbers, read.prepared, strict=True)},
        loops=[replace(loop, scans=tuple(read.numbers[one] for one in loop.scans)) for loop in checked.loops],
        inflation=checked.inflation,
        walls=walls,
        apart=apart,
        spacing=float(np.median([min(scan.sides.values()) for scan in read.prepared])),
        sketches={number: scan.sketch for number, scan in zip(read.numbers, read.prepared, strict=True)},
        n_searches=len(search.edges),
        seconds=perf_counter() - start,
    )
