"""Are the standard errors of motions between raw clouds true? Loops of three scans tell, without anybody's truth.

    python benchmarks/cloud_loops.py                       # all families: kitchen frames, facade, dragon
    python benchmarks/cloud_loops.py --only dragon
    python benchmarks/cloud_loops.py --only kinect_kitchen --frames 000 050 075 125 225 --graph    # needs gtsam

A motion from a to b, then b to c, then c to a, ends where it began, up to the errors of the three. With e the turn and
shift that are left and C the sum of their covariances, each carried to the end, e^T C^-1 e / 6 is 1 on average if the
errors are as stated (median .89; 80 % between .37 and 1.77). All pairs of a family that overlap by enough are fitted,
each with the source turned at random; motions that are not sure, or off by more than 5 degrees or 5 % of the extent,
are left out. Frames that overlap are found by the published poses, carried along chains of pairs. The kitchen has two
parts that no chain joins: constants were set while looking at the loops of the first, and at those of the facade; those
of the second were looked at once, afterwards.
"""

from __future__ import annotations

import argparse
import os
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from scipy.spatial import cKDTree  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

from cloud_methods import errors, index  # noqa: E402
from inlier import CloudRegistration  # noqa: E402
from inlier.clouds.surfaces import thin  # noqa: E402

DATA = Path(__file__).parents[2] / "shared" / "data" / "clouds"
FAMILIES = {"dragon": 0.15, "tls_facade": 0.15, "kinect_kitchen": 0.2}  # and the least overlap of a pair
DEGREES, OF_EXTENT = 5.0, 0.05  # what is right
Edges = dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]  # a motion, and the covariance of (turn, shift at 0)
Graph = dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]  # a motion, and its information as GTSAM takes it


def scans_and_poses(data: Path, family: str) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]], float]:
    """The scans of a family, their poses in each part that chains of pairs join, and the scale of its overlaps."""
    scans, steps, tau = dict[str, np.ndarray](), dict[tuple[str, str], np.ndarray](), 0.0
    for row in index(data):
        if not row["name"].startswith(family) or row["expected"] == "no":
            continue
        first, second = row["name"].split("_")[-2:]
        with np.load(data / f"{row['name']}.npz") as file:
            source, target, motion = (file[name].astype(float) for name in ("source", "target", "transformation"))
        scans.setdefault(first, source)
        scans.setdefault(second, target)
        steps[first, second], steps[second, first], tau = motion, np.linalg.inv(motion), row["tau"]
    parts = list[dict[str, np.ndarray]]()
    for scan in scans:
        if any(scan in part for part in parts):
            continue
        part, front = {scan: np.eye(4)}, [scan]
        while front:
            here = front.pop()
            for (a, b), motion in steps.items():
                if a == here and b not in part:
                    part[b] = part[here] @ np.linalg.inv(motion)
                    front.append(b)
        parts.append(part)
    return scans, sorted(parts, key=len, reverse=True), tau


def share_near(a: np.ndarray, b: np.ndarray, motion: np.ndarray, bound: float) -> float:
    """Of the points of a, how many come near b."""
    distance, _ = cKDTree(b).query(a @ motion[:3, :3].T + motion[:3, 3], distance_upper_bound=bound)
    return float(np.isfinite(distance).mean())


def fitted(a: np.ndarray, b: np.ndarray, truth: np.ndarray, seed: int) -> tuple[np.ndarray, ...] | None:
    """The motion from a to b, its covariance about the origin of b, and its information; None where it is not right."""
    turn = np.eye(4)
    turn[:3, :3] = Rotation.random(rng=np.random.default_rng(seed)).as_matrix()
    found = CloudRegistration(random_state=0, raise_on_failure=False).fit(a @ turn[:3, :3].T, b)
    if found.transformation_ is None or found.uncertainty_ is None:
        return None
    motion, said = found.transformation_.matrix @ turn, found.uncertainty_
    degrees, shift = errors(motion, truth, a)
    if degrees > DEGREES or shift > OF_EXTENT:
        return None
    image = found.transformation_(said.centre[None])[0]
    to_origin = np.eye(6)
    to_origin[3:, :3] = cross(image)
    turned = np.kron(np.eye(2), turn[:3, :3])  # the information is in the axes of the source as it was turned
    information = turned.T @ said.information("gtsam") @ turned
    return motion, to_origin @ said.covariance_at_centre @ to_origin.T, information


def cross(a: np.ndarray) -> np.ndarray:
    """The matrix of b -> a x b."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def carried(motion: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The covariance of a turn and shift before a motion, as one of a turn and shift after it."""
    adjoint = np.zeros((6, 6))
    adjoint[:3, :3] = adjoint[3:, 3:] = motion[:3, :3]
    adjoint[3:, :3] = cross(motion[:3, 3]) @ motion[:3, :3]
    return adjoint @ covariance @ adjoint.T


def both_ways(edges: Edges) -> Edges:
    """The same with the motions back."""
    back = dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]()
    for (a, b), (motion, covariance) in edges.items():
        inverse = np.linalg.inv(motion)
        back[b, a] = inverse, carried(inverse, covariance)
    return {**edges, **back}


def loops(edges: Edges) -> np.ndarray:
    """chi2 / 6 of every loop of three scans."""
    scans, step, found = sorted({scan for pair in edges for scan in pair}), both_ways(edges), []
    for a, b, c in combinations(scans, 3):
        if not {(a, b), (b, c), (c, a)} <= set(step):
            continue
        (first, of_first), (second, of_second), (third, of_third) = step[a, b], step[b, c], step[c, a]
        around = third @ second @ first
        covariance = of_third + carried(third, of_second) + carried(third @ second, of_first)
        left = np.r_[Rotation.from_matrix(around[:3, :3]).as_rotvec(), around[:3, 3]]
        found.append(float(left @ np.linalg.solve(covariance, left)) / 6)
    return np.array(found)


def fit_part(
    scans: dict[str, np.ndarray], poses: dict[str, np.ndarray], tau: float, least: float
) -> tuple[Edges, Graph, int]:
    """Fit all pairs of a part that overlap; also how many there are."""
    thinned, edges, graph, n_pairs = {name: thin(scans[name], 1.5 * tau) for name in poses}, Edges(), Graph(), 0
    for a, b in combinations(poses, 2):
        truth = np.linalg.inv(poses[b]) @ poses[a]
        there = share_near(thinned[a], thinned[b], truth, 2 * tau)
        if min(there, share_near(thinned[b], thinned[a], np.linalg.inv(truth), 2 * tau)) < least:
            continue
        n_pairs += 1
        edge = fitted(scans[a], scans[b], truth, n_pairs)
        if edge is not None:
            edges[a, b], graph[a, b] = edge[:2], edge[::2]
    return edges, graph, n_pairs


def joined(graph: Graph, poses: dict[str, np.ndarray], *, is_weighed: bool) -> dict[str, np.ndarray]:
    """The poses that all motions together say, by GTSAM; the first stays where it was published."""
    import gtsam

    number = {name: k for k, name in enumerate(poses)}
    factors, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for name, pose in poses.items():
        values.insert(number[name], gtsam.Pose3(pose))
    first = gtsam.noiseModel.Isotropic.Sigma(6, 1e-6)
    factors.add(gtsam.PriorFactorPose3(0, gtsam.Pose3(next(iter(poses.values()))), first))
    for (a, b), (motion, information) in graph.items():
        weight = gtsam.noiseModel.Gaussian.Information(information if is_weighed else np.eye(6))
        factors.add(gtsam.BetweenFactorPose3(number[b], number[a], gtsam.Pose3(motion), weight))
    found = gtsam.LevenbergMarquardtOptimizer(factors, values).optimize()
    return {name: found.atPose3(k).matrix() for name, k in number.items()}


def off_by(
    scans: dict[str, np.ndarray], found: dict[str, np.ndarray], poses: dict[str, np.ndarray]
) -> tuple[float, float]:
    """Root mean squares of what the motions between all scans are off by: degrees, and shifts at the centre."""
    off = []
    for a, b in combinations(poses, 2):
        here, there = (np.linalg.inv(one[b]) @ one[a] for one in (found, poses))
        centre = np.append(scans[a].mean(axis=0), 1.0)
        degrees = np.degrees(Rotation.from_matrix(here[:3, :3] @ there[:3, :3].T).magnitude())
        off.append((degrees, np.linalg.norm((here - there) @ centre)))
    return tuple(np.sqrt(np.mean(np.square(off), axis=0)).tolist())


def main() -> None:
    """Read the command line, fit, and print a line a part of a family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--frames", nargs="+", metavar="NAME", help="only these scans of a family")
    parser.add_argument("--graph", action="store_true", help="join the motions to poses too (needs gtsam)")
    options: Any = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':18s}{'scans':>6s}{'pairs':>6s}{'right':>6s}{'loops':>6s}{'mean':>7s}   quantiles .1 .25 .5 .75 .9 1")
    for family in options.only or FAMILIES:
        scans, parts, tau = scans_and_poses(options.data, family)
        chosen = ({k: pose for k, pose in part.items() if k in (options.frames or part)} for part in parts)
        for number, poses in enumerate(part for part in chosen if len(part) > 2):
            edges, graph, n_pairs = fit_part(scans, poses, tau, FAMILIES[family])
            chi2 = loops(edges)
            quantiles = (
                " ".join(f"{one:.2f}" for one in np.quantile(chi2, [0.1, 0.25, 0.5, 0.75, 0.9, 1])) if len(chi2) else ""
            )
            name = f"{family} {number}"
            print(
                f"{name:18s}{len(poses):6d}{n_pairs:6d}{len(edges):6d}{len(chi2):6d}{chi2.mean():7.2f}   {quantiles}",
                flush=True,
            )
            for is_weighed in (True, False) if options.graph else ():
                degrees, shift = off_by(scans, joined(graph, poses, is_weighed=is_weighed), poses)
                words = "our information" if is_weighed else "identity"
                print(f"    poses joined with {words}: off by {degrees:.3f} degrees, {shift:.4f}", flush=True)


if __name__ == "__main__":
    main()
