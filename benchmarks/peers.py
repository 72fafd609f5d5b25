"""Registration methods side by side: the same problems, the same noise bound, in one run.

    pip install '.[peers,report]'
    python benchmarks/peers.py grid --sizes 100 1000 --draws 3      # goes on where an earlier run stopped
    python benchmarks/peers.py grid --minutes 240                   # all sizes and methods, ten draws
    python benchmarks/peers.py grid --methods inlier --again        # our own code has changed
    python benchmarks/peers.py noise                                # no real pair at all: who reports a motion?
    python benchmarks/peers.py real                                 # putative matches of scans and photos
    python benchmarks/peers.py real --thin 0.02                     # the same with hardly any real pair left
    python benchmarks/peers.py negatives                            # mistakes in clumps: who claims a motion?
    python benchmarks/peers.py summary                              # peers.csv, peers.txt and peers.png

The grid is n x outlier rate x placement of the outliers (registration_bench/problems.py); the methods and their
settings are in registration_bench/methods.py. A fit that takes longer than --limit seconds is stopped, and its method
is spared the same rate at that size and above. Each method runs in its own process. Seconds are the lesser of clock
and processor time, what a fit takes when nothing else interferes; memory is the highest during a fit less that before
it. For that, memory is given back before a fit, which then takes a millisecond longer: short fits are timed again
afterwards (median of three), and the first times are written down too. Raw rows go to
benchmarks/results/peers_runs.csv (not committed). `real` with all methods writes peers_real.txt. Threads are those that
the packages take; set OMP_NUM_THREADS, OPENBLAS_NUM_THREADS and NUMBA_NUM_THREADS to change it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from registration_bench import grid, negatives, real, table
from registration_bench.methods import METHODS, OURS

RESULTS = Path(__file__).parent / "results"
RUNS = RESULTS / "peers_runs.csv"
WITH_A_SCORE = ["Open3D RANSAC", "KISS-Matcher"]  # peers whose fitness or inlier count might tell
REAL_DATA = Path(__file__).parents[2] / "shared" / "data"


def chosen_methods(words: list[str] | None, everything: list[str]) -> list[str]:
    """Methods whose name contains one of the words."""
    if not words:
        return everything
    chosen = [name for name in METHODS if any(word.lower() in name.lower() for word in words)]
    if not chosen:
        raise SystemExit(f"No method is called {' or '.join(words)}; there are: {', '.join(METHODS)}.")
    return chosen


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("grid", "noise", "negatives", "real", "summary"))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(grid.SIZES))
    parser.add_argument("--methods", nargs="+", help="parts of names; all by default (noise: inlier)")
    parser.add_argument(
        "--again", action="store_true", help="first forget what --methods did before: they have changed"
    )
    parser.add_argument("--draws", type=int, help="default: grid 10, noise 100, negatives 200, real 3")
    parser.add_argument("--seeds", type=int, default=2, help="negatives: turns of each scan pair")
    parser.add_argument("--parts", nargs="+", choices=negatives.PARTS, default=negatives.PARTS, help="of negatives")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one fit")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time; run again to go on")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time; more than one makes times unreliable")
    parser.add_argument("--bound-factors", type=float, nargs="+", default=[1.0, 0.2, 5.0], help="real: times tau")
    parser.add_argument("--thin", type=float, default=1.0, help="real: leave out real pairs until they are this share")
    options = parser.parse_args()
    if options.what == "summary":
        table.summarise(RUNS, RESULTS)
    elif options.what == "negatives":
        methods = chosen_methods(options.methods, [OURS, *WITH_A_SCORE])
        text = negatives.run(REAL_DATA, methods, options.draws or 200, options.seeds, options.jobs, options.parts)
        if not options.methods and len(options.parts) == len(negatives.PARTS):
            (RESULTS / "negatives.txt").write_text(text)
        print(text)
    elif options.what == "real":
        methods = chosen_methods(options.methods, list(METHODS))
        text = real.run(REAL_DATA, methods, options.bound_factors, options.draws or 3, options.limit, options.thin)
        if not options.methods and options.thin == 1:  # a part of the methods does not replace the whole table
            (RESULTS / "peers_real.txt").write_text(text)
        print(text)
    else:
        ours = [name for name in METHODS if name.startswith(OURS)]  # without the bound, and with it
        make, draws = (grid.grid_cells, 10) if options.what == "grid" else (grid.noise_cells, 100)
        methods = chosen_methods(options.methods, list(METHODS) if options.what == "grid" else ours)
        if options.again:
            grid.forget(RUNS, methods)
        cells = list(make(options.sizes, options.draws or draws))
        grid.run(cells, methods, RUNS, options.limit, options.minutes, options.jobs)


if __name__ == "__main__":
    main()
