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
from tables import REAL_TABLES, real_tables

TABLES = (
    "digits_fac_kar",
    "digits_fou_kar",
    "digits_fac_fou",
    "wdbc_mean_worst",
    "breast_mrna_protein",
    "weather_ewr_lga",
    "liver_gene_clinic",
    "nutrimouse",
    "words",
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
    if name == "words":
        with np.load(REAL_TABLES.parent / "highd" / "words_glove100_wordllama_3000x100.npz") as arrays:
            X, Y = arrays["X"], arrays["Y"]
    else:
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


def repaired(X, y, seed, wells=None, **given):
    """What a repair says, quietly; and the seconds of fit and repair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = perf_counter()
        matcher = CalibratedMatcher(alpha=0.05, random_state=seed).fit(X, y, **given)
        middle = perf_counter()
        found = matcher.repair(wells=wells)
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


# ---------------------------------------------------------------- sequences, plates, large tables


def texts(rng, n_groups=60, noise=1.0):
    """Verses: each has something of its chapter, something of the verse before, and what is its own."""
    sizes = rng.integers(10, 101, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    own = rng.normal(size=(groups.size, 15))
    hidden = own + 0.3 * np.roll(own, 1, axis=0) + 0.5 * rng.normal(size=(n_groups, 15))[groups]
    return groups, *(
        hidden @ rng.normal(size=(15, d)) / 4 + noise * rng.normal(size=(groups.size, d)) for d in (40, 30)
    )


def losses(seeds, first):
    """Lines of y are lost inside of chapters; each is as long as before, strangers at its end."""
    print("lost   noise  right before  after   last on last, of the chapters with a loss   p")
    for share in (0.01, 0.05, 0.2):
        for noise in (0.5, 1.0):
            lines = []
            for seed in range(first, first + seeds):
                rng = np.random.default_rng([seed, 38])
                groups, X, Y = texts(rng, noise=noise)
                gone = rng.random(groups.size) < share
                chapters = [np.flatnonzero(groups == chapter) for chapter in np.unique(groups)]
                order = np.concatenate(
                    [np.append(rows[~gone[rows]], np.full(int(gone[rows].sum()), -1)) for rows in chapters]
                )
                y, home = stood(Y, order, rng)
                _, found, *_ = repaired(X, y, seed, groups=groups)
                last = [rows[~gone[rows]][-1] for rows in chapters if gone[rows].any() and not gone[rows].all()]
                here = home >= 0
                lines.append(
                    (
                        np.mean((home == np.arange(len(X)))[here]),
                        np.mean((found.partner == home)[here]),
                        np.mean(found.partner[last] == home[last]),
                        max((slip.p_value for slip in found.slips), default=1.0),
                    )
                )
            before, after, ends, p = np.mean(lines, axis=0)
            print(f"{share:5.0%} {noise:6.1f} {before:12.3f} {after:7.3f} {ends:10.3f} {p:42.0e}", flush=True)


PLATES = {
    "turned": lambda k: (7 - k // 12) * 12 + 11 - k % 12,
    "mirrored": lambda k: k // 12 * 12 + 11 - k % 12,
    "upside down": lambda k: (7 - k // 12) * 12 + k % 12,
    "by columns": lambda k: k % 8 * 12 + k // 8,
}
CALLED = {
    "turned": "turned round by 180 degrees",
    "mirrored": "mirrored from left to right",
    "upside down": "mirrored from top to bottom",
    "by columns": "filled by columns instead of rows",
}


def plates(seeds, first):
    """One plate of ten was put in in another way: is it named, and no other? Ten columns, of which replicates agree."""
    print("plate was      named, p < 1e-6  another named  right after")
    for kind, way in PLATES.items():
        lines = []
        for seed in range(first, first + seeds):
            rng = np.random.default_rng([seed, 39])
            hidden = rng.normal(size=(960, 10))
            X, Y = (np.sqrt(0.7) * hidden + np.sqrt(0.3) * rng.normal(size=hidden.shape) for _ in range(2))
            order, wrong = np.arange(960), 96 * int(rng.integers(10))
            order[wrong : wrong + 96] = wrong + way(np.arange(96))
            y, home = stood(Y, order, rng)
            _, found, *_ = repaired(X, y, seed, wells=(8, 12))
            named = [slip.kind == CALLED[kind] and abs(slip.start - wrong) < 12 for slip in found.slips]
            sure = any(is_it and slip.p_value < 1e-6 for is_it, slip in zip(named, found.slips, strict=True))
            lines.append((sure, sum(named) < len(named), np.mean(found.partner == home)))
        named, another, right = np.mean(lines, axis=0)
        print(f"{kind:12s} {named:12.2f} {another:17.2f} {right:13.3f}", flush=True)


def speed():
    """Three lines lost of 100,000: seconds of the repair, beside those of the fit, where it is right."""
    rng = np.random.default_rng(0)
    n = 100_000
    hidden = rng.normal(size=(n, 20))
    X, Y = (hidden @ rng.normal(size=(20, 50)) + 2 * rng.normal(size=(n, 50)) for _ in range(2))
    *_, right, _ = repaired(X, Y, 0)
    order, truth = three_lost(n, rng)
    y, home = stood(Y, order, rng)
    _, found, fit, repair = repaired(X, y, 0)
    print("\n".join(slip.text() for slip in found.slips))
    here = home >= 0
    print(f"lost at {[at - 1 for _, at, _ in truth]}; right {np.mean((found.partner == home)[here]):.4f}")
    print(f"fit {fit:.1f} s, of the right table {right:.1f} s; repair {repair:.1f} s, {repair / fit:.1f} times the fit")


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
        "losses": lambda: losses(given.seeds, given.first),
        "plates": lambda: plates(given.seeds, given.first),
        "speed": speed,
    }[given.what]()
    print(f"({perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
