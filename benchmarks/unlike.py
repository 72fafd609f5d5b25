"""Rows unlike those that were learned from: what becomes of the promises then?

    python benchmarks/unlike.py new-pairs --seeds 40 --jobs 2      # predict_pairs on batches that differ from the fit
    python benchmarks/unlike.py verdicts --seeds 40 --jobs 2       # repair where noise, batches or families differ

Every line is a kind of data; sums or means over the seeds.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed

from inlier import CalibratedMatcher
from repair import named_and_falsely, quiet


def turned(X, noise, rng):
    """Rows turned at random, with noise."""
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0] + noise * rng.normal(size=X.shape)


def in_a_ring(y, k):
    """The first k rows exchanged among each other, and which are right."""
    order = np.arange(len(y))
    order[:k] = np.roll(order[:k], 1)
    return y[order], order == np.arange(len(y))


# ---- new pairs: those of the fit are the first rows


def plain(n, m, d, rng):
    """Gaussian pairs."""
    X = rng.normal(size=(n + m, d))
    return X, turned(X, 0.4, rng)


def wide(n, m, d, rng):
    """Eight factors behind d columns of each side."""
    factors, noise = rng.normal(size=(n + m, 8)), 2 * rng.normal(size=(2, n + m, d))
    return [factors @ rng.normal(size=(8, d)) + side for side in noise]


def one_cluster(n, m, d, rng):
    """Four clusters; the new pairs are of one of them."""
    of = np.append(rng.integers(0, 4, n), np.zeros(m, dtype=int))
    X = 2 * rng.normal(size=(4, d))[of] + rng.normal(size=(n + m, d))
    return X, turned(X, 0.4, rng)


def scaled(n, m, d, rng):
    """New pairs of half the size."""
    X, Y = plain(n, m, d, rng)
    X[n:], Y[n:] = X[n:] / 2, Y[n:] / 2
    return X, Y


def elsewhere(n, m, d, rng):
    """New pairs three standard deviations away in a direction."""
    X = rng.normal(size=(n + m, d))
    X[n:, 0] += 3
    return X, turned(X, 0.4, rng)


def gaps(share):
    """Gaps in the new pairs alone."""

    def made(n, m, d, rng):
        tables = plain(n, m, d, rng)
        for table in tables:
            table[n:][rng.random((m, d)) < share] = np.nan
        return tables

    return made


NEW = {  # how they are made, size of the fit, of the batch, columns, share of wrong ones among the new
    "like those of the fit, 300 x 8": (plain, 300, 300, 8, 0.5),
    "like those, 60 x 8, 90 % wrong": (plain, 60, 200, 8, 0.9),
    "like those, 80 x 200": (wide, 80, 200, 200, 0.5),
    "like those, 80 x 200, 80 % wrong": (wide, 80, 200, 200, 0.8),
    "like those, 80 x 200, 10 new pairs": (wide, 80, 10, 200, 0.5),
    "like those, 300 x 8, 10 new pairs": (plain, 300, 10, 8, 0.5),
    "20 % of the new values missing": (gaps(0.2), 300, 300, 8, 0.5),
    "50 % of the new values missing": (gaps(0.5), 300, 300, 8, 0.5),
    "of one cluster of four": (one_cluster, 300, 100, 8, 0.5),
    "of half the size": (scaled, 300, 300, 8, 0.5),
    "three standard deviations away": (elsewhere, 300, 300, 8, 0.5),
    "a thousand of them": (plain, 300, 1000, 8, 0.8),
}


def new_pairs(first, seeds, alpha, jobs):
    """Wrong ones among the new pairs that are accepted."""
    print(f"{'':36s}  right accepted     FDP     +-  worst    AUC of wrong ones")
    for name, case in NEW.items():
        lines = np.array(Parallel(jobs)(delayed(_new)(*case, alpha, seed) for seed in range(first, first + seeds)))
        accepted, wrong, right, score = lines.T
        rate = wrong / np.maximum(accepted, 1)
        error = rate.std(ddof=1) / seeds**0.5
        print(
            f"{name:36s} {right.mean():6.1f} {(accepted - wrong).mean():8.1f} {rate.mean():7.3f} {error:6.3f} "
            f"{rate.max():6.3f} {np.nanmean(score):14.2f}",
            flush=True,
        )


def _new(make, n, m, d, share, alpha, seed):
    rng = np.random.default_rng(seed)
    X, Y = make(n, m, d, rng)
    y, _ = in_a_ring(Y[:n], n // 10)
    new_y, right = in_a_ring(Y[n:], round(share * m))
    matcher = quiet(CalibratedMatcher(alpha=alpha, random_state=seed).fit, X[:n], y)
    accepted = quiet(matcher.predict_pairs, X[n:], new_y).inlier_mask
    score = quiet(matcher.score, X[n:][~right], new_y[~right])
    return accepted.sum(), (accepted & ~right).sum(), right.sum(), score


# ---- verdicts: tables, who is right, and the right row of y for each (-1: it is not there)


def mistakes(X, Y, rng):
    """Ten losses and ten swaps among 300 of 310 rows."""
    y, truth = Y[:300].copy(), np.arange(300)
    y[:10], truth[:10] = Y[300:], -1
    for row in range(10, 30, 2):
        y[[row, row + 1]], truth[[row, row + 1]] = y[[row + 1, row]], (row + 1, row)
    return X[:300], y, truth


def even_noise(rng):
    """The same noise in all rows."""
    X = rng.normal(size=(310, 8))
    return mistakes(X, turned(X, 0.4, rng), rng)


def uneven_noise(rng):
    """Each row has its own amount of noise."""
    X = rng.normal(size=(310, 8))
    Y = turned(X, 0, rng) + 0.25 * np.exp(rng.normal(size=(310, 1))) * rng.normal(size=X.shape)
    return mistakes(X, Y, rng)


def heavy_tails(rng):
    """Student's t with two degrees of freedom, values and noise."""
    X = rng.standard_t(2, size=(310, 8))
    return mistakes(X, turned(X, 0, rng) + 0.4 * rng.standard_t(2, size=X.shape), rng)


def rotated_plate(rng):
    """One of four plates put in the wrong way round, each with an effect of its own."""
    plate = np.repeat(np.arange(4), 96)
    X = rng.normal(size=(384, 8))
    Y = turned(X, 0.5, rng) + rng.normal(size=(4, 8))[plate]
    truth = np.arange(384)
    truth[:96] = truth[:96][::-1]
    return X, Y[truth], truth


def families(rng):
    """Families of three; in fifteen of them two are swapped."""
    family = np.repeat(np.arange(100), 3)
    X = rng.normal(size=(100, 8))[family] + 0.4 * rng.normal(size=(300, 8))
    truth, swapped = np.arange(300), np.arange(0, 45, 3)
    truth[swapped], truth[swapped + 1] = swapped + 1, swapped
    return X, turned(X, 0.15, rng)[truth], truth


def with_gaps(rng):
    """A fifth of the values missing, thirty rows in a ring."""
    X = rng.normal(size=(300, 10))
    y, _ = in_a_ring(turned(X, 0.3, rng), 30)
    truth = np.arange(300)
    truth[:30] = np.roll(truth[:30], -1)
    X, y = (np.where(rng.random(table.shape) < 0.2, np.nan, table) for table in (X, y))
    return X, y, truth


VERDICTS = (even_noise, uneven_noise, heavy_tails, rotated_plate, families, with_gaps)


def verdicts(first, seeds, alpha, jobs):
    """What is said of wrong and of right rows."""
    heads = "wrong named falsely lost falsely copies unclear right warned"
    print(f"{'sums over the seeds':20s}" + "".join(f"{head:>9s}" for head in heads.split()))
    for case in VERDICTS:
        lines = Parallel(jobs)(delayed(_verdicts)(case, alpha, seed) for seed in range(first, first + seeds))
        print(f"{case.__name__:20s}" + "".join(f"{value:9.0f}" for value in np.sum(lines, axis=0)), flush=True)


def _verdicts(case, alpha, seed):
    import warnings

    X, y, truth = case(np.random.default_rng(seed))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        matcher = CalibratedMatcher(alpha=alpha, random_state=seed).fit(X, y)
    found, own = quiet(matcher.repair), np.arange(len(X))
    lost, unclear = found.kind == "lost", found.kind == "not clear"
    return [
        (truth != own).sum(),
        *named_and_falsely(found, truth),
        lost.sum(),
        (lost & (truth >= 0)).sum(),
        (found.kind == "copy").sum(),
        unclear.sum(),
        (unclear & (truth == own)).sum(),
        any("Wrong partners seem to resemble" in str(warning.message) for warning in said),
    ]


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("new-pairs", "verdicts"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--jobs", type=int, default=1, help="draws at a time")
    given = parser.parse_args()
    start = perf_counter()
    run = {"new-pairs": new_pairs, "verdicts": verdicts}[given.what]
    run(given.first, given.seeds, given.alpha, given.jobs)
    print(f"({perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
