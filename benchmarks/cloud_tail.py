"""What chance does between clouds of different places: the strengths behind the p-value of `inlier.clouds`.

    python benchmarks/cloud_tail.py collect --count 60 --draw 79     # fits pairs, adds them to the file of strengths
    python benchmarks/cloud_tail.py fit                              # the tail of what the file holds

`collect` fits clouds of different places (`cloud_methods.different_places`; every second pair brought to one size) and
writes for each the strength of the best motion that is determined, its lead counted (`Opinion.strength_with_lead`), and
whether it was called sure. `fit` prints for several shares where the tail starts, its mean excess, and the p-values
that today's constants (`second_opinion._TAIL_...`) give: if these are right, a share p of the pairs has at most p.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

from cloud_methods import different_places  # noqa: E402
from inlier import CloudRegistration  # noqa: E402
from inlier.clouds import second_opinion  # noqa: E402

DATA = Path(__file__).parents[2] / "shared" / "data" / "clouds"
STRENGTHS = Path(__file__).parent / "results" / "cloud_strengths.csv"
COLUMNS = ("draw", "number", "source", "target", "strength", "is_sure", "has_rival")
SHARES = (0.5, 0.3, 0.2, 0.15, 0.1)


def fitted(data: Path, draw: int, number: int, pair: tuple[str, str, str, str]) -> dict[str, object]:
    """One pair of clouds of different places."""
    first, end, second, other = pair
    with np.load(data / f"{first}.npz") as file:
        source = file[end].astype(float)
    with np.load(data / f"{second}.npz") as file:
        target = file[other].astype(float) @ Rotation.random(rng=np.random.default_rng(number)).as_matrix().T
    if number % 2:
        target *= np.sqrt(source.var(axis=0).sum() / target.var(axis=0).sum())
    found = CloudRegistration(random_state=0, raise_on_failure=False).fit(source, target)
    determined = [one["strength"] for one in found.evidence_ if one["undetermined"] is None]
    strength = f"{determined[0]:.4f}" if determined else ""
    names = {"source": f"{first} {end}", "target": f"{second} {other}"}
    told = {"strength": strength, "is_sure": int(found.success_), "has_rival": int(found.runner_up_ is not None)}
    return {"draw": draw, "number": number, **names, **told}


def collect(options: argparse.Namespace) -> None:
    """Fit some pairs, and add a line for each to the file."""
    warnings.simplefilter("ignore")
    is_new, sure, seconds = not options.file.exists(), [], []
    with options.file.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        if is_new:
            writer.writeheader()
        for number, pair in enumerate(different_places(options.data, options.count, options.draw)):
            start = time.process_time()
            row = fitted(options.data, options.draw, number, pair)
            seconds.append(time.process_time() - start)
            writer.writerow(row)
            stream.flush()
            sure += [row] if row["is_sure"] else []
    print(f"clouds of different places, draw {options.draw}: {len(sure)} of {options.count} called sure")
    for row in sure:
        print(f"  {row['source']}, {row['target']}: strength {row['strength']}")
    print(f"processor seconds: median {np.median(seconds):.2f}, most {max(seconds):.2f}")


def fit(options: argparse.Namespace) -> None:
    """Say what the tail looks like, and what today's constants make of it."""
    with options.file.open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if not options.draws or int(row["draw"]) in options.draws]
    strengths = np.array([float(row["strength"]) for row in rows if row["strength"]])
    print(f"{len(rows)} pairs, {len(strengths)} with a motion that is determined")
    print(f"{'share':>8s}{'start':>8s}{'mean excess':>13s}")
    for share in SHARES:
        start = float(np.quantile(strengths, 1 - share))
        print(f"{share:8.2f}{start:8.2f}{(strengths[strengths > start] - start).mean():13.2f}")
    start, share, length = second_opinion._TAIL_START, second_opinion._TAIL_SHARE, second_opinion._TAIL_LENGTH
    p_values = np.minimum(1, share * np.exp(-(strengths - start) / length))
    print(f"today: start {start}, share {share}, length {length}")
    for level in (0.1, 0.05, 0.02, 0.01, 0.005):
        n = int((p_values <= level).sum())
        print(f"  p <= {level:<6g}{n:4d} of {len(strengths)} ({n / len(strengths):.3f})")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("collect", "fit"))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--file", type=Path, default=STRENGTHS)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--draw", type=int, default=79)
    parser.add_argument("--draws", type=int, nargs="+", help="of fit: only these")
    options = parser.parse_args()
    {"collect": collect, "fit": fit}[options.what](options)


if __name__ == "__main__":
    main()
