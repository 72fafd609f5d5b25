"""What many scans came to: poses with errors, edges with evidence, parts, and what was refused and why."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from inlier._checks import check_number
from inlier._typing import Array, FloatArray
from inlier.estimators._cloud_refusals import another_unit
from inlier.exceptions import ParameterError
from inlier.scans.graph import Loop, Pose, bridges
from inlier.scans.joint import Walls
from inlier.scans.merging import merged
from inlier.scans.pairs import Edge
from inlier.scans.scan import Scan
from inlier.transforms import SimilarityTransformation

if TYPE_CHECKING:
    from inlier.report.scans_page import ScansReport

_MOST_NAMED = 6  # scans in a sentence
_WEAK = 0.25  # overlap of an edge that is worth a word if scans hang on it alone


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """What `register_scans` found. Scans are numbered as they were given.

    Attributes
    ----------
    parts : list of list of int
        Scans that edges connect, the largest part first; scans of different parts may be of different places.
    poses : list of SimilarityTransformation or None
        For each scan, world = pose(scan): the world of a part is that of its first scan. None for scans alone.
    errors : list of tuple or None
        Standard errors of each pose beside the first of its part: degrees about the three axes of the world, and of
        the place of the scan's middle.
    edges : list of Edge
        The motions between pairs that the poses rest on, with p-values, overlaps and errors.
    refused_edges : list of Edge
        Pairs that were asked and have no edge, each with ``why_not``; those that loops or many searches speak against
        still have their ``motion``.
    refused_scans : dict of int to str
        Scans that could not be used: empty ones, copies.
    loops : list of Loop
        Along which motions come back to where they began, with ``chi2`` (6 degrees of freedom).
    inflation : float
        By what the variances that pairs state were multiplied, since loops close no better.
    walls : list of (Walls, Walls)
        For each part of more than one scan, how far surfaces seen twice stand apart before and after the last
        refinement.
    n_searches : int
        Pairs that were asked.

    Examples
    --------
    >>> import inlier
    >>> from inlier.datasets import make_scans
    >>> scans = make_scans(rng=0)
    >>> model = inlier.register_scans([scans.source, scans.target], names=["left", "right"])
    >>> model
    <Model: All 2 scans are placed in one model.>
    >>> print(model.to_g2o().splitlines()[0])
    VERTEX_SE3:QUAT 0 0 0 0 0 0 0 1
    >>> sorted(model.merged())
    ['x', 'y', 'z']
    """

    scans: list[Scan]
    edges: list[Edge]
    refused_edges: list[Edge]
    refused_scans: dict[int, str]
    parts: list[list[int]]
    placed: dict[int, Pose]
    sizes: dict[int, float]
    loops: list[Loop]
    inflation: float
    walls: list[tuple[Walls, Walls]]
    apart: dict[int, float]
    spacing: float
    sketches: dict[int, FloatArray] = field(repr=False)  # some points of each scan, as it came
    n_searches: int
    seconds: float = field(default=0.0, repr=False)

    @property
    def names(self) -> list[str]:
        """What the scans are called."""
        return [scan.name for scan in self.scans]

    @property
    def poses(self) -> list[SimilarityTransformation | None]:
        """Where each scan lies."""
        return [self.placed[k].motion if k in self.placed else None for k in range(len(self.scans))]

    @property
    def errors(self) -> list[tuple[FloatArray, FloatArray] | None]:
        """How far each pose may be off."""
        found = [self.placed.get(k) for k in range(len(self.scans))]
        return [None if pose is None else (pose.degrees, pose.shift) for pose in found]

    def __repr__(self) -> str:
        return f"<Model: {self.answer}>"

    # ---- in words

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        n, together = len(self.scans), [len(part) for part in self.parts if len(part) > 1]
        if not together:
            return f"None of the {n} scans could be joined to another."
        if together == [n]:
            return f"All {n} scans are placed in one model."
        sizes = " and ".join(map(str, together)) if len(together) > 1 else f"{together[0]}"
        what = f"parts of {sizes} scans" if len(together) > 1 else f"one part of {sizes} scans"
        alone = n - sum(together)
        rest = f"; {alone} belong{'s' if alone == 1 else ''} to none" if alone else ""
        return f"{sum(together)} of {n} scans are placed, in {what}{rest}."

    @property
    def details(self) -> list[str]:
        """What else there is to say, a sentence each."""
        said = []
        for number, part in enumerate(self.parts[1:], 2):
            if len(part) > 1:
                said.append(f"Part {number}: {self._named(part)} are of another place, or nothing between was scanned.")
        said += [
            f"{self.scans[part[0]].name} is alone: {self.why_alone(part[0])}" for part in self.parts if len(part) == 1
        ]
        said += [
            f"{self._named(edge.ends)} are not joined: {edge.why_not}" for edge in self.refused_edges if edge.motion
        ]
        return [*said, *self._hanging, *self._of_loops, *self._of_walls]

    def why_alone(self, scan: int) -> str:
        """Why a scan has no place, in a sentence."""
        if scan in self.refused_scans:
            return self.refused_scans[scan]
        others = [size for k, size in self.sizes.items() if k != scan]
        said = another_unit((self.sizes[scan], float(np.median(others))))
        if said is not None:
            said = said.replace("The source has", "it has").replace("the target one", "the others one")
            said = said.split(": multiply")[0].split(" If only")[0]
            return said if said.endswith("?") else f"{said}."
        asked = [edge for edge in self.refused_edges if scan in edge.ends]
        if not asked:
            return "no other scan is like it."
        best = min(asked, key=lambda edge: edge.p_value)
        other = next(end for end in best.ends if end != scan)
        return f"of {len(asked)} asked, {self.scans[other].name} comes nearest, with a p-value of {best.p_value:.2g}."

    @property
    def _hanging(self) -> list[str]:
        said = []
        for edge, hanging in bridges(self.edges, len(self.scans)):
            share = max(edge.overlap)
            if len(hanging) > 1 or share < _WEAK:
                verb = "hangs" if len(hanging) == 1 else "hang"
                said.append(
                    f"{self._named(hanging)} {verb} on one edge, {self._named(edge.ends)}, of {share:.0%} overlap "
                    f"(p-value {edge.p_value:.1g}); no loop checks it."
                )
        return said

    @property
    def _of_loops(self) -> list[str]:
        if not self.loops:
            return ["No loop checks the poses."] if self.edges else []
        mean, n = np.mean([loop.chi2 for loop in self.loops]) / self.inflation, len(self.loops)
        sentence = f"{n} loops close" if n > 1 else "One loop closes"
        sentence += f", with a {'mean ' if n > 1 else ''}chi2 of {mean:.2g} (6 where all is as stated)."
        if self.inflation > 1:
            sentence += f" Errors are taken {np.sqrt(self.inflation):.2g} times as large as pairs state."
        return [sentence]

    @property
    def _of_walls(self) -> list[str]:
        return [
            f"Walls seen twice stand {after.median:.2g} apart ({before.median:.2g} before all scans were refined "
            f"together), {after.worst_tenth:.2g} in the worst tenth."
            for before, after in self.walls[:1]
            if np.isfinite(after.median)
        ]

    def _named(self, scans: Any) -> str:
        names = [self.scans[scan].name for scan in scans]
        more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
        names = names[:_MOST_NAMED] + more
        return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]

    # ---- as data

    def to_dict(self) -> dict[str, Any]:
        """Everything there is."""
        part_of = {scan: number for number, part in enumerate(self.parts) for scan in part}
        return {
            "model": "scans",
            "answer": self.answer,
            "details": self.details,
            "parts": self.parts,
            "scans": [
                {
                    "name": scan.name,
                    "part": part_of[k],
                    "matrix": self.placed[k].motion.matrix.tolist() if k in self.placed else None,
                    "standard_errors": {
                        "degrees": self.placed[k].degrees.tolist(),
                        "shift_of_middle": self.placed[k].shift.tolist(),
                    }
                    if k in self.placed
                    else None,
                    "walls_apart": self.apart.get(k),
                    "why_not": None if k in self.placed else self.why_alone(k),
                }
                for k, scan in enumerate(self.scans)
            ],
            "edges": [edge.to_dict() for edge in self.edges],
            "refused_edges": [edge.to_dict() for edge in self.refused_edges],
            "loops": [{"scans": list(loop.scans), "chi2": loop.chi2} for loop in self.loops],
            "inflation": self.inflation,
            "walls": [
                {"before": vars(before), "after": vars(after)} if np.isfinite(after.median) else None
                for before, after in self.walls
            ],
            "n_searches": self.n_searches,
            "seconds": self.seconds,
        }

    def json(self, indent: int | None = None) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def to_g2o(self) -> str:
        """The pose graph as a g2o file: poses as vertices, kept edges with their information; the first is fixed."""
        lines = [f"VERTEX_SE3:QUAT {scan} {_seven(pose.motion)}" for scan, pose in sorted(self.placed.items())]
        lines += [f"FIX {part[0]}" for part in self.parts if len(part) > 1]
        for edge in self.edges:
            assert edge.motion is not None
            assert edge.errors is not None
            information = edge.errors.information("g2o") / self.inflation
            upper = " ".join(f"{value:.10g}" for value in information[np.triu_indices(6)])
            lines.append(f"EDGE_SE3:QUAT {edge.target} {edge.source} {_seven(edge.motion)} {upper}")
        return "\n".join(lines) + "\n"

    def to_trajectory(self, part: int = 0) -> str:
        """The poses of a part as a trajectory (number x y z qx qy qz qw), as TUM's tools read it."""
        scans = self._part(part)
        return "".join(f"{scan} {_seven(self.placed[scan].motion)}\n" for scan in scans)

    def to_open3d(self) -> Any:
        """The pose graph as ``open3d.pipelines.registration.PoseGraph``, a node for each placed scan, in order."""
        import open3d  # type: ignore[import-not-found, unused-ignore]

        registration = open3d.pipelines.registration
        graph, number = registration.PoseGraph(), {scan: k for k, scan in enumerate(sorted(self.placed))}
        for scan in number:
            graph.nodes.append(registration.PoseGraphNode(self.placed[scan].motion.matrix))
        for edge in self.edges:
            assert edge.motion is not None
            assert edge.errors is not None
            information = edge.errors.information("open3d") / self.inflation
            ends = number[edge.source], number[edge.target]
            graph.edges.append(registration.PoseGraphEdge(*ends, edge.motion.matrix, information, uncertain=False))
        return graph

    def merged(self, part: int = 0, spacing: float | None = None) -> dict[str, Array]:
        """All scans of a part as one cloud, thinned evenly.

        Parameters
        ----------
        part : int, default=0
            Which of `parts`.
        spacing : float, optional
            Side of the cells that each hold one point; by default half of what scans are compared with.

        Returns
        -------
        dict of str to ndarray
            x, y, z and, where all its scans have them, red, green, blue, intensity, nx, ny, nz; `inlier.io.write_table`
            writes it.
        """
        side = self.spacing / 2 if spacing is None else check_number(spacing, "spacing", low=0)
        return merged(((self.scans[scan].columns(), self.placed[scan]) for scan in self._part(part)), side)

    def plot(self, part: int = 0, ax: Any = None) -> Any:
        """Draw a part with matplotlib, seen along the direction in which it varies least, a colour for each scan.

        Parameters
        ----------
        part : int, default=0
            Which of `parts`.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new one by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from matplotlib import pyplot

        axes = pyplot.subplots()[1] if ax is None else ax
        clouds = {scan: self.placed[scan].motion(self.sketches[scan]) for scan in self._part(part)}
        together = np.vstack(list(clouds.values()))
        flat = np.linalg.svd(together[::7] - together.mean(axis=0), full_matrices=False)[2][:2].T
        for scan, points in clouds.items():
            axes.plot(*(points @ flat).T, ".", markersize=1, label=self.names[scan])
        axes.set_aspect("equal")
        axes.legend(markerscale=8, fontsize="small")
        return axes

    def report(self) -> ScansReport:
        """Return a page to look at."""
        from inlier.report.scans_page import ScansReport

        return ScansReport(self)

    def _part(self, part: int) -> list[int]:
        together = [one for one in self.parts if len(one) > 1]
        if not 0 <= part < len(together):
            raise ParameterError("part", f"must be one of the {len(together)} parts of more than one scan, from 0.")
        return together[part]


def _seven(motion: SimilarityTransformation) -> str:
    quaternion = Rotation.from_matrix(motion.rotation).as_quat()
    return " ".join(f"{value:.10g}" for value in (*motion.translation, *quaternion))
