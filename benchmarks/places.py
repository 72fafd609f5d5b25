"""How much is the evidence of places worth where neighbours are matched to neighbours?

    python benchmarks/places.py                 # every other problem, those that the share was chosen on
    python benchmarks/places.py --half aside    # the others

Places among clumps of mistakes are not quite independent of each other: floors lie on floors, edges on edges. So the
logarithm of their chance counts for a share (`inlier.consensus.places`). Here the feature matches of ../shared/data are
fitted with several shares: how many motions are right, wrong and sure, and claimed where there is none. Right: within 5
degrees, and 5 % of the extent at the centre.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from inlier import Registration  # noqa: E402
from inlier.consensus import places  # noqa: E402

DATA = Path(__file__).parents[2] / "shared" / "data" / "matches"
SHARES = (1.0, 0.5, 0.2, 0.1)
DEGREES, OF_EXTENT = 5.0, 0.05


def verdict(path: Path, seed: int) -> str:
    """What a fit to one problem comes to."""
    with np.load(path) as file:
        X, Y, truth = (file[name].astype(float) for name in ("X", "Y", "transformation"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Registration(random_state=seed, raise_on_failure=False).fit(X, Y).transformation_
    if found is None:
        return "refused" if np.isfinite(truth).all() else "not claimed"
    if not np.isfinite(truth).all():
        return "claimed"
    cosine = (np.trace(found.rotation @ truth[:3, :3].T) - 1) / 2
    centre = X.mean(axis=0)
    off = np.linalg.norm(found(centre[None])[0] - truth[:3, :3] @ centre - truth[:3, 3])
    is_right = np.degrees(np.arccos(np.clip(cosine, -1, 1))) < DEGREES and off < OF_EXTENT * np.ptp(X, axis=0).max()
    return "right" if is_right else "wrong and sure"


def main() -> None:
    """Read the command line, fit, and print a line a share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--half", choices=("set", "aside"), default="set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    options = parser.parse_args()
    problems = sorted(options.data.glob("*.npz"))[options.half == "aside" :: 2]
    print(f"{'share':>8s}{'right':>8s}{'wrong':>8s}{'refused':>9s}{'claimed where there is none':>30s}")
    for share in options.shares:
        places._IN_CLUMPS = share
        found = [verdict(path, options.seed) for path in problems]
        right, wrong, refused, claimed, none = map(
            found.count, ("right", "wrong and sure", "refused", "claimed", "not claimed")
        )
        print(f"{share:8.2f}{right:8d}{wrong:8d}{refused:9d}{claimed:18d} of {claimed + none:d}", flush=True)


if __name__ == "__main__":
    main()
