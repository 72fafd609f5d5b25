"""Two raw clouds, one motion: who finds it, who refuses, who is wrong and sure of it.

    python benchmarks/clouds.py pairs                      # pairs that overlap and pairs that do not, three turns each
    python benchmarks/clouds.py pairs --half set           # only those that constants were set on; --half aside: others
    python benchmarks/clouds.py pairs --figure benchmarks/results/clouds_overlap.png     # and draw it against overlap
    python benchmarks/clouds.py negatives --count 300      # clouds of different places: how many are called sure?
    python benchmarks/clouds.py units                      # the same answer in other units, and far from the origin?
    python benchmarks/clouds.py scales                     # one cloud in another unit: is the scale found?
    python benchmarks/clouds.py scales --negatives 40      # and claimed where there is none?
    python benchmarks/clouds.py speed                      # beside Open3D's RANSAC chain on large clouds, three turns
    python benchmarks/clouds.py large                      # ten million points a cloud: time and memory
    python benchmarks/clouds.py fgr                        # what there is of table 1 of fast global registration
    pip install '.[peers]'; python benchmarks/clouds.py pairs --methods ransac fgr kiss inlier --turns 1
    python benchmarks/clouds.py pairs --methods kiss inlier --turns 1 --only synthetic bunny      # some of them

The clouds are those of ../shared/data/clouds (see its README; some may not be passed on). The target of each pair is
turned at random and moved first. Right: within 5 degrees, and 5 % of the extent at the centre of the source. Peers are
given a voxel size: for each pair the better of two, the scale at which its overlap was measured and twice that, which
nobody knows beforehand; they refuse nothing, so what is not right is wrong. Every second pair (in the order of
index.json) took part in setting the constants of `inlier.clouds`, and so did 200 of the clouds of different places;
those of `negatives` are drawn with another seed. Seconds are processor times of one thread where --jobs is 1.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

from cloud_methods import (  # noqa: E402
    METHODS,
    PUBLISHED,
    different_places,
    distance_of_true_pairs,
    errors,
    index,
    inlier,
    turned,
)

DATA = Path(__file__).parents[2] / "shared" / "data" / "clouds"
LARGE = 100_000  # points of either cloud of a pair that `speed` looks at
DEGREES, OF_EXTENT = 5.0, 0.05  # what is right
PUBLISHED_LASERS = ("terrestrial laser", "automotive lidar HDL-64")


def run_sizes(task: tuple[Path, dict[str, Any], int, str]) -> list[dict[str, Any]]:
    """One method on one pair, with each voxel size, the finer first; peers draw with the number of the turn."""
    data, row, turn, method = task
    warnings.simplefilter("ignore")
    source, target, truth = turned(data, row, turn)
    solve, takes_size = METHODS[method]
    results = []
    for voxel in (row["tau"], 2 * row["tau"]) if takes_size else (np.nan,):
        start = time.process_time()
        found, sure = solve(source, target, voxel, turn)
        seconds = time.process_time() - start
        turn_error, shift = (
            (np.inf, np.inf) if found is None or row["expected"] == "no" else errors(found, truth, source)
        )
        right = turn_error < DEGREES and shift < OF_EXTENT
        result = {"right": right, "sure": sure, "degrees": turn_error, "shift": shift, "seconds": seconds}
        results.append({**result, "row": row, "turn": turn, "method": method})
    return results


def better(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The right one, or the one that is less wrong; the finer voxel size where they are alike."""
    return max(results, key=lambda one: (one["right"], -one["degrees"]))


def run_pair(task: tuple[Path, dict[str, Any], int, str]) -> dict[str, Any]:
    """One method on one pair: the best of what it gives with each voxel size."""
    return better(run_sizes(task))


def run_negative(task: tuple[Path, tuple[str, str, str, str], int], model: str = "rigid") -> dict[str, Any]:
    """Two clouds of different places, every second time brought to one size."""
    from inlier import CloudRegistration

    data, (first, end, second, other), number = task
    warnings.simplefilter("ignore")
    with np.load(data / f"{first}.npz") as file:
        source = file[end].astype(float)
    with np.load(data / f"{second}.npz") as file:
        target = file[other].astype(float) @ Rotation.random(rng=np.random.default_rng(number)).as_matrix().T
    if number % 2:
        target *= np.sqrt(source.var(axis=0).sum() / target.var(axis=0).sum())
    answer = CloudRegistration(random_state=0, raise_on_failure=False, model=model).fit(source, target)
    return {"name": f"{first} {end}, {second} {other}", "sure": answer.success_}


def over(work: Callable[[Any], dict[str, Any]], tasks: list[Any], jobs: int) -> Iterator[dict[str, Any]]:
    """Do all tasks, some at a time."""
    if jobs == 1:
        yield from map(work, tasks)
        return
    with Pool(jobs) as pool:
        yield from pool.imap_unordered(work, tasks)


def table(results: list[dict[str, Any]]) -> None:
    """A line a sensor family, and the sums, for each method."""
    for method in dict.fromkeys(result["method"] for result in results):
        own = [result for result in results if result["method"] == method]
        print(f"\n{method:46s}{'right':>7s}{'refused':>9s}{'wrong+sure':>12s}{'of':>6s}{'seconds':>9s}{'most':>7s}")
        there = [result for result in own if result["row"]["expected"] == "yes"]
        for family in [*dict.fromkeys(result["row"]["family"] for result in there), None]:
            some = [result for result in there if family in (None, result["row"]["family"])]
            _line(family or "all that overlap", some)
        for half in ("set", "aside"):
            _line(f"  of these, half: {half}", [result for result in there if result["row"]["half"] == half])
        _line("that do not overlap", [result for result in own if result["row"]["expected"] == "no"])
        lasers = [
            result["degrees"]
            for result in there
            if result["right"]
            and result["row"]["family"] in PUBLISHED_LASERS
            and "publ" in result["row"]["truth_class"]
        ]
        if lasers:
            print(
                f"laser and car lidar, published truth: median {np.median(lasers):.3f} degrees, most {max(lasers):.3f}"
            )


def _line(name: str, some: list[dict[str, Any]]) -> None:
    if not some:
        return
    right, sure = (np.array([result[key] for result in some]) for key in ("right", "sure"))
    seconds = [result["seconds"] for result in some]
    counts = f"{np.sum(right & sure):7d}{np.sum(~sure):9d}{np.sum(~right & sure):12d}{len(some):6d}"
    print(f"{name:46s}{counts}{np.median(seconds):9.2f}{max(seconds):7.2f}")


def pairs(options: argparse.Namespace) -> None:
    """All pairs, turned."""
    rows = [row for row in index(options.data) if options.half in (None, row["half"])]
    rows = [row for row in rows if not options.only or any(word in row["name"] for word in options.only)]
    tasks = [
        (options.data, row, turn, method) for method in options.methods for turn in range(options.turns) for row in rows
    ]
    if "inlier" in options.methods:
        run_pair(tasks[0])  # what is compiled on the way is not to be timed
    results = list(over(run_pair, tasks, options.jobs))
    table(results)
    if options.figure:
        figure(results, options.figure)
    print("\nnot right, or called sure without a motion:")
    for result in sorted(results, key=lambda one: (one["method"], one["row"]["name"], one["turn"])):
        if (result["right"] and result["sure"]) or (result["row"]["expected"] == "no" and not result["sure"]):
            continue
        verdict = "refused" if not result["sure"] else f"{result['degrees']:.1f} degrees, {result['shift']:.3f}, sure"
        print(f"  {result['method']:8s}{result['row']['name']:30s}turn {result['turn']}: {verdict}")


def speed(options: argparse.Namespace) -> None:
    """Our time beside that of Open3D's RANSAC chain on large clouds: ratios, pair by pair and turn by turn."""
    rows = [row for row in index(options.data) if row["expected"] == "yes" and min(row["n"], row["m"]) > LARGE]
    rows = [row for row in rows if not options.only or any(word in row["name"] for word in options.only)]
    ours, peers = [], []
    for method in ("inlier", "ransac"):
        run_sizes((options.data, rows[0], 0, method))  # what is compiled or loaded on the way is not to be timed
    for turn in range(options.turns):
        for row in rows:  # both on one pair before the next, so that a busy machine is busy for both
            ours.append(run_pair((options.data, row, turn, "inlier")))
            peers.append(run_sizes((options.data, row, turn, "ransac")))
    sure, seconds = (np.array([one[key] for one in ours]) for key in ("sure", "seconds"))
    print(f"{len(rows)} pairs of over {LARGE:,} points a cloud, {options.turns} turns; ratio: ours to a peer's time")
    heading = f"{'seconds':>9s}{'ratio':>7s}{'quartiles':>14s}{'ours sure':>11s}{'refused':>9s}   turn by turn"
    print(f"{'':34s}{'right':>7s}{heading}")
    print(f"{'ours':34s}{sum(one['right'] for one in ours):7d}{np.median(seconds):9.3f}")
    for name, chosen in (
        ("RANSAC, finer voxels", [sizes[0] for sizes in peers]),
        ("RANSAC, coarser voxels", [sizes[1] for sizes in peers]),
        ("RANSAC, the better of the two", [better(sizes) for sizes in peers]),
    ):
        own = np.array([one["seconds"] for one in chosen])
        ratio = seconds / own
        low, middle, high = np.percentile(ratio, (25, 50, 75))
        found, refused = (np.median(ratio[mask]) if mask.any() else np.nan for mask in (sure, ~sure))
        by_turn = " ".join(f"{one:.2f}" for one in np.median(ratio.reshape(options.turns, -1), axis=1))
        print(
            f"{name:34s}{sum(one['right'] for one in chosen):7d}{np.median(own):9.3f}{middle:7.2f}"
            f"{low:7.2f}{high:7.2f}{found:11.2f}{refused:9.2f}   {by_turn}"
        )


def large(options: argparse.Namespace) -> None:
    """Two clouds of ten million points, made of two small ones: time and memory."""
    from inlier.datasets import make_scans

    rng, scans = np.random.default_rng(0), make_scans(rng=0)
    truth = np.block([[scans.rotation, scans.translation[:, None]], [np.zeros(3), np.ones(1)]])
    clouds = [cloud[rng.integers(len(cloud), size=10**7)] for cloud in (scans.source, scans.target)]
    for cloud in clouds:
        cloud += 0.05 * rng.standard_normal(cloud.shape, dtype=np.float32)
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found, sure = inlier(*clouds)
    seconds, most = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    error = np.nan if found is None else errors(found, truth, scans.source)[0]
    print(f"2 x {len(clouds[0]):,} points: sure {sure}, {error:.3f} degrees off, {seconds:.1f} s")
    print(f"memory at most {most:.2f} GiB, {before:.2f} GiB before the fit")


def figure(results: list[dict[str, Any]], path: Path) -> None:
    """Right, refused and wrong-and-sure against the lesser of the two overlaps, for each method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    edges = np.array([0.0, 0.1, 0.15, 0.25, 0.4, 0.6, 1.0])
    labels = [f"{low:.0%}-{high:.0%}" for low, high in pairwise(edges)]
    methods = list(dict.fromkeys(result["method"] for result in results))
    _, axes = plt.subplots(1, len(methods), figsize=(1 + 5 * len(methods), 3.6), sharey=True, squeeze=False)
    for ax, method in zip(axes[0], methods, strict=True):
        own = [one for one in results if one["method"] == method and one["row"]["expected"] == "yes"]
        least = np.array([min(one["row"]["overlap_source"], one["row"]["overlap_target"]) for one in own])
        right, sure = (np.array([one[key] for one in own]) for key in ("right", "sure"))
        bins = np.digitize(least, edges[1:-1])
        n = np.array([np.count_nonzero(bins == k) for k in range(len(labels))])
        bottom = np.zeros(len(labels))
        kinds = (
            ("right", right & sure, "#4477aa"),
            ("refused", ~sure, "#dddddd"),
            ("wrong and sure", ~right & sure, "#cc3311"),
        )
        for name, mask, colour in kinds:
            share = np.array([np.count_nonzero(mask & (bins == k)) for k in range(len(labels))]) / np.maximum(n, 1)
            ax.bar(labels, share, bottom=bottom, color=colour, label=name)
            bottom += share
        for k, count in enumerate(n):
            ax.text(k, 1.01, str(count), ha="center", va="bottom", fontsize=8)
        ax.set(title=f"{method}\n", xlabel="overlap: lesser share of the two surfaces", ylim=(0, 1.08))
        ax.tick_params(axis="x", labelsize=8)
    axes[0, 0].set_ylabel("share of the pairs (their number above)")
    axes[0, -1].legend(loc="lower right", framealpha=1)
    plt.tight_layout()
    plt.savefig(path, dpi=110)


def negatives(options: argparse.Namespace) -> None:
    """Clouds of different places."""
    tasks = [(options.data, pair, k) for k, pair in enumerate(different_places(options.data, options.count, 77))]
    results = list(over(run_negative, tasks, options.jobs))
    claimed = [result["name"] for result in results if result["sure"]]
    print(f"clouds of different places: {len(claimed)} of {len(results)} called sure", *claimed, sep="\n  ")


def units(options: argparse.Namespace) -> None:
    """The same pairs multiplied and moved."""
    from inlier import CloudRegistration

    warnings.simplefilter("ignore")
    rows = [row for row in index(options.data) if row["expected"] == "yes"][::6]
    changes = {"x 0.001": (1e-3, 0.0), "x 1000": (1e3, 0.0), "moved by 1e6": (1.0, 1e6)}
    worst = dict.fromkeys(changes, (0.0, 0.0))
    same = dict.fromkeys(changes, 0)
    for row in rows:
        source, target, _ = turned(options.data, row, 0)
        fit = CloudRegistration(random_state=0, raise_on_failure=False).fit
        first = fit(source, target)
        before, sure = first.best_guess_ if first.transformation_ is None else first.transformation_, first.success_
        for name, (factor, shift) in changes.items():
            again = fit(factor * source + shift, factor * target - shift)
            motion = again.best_guess_ if again.transformation_ is None else again.transformation_
            expected = before.matrix.copy()
            expected[:3, 3] = factor * before.translation - shift - before.rotation @ np.full(3, shift)
            step = errors(motion.matrix, expected, factor * source + shift)
            same[name] += again.success_ == sure
            worst[name] = max(worst[name][0], step[0]), max(worst[name][1], step[1])
    for name, (degrees, of_extent) in worst.items():
        print(
            f"{name:14s}same verdict in {same[name]} of {len(rows)}; motions differ by {degrees:.2g} degrees and "
            f"{of_extent:.2g} of the extent"
        )


def run_scaled(task: tuple[Path, dict[str, Any], float]) -> dict[str, Any]:
    """A pair with the target in another unit; right is also a scale within 5 %."""
    from inlier import CloudRegistration

    data, row, factor = task
    warnings.simplefilter("ignore")
    source, target, truth = turned(data, row, 0)
    start = time.process_time()
    answer = CloudRegistration(random_state=0, raise_on_failure=False, model="similarity").fit(source, factor * target)
    result = {"row": row, "factor": factor, "sure": answer.success_, "seconds": time.process_time() - start}
    found = answer.transformation_
    if found is None or row["expected"] == "no":
        return {**result, "right": False, "scale": np.nan, "degrees": np.nan}
    back = found.matrix / factor  # R of the scale that was found by the true one
    scale = found.scale / factor
    turned_only = np.block([[found.rotation, back[:3, 3:]], [np.zeros(3), np.ones(1)]])
    degrees, shift = errors(turned_only, truth, source)[0], errors(back, truth, source)[1]
    right = degrees < DEGREES and shift < OF_EXTENT and abs(scale - 1) < OF_EXTENT
    return {**result, "right": right, "scale": scale, "degrees": degrees}


def scales(options: argparse.Namespace) -> None:
    """Pairs in different units, one turn; or clouds of different places with a free scale."""
    if options.negatives:
        tasks = [
            (options.data, pair, k) for k, pair in enumerate(different_places(options.data, options.negatives, 78))
        ]
        results = list(over(partial(run_negative, model="similarity"), tasks, options.jobs))
        claimed = [result["name"] for result in results if result["sure"]]
        print(f"different places, free scale: {len(claimed)} of {len(results)} called sure", *claimed, sep="\n  ")
        return
    rows = [row for row in index(options.data) if not options.only or any(one in row["name"] for one in options.only)]
    for factor in options.factors:
        results = list(over(run_scaled, [(options.data, row, factor) for row in rows], options.jobs))
        heading = f"{'right':>7s}{'refused':>9s}{'wrong+sure':>12s}{'of':>6s}{'seconds':>9s}{'most':>7s}"
        print(f"\n{f'target times {factor:g}':46s}{heading}")
        there = [result for result in results if result["row"]["expected"] == "yes"]
        for family in [*dict.fromkeys(result["row"]["family"] for result in there), None]:
            some = [result for result in there if family in (None, result["row"]["family"])]
            _line(family or "all that overlap", some)
        _line("that do not overlap", [result for result in results if result["row"]["expected"] == "no"])
        off = [abs(result["scale"] - 1) for result in there if result["right"]]
        print(f"scales that are right are off by {np.median(off):.2g} (median), {max(off):.2g} (most)")
        for result in results:
            if result["sure"] and not result["right"]:
                name, degrees, scale = result["row"]["name"], result["degrees"], result["scale"]
                print(f"  sure, not right: {name}, {degrees:.1f} degrees, scale {scale:.3f}")


def fgr(options: argparse.Namespace) -> None:
    """The error of table 1 of Zhou, Park and Koltun (2016), for those of its pairs that there are."""
    from inlier import Registration

    warnings.simplefilter("ignore")
    print(f"{'raw clouds':30s}{'ours':>8s}{'FGR':>8s}{'CZK':>8s}{'truth':>8s}   share with a true pair, published")
    for row in index(options.data):
        if row["name"] not in PUBLISHED:
            continue
        source, target, truth = turned(options.data, row, 0)
        motion, _ = inlier(source, target)
        own = np.nan if motion is None else distance_of_true_pairs(motion, truth, source, target)[0]
        least, share = distance_of_true_pairs(truth, truth, source, target)
        of_fgr, of_czk, published = PUBLISHED[row["name"]]
        print(f"{row['name']:30s}{own:8.4f}{of_fgr:8.4f}{of_czk:8.4f}{least:8.4f}   {share:.4f}, {published:.4f}")
    print(f"\n{'5,000 matches of its features':30s}{'ours':>8s}{'truth':>24s}")
    for path in sorted((options.data.parent / "reg3d").glob("fgr_*.npz")):
        with np.load(path) as file:
            X, Y, R, t = (file[name].astype(float) for name in ("X", "Y", "R", "t"))
        truth, cloud = np.block([[R, t[:, None]], [np.zeros(3), np.ones(1)]]), np.unique(Y, axis=0)
        answer = Registration(random_state=0, raise_on_failure=False).fit(X, Y).transformation_
        own = np.nan if answer is None else distance_of_true_pairs(answer.matrix, truth, X, cloud)[0]
        print(f"{path.stem:30s}{own:8.4f}{distance_of_true_pairs(truth, truth, X, cloud)[0]:24.4f}")


WHAT = {
    "pairs": pairs,
    "negatives": negatives,
    "units": units,
    "scales": scales,
    "fgr": fgr,
    "speed": speed,
    "large": large,
}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(WHAT))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=["inlier"])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--half", choices=("set", "aside"))
    parser.add_argument("--only", nargs="+", help="parts of names of pairs")
    parser.add_argument("--figure", type=Path, help="png of right and wrong-and-sure against overlap")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--negatives", type=int, default=0, help="of scales: so many pairs of different places instead")
    parser.add_argument("--factors", type=float, nargs="+", default=[1000.0, 0.37], help="of scales")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    WHAT[options.what](options)


if __name__ == "__main__":
    main()
