"""Many scans at once: mixed folders, a false edge among true ones, and how many pairs are asked.

    python benchmarks/scans.py mixed --draws 20 --cache answers.jsonl   # folders of several places, as others have them
    python benchmarks/scans.py kitchen --cache answers.jsonl            # all frames of the kitchen that one chain joins
    python benchmarks/scans.py false-edge --draws 20                    # of graphs with known poses
    python benchmarks/scans.py searches --scans 200                     # pairs asked, answers by the truth

Each cloud of the data is turned once at random; a folder is some scans of several places in random order. Truth is the
chain of published motions. A scan is right if it is placed within 5 degrees and 5 % of its extent beside the first scan
of its part. Answers of pairs depend on the two scans and the seed alone, so draws share them in one cache.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

from cloud_methods import index  # noqa: E402
from inlier import SimilarityTransformation, register_scans  # noqa: E402
from inlier.clouds.errors import in_units  # noqa: E402
from inlier.scans.choice import Choice  # noqa: E402
from inlier.scans.graph import checked_by_loops, loops_of, parts_of, poses_of  # noqa: E402
from inlier.scans.pairs import Edge  # noqa: E402
from inlier.scans.prepared import Prepared, alikeness  # noqa: E402

DATA = Path(__file__).parents[2] / "shared" / "data" / "clouds"
DEGREES, OF_EXTENT = 5.0, 0.05  # what is right
PLACES = {"frame": "kitchen", "cloud_bin": "kitchen", "threed": "kitchen", "dragon": "dragon"}


@dataclass(frozen=True)
class Known:
    """A scan of the data, turned; its place, and where it lies beside others of its chain."""

    name: str
    points: np.ndarray
    place: str
    chain: str
    pose: np.ndarray


def known_scans(data: Path, rng: np.random.Generator) -> list[Known]:
    """Every scan once, turned at random, with its pose along the chain of published motions."""
    clouds, chain, pose = {}, {}, {}
    for row in index(data):
        content = np.load(data / f"{row['name']}.npz")
        ends = [_name_of(row, k) for k in (0, 1)]
        for name, side in zip(ends, ("source", "target"), strict=True):
            if len(content[side]) > len(clouds.get(name, ())):
                clouds[name] = content[side].astype(float)
            chain.setdefault(name, name), pose.setdefault(name, np.eye(4))
        motion, (a, b) = content["transformation"], ends
        if np.isfinite(motion).all() and chain[a] != chain[b]:
            step, old = pose[b] @ motion @ np.linalg.inv(pose[a]), chain[a]
            for name in [name for name in chain if chain[name] == old]:
                pose[name], chain[name] = step @ pose[name], chain[b]
    found = []
    for name in sorted(clouds):
        turn, middle = Rotation.random(rng=rng).as_matrix(), clouds[name].mean(axis=0)
        back = np.eye(4)
        back[:3, :3], back[:3, 3] = turn.T, middle - turn.T @ middle
        points = (clouds[name] - middle) @ turn.T + middle
        place = next((PLACES[start] for start in PLACES if name.startswith(start)), chain[name])
        place = "facade" if name.endswith(".pcd") else place
        found.append(Known(name, points, place, chain[name], pose[name] @ back))
    return found


def _name_of(row: dict, k: int) -> str:
    name = row["paths"][k].split(":")[-1].split("/")[-1]
    if row["name"].startswith("synthetic"):
        return f"{row['name']}_{k}"
    return f"{row['name']}_{name}" if row["name"].startswith("kitti_raw_5") else name


def judged(known: list[Known], model) -> dict[str, float]:
    """What is right and what is wrong."""
    wrong_part = n_right = n_off = n_unknown = 0
    worst = (0.0, 0.0)
    covered = []
    for part in model.parts:
        if len(part) < 2:
            continue
        places = [known[k].place for k in part]
        most = max(set(places), key=places.count)
        wrong_part += sum(place != most for place in places)
        first = part[0]
        for k in part[1:]:
            if known[k].chain != known[first].chain:
                n_unknown += 1
                continue
            truth = np.linalg.inv(known[first].pose) @ known[k].pose
            truth = SimilarityTransformation(truth[:3, :3], truth[:3, 3], model="rigid")
            found, middle = model.poses[k], known[k].points.mean(axis=0)[None]
            turn = np.degrees(Rotation.from_matrix(found.rotation @ truth.rotation.T).magnitude())
            shift = np.linalg.norm(found(middle) - truth(middle)) / np.ptp(known[k].points, axis=0).max()
            worst = max(worst[0], turn), max(worst[1], shift)
            is_right = turn <= DEGREES and shift <= OF_EXTENT
            n_right, n_off = n_right + is_right, n_off + (not is_right)
            covered.append(turn / max(np.linalg.norm(model.errors[k][0]), 1e-9))
    return {
        "scans": len(known),
        "placed": len(model.placed),
        "right": n_right,
        "off": n_off,
        "truth unknown": n_unknown,
        "wrong part": wrong_part,
        "worst degrees": round(worst[0], 2),
        "worst % of extent": round(100 * worst[1], 2),
        "turn / stated (median)": round(float(np.median(covered)), 2) if covered else None,
        "searches": model.n_searches,
        "inflation": round(model.inflation, 2),
        "walls": tuple(round(wall.median, 4) for wall in model.walls[0]) if model.walls else None,
    }


def mixed(arguments: argparse.Namespace) -> None:
    """Folders of scans of several places."""
    known = known_scans(arguments.data, np.random.default_rng(0))
    places = sorted({one.place for one in known})
    total = {"wrong part": 0, "off": 0, "right": 0}
    for draw in range(arguments.first, arguments.first + arguments.draws):
        rng = np.random.default_rng(draw)
        others = [place for place in places if place not in ("kitchen", "dragon", "facade")]
        chosen = []
        for place, most in [
            ("kitchen", 6),
            ("dragon", 4),
            ("facade", 4),
            *((one, 2) for one in rng.permutation(others)[:2]),
        ]:
            some = [one for one in known if one.place == place]
            chosen += [some[k] for k in rng.permutation(len(some))[:most]]
        folder = [chosen[k] for k in rng.permutation(len(chosen))]
        start = time.process_time()
        model = register_scans(
            [one.points for one in folder], names=[one.name for one in folder], cache=arguments.cache
        )
        said = judged(folder, model)
        print(f"draw {draw}: {said}, {time.process_time() - start:.0f} s", flush=True)
        for part in model.parts:
            print("   ", [folder[k].name for k in part], flush=True)
        for edge in model.refused_edges:
            if edge.motion is not None:
                print(
                    "    not joined:", folder[edge.target].name, folder[edge.source].name, edge.why_not[:90], flush=True
                )
        for name in ("wrong part", "off", "right"):
            total[name] += said[name]
    print("in all:", {name: total[name] for name in ("right", "off", "wrong part")})


def kitchen(arguments: argparse.Namespace) -> None:
    """All frames of the kitchen that chains join."""
    known = known_scans(arguments.data, np.random.default_rng(0))
    frames = [one for one in known if one.place == arguments.place]
    folder = [frames[k] for k in np.random.default_rng(1).permutation(len(frames))]
    start = time.process_time()
    model = register_scans([one.points for one in folder], names=[one.name for one in folder], cache=arguments.cache)
    print(judged(folder, model), f"{time.process_time() - start:.0f} s of one processor")
    print(model.answer, *model.details, sep="\n")
    print("chi2 of loops:", np.round(sorted(loop.chi2 for loop in model.loops), 1))


def known_graph(rng, n: int, degree: int, n_false: int):
    """Poses at random, and motions between them with errors of the size that they state; some are false."""
    truth = [
        SimilarityTransformation(Rotation.random(rng=rng).as_matrix(), 3 * rng.normal(size=3), model="rigid")
        for _ in range(n)
    ]
    centres = rng.normal(size=(n, 3))
    pairs = {(k, (k + 1) % n) for k in range(n)}
    while len(pairs) < degree * n // 2:
        i, j = (int(k) for k in rng.choice(n, 2, replace=False))
        pairs |= set() if (j, i) in pairs else {(i, j)}
    order = sorted(pairs)
    false = {order[k] for k in rng.choice(len(order), n_false, replace=False)}
    edges = []
    for i, j in order:
        right, centre = truth[i].inverse @ truth[j], centres[j] + 0.3 * rng.normal(size=3)
        root = rng.normal(size=(6, 6)) / 3 + np.eye(6) / 2
        spread = np.diag([0.003] * 3 + [0.01] * 3) @ (root @ root.T) @ np.diag([0.003] * 3 + [0.01] * 3)
        miss = rng.multivariate_normal(np.zeros(6), spread)
        turn = Rotation.from_rotvec(miss[:3]).as_matrix() @ right.rotation
        found = SimilarityTransformation(turn, right(centre[None])[0] + miss[3:] - turn @ centre, model="rigid")
        if (i, j) in false:  # somewhere in the same room
            found = SimilarityTransformation(Rotation.random(rng=rng).as_matrix(), rng.normal(size=3), model="rigid")
        errors = in_units(spread, 60.0, 0.0, found, centre)
        edges.append(Edge(i, j, found, errors, 10 ** -rng.uniform(2.5, 7), (0.5, 0.5)))
    return truth, centres, edges, false


def false_edge(arguments: argparse.Namespace) -> None:
    """One false edge among true ones; and whether errors of poses and loops are as stated."""
    for degree in (3, 4, 6):
        found = n_true_out = 0
        for draw in range(arguments.first, arguments.first + arguments.draws):
            _, centres, edges, false = known_graph(np.random.default_rng(draw), 10, degree, 1)
            out = {edge.ends for edge in checked_by_loops(edges, centres).taken_out}
            found, n_true_out = found + (false <= out), n_true_out + len(out - false)
        print(f"10 scans, {degree} edges a scan: found {found} of {arguments.draws}, true ones taken out {n_true_out}")
    loops, poses = [], []
    for draw in range(arguments.draws):
        truth, centres, edges, _ = known_graph(np.random.default_rng(1_000 + draw), 10, 4, 0)
        loops += [loop.chi2 for loop in loops_of(edges, centres)]
        for k, pose in list(poses_of(range(10), edges, centres).items())[1:]:
            right = truth[0].inverse @ truth[k]
            turn = Rotation.from_matrix(right.rotation @ pose.rotation.T).as_rotvec()
            miss = np.concatenate([turn, right(centres[k][None])[0] - pose.place])
            poses.append(miss @ np.linalg.solve(pose.covariance, miss))
    print(f"without false ones: chi2 / 6 of loops {np.mean(loops) / 6:.2f}, of poses {np.mean(poses) / 6:.2f}")


def searches(arguments: argparse.Namespace) -> None:
    """How many pairs are asked of scans along the rooms of a house; answers are the truth, sometimes none."""
    rng = np.random.default_rng(0)
    n, n_rooms = arguments.scans, max(1, arguments.scans // 20)
    walls = [
        rng.uniform(-4, 4, (12_000, 3)) * rng.permuted([1, 1, 0.02]) + rng.uniform(-4, 4, 3) for _ in range(6 * n_rooms)
    ]
    rooms = [np.vstack(walls[6 * k : 6 * k + 6]) for k in range(n_rooms)]
    spots, clouds, of = [], [], []
    for k in range(n):
        spot, points = rng.uniform(-3, 3, 3), rooms[k % n_rooms]
        near = points[np.linalg.norm(points - spot, axis=1) < 4]
        clouds.append(near[rng.permutation(len(near))[:2_000]] - spot)
        spots.append(spot), of.append(k % n_rooms)
    scans = [Prepared.of(cloud) for cloud in clouds]
    centres, edges, asked = np.array([scan.origin for scan in scans]), [], 0

    def answer(i: int, j: int) -> Edge:
        step = SimilarityTransformation(np.eye(3), spots[j] - spots[i], model="rigid")
        share = scans[i].share_near(step(scans[j].probes), scans[j].of_looks[2])
        if of[i] != of[j] or share < 0.3 or rng.random() < 0.2:
            return Edge(i, j, None, None, 0.5, (np.nan, np.nan), "no")
        return Edge(i, j, step, in_units(1e-6 * np.eye(6), 60.0, 0.0, step, scans[j].origin), 1e-6, (share, share))

    choice = Choice(alikeness(scans))
    pairs = choice.first()
    while pairs:
        asked += len(pairs)
        edges += [edge for edge in (answer(*pair) for pair in pairs) if edge.motion is not None]
        pairs = choice.next(scans, checked_by_loops(edges, centres).kept, centres)
    sizes = [len(part) for part in parts_of(edges, n)]
    print(f"{n} scans of {n_rooms} rooms: {asked} pairs asked of {n * (n - 1) // 2}; parts of {sizes}")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["mixed", "kitchen", "false-edge", "searches"])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--scans", type=int, default=200)
    parser.add_argument("--place", default="kitchen")
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
    {"mixed": mixed, "kitchen": kitchen, "false-edge": false_edge, "searches": searches}[arguments.what](arguments)


if __name__ == "__main__":
    main()
