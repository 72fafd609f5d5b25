"""Tables as people have them: dependent rows, replicates, second maps, failed samples, gaps, few rows.

    python benchmarks/tables.py real --seeds 10          # ../shared/data/tables with a fifth of the pairs wrong
    python benchmarks/tables.py clumps --seeds 30        # mistakes inside clusters, between neighbours, of replicates
    python benchmarks/tables.py independent --seeds 10   # how often independent data are warned of
    python benchmarks/tables.py gaps --seeds 10          # cells missing at random, in blocks, informatively
    python benchmarks/tables.py copies --seeds 60        # a noisy copy of a row beside its owner
    python benchmarks/tables.py coverage --seeds 30      # the lower bound on the share of real pairs
    python benchmarks/tables.py look-alikes --seeds 5    # swaps between the most similar rows
    python benchmarks/tables.py speed                    # 500 x 5,000 beside the SVD of both tables
    python benchmarks/tables.py large                    # 100,000 x 300 beside 1,000,000 x 300; 3 GB of memory

Every line is a mean over the seeds: the share of wrong pairs among the accepted (FDP), the share of real pairs that is
accepted (recall) and that is certain, the share of wrong pairs among the certain (wrong), the estimated share of real
pairs, how often the lower bound on it holds, how often there was a DependenceWarning, and how well scores could tell at
all: the chance that a real pair scores higher than a wrong one, by the matcher's scores (AUC) and, in `clumps`, by
residuals of the map of the real pairs, which nobody knows (best).
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.stats import ortho_group
from sklearn.metrics import roc_auc_score

from calibration import DISTRIBUTIONS, draw_pairs
from inlier import CalibratedMatcher
from inlier.exceptions import DependenceWarning
from timing import of_each, seconds

REAL_TABLES = Path(__file__).parents[2] / "shared" / "data" / "tables"
WRONG = 0.2  # of the pairs of a real table
MEASURES = ("FDP", "recall", "certain", "wrong", "share", "holds", "warned", "AUC", "seconds")


# ---------------------------------------------------------------- problems


def real_tables(names=(), folder=REAL_TABLES):
    """Yield the name, X, Y, strata and groups of the real tables in which mistakes are to be planted."""
    for entry in json.loads((folder / "index.json").read_text()):
        name = entry["name"]
        if not entry["truth"].startswith("all pairs") or (names and name not in names):
            continue
        with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
            tables = {key: arrays[key] for key in arrays.files}
        yield name, tables["X"].astype(float), tables["Y"].astype(float), tables.get("strata"), tables.get("groups")


def swapped(n, share, rng, strata=None):
    """Row of y that each row of x is paired with: a share of the pairs, inside each stratum, in a ring."""
    partner = np.arange(n)
    strata = np.zeros(n, dtype=int) if strata is None else np.unique(strata, return_inverse=True)[1]
    for stratum in range(strata.max() + 1):
        rows = rng.permutation(np.flatnonzero(strata == stratum))
        rows = rows[: round(share * rows.size)]
        if rows.size > 1:
            partner[rows] = np.roll(rows, 1)
    return partner


def beside_the_most_similar(Y, share, rng):
    """Row of y that each row of x is paired with: a share exchanged with the row whose y is most like theirs."""
    Y = filled(Y)
    scale = Y / np.maximum(Y.std(axis=0), 1e-9)
    partner, free = np.arange(len(Y)), np.ones(len(Y), dtype=bool)
    for i in rng.permutation(len(Y)):
        if (~free).sum() + 2 > share * len(Y):
            break
        apart = np.sum((scale - scale[i]) ** 2, axis=1)
        apart[(apart == 0) | ~free] = np.inf
        j = np.argmin(apart)
        if free[i] and np.isfinite(apart[j]):
            partner[[i, j]] = j, i
            free[[i, j]] = False
    return partner


def clusters(rng, k, separation, noise, wrong, n=1000, d=10):
    """Swaps inside clusters."""
    g = rng.integers(0, k, n)
    X = separation * rng.normal(size=(k, d))[g] + rng.normal(size=(n, d))
    Y = X[:, ::-1] + noise * rng.normal(size=(n, d))
    partner = swapped(n, wrong, rng, g)
    return X, Y[partner], partner == np.arange(n), {"strata": g}


def off_by_one(rng, rho, wrong=0.3, noise=0.3, n=1000, d=10):
    """Runs of rows of a time series, shifted by one row."""
    X = rng.normal(size=(n, d))
    for t in range(1, n):
        X[t] = rho * X[t - 1] + np.sqrt(1 - rho**2) * X[t]
    Y = X @ ortho_group.rvs(d, random_state=rng).T + noise * rng.normal(size=(n, d))
    partner, length = np.arange(n), 30
    for start in rng.permutation(np.arange(0, n - length, length))[: round(wrong * n / length)]:
        rows = np.arange(start, start + length)
        partner[rows] = np.roll(rows, 1)
    return X, Y[partner], partner == np.arange(n), {"strata": np.arange(n) // 10}


def pixels(rng, wrong=0.3, noise=0.3, side=32, d=6):
    """A smooth field whose wrong partner is a pixel within 3."""
    field = np.stack([gaussian_filter(rng.normal(size=(side, side)), 3, mode="wrap") for _ in range(d)], axis=-1)
    X = (field / field.std()).reshape(-1, d)
    n = len(X)
    Y = X @ ortho_group.rvs(d, random_state=rng).T + noise * rng.normal(size=(n, d))
    row, column = np.divmod(np.arange(n), side)
    partner = np.arange(n)
    bad = rng.permutation(n)[: round(wrong * n)]
    shift = rng.integers(-3, 4, size=(2, bad.size))
    partner[bad] = (row[bad] + shift[0]) % side * side + (column[bad] + shift[1]) % side
    return X, Y[partner], partner == np.arange(n), {"strata": row // 4 * 100 + column // 4}


def size_factor(rng, wrong=0.15, noise=0.3, n=1000, d=10):
    """Lognormal columns with a common factor per row; the wrong partner has the nearest factor."""
    factor = rng.normal(size=n)
    X = np.exp(0.5 * rng.normal(size=(n, d)) + factor[:, None])
    Y = X @ ortho_group.rvs(d, random_state=rng).T
    Y += noise * np.median(np.abs(Y)) * rng.normal(size=(n, d))
    order, partner = np.argsort(factor), np.arange(n)
    for place in rng.permutation(n // 2)[: round(wrong * n / 2)]:
        a, b = order[2 * place : 2 * place + 2]
        partner[[a, b]] = b, a
    strata = np.empty(n, dtype=int)
    strata[order] = np.arange(n) // 20
    return X, Y[partner], partner == np.arange(n), {"strata": strata}


def replicates(rng, subjects, times, d, wrong=1.0, noise=0.2):
    """Subjects with replicates, of which whole subjects are swapped."""
    latent = rng.normal(size=(subjects, d))
    partner = swapped(subjects, wrong, rng)
    g = np.repeat(np.arange(subjects), times)
    other = rng.normal(size=(subjects, d)) if wrong == 1 else latent @ ortho_group.rvs(d, random_state=rng).T
    X = latent[g] + noise * rng.normal(size=(g.size, d))
    Y = other[partner][g] + noise * rng.normal(size=(g.size, d))
    real = np.zeros(g.size, dtype=bool) if wrong == 1 else (partner == np.arange(subjects))[g]
    return X, Y, real, {"groups": g}


def two_maps(rng, d, first, second, noise, n=2000):
    """Two rotations; the larger group is the real one."""
    X = rng.normal(size=(n, d))
    turns = [ortho_group.rvs(d, random_state=rng) for _ in range(2)]
    kind = rng.choice(3, size=n, p=[first, second, max(1 - first - second, 0)])
    Y = np.where((kind == 0)[:, None], X @ turns[0], X @ turns[1])
    Y[kind == 2] = rng.normal(size=(int((kind == 2).sum()), d))
    return X, Y + noise * rng.normal(size=(n, d)), kind == 0, {}


def failed(rng, noise, wrong=0.2, shrink=0.0, both=False, n=1000, d=10):
    """Failed samples: y near the mean (or shrunk), on both sides if so said."""
    X = rng.normal(size=(n, d))
    Y = X @ ortho_group.rvs(d, random_state=rng).T + noise * rng.normal(size=(n, d))
    real = np.ones(n, dtype=bool)
    real[rng.permutation(n)[: round(wrong * n)]] = False
    k = int((~real).sum())
    Y[~real] = shrink * rng.permutation(Y[~real]) + (0 if shrink else 0.1) * rng.normal(size=(k, d))
    if both:
        X[~real] = 0.1 * rng.normal(size=(k, d))
    return X, Y, real, {}


CLUMPS = {
    "S1 20 clusters, sep 5, noise .3": lambda r: clusters(r, 20, 5, 0.3, 0.2),
    "S1 5 clusters, sep 3, noise .3": lambda r: clusters(r, 5, 3, 0.3, 0.2),
    "S1 5 clusters, sep 3, noise 1": lambda r: clusters(r, 5, 3, 1.0, 0.2),
    "S1 3 clusters, sep 1, noise .3": lambda r: clusters(r, 3, 1, 0.3, 0.2),
    "S1 5 tissues, d 20, n 500": lambda r: clusters(r, 5, 2, 0.3, 0.1, 500, 20),
    "S1 8 batches, sep 1.5, d 20, n 500": lambda r: clusters(r, 8, 1.5, 0.5, 0.1, 500, 20),
    "S1 2 groups, sep 2, noise 1": lambda r: clusters(r, 2, 2, 1.0, 0.1),
    "S1 all wrong, 5 clusters": lambda r: clusters(r, 5, 3, 0.3, 1.0),
    "S1 off by one, rho .95": lambda r: off_by_one(r, 0.95),
    "S1 off by one, rho .8": lambda r: off_by_one(r, 0.8),
    "S1 off by one, rho .5": lambda r: off_by_one(r, 0.5),
    "S1 pixel within 3": pixels,
    "S1 nearest size factor": size_factor,
    "S2 60 x 5, d 100, all wrong": lambda r: replicates(r, 60, 5, 100),
    "S2 100 x 3, d 50, all wrong": lambda r: replicates(r, 100, 3, 50),
    "S2 200 x 3, d 20, all wrong": lambda r: replicates(r, 200, 3, 20),
    "S2 50 x 4, d 10, all wrong": lambda r: replicates(r, 50, 4, 10),
    "S2 500 x 2, d 50, all wrong": lambda r: replicates(r, 500, 2, 50),
    "S2 100 x 5, d 50, 20 % wrong": lambda r: replicates(r, 100, 5, 50, 0.2),
    "S2 100 x 3, d 50, 20 % wrong": lambda r: replicates(r, 100, 3, 50, 0.2),
    "S2 100 x 5, d 10, 20 % wrong": lambda r: replicates(r, 100, 5, 10, 0.2),
    "S4 d 3, .7/.3, noise .1": lambda r: two_maps(r, 3, 0.7, 0.3, 0.1),
    "S4 d 3, .7/.3, noise .02": lambda r: two_maps(r, 3, 0.7, 0.3, 0.02),
    "S4 d 3, .5/.3, noise .1": lambda r: two_maps(r, 3, 0.5, 0.3, 0.1),
    "S4 d 5, .5/.3, noise .1": lambda r: two_maps(r, 5, 0.5, 0.3, 0.1),
    "S4 d 10, .7/.3, noise .1": lambda r: two_maps(r, 10, 0.7, 0.3, 0.1),
    "S6 blank y, noise .3": lambda r: failed(r, 0.3),
    "S6 blank y, noise 1": lambda r: failed(r, 1.0),
    "S6 blank on both sides": lambda r: failed(r, 0.3, both=True),
    "S6 y shrunk to half": lambda r: failed(r, 0.3, shrink=0.5),
}


# ---------------------------------------------------------------- measures


def fit(X, Y, alpha, seed, same_columns="auto", **given):
    """Fit, and say how long it took and whether there was a warning of dependence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = process_time()
        matcher = CalibratedMatcher(alpha=alpha, random_state=seed, same_columns=same_columns).fit(X, Y, **given)
        matcher.seconds = process_time() - start
    matcher.warned = any(issubclass(warning.category, DependenceWarning) for warning in caught)
    return matcher


def measures(matcher, real):
    """What `MEASURES` names."""
    accepted, certain, truth = matcher.inlier_mask_, matcher.certain_mask_, real.mean()
    return {
        "FDP": (accepted & ~real).sum() / max(accepted.sum(), 1),
        "recall": accepted[real].mean() if real.any() else np.nan,
        "certain": certain[real].mean() if real.any() else np.nan,
        "wrong": (certain & ~real).sum() / max(certain.sum(), 1),
        "share": matcher.inlier_fraction_,
        "holds": float(matcher.inlier_fraction_at_least_ <= truth + 1e-9),
        "warned": float(matcher.warned),
        "AUC": roc_auc_score(real, matcher.scores_) if 0 < truth < 1 else np.nan,
        "seconds": matcher.seconds,
    }


def coverage_of_sets(matcher, X, Y, home):
    """Share of the rows of X whose partner set holds their partner, row ``home`` of Y; -1 where it is not there."""
    there = np.flatnonzero(home >= 0)
    return matcher.partner_sets(X, Y).contains(there, home[there]).mean() if there.size else np.nan


def best_auc(X, Y, real):
    """AUC of the residuals, in units of their covariance, of the least-squares map of the real pairs."""
    if real.all() or not real.any():
        return np.nan
    rows = np.column_stack([X, np.ones(len(X))])
    residuals = Y - rows @ np.linalg.lstsq(rows[real], Y[real], rcond=None)[0]
    whitened = np.linalg.solve(np.linalg.cholesky(np.cov(residuals[real].T)), residuals.T)
    return roc_auc_score(real, -np.sum(whitened**2, axis=0))


def line(name, rows):
    """Print the means of a problem's draws."""
    keys = list(rows[0])
    means = [np.mean([row[key] for row in rows]) for key in keys]
    print(f"{name:48s} " + " ".join(f"{mean:8.3f}" for mean in means), flush=True)


def header(keys=MEASURES):
    """Print what the columns are."""
    print(f"{'':48s} " + " ".join(f"{key:>8s}" for key in keys))


def filled(table):
    """Gaps filled with column means."""
    return np.where(np.isnan(table), np.nanmean(table, axis=0), table)


def real(seeds, names, jobs):
    """Real tables, a fifth of the pairs swapped at random, then inside strata."""
    header()
    for name, X, Y, strata, _groups in real_tables(names):
        for where, inside, given in (
            ("at random", None, {}),
            ("inside strata, not said", strata, {}),
            ("inside strata", strata, {"strata": strata}),
        ):

            def drawn(seed, X=X, Y=Y, inside=inside, given=given):
                partner = swapped(len(X), WRONG, np.random.default_rng(seed), inside)
                return measures(fit(X, Y[partner], 0.05, seed, **given), partner == np.arange(len(X)))

            line(f"{name}, {where}", of_each(drawn, range(seeds), jobs))


def clumps(seeds, names, only_unsaid, jobs):
    """Mistakes that are not independent: as the data are, and with what belongs together said."""
    header((*MEASURES, "best"))
    for name, make in CLUMPS.items():
        if names and not any(part in name for part in names):
            continue

        def drawn(seed, make=make):
            X, Y, truth, given = make(np.random.default_rng(seed))
            best = {"best": best_auc(X, Y, truth)}
            unsaid = measures(fit(X, Y, 0.01, seed), truth) | best
            if only_unsaid or not given:
                return unsaid, None
            return unsaid, (next(iter(given)), measures(fit(X, Y, 0.01, seed, **given), truth) | best)

        unsaid, said = zip(*of_each(drawn, range(seeds), jobs), strict=True)
        line(name, unsaid)
        if said[0]:
            line(f"{name}; {said[0][0]} given", [found for _, found in said])


def independent(seeds, names, jobs):
    """How often independent data, of the calibration grid, are warned of; what is accepted there."""
    header()
    for n, d, noise, distribution in itertools.product((200, 1000), (3, 20, 50), (0.05, 0.3), DISTRIBUTIONS):
        name = f"n {n}, d {d}, noise {noise}, {distribution}"
        if names and not any(part in name for part in names):
            continue

        def drawn(of, n=n, d=d, noise=noise, distribution=distribution):
            seed, fraction = of
            X, Y, truth = draw_pairs(n, d, fraction, noise, distribution, 500 + seed)
            return measures(fit(X, Y, 0.01, seed), truth)

        line(name, of_each(drawn, itertools.product(range(seeds), (1.0, 0.5, 0.1)), jobs))


def shared_factors(rng, noise=0.3, n=500, rank=5, d_x=15, d_y=20, wrong=0.2):
    """Redundant columns: few factors behind many columns, a fifth of the pairs wrong."""
    latent = rng.normal(size=(n, rank))
    X, Y = (latent @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d)) for d in (d_x, d_y))
    partner = swapped(n, wrong, rng)
    return X, Y[partner], partner == np.arange(n)


def with_gaps(X, Y, share, kind, rng):
    """Both tables with a share of their cells missing: anywhere, in blocks, low values first, or in the same rows."""
    tables = []
    rows = rng.uniform(size=len(X)) < min(2 * share, 1)
    for table in (X.copy(), Y.copy()):
        if kind == "in blocks":
            gone = np.zeros(table.shape, dtype=bool)
            gone[np.ix_(rng.uniform(size=len(table)) < share**0.5, rng.uniform(size=table.shape[1]) < share**0.5)] = (
                True
            )
        elif kind == "low values":
            chance = np.argsort(np.argsort(table, axis=0), axis=0) / len(table)
            gone = rng.uniform(size=table.shape) < np.clip(2 * share * (1 - chance), 0, 1)
        elif kind == "same rows":
            gone = rows[:, None] & (rng.uniform(size=table.shape) < 0.5)
        else:
            gone = rng.uniform(size=table.shape) < share
        table[gone] = np.nan
        tables.append(table)
    return tables


def gaps(seeds, jobs):
    """Gaps of four kinds, up to 40 % of the cells."""
    header()
    for kind, share in itertools.product(("anywhere", "in blocks", "low values", "same rows"), (0.0, 0.1, 0.2, 0.4)):

        def drawn(seed, kind=kind, share=share):
            rng = np.random.default_rng(seed)
            X, Y, truth = shared_factors(rng)
            return measures(fit(*with_gaps(X, Y, share, kind, rng), 0.05, seed), truth)

        line(f"{share:.0%} missing, {kind}", of_each(drawn, range(seeds), jobs))


def copies(seeds, jobs):
    """A noisy copy of a row of y stands in another pair: are its owner and the copy accepted, and certain?"""
    heads = ("owner", "certain", "copy", "certain", "nearest")
    print(f"{'accepted, certain; is the owner the nearest?':48s} " + " ".join(f"{head:>8s}" for head in heads))
    for noise in (0.1, 0.3, 1.0):

        def drawn(seed, noise=noise):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(300, 10))
            Y = X @ ortho_group.rvs(10, random_state=rng).T + 0.3 * rng.normal(size=(300, 10))
            Y[87] = Y[12] + noise * rng.normal(size=10)
            matcher = fit(X, Y, 0.01, seed)
            nearest = np.argsort(np.linalg.norm(Y - Y[87], axis=1))[1] == 12
            said = [mask[row] for row in (12, 87) for mask in (matcher.inlier_mask_, matcher.certain_mask_)]
            return dict(enumerate([*said, nearest]))

        line(f"copy with noise {noise} sd", of_each(drawn, range(seeds), jobs))


def coverage(seeds, jobs):
    """The lower bound on the share of real pairs, with noise of several kinds, clumps, and where nothing is found."""
    header()
    noises = {
        "Gaussian .1": lambda rng, n: 0.1 * np.ones((n, 1)),
        "lognormal, sigma 1.5": lambda rng, n: 0.1 * np.exp(1.5 * rng.normal(size=(n, 1))),
        "Cauchy": lambda rng, n: 0.1 / np.abs(rng.normal(size=(n, 1))),
        "so large that nothing is found": lambda rng, n: 20 * np.ones((n, 1)),
    }
    for (name, scale), share in itertools.product(noises.items(), (1.0, 0.7, 0.3)):

        def drawn(seed, scale=scale, share=share):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(500, 10))
            Y = X @ ortho_group.rvs(10, random_state=rng).T + scale(rng, 500) * rng.normal(size=(500, 10))
            partner = swapped(500, 1 - share, rng)
            return measures(fit(X, Y[partner], 0.01, seed), partner == np.arange(500))

        line(f"{name}, share {share}", of_each(drawn, range(seeds), jobs))
    for name in ("S1 20 clusters, sep 5, noise .3", "S1 off by one, rho .8"):

        def clumped(seed, name=name):
            X, Y, truth, _ = CLUMPS[name](np.random.default_rng(seed))
            return measures(fit(X, Y, 0.01, seed), truth)

        line(name, of_each(clumped, range(seeds), jobs))


def look_alikes(seeds, names, jobs):
    """Real tables with a tenth of the rows swapped with the row whose y is most like theirs, none of it said.

    Of the accepted and of the certain so many are wrong; the partner sets hold so many partners, of the rows that were
    swapped and of all.
    """
    header(("accepted", "FDP", "certain", "wrong", "warned", "sets", "swapped"))
    for name, X, Y, *_ in real_tables(names):

        def drawn(seed, X=X, Y=Y):
            partner = beside_the_most_similar(Y, 0.1, np.random.default_rng(seed))
            home, is_real = np.argsort(partner), partner == np.arange(len(X))
            matcher = fit(X, Y[partner], 0.05, seed)
            found = measures(matcher, is_real)
            return {
                "accepted": matcher.inlier_mask_.mean(),
                "FDP": found["FDP"],
                "certain": matcher.certain_mask_.mean(),
                "wrong": found["wrong"],
                "warned": found["warned"],
                "sets": coverage_of_sets(matcher, X, Y[partner], home),
                "swapped": coverage_of_sets(matcher, X, Y[partner], np.where(is_real, -1, home)),
            }

        line(name, of_each(drawn, range(seeds), jobs))


def speed():
    """500 x 5,000 and 80 x 700 beside one full SVD of each table, in one run."""
    for n, d in ((500, 5000), (80, 700)):
        rng = np.random.default_rng(0)
        latent = rng.normal(size=(n, 10))
        X, Y = (latent @ rng.normal(size=(10, d)) + rng.normal(size=(n, d)) for _ in range(2))
        svd = seconds(lambda X=X, Y=Y: [np.linalg.svd(table, full_matrices=False) for table in (X, Y)], 1)
        whole = seconds(lambda X=X, Y=Y: CalibratedMatcher(random_state=0).fit(X, Y), 1)
        print(f"{n} x {d}: fit / SVD of both tables = {whole / svd:.1f}")


def large():
    """A fit of 100,000 pairs of 300 columns beside one of a million: seconds of one core, in one run."""
    clock = {}
    for n in (20_000, 100_000, 1_000_000):  # the first for what is compiled on first use
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, 300), dtype=np.float32)
        Y = X[:, ::-1] + np.float32(0.5) * rng.standard_normal((n, 300), dtype=np.float32)
        Y[: n // 5] = np.roll(Y[: n // 5], 1, axis=0)
        clock[n] = fit(X, Y, 0.01, 0).seconds
    print(f"300 columns, float32: fit of 100,000 pairs / fit of 1,000,000 = {clock[100_000] / clock[1_000_000]:.2f}")
    print(f"({clock[100_000]:.1f} and {clock[1_000_000]:.1f} s)")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what",
        choices=("real", "clumps", "independent", "gaps", "copies", "coverage", "look-alikes", "speed", "large"),
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=(), help="problems whose name contains one of these")
    parser.add_argument("--jobs", type=int, default=1, help="draws at a time")
    parser.add_argument("--unsaid", action="store_true", help="never say what belongs together")
    given = parser.parse_args()
    start = perf_counter()
    {
        "real": lambda: real(given.seeds, given.only, given.jobs),
        "clumps": lambda: clumps(given.seeds, given.only, given.unsaid, given.jobs),
        "independent": lambda: independent(given.seeds, given.only, given.jobs),
        "gaps": lambda: gaps(given.seeds, given.jobs),
        "copies": lambda: copies(given.seeds, given.jobs),
        "coverage": lambda: coverage(given.seeds, given.jobs),
        "look-alikes": lambda: look_alikes(given.seeds, given.only, given.jobs),
        "speed": speed,
        "large": large,
    }[given.what]()
    print(f"({perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
