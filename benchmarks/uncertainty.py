"""How far motions are off, beside what `uncertainty_` says of them.

    python benchmarks/uncertainty.py independent [--draws 400]  # right matches with independent noise, and wrong ones
    python benchmarks/uncertainty.py real --data FOLDER         # real matches with a known motion, turned at random
    python benchmarks/uncertainty.py time                       # what it takes to work them out

`independent` prints how often the true motion lies in the joint 95 % region, in single 95 % intervals, and the rms of
errors over their standard errors. `real` prints the latter for turns and for shifts at the centroid, of fits within 5
degrees of the truth, with neighbours counted as one (as it is) and with each pair for itself; "and truth" adds what the
truth itself is off by, as far as an ICP from it tells (`icp_check_deg`, `icp_check_shift` in the index of the clouds; a
third of their squares for each axis). Kinect frames and fused fragments stand apart: their truth is off by more than
the fits. So do truths that were computed from the same clouds. The side of the cells was chosen on `--part first`,
every other problem of `matches`, and on FGR.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from unittest import mock

import numpy as np
from scipy.linalg import polar
from scipy.spatial.transform import Rotation

from inlier import Registration, SimilarityTransformation
from inlier.consensus import uncertainty
from inlier.consensus.refine import NearPairs
from inlier.consensus.uncertainty import MotionUncertainty, motion_uncertainty

CASES = [(3, "rigid"), (2, "rigid"), (3, "similarity")]
SIZES = [(10, 50), (20, 100), (200, 1000)]  # right matches, all matches
NOISE = 0.01  # of points on a sphere of radius 0.4
RIGHT = 5.0  # degrees


def independent(draws: int) -> None:
    """How often regions and intervals hold the truth."""
    print(f"{draws} draws each; points on a sphere of radius 0.4, noise {NOISE}, wrong matches in a cube of side 1")
    print("d model       right  all  found  given  joint  single  rms z  wide cells  median error of turns, degrees")
    for d, model in CASES:
        for n_right, n in SIZES:
            found = [fit for fit in (_draw(d, model, n_right, n, seed) for seed in range(draws)) if fit is not None]
            given = [(errors, truth) for errors, truth in found if errors is not None]
            joint = np.mean([errors.covers(truth) for errors, truth in given])
            z = np.array([_z_scores(errors, truth) for errors, truth in given])
            cells = sum(errors.cluster_side > 0 for errors, _ in given)
            turn = np.median([np.mean(errors.rotation) for errors, _ in given])
            print(
                f"{d} {model:10s} {n_right:6d} {n:4d} {len(found):6d} {len(given):6d}  {joint:5.3f}  "
                f"{np.mean(np.abs(z) <= 1.96):6.3f}  {np.sqrt(np.mean(z**2)):5.2f}  {cells:10d}  {turn:.2f}",
                flush=True,
            )


def _draw(
    d: int, model: str, n_right: int, n: int, seed: int
) -> tuple[MotionUncertainty | None, SimilarityTransformation] | None:
    rng = np.random.default_rng([seed, n_right, d])
    x = rng.normal(size=(n, d))
    x *= 0.4 / np.linalg.norm(x, axis=1, keepdims=True)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    turn[:, 0] *= np.linalg.det(turn)
    scale = 1.7 if model == "similarity" else 1.0
    truth = SimilarityTransformation(turn, rng.normal(size=d), scale, model)
    y = truth(x) + scale * NOISE * rng.normal(size=(n, d))
    y[n_right:] = truth.translation + scale * rng.uniform(-0.5, 0.5, (n - n_right, d))
    fit = Registration(model, random_state=seed, raise_on_failure=False).fit(x, y)
    return (fit.uncertainty_, truth) if fit.success_ else None


def _z_scores(errors: MotionUncertainty, truth: SimilarityTransformation) -> np.ndarray:
    difference = errors._difference(truth)
    assert difference is not None
    return difference / np.sqrt(np.diag(errors.covariance_at_centre))


def real(data: Path, part: str, seeds: int) -> None:
    """Errors over their standard errors on real matches."""
    rows: dict[str, list[np.ndarray]] = defaultdict(list)
    n_fits = n_right = 0
    print("problem                        seed  degrees off  cells as wide as  G/2 + kappa  z of turn, shift  by pairs")
    for kind, name, x, y, truth, scatter in _problems(data, part):
        for seed in range(seeds):
            turn = Rotation.random(random_state=seed + 100).as_matrix()
            turned = SimilarityTransformation(turn @ polar(truth[:3, :3])[0], turn @ truth[:3, 3], model="rigid")
            fit = Registration(random_state=seed, raise_on_failure=False).fit(x, y @ turn.T)
            n_fits += 1
            if not fit.success_:
                continue
            off = np.degrees(Rotation.from_matrix(fit.transformation_.rotation.T @ turned.rotation).magnitude())
            if off > RIGHT:
                continue
            n_right += 1
            with mock.patch.object(uncertainty, "cell_side", return_value=0.0):
                by_pairs = motion_uncertainty(fit.transformation_, fit._near_pairs)
            errors = fit.uncertainty_
            if errors is None or by_pairs is None:
                print(f"{name:30s} {seed:4d} {off:12.2f}  no errors are given")
                continue
            z, alone = _z_scores(errors, turned), _z_scores(by_pairs, turned)
            at_origin = (turned.translation - fit.transformation_.translation) / errors.translation
            both = z / np.sqrt(1 + scatter**2 / np.diag(errors.covariance_at_centre))
            in_region = [errors.covers(turned), by_pairs.covers(turned)]
            rows[kind].append(np.concatenate([z, alone, at_origin, in_region, both]))
            print(
                f"{name:30s} {seed:4d} {off:12.2f} {errors.cluster_side / _spread(y):17.3f} "
                f"{errors.degrees_of_freedom:12.0f}    {_rms(z[:3]):5.2f}  {_rms(z[3:]):5.2f}   "
                f"{_rms(alone[:3]):5.2f} {_rms(alone[3:]):5.2f}",
                flush=True,
            )
    print(f"\n{n_right} of {n_fits} fits are within {RIGHT:g} degrees")
    print(
        "rms z                        fits  turn  shift  translation  and truth   in the region |  each pair for itself"
    )
    rows["FGR and published together"] = rows["FGR"] + rows["published"]
    for kind, kept in rows.items():
        if kept:
            v = np.array(kept)
            alone = f"{_rms(v[:, 6:9]):.2f} {_rms(v[:, 9:12]):.2f}, {v[:, 16].mean():.2f} in the region"
            print(
                f"{kind:28s} {len(v):4d}  {_rms(v[:, :3]):4.2f}  {_rms(v[:, 3:6]):5.2f}  {_rms(v[:, 12:15]):11.2f}  "
                f"{_rms(v[:, 17:20]):.2f} {_rms(v[:, 20:]):.2f}  {v[:, 15].mean():14.2f} |  {alone}"
            )


def _spread(points: np.ndarray) -> float:
    """Spread of the points: what lengths are printed in."""
    return float(np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1))))


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _problems(data: Path, part: str) -> Iterator[tuple[str, str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Kind, name, x, y, the true motion, and how far that is off: turns and shifts along three axes."""
    clouds = {row["name"]: row for row in json.loads((data / "clouds" / "index.json").read_text())}
    matches = sorted((data / "matches").glob("pos_*.npz"))
    for path in matches[slice(*{"first": (0, None, 2), "second": (1, None, 2), "all": (None,)}[part])]:
        stored, name = np.load(path), path.stem.removeprefix("pos_")
        kind = "computed" if "computed" in clouds[name]["truth_class"] else clouds[name]["truth_class"]
        if name.startswith(("kinect", "fragment")):
            kind = "Kinect and fragments"
        degrees, shift = (clouds[name].get(f"icp_check_{what}") or 0.0 for what in ("deg", "shift"))
        scatter = np.repeat([np.radians(degrees), shift], 3) / np.sqrt(3)
        yield kind, name, stored["X"].astype(float), stored["Y"].astype(float), stored["transformation"], scatter
    for path in sorted((data / "reg3d").glob("fgr_*.npz")):
        stored, truth = np.load(path), np.eye(4)
        truth[:3, :3], truth[:3, 3] = stored["R"], stored["t"]
        yield "FGR", path.stem, stored["X"].astype(float), stored["Y"].astype(float), truth, np.zeros(6)


def times() -> None:
    """Processor time of one thread."""
    rng = np.random.default_rng(0)
    print("near pairs  errors that correlate  milliseconds of one core")
    for n in (100, 1000, 100_000):
        for length in (0.0, 0.2):
            x = rng.normal(size=(n, 3))
            noise = 0.01 * rng.normal(size=x.shape)
            if length:
                noise += 0.01 * np.sin(x[:, [1, 2, 0]] / length)
            motion = SimilarityTransformation(np.eye(3), model="rigid")
            near = NearPairs.among(x, x + noise, np.ones(n), np.linalg.norm(noise, axis=1), 0.03)
            taken = []
            for _ in range(7):
                start = process_time()
                motion_uncertainty(motion, near)
                taken.append(process_time() - start)
            print(f"{n:10d}  {'yes' if length else 'no':>21s}  {1000 * min(taken):24.1f}")


def main() -> None:
    """Read the arguments, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["independent", "real", "time"])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--part", choices=["first", "second", "all"], default="all")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "independent":
        independent(options.draws)
    elif options.what == "real":
        if not (options.data / "matches").is_dir():
            parser.error(f"{options.data} has no folder matches: name the folder of the real data with --data.")
        real(options.data, options.part, options.seeds)
    else:
        times()


if __name__ == "__main__":
    main()
