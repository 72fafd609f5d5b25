"""One slip of a hand that moved many rows: is it found, is it put right, and is none found where there is none?

    python benchmarks/slips.py planted --seeds 3             # ten kinds of slips in tables, alone
    python benchmarks/slips.py planted --seeds 3 --mistakes  # and a tenth of the rows exchanged besides
    python benchmarks/slips.py none --seeds 20               # no slip: tables in their own order, sorted, shuffled
    python benchmarks/slips.py losses --seeds 3              # lines lost in sequences of 10 to 100 rows
    python benchmarks/slips.py plates --seeds 50             # one plate of 96 among ten turned round
    python benchmarks/slips.py speed                         # 100,000 x 50 with three losses, beside the fit

Tables are those of ../shared/data/tables (up to --rows of them, in random order, in which nothing resembles its
neighbours), digits of scikit-learn, and made ones: independent rows, and series in which each row is like the last.
A line that is lost is one of y; at the end stands a stranger instead, so that there are as many rows. "Found" means a
slip of the right kind and amount with p up to .01; "within 2", that it begins where it did, to two rows; "right" is the
share of the rows that have a partner here with which they are in the end, of all draws, before and after.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import numpy as np
from sklearn.datasets import load_digits

from inlier import CalibratedMatcher
from tables import real_tables

TABLES = (
    "digits_fac_kar",
    "digits_fou_kar",
    "digits_fac_fou",
    "wdbc_mean_worst",
    "breast_mrna_protein",
    "weather_ewr_lga",
    "liver_gene_clinic",
    "nutrimouse",
)
MADE = ("made", "noisy", "series", "digits_halves")


def made(name, n, rng):
    """Independent rows, clear or with as much noise as signal; a series, each row like the last; halves of digits."""
    if name == "digits_halves":
        images = load_digits().data[rng.permutation(1797)[:n]]
        return images[:, :32], images[:, 32:]
    hidden = rng.normal(size=(n, 6))
    if name == "series":
        hidden = np.cumsum(hidden, axis=0) / 5
        hidden = hidden - np.linspace(0, 1, n)[:, None] * hidden[-1]
    noise = 1.0 if name == "noisy" else 0.3
    return tuple(hidden @ rng.normal(size=(6, d)) + noise * rng.normal(size=(n, d)) for d in (20, 12))


def drawn(name, n, rng):
    """Rows of a table: neighbours of series as they stand, others in random order."""
    if name in MADE:
        return made(name, n, rng)
    _, X, Y, _, _ = next(iter(real_tables([name])))
    if name == "weather_ewr_lga":
        first = rng.integers(max(len(X) - n, 0) + 1)
        return X[first : first + n], Y[first : first + n]
    rows = rng.permutation(len(X))[:n]
    return X[rows], Y[rows]


# ---------------------------------------------------------------- slips: the row of y that stands beside each x


def without(n, lost):
    """Rows in order without some, and strangers (-1) at the end."""
    kept = np.delete(np.arange(n), lost)
    return np.append(kept, np.full(n - kept.size, -1))


def one_lost(n, rng):
    """A line of y is missing."""
    at = int(rng.integers(n // 8, n - n // 8))
    return without(n, [at]), [("shifted", at + 1, -1)]


def one_too_many(n, rng):
    """A line has been put in."""
    at = int(rng.integers(n // 8, n - n // 8))
    return np.insert(np.arange(n), at, -1)[:n], [("shifted", at, 1)]


def three_lost(n, rng):
    """Three lines, far apart."""
    lost = np.sort([int((k + rng.uniform(0.3, 0.7)) * n / 3) for k in range(3)])
    return without(n, lost), [("shifted", at + 1, -1 - k) for k, at in enumerate(lost)]


def all_shifted(n, rng):
    """A line of units above the table."""
    by = int(rng.choice([-2, -1, 1, 2]))
    order = np.arange(n) - by
    return np.where((order >= 0) & (order < n), order, -1), [("shifted", max(0, -by), by)]


def blocks_exchanged(n, rng):
    """Two batches in each other's place."""
    size = n // 6
    first, second = int(rng.integers(0, n // 6)), int(rng.integers(n // 2, n // 2 + n // 6))
    order = np.arange(n)
    order[first : first + size], order[second : second + size] = (
        np.arange(second, second + size),
        np.arange(first, first + size),
    )
    return order, [("exchanged", first, second - first)]


def block_reversed(n, rng):
    """A block from its last row to its first."""
    size, first = n // 3, int(rng.integers(n // 8, n // 2))
    order = np.arange(n)
    order[first : first + size] = order[first : first + size][::-1]
    return order, [("reversed", first, 0)]


def all_reversed(n, rng):
    """The whole table."""
    return np.arange(n)[::-1], [("reversed", 0, 0)]


KINDS = {
    "one lost": one_lost,
    "one too many": one_too_many,
    "three lost": three_lost,
    "whole shifted": all_shifted,
    "blocks exchanged": blocks_exchanged,
    "block reversed": block_reversed,
    "whole reversed": all_reversed,
}


def repaired(X, y, seed, **given):
    """What a repair says, quietly; and the seconds of fit and repair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = perf_counter()
        matcher = CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, y, **given)
        middle = perf_counter()
        found = matcher.repair()
    return matcher, found, middle - start, perf_counter() - middle


def stood(Y, order, rng):
    """Table y as it stands, and the row of it that belongs to each x; -1: a stranger, or nobody."""
    strangers = rng.integers(len(Y), size=order.size)
    home = np.full(len(Y), -1)
    home[order[order >= 0]] = np.flatnonzero(order >= 0)
    return Y[np.where(order >= 0, order, strangers)], home


def exchanged_besides(order, share, rng):
    """The same with a share of the rows exchanged in pairs."""
    order = order.copy()
    some = rng.permutation(order.size)[: 2 * round(share * order.size / 2)].reshape(2, -1)
    order[some[0]], order[some[1]] = order[some[1]], order[some[0]]
    return order


def planted(seeds, rows, first, names, mistakes):
    """Slips of every kind in every table."""
    print(f"{'table':22s} {'slip':18s}  found  within 2   right before  after")
    totals = np.zeros(5)
    for name in names:
        for kind, plant in KINDS.items():
            lines = []
            for seed in range(first, first + seeds):
                rng = np.random.default_rng([seed, 36])
                X, Y = drawn(name, rows, rng)
                order, truth = plant(len(X), rng)
                order = exchanged_besides(order, 0.1, rng) if mistakes else order
                y, home = stood(Y, order, rng)
                _, found, *_ = repaired(X, y, seed)
                same = [
                    next(
                        (s for s in found.slips if s.kind == k and (k == "reversed" or s.amount == by) and near(s, at)),
                        None,
                    )
                    for k, at, by in truth
                ]
                here = home >= 0
                lines.append(
                    (
                        np.mean([one is not None for one in same]),
                        np.mean(
                            [
                                one is not None and abs(one.start - at) <= 2
                                for one, (_, at, _) in zip(same, truth, strict=True)
                            ]
                        ),
                        np.mean((home == np.arange(len(X)))[here]),
                        np.mean((found.partner == home)[here]),
                    )
                )
            line = np.mean(lines, axis=0)
            totals += [1, *line]
            print(f"{name:22s} {kind:18s} {line[0]:6.2f} {line[1]:9.2f} {line[2]:14.3f} {line[3]:6.3f}", flush=True)
    print(f"{'all':41s} " + " ".join(f"{value:.3f}" for value in totals[1:] / totals[0]))


def near(slip, at):
    """Whether it is this slip and no other of the table."""
    return abs(slip.start - at) <= 30


ORDERS = ("as drawn", "sorted by x", "sorted by y", "x and y sorted alike by x", "re-paired")


def none(seeds, rows, first, names):
    """Tables without a slip, in several orders: how many slips are found?"""
    n_tables = n_false = 0
    for name in names:
        told = {}
        for seed in range(first, first + seeds):
            for order in ORDERS:
                rng = np.random.default_rng([seed, 37])
                X, Y = drawn(name, rows, rng)
                sizes = np.nan_to_num([X, Y][order == "sorted by y"]).std(axis=0)
                by = np.argsort(np.nan_to_num([X, Y][order == "sorted by y"])[:, int(np.argmax(sizes))], kind="stable")
                if order.startswith("sorted"):
                    X, Y = X[by], Y[by]
                elif order.startswith("x and y"):  # and a tenth exchanged with a neighbour in this order
                    X, Y = X[by], Y[by]
                    at = rng.choice(np.arange(0, len(X) - 1, 2), len(X) // 20, replace=False)
                    Y[at], Y[at + 1] = Y[at + 1].copy(), Y[at].copy()
                elif order == "re-paired":
                    Y = Y[rng.permutation(len(Y))]
                _, found, *_ = repaired(X, Y, seed)
                n_tables += 1
                if found.slips:
                    n_false += 1
                    told.setdefault(order, []).append(
                        (seed, [(s.kind, s.start, s.stop, s.amount, s.p_value) for s in found.slips])
                    )
        print(f"{name:22s} {sum(map(len, told.values()))} of {seeds * len(ORDERS)} {told or ''}", flush=True)
    print(f"all: {n_false} of {n_tables} tables with a slip that is none")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("planted", "none", "losses", "plates", "speed"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--only", nargs="*", default=(*TABLES, *MADE))
    parser.add_argument("--mistakes", action="store_true", help="exchange a tenth of the rows besides")
    given = parser.parse_args()
    start = perf_counter()
    {
        "planted": lambda: planted(given.seeds, given.rows, given.first, given.only, given.mistakes),
        "none": lambda: none(given.seeds, given.rows, given.first, given.only),
    }[given.what]()
    print(f"({perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
