"""False discoveries and recall over a grid of problems: the paper's rules, Procrustes and the calibrated matcher.

    python benchmarks/calibration.py grid --seeds 20 --jobs 2     # hours; resumes where it was stopped
    python benchmarks/calibration.py grid --device cuda --sizes 5000 --dimensions 1000    # calibrated fits on a GPU
    python benchmarks/calibration.py real                         # word vectors, connectomes, the brain table
    python benchmarks/calibration.py summary                      # what the finished runs of the grid show
    python benchmarks/calibration.py doubtful                     # new draws where it shows too many false discoveries
    python benchmarks/calibration.py speed                        # n = 1,000,000, d = 6 against one row-sum pass

The grid is d x n x inlier fraction x noise x distribution. A combination whose first calibrated fit takes over ten
seconds is left out, and listed by `summary`. Raw rows go to benchmarks/results/calibration_runs.csv, and those whose
calibrated fit was made on a GPU to calibration_runs_cuda.csv (neither is committed); `summary` writes
benchmarks/results/calibration.csv and calibration.png. Seconds are those of one processor core; of fits on a GPU, which
the jobs share, they are what the clock shows. Several jobs share it best while `nvidia-cuda-mps-control -d` runs.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from inlier import CalibratedMatcher, EigenvectorMatcher, GramOverlap, RowSumMatcher
from inlier.datasets import load_brain, make_gaussian_pairs, make_mispaired
from inlier.estimators._base import prepare_pairs
from inlier.overlap.two_means import optimal_cut
from inlier.plotting import as_png, new_figure
from timing import seconds

RESULTS = Path(__file__).parent / "results"
RUNS = {"host": RESULTS / "calibration_runs.csv", "cuda": RESULTS / "calibration_runs_cuda.csv"}
REAL_DATA = Path(__file__).parents[2] / "shared" / "data" / "highd"

SIZES = (200, 1000, 5000)
DIMENSIONS = (3, 6, 20, 50, 300, 1000)
FRACTIONS = (1.0, 0.8, 0.5, 0.2, 0.1, 0.05, 0.02, 0.0)
NOISES = (0.0, 0.05, 0.3)
DISTRIBUTIONS = ("Gaussian", "anisotropic", "heavy-tailed")
SLOWEST_FIT = 10.0
BATCH = 8  # runs of each job between two writings
CELL = ("n", "d", "fraction", "noise", "distribution")
MEASURES = ("false", "recall", "any", "fraction_error", "seconds")
TOLERATED = 1.2  # times alpha: false discoveries on average, in a cell with so many discoveries
ENOUGH_DISCOVERIES = 20
NEW_DRAWS = range(1000, 1100)  # seeds of the draws that decide where the grid leaves a doubt
METHODS = ("row sum, k-means", "eigenvector, k-means", "Procrustes, k-means", "calibrated 0.01", "calibrated 0.05")


def draw_pairs(n, d, fraction, noise, distribution, seed):
    """Real pairs are rotated copies with noise; wrong ones have an independent draw as their partner."""
    rng = np.random.default_rng([seed, n, d, round(1000 * fraction), round(1000 * noise), len(distribution)])

    def rows(count):
        if distribution == "heavy-tailed":
            return rng.standard_t(3, size=(count, d)) / np.sqrt(3)  # unit variance
        scale = 1 / np.arange(1, d + 1) if distribution == "anisotropic" else np.ones(d)
        return rng.standard_normal((count, d)) * scale

    real = np.zeros(n, dtype=bool)
    real[rng.permutation(n)[: round(fraction * n)]] = True
    X, partner = rows(n), rows(n)
    partner[real] = X[real]
    scale = np.sqrt(np.mean(partner**2))  # noise is relative to the typical coordinate
    rotation = ortho_group.rvs(d, random_state=rng)
    return X, partner @ rotation.T + noise * scale * rng.standard_normal((n, d)), real


def procrustes_mask(X, Y):
    """Orthogonal Procrustes on all pairs, then k-means on the residuals."""
    x, y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    rotation, _ = orthogonal_procrustes(x, y)
    closeness = -np.linalg.norm(y - x @ rotation, axis=1)
    return closeness >= optimal_cut(closeness)


def judge(mask, real, fraction_error, seconds):
    """One row of measures."""
    false = (mask & ~real).sum() / max(mask.sum(), 1)
    recall = (mask & real).sum() / real.sum() if real.any() else np.nan
    return [float(false), float(recall), float(mask.any()), float(fraction_error), float(seconds)]


def calibrated_fit(X, Y, seed, device):
    """Fit on a device: q-values, inlier fraction, seconds."""
    if device == "host":
        start = process_time()  # of this process alone: the runs share their cores with others
        matcher = CalibratedMatcher(random_state=seed).fit(X, Y)
        return matcher.q_values_, matcher.inlier_fraction_, process_time() - start
    from device_tables import put_on  # needs torch

    X, Y = put_on(device, X), put_on(device, Y)
    start = perf_counter()
    matcher = CalibratedMatcher(random_state=seed).fit(X, Y)
    q_values = matcher.q_values_.cpu().numpy()
    return q_values, matcher.inlier_fraction_, perf_counter() - start


def run_cell(n, d, fraction, noise, distribution, seed, device="host", with_others=True):
    """Methods on one draw, the calibrated fit on a device: {method: measures}."""
    X, Y, real = draw_pairs(n, d, fraction, noise, distribution, seed)
    rows = {}
    q_values, found, seconds = calibrated_fit(X, Y, seed, device)
    for alpha in (0.01, 0.05):
        rows[f"calibrated {alpha}"] = judge(q_values <= alpha, real, found - fraction, seconds)
    rules = {
        "row sum, k-means": lambda: RowSumMatcher().fit(X, Y).inlier_mask_,
        "eigenvector, k-means": lambda: EigenvectorMatcher().fit(X, Y).inlier_mask_,
        "Procrustes, k-means": lambda: procrustes_mask(X, Y),
    }
    for name, rule in rules.items() if with_others else ():
        start = process_time()
        mask = rule()
        rows[name] = judge(mask, real, mask.mean() - fraction, process_time() - start)
    return rows


def grid_runs(seeds: int, sizes=SIZES, dimensions=DIMENSIONS) -> Iterator[tuple]:
    """All (cell, seed), a few seeds of every cell before more of any, small problems first."""
    cells = list(itertools.product(sizes, dimensions, FRACTIONS, NOISES, DISTRIBUTIONS))
    cells.sort(key=lambda cell: (cell[0] * min(cell[1], cell[0])) * cell[1])
    for first in range(0, seeds, 4):
        for cell in cells:
            for seed in range(first, min(first + 4, seeds)):
                yield (*cell, seed)


def grid(runs: Iterator[tuple], jobs: int, minutes: float, device: str, seeds_of_others: int) -> None:
    """Run what is not in a file of runs yet, until the time is up; the other methods for the first seeds alone."""
    done, slow = finished_runs(device)
    done = done.union(*(finished_runs(other)[0] for other in RUNS))
    deadline = perf_counter() + 60 * minutes
    todo = [run for run in runs if run not in done]
    print(f"{len(done)} runs are there, {len(todo)} to do")
    RESULTS.mkdir(exist_ok=True)
    fresh = not RUNS[device].exists()
    with RUNS[device].open("a", newline="") as stream, Parallel(jobs) as parallel:
        writer = csv.writer(stream)
        if fresh:
            writer.writerow([*CELL, "seed", "method", *MEASURES])
        while todo and perf_counter() < deadline:
            batch, todo = todo[: BATCH * jobs], todo[BATCH * jobs :]
            batch = [run for run in batch if run[:2] not in slow]
            calls = (delayed(run_cell)(*run, device, run[5] < seeds_of_others) for run in batch)
            for run, rows in zip(batch, parallel(calls), strict=True):
                for method, measures in rows.items():
                    writer.writerow([*run, method, *measures])
                if rows["calibrated 0.01"][-1] > SLOWEST_FIT:
                    slow.add(run[:2])
            stream.flush()


def finished_runs(device: str) -> tuple[set[tuple], set[tuple]]:
    """Runs in the file of a device, and the (n, d) whose fits take too long there."""
    done, slow = set(), set()
    for row in read_runs(device):
        done.add(row[:6])
        if row[6] == "calibrated 0.01" and row[-1] > SLOWEST_FIT:
            slow.add(row[:2])
    return done, slow


def read_runs(device: str) -> list[tuple]:
    """Rows of a file of runs with their types."""
    if not RUNS[device].exists():
        return []
    with RUNS[device].open(newline="") as stream:
        _, *rows = csv.reader(stream)
    return [
        (int(r[0]), int(r[1]), float(r[2]), float(r[3]), r[4], int(r[5]), r[6], *(float(value) for value in r[7:]))
        for r in rows
    ]


def summary() -> None:
    """Average the runs per cell and method, write the table and the figure, print what matters."""
    host, cuda = finished_runs("host"), finished_runs("cuda")
    only_cuda = cuda[0] - host[0]
    groups = all_runs(only_cuda)
    table = {key: (len(values), *np.mean(values, axis=0)) for key, values in groups.items()}
    for key, clock in seconds_on_cuda().items():
        table[key] = (*table[key][:-1], clock)
    with (RESULTS / "calibration.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*CELL, "method", "runs", *MEASURES])
        writer.writerows([*key, values[0], *(f"{value:.4f}" for value in values[1:])] for key, values in table.items())
    for alpha in (0.01, 0.05):
        print_claims(table, groups, alpha)
    for (n, d), there in sorted(Counter(run[:2] for run in only_cuda).items()):
        print(f"calibrated fits on a GPU, and their seconds: n={n} d={d}, {there} of the runs")
    slow = sorted(host[1] - {run[:2] for run in only_cuda})
    print(f"left out, a fit takes over {SLOWEST_FIT:.0f} s: " + (", ".join(f"n={n} d={d}" for n, d in slow) or "none"))
    (RESULTS / "calibration.png").write_bytes(as_png(heat_maps(table), dpi=110))


def all_runs(only_cuda: set[tuple]) -> dict[tuple, list]:
    """Measures of the runs of each cell and method."""
    groups: dict[tuple, list] = {}
    for row in itertools.chain(read_runs("host"), (row for row in read_runs("cuda") if row[:6] in only_cuda)):
        groups.setdefault((*row[:5], row[6]), []).append(row[7:])
    if not groups:
        raise SystemExit("There are no runs to average. Make some first: python benchmarks/calibration.py grid")
    return groups


def doubtful(jobs: int) -> None:
    """Where the grid's average is above 1.2 alpha, by bad luck or not: a hundred new draws decide."""
    with (RESULTS / "calibration.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    print("   n     d  real  noise  distribution  alpha | false, grid | false, 100 new draws")
    for row, alpha in itertools.product(rows, (0.01, 0.05)):
        cell = int(row["n"]), int(row["d"]), float(row["fraction"]), float(row["noise"]), row["distribution"]
        false, recall = float(row["false"]), float(row["recall"])
        method = f"calibrated {alpha}"
        if row["method"] != method or not has_too_many(cell, false, recall, alpha):
            continue
        runs = Parallel(jobs)(delayed(run_cell)(*cell, seed, "host", False) for seed in NEW_DRAWS)
        new = np.array([run[method][0] for run in runs])
        print(
            f"{cell[0]:4d} {cell[1]:5d} {cell[2]:5g} {cell[3]:6g}  {cell[4]:12s} {alpha:6g} | {false:11.4f} | "
            f"{new.mean():.4f} +- {new.std(ddof=1) / np.sqrt(new.size):.4f}",
            flush=True,
        )


def has_too_many(cell, false: float, recall: float, alpha: float) -> bool:
    """Whether a cell with enough discoveries has more false ones than is tolerated."""
    return discoveries(cell, recall) >= ENOUGH_DISCOVERIES and false > TOLERATED * alpha


def discoveries(cell, recall: float) -> float:
    """Expected number of real pairs that are found."""
    n, _, fraction = cell[:3]
    return n * fraction * recall if fraction > 0 else 0.0


def seconds_on_cuda() -> dict[tuple, float]:
    """Mean seconds of the calibrated fits on a GPU: processor seconds and these have no common mean."""
    clocks: dict[tuple, list] = {}
    for row in read_runs("cuda"):
        if row[6].startswith("calibrated"):
            clocks.setdefault((*row[:5], row[6]), []).append(row[-1])
    return {key: float(np.mean(values)) for key, values in clocks.items()}


def print_claims(table, groups, alpha) -> None:
    """The figures that the documentation quotes."""
    method = f"calibrated {alpha}"
    cells = {key: values for key, values in table.items() if key[-1] == method}
    false = [values[1] for key, values in cells.items() if discoveries(key, values[2]) >= ENOUGH_DISCOVERIES]
    over = [key[:5] for key, values in cells.items() if has_too_many(key, values[1], values[2], alpha)]
    beyond_noise = [key for key in over if exceeds(groups[(*key, method)], TOLERATED * alpha)]
    print(f"alpha = {alpha}: {len(cells)} cells, {min(v[0] for v in cells.values())} or more runs each")
    print(f"  mean false discovery proportion {np.mean([v[1] for v in cells.values()]):.4f} over all cells,")
    print(
        f"  {np.mean(false):.4f} over the {len(false)} cells with 20 discoveries or more; there it is above 1.2 alpha"
    )
    print(
        f"  in {len(over)} cells, in {len(beyond_noise)} of them by more than two standard errors: {beyond_noise[:8]}"
    )
    nothing = [values[3] for key, values in cells.items() if key[2] == 0]
    print(f"  inlier fraction 0: no discovery in {1 - np.mean(nothing):.1%} of the runs")
    everything = [values[2] for key, values in cells.items() if key[2] == 1]
    print(f"  inlier fraction 1: {np.mean(everything):.2%} kept, {min(everything):.2%} in the worst cell")
    errors = [abs(values[4]) for key, values in cells.items() if key[0] >= 1000]
    print(f"  inlier fraction, n >= 1000: mean error below 0.03 in {np.mean(np.array(errors) < 0.03):.1%} of the cells")


def exceeds(rows, bound: float) -> bool:
    """Whether the mean of the false discovery proportion is above a bound by more than two standard errors."""
    values = np.array([row[0] for row in rows])
    return bool(values.mean() - 2 * values.std(ddof=1) / np.sqrt(values.size) > bound) if values.size > 1 else False


def heat_maps(table):
    """False discoveries and recall by method, averaged over noise and distribution."""
    shown = METHODS[:4]
    figure = new_figure(figsize=(15, 8.5))
    axes = figure.subplots(2, len(shown), sharex=True, sharey=True)
    rows = [(n, d) for n in SIZES for d in DIMENSIONS]
    for (line, name, colours), column in itertools.product(
        ((0, "wrong among the accepted", "magma_r"), (1, "real pairs found", "viridis")), range(len(shown))
    ):
        picture = np.full((len(rows), len(FRACTIONS)), np.nan)
        for (i, (n, d)), (j, fraction) in itertools.product(enumerate(rows), enumerate(FRACTIONS)):
            values = [v[1 + line] for k, v in table.items() if k[:3] == (n, d, fraction) and k[-1] == shown[column]]
            if values and np.isfinite(values).any():
                picture[i, j] = np.nanmean(values)
        ax = axes[line, column]
        ax.set_facecolor("#DDDDDD")  # not run, or no real pair to find
        image = ax.imshow(picture, vmin=0, vmax=1, cmap=colours, aspect="auto")
        ax.set_title(f"{shown[column]}\n{name}", fontsize=10)
        ax.set_xticks(range(len(FRACTIONS)), [f"{f:g}" for f in FRACTIONS])
        ax.set_yticks(range(len(rows)), [f"n={n} d={d}" for n, d in rows], fontsize=8)
        for y in (5.5, 11.5):
            ax.axhline(y, color="white", linewidth=2)
        if line == 1:
            ax.set_xlabel("share of real pairs")
        if column == len(shown) - 1:
            figure.colorbar(image, ax=axes[line, :].tolist(), shrink=0.8)
    return figure


def real() -> None:
    """Word vectors, connectomes and the brain table, with planted wrong pairs."""
    print(f"{'data':42s} {'real':>5} | {'alpha = 0.01':^17} | {'alpha = 0.05':^17} | fraction")
    print(f"{'':42s} {'':5} | {'false':>8} {'found':>8} | {'false':>8} {'found':>8} | found")
    for name, make in real_problems():
        for fraction in (1.0, 0.8, 0.5, 0.2, 0.0):
            rows = []
            for seed in range(10):
                X, Y, truth = make(fraction, seed)
                matcher = CalibratedMatcher(random_state=seed).fit(X, Y)
                rows.append(
                    [
                        *judge(matcher.q_values_ <= 0.01, truth, 0, 0)[:2],
                        *judge(matcher.q_values_ <= 0.05, truth, 0, 0)[:2],
                        matcher.inlier_fraction_,
                    ]
                )
            cells = np.mean(rows, axis=0)
            print(
                f"{name:42s} {fraction:5.2f} | {cells[0]:8.4f} {cells[1]:8.3f} | {cells[2]:8.4f} {cells[3]:8.3f} "
                f"| {cells[4]:.3f}"
            )


def real_problems():
    """(name, function from fraction and seed to X, Y, truth)."""
    brain = load_brain().features

    def brain_problem(fraction, seed):
        data = make_mispaired(brain, 2000, fraction, rng=seed)
        return data.X, data.Y, data.inlier_mask

    yield "brain table, n = 2000", brain_problem
    if not REAL_DATA.is_dir():
        print(f"(word vectors and connectomes are left out: {REAL_DATA.name} is not beside the project)")
        return
    for path in sorted(REAL_DATA.glob("*.npz")):
        with np.load(path) as arrays:
            X, Y = arrays["X"].astype(float), arrays["Y"].astype(float)

        def problem(fraction, seed, X=X, Y=Y):
            rng = np.random.default_rng(seed)
            wrong = rng.permutation(len(X))[: round((1 - fraction) * len(X))]
            partner = np.arange(len(X))
            partner[wrong] = np.roll(wrong, 1)
            return X, Y[partner], partner == np.arange(len(X))

        yield path.stem, problem


def speed() -> None:
    """Time of a calibrated fit over that of one row-sum pass, from raw rows, in one run."""
    data = make_gaussian_pairs(1_000_000, 6, 0.3, noise=0.05, rng=0)

    one_pass = seconds(lambda: GramOverlap.from_pairs(prepare_pairs(data.X, data.Y)).row_sums(), 20)
    fit = seconds(lambda: CalibratedMatcher(random_state=0).fit(data.X, data.Y), 4)
    print(f"n = 1,000,000, d = 6: calibrated fit / row-sum pass = {fit / one_pass:.1f}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("grid", "real", "summary", "doubtful", "speed"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seeds-of-others", type=int, default=1000, help="of methods that are not calibrated")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="only these n")
    parser.add_argument("--dimensions", type=int, nargs="+", default=DIMENSIONS, help="only these d")
    parser.add_argument("--device", choices=tuple(RUNS), default="host", help="where the calibrated fits are made")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time; run again to go on")
    arguments = parser.parse_args()
    if arguments.what == "grid":
        runs = grid_runs(arguments.seeds, arguments.sizes, arguments.dimensions)
        grid(runs, arguments.jobs, arguments.minutes, arguments.device, arguments.seeds_of_others)
    elif arguments.what == "doubtful":
        doubtful(arguments.jobs)
    else:
        {"real": real, "summary": summary, "speed": speed}[arguments.what]()


if __name__ == "__main__":
    main()
