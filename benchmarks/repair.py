"""Who belongs to whom: names of partners, their error rate, and that of the suspects.

    python benchmarks/repair.py tables --seeds 10              # mistakes planted in ../shared/data/tables; an oracle
    python benchmarks/repair.py tables --seeds 10 --aside      # the tables that nothing was chosen by
    python benchmarks/repair.py real                           # known mix-ups of samples
    python benchmarks/repair.py suspects --seeds 100           # "of these 8 about 1 is innocent"
    python benchmarks/repair.py permuted --seeds 10            # 90 % of 500 pairs are permuted
    python benchmarks/repair.py copies --seeds 60              # a noisy copy of a row: is it named, and of whom?
    python benchmarks/repair.py columns --seeds 20             # columns of the same name, seven wrong rows
    python benchmarks/repair.py clumps --seeds 4               # rows in clusters: names, new pairs, partners
    python benchmarks/repair.py speed                          # 1,000,000 x 50, 1 % wrong: repair / fit

Two oracles name by the same rule. The first has a map that was learned from the right pairs alone; "again" are those of
its names that it gives once more when folds are dealt otherwise: no rule agrees better with it than it does with
itself. The second is also told who is wrong, which no map tells: it need not find the suspects, tries nobody innocent,
and knows all chances of being wrong. The peer is an own
re-implementation of the idea of lineup (Broman and others, 2015): of the columns of Y that are predicted best, by the
x of nearest neighbours, the correlation of each row with all rows; a row is flagged if its own partner is not the best,
and the best is its partner if the two choose each other. It gives no error rate.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import ortho_group

import inlier.estimators._repairing as steps
from inlier import CalibratedMatcher
from tables import REAL_TABLES, filled, real_tables

ASIDE = ("digits_fac_fou", "liver_gene_clinic")  # nothing was chosen by these; of the others, by seeds 0 to 2
WRONG = 0.1
RATE = 8  # column of the share of wrong names


def planted(X, Y, rng, share=WRONG):
    """Plant swaps, cycles of three, near-copies and losses, about a half, a fourth, an eighth and an eighth.

    Returns both tables, the row of Y of each row of X (-1 if it is not there) and the kind of mistake.
    """
    order = rng.permutation(len(X))
    n_spare = max(1, round(share * len(X) / 4))
    spare, rows = order[:n_spare], np.sort(order[n_spare:])
    X, original, strangers = X[rows], Y[rows], Y[spare]
    n, Y = len(X), original.copy()
    truth, kind = np.arange(n), np.full(n, "right")
    queue = list(rng.permutation(n))
    n_wrong = round(share * n)
    few = max(1, round(n_wrong / 8))
    for number in range(few):
        lost, copy, owner = queue.pop(), queue.pop(), queue[number]
        Y[lost], truth[lost], kind[lost] = strangers[number % n_spare], -1, "lost"
        Y[copy] = original[owner] + 0.1 * np.nanstd(original, axis=0) * rng.normal(size=Y.shape[1])
        truth[copy], kind[copy] = -1, "copy"
    left = n_wrong - 2 * few
    while left >= 2:
        size = 3 if left >= 5 and rng.uniform() < 0.3 else 2
        ring = [queue.pop() for _ in range(size)]
        Y[ring] = original[np.roll(ring, -1)]
        truth[ring] = np.roll(ring, 1)
        kind[ring] = "cycle" if size == 3 else "swap"
        left -= size
    return X, Y, truth, kind, rows


def quiet(function, *arguments, **options):
    """Call without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def ours(X, Y, seed, alpha, **given):
    """Fit, and repair."""
    matcher = quiet(CalibratedMatcher(alpha=alpha, random_state=seed).fit, X, Y, **given)
    return quiet(matcher.repair, X, Y, **given)


def oracle(X, Y, truth, seed, alpha, *, knows_all, **given):
    """The same, by one who learns from the right pairs alone; or who knows which these are all along."""
    matcher = quiet(CalibratedMatcher(alpha=alpha, random_state=seed).fit, X, Y, **given)
    matcher.q_values_ = np.where(truth == np.arange(len(X)), 0.0, 1.0)
    matcher.inlier_mask_ = matcher.q_values_ < 1
    matcher.inlier_fraction_ = matcher.inlier_mask_.mean()
    matcher.inlier_fraction_interval_ = (matcher.inlier_fraction_,) * 2
    matcher._wrong_ones_resemble = False
    if not knows_all:
        return quiet(matcher.repair, X, Y, **given)
    judged = steps._judged
    steps._judged = lambda *given: (matcher.q_values_.copy(), judged(*given)[1])
    try:
        return quiet(matcher.repair, X, Y, **given)
    finally:
        steps._judged = judged


def lineup(X, Y, n_columns=100, k=5):
    """Correlation of each row of Y with what the neighbours of each x have: partner of those that choose each other."""
    X, Y = ((table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-12) for table in (filled(X), filled(Y)))
    products = X @ X.T
    distance = np.diag(products)[:, None] - 2 * products + np.diag(products)
    np.fill_diagonal(distance, np.inf)
    predicted = Y[np.argsort(distance, axis=1)[:, :k]].mean(axis=1)
    agreement = [np.corrcoef(a, b)[0, 1] for a, b in zip(predicted.T, Y.T, strict=True)]
    best = np.argsort(-np.nan_to_num(agreement))[:n_columns]
    similarity = np.corrcoef(predicted[:, best], Y[:, best])[: len(X), len(X) :]
    to_y, to_x = similarity.argmax(axis=1), similarity.argmax(axis=0)
    rows = np.arange(len(X))
    return np.where((to_y != rows) & (to_x[to_y] == rows), to_y, rows)


def tables(seeds, only, alpha, aside, jobs):
    """Planted mistakes: partners named, by the oracle too; wrong names; names given to lost rows."""
    print(f"alpha {alpha}; sums over the seeds; at the end the mean over the seeds of the share of wrong names")
    keys = (
        "nameable",
        "map",
        "both",
        "again",
        "all-knowing",
        "both",
        "named",
        "wrong",
        "FDP",
        "lost",
        "falsely",
        "called",
        "and are",
        "copies",
        "called",
        "lineup",
        "wrong",
    )
    print(f"{'':24s} " + " ".join(f"{key[:8]:>8s}" for key in keys))
    total = np.zeros(len(keys))
    for name, X, Y, _strata, groups in real_tables(only):
        if (name in ASIDE) != aside and not only:
            continue
        groups = None if name == "nutrimouse" else groups
        lines = Parallel(jobs)(delayed(_names)(X, Y, groups, alpha, seed) for seed in range(100, 100 + seeds))
        line = np.sum(lines, axis=0, dtype=float)
        shares = [each[RATE - 1] / max(each[RATE - 2], 1) for each in lines]
        line[RATE] = line[RATE - 1] / max(line[RATE - 2], 1)
        total += line
        mean, error = np.mean(shares), np.std(shares) / max(seeds - 1, 1) ** 0.5
        print(f"{name:24s} " + _row(line) + f"  mean FDP {mean:.3f} +- {error:.3f}", flush=True)
    total[RATE] = total[RATE - 1] / max(total[RATE - 2], 1)
    print(f"{'all':24s} " + _row(total))


def _names(X, Y, groups, alpha, seed):
    """Counts of one draw, in the order of the columns of `tables`."""
    x, y, truth, kind, rows = planted(X, Y, np.random.default_rng(seed))
    given = {} if groups is None else {"groups": groups[rows]}
    found, own = ours(x, y, seed, alpha, **given), np.arange(len(x))
    by_map, again, by_all = (
        (truth >= 0) & (truth != own) & (oracle(x, y, truth, other, alpha, knows_all=k, **given).partner == truth)
        for other, k in ((seed, False), (seed + 5_000, False), (seed, True))
    )
    named = (found.partner >= 0) & (found.partner != own)
    right, lost, peer = named & (found.partner == truth), truth < 0, lineup(x, y)
    return [
        ((truth >= 0) & (truth != own)).sum(),
        by_map.sum(),
        (by_map & right).sum(),
        (by_map & again).sum(),
        by_all.sum(),
        (by_all & right).sum(),
        named.sum(),
        (named & ~right).sum(),
        0,
        lost.sum(),
        (lost & named).sum(),
        (found.kind == "lost").sum(),
        (lost & (found.kind == "lost")).sum(),
        (kind == "copy").sum(),
        ((kind == "copy") & (found.kind == "copy")).sum(),
        ((peer != own) & (peer == truth)).sum(),
        ((peer != own) & (peer != truth)).sum(),
    ]


def _row(line):
    return " ".join(f"{value:8.3f}" if place == RATE else f"{value:8.0f}" for place, value in enumerate(line))


def real(alpha):
    """Mix-ups that were made in earnest."""
    for name in ("pfda_protein_rna", "pfda_pca"):
        with np.load(REAL_TABLES / f"{name}.npz", allow_pickle=False) as arrays:
            X, Y, truth = (arrays[key] for key in ("X", "Y", "truth"))
        own = np.arange(len(X))
        for seed in range(5):
            found = ours(X.astype(float), Y.astype(float), seed, alpha)
            named = (found.partner >= 0) & (found.partner != own)
            same = truth == found.partner
            for i in np.flatnonzero(named & (truth >= 0)):  # equal rows count for each other
                same[i] |= bool(np.array_equal(Y[truth[i]], Y[found.partner[i]]))
            counts = {str(kind): int((found.kind == kind).sum()) for kind in np.unique(found.kind)}
            print(f"{name} seed {seed}: {(named & same).sum()} right names, {(named & ~same).sum()} wrong; {counts}")
            print(
                f"    suspects {found.suspects.sum()}, innocent stated {found.n_innocent:.1f}, true "
                f"{(found.suspects & (truth == own)).sum()}; wrong rows {(truth != own).sum()}",
                flush=True,
            )


def mixed_up(n, d, noise, wrong, rng):
    """Gaussian pairs, a share of them in a ring."""
    X = rng.normal(size=(n, d))
    Y = X @ ortho_group.rvs(d, random_state=rng) + noise * rng.normal(size=(n, d))
    ring, partner = rng.permutation(n)[: max(2, round(wrong * n))], np.arange(n)
    partner[ring] = np.roll(ring, 1)
    return X, Y[partner], partner


def suspects(seeds, only, jobs, first):
    """Share of innocents among the suspects: stated, and true."""
    print(f"{'':36s} suspects  stated    true    miss")
    for n, d, noise in ((1000, 10, 0.3), (1000, 10, 1.0), (1000, 50, 2.0), (300, 30, 0.7), (500, 20, 1.5)):
        for wrong in (0.005, 0.02, 0.1):
            if only and f"{n},{d},{noise}" not in only and f"{n},{d},{noise},{wrong}" not in only:
                continue
            drawn = Parallel(jobs)(
                delayed(_innocents)(n, d, noise, wrong, seed) for seed in range(first, first + seeds)
            )
            count, stated, true, missed = np.transpose(drawn)
            all_of_them = max(count.sum(), 1)
            print(
                f"n {n}, d {d}, noise {noise}, {wrong:.1%} wrong".ljust(36)
                + f" {count.mean():8.1f} {stated.sum() / all_of_them:7.3f} {true.sum() / all_of_them:7.3f}"
                + f" {missed.mean():7.1f}",
                flush=True,
            )


def _innocents(n, d, noise, wrong, seed):
    X, Y, partner = mixed_up(n, d, noise, wrong, np.random.default_rng(seed))
    found = ours(X, Y, seed, 0.01)
    is_right = partner == np.arange(n)
    return [
        found.suspects.sum(),
        found.n_innocent,
        (found.suspects & is_right).sum(),
        (~found.suspects & ~is_right).sum(),
    ]


def permuted(seeds, only, jobs):
    """90 % of 500 pairs permuted among themselves: recall and FDP at alpha .01."""
    print(f"{'':36s}  recall     FDP   named   wrong  fewest named")
    for name in PERMUTED:
        if only and name.split()[0] not in only:
            continue
        lines = Parallel(jobs)(delayed(_permuted)(name, seed) for seed in range(seeds))
        recall, fdp, right, wrong = np.mean(lines, axis=0)
        fewest = min(line[2] for line in lines)
        print(f"{name:36s} {recall:7.3f} {fdp:7.3f} {right:7.1f} {wrong:7.1f} {fewest:13d}", flush=True)


def _permuted(name, seed):
    X, Y = PERMUTED[name](np.random.default_rng(seed))
    rng, n = np.random.default_rng(1000 + seed), len(X)
    ring, partner = rng.permutation(n)[: round(0.9 * n)], np.arange(n)
    partner[ring] = np.roll(ring, 1)
    truth = np.argsort(partner)
    matcher = quiet(CalibratedMatcher(random_state=seed).fit, X, Y[partner])
    mask, real_pair = matcher.inlier_mask_, partner == np.arange(n)
    found = quiet(matcher.repair, X, Y[partner])
    named = (found.partner >= 0) & (found.partner != np.arange(n))
    right = found.partner == truth
    return [
        (mask & real_pair).sum() / real_pair.sum(),
        (mask & ~real_pair).sum() / max(mask.sum(), 1),
        (named & right).sum(),
        (named & ~right).sum(),
    ]


def _like_genes(rng, n=497, d=50, noise=0.1):
    latent = rng.normal(size=(n, 20))
    return tuple(latent @ rng.normal(size=(20, d)) + noise * rng.normal(size=(n, d)) for _ in range(2))


def _like_connectome(rng, n=400, d=30):
    with np.load(REAL_TABLES.parent / "highd" / "connectome_schaefer400_d30.npz", allow_pickle=False) as arrays:
        first, second = (arrays[key] for key in arrays.files[:2])
    return first.astype(float), second.astype(float)


PERMUTED = {
    "Gaussian 500 x 50, noise .3": lambda rng: mixed_up(500, 50, 0.3, 0.0, rng)[:2],
    "Gaussian 500 x 20, noise .1": lambda rng: mixed_up(500, 20, 0.1, 0.0, rng)[:2],
    "factors 497 x 50": _like_genes,
    "connectome 400 x 30": _like_connectome,
}


def copies(seeds, jobs):
    """A noisy copy of row 12 of y stands in pair 87: what becomes of both?"""
    print(f"{'':24s}  accepted    kept   called a copy   of its owner")
    for noise in (0.1, 0.3, 1.0):
        lines = Parallel(jobs)(delayed(_copy)(noise, seed) for seed in range(seeds))
        owner, kept, called, of = np.mean(lines, axis=0)
        print(f"noise {noise} sd".ljust(24) + f" {owner:9.3f} {kept:7.3f} {called:15.3f} {of:14.3f}", flush=True)


def _copy(noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 10))
    Y = X @ ortho_group.rvs(10, random_state=rng).T + 0.3 * rng.normal(size=(300, 10))
    Y[87] = Y[12] + noise * rng.normal(size=10)
    matcher = quiet(CalibratedMatcher(random_state=seed).fit, X, Y)
    found = quiet(matcher.repair, X, Y)
    return [matcher.inlier_mask_[12], found.kind[12] == "kept", found.kind[87] == "copy", found.copy_of[87] == 12]


def columns(seeds, alpha, jobs):
    """300 columns that correlate .2 to .45 with their namesake, seven rows in a ring: who is found, who is named?"""
    print(f"{'mean over the seeds':24s} suspects: wrong  innocent  (stated)  worst draw   named   wrong")
    for n in (60, 120):
        lines = Parallel(jobs)(delayed(_columns)(n, alpha, seed) for seed in range(500, 500 + seeds))
        wrong, innocent, stated, names, false = np.mean(lines, axis=0)
        worst = f"{min(line[0] for line in lines)} and {max(line[1] for line in lines)}"
        print(
            f"{n} rows".ljust(24)
            + f" {wrong:15.2f} {innocent:9.2f} {stated:9.2f} {worst:>11s} {names:7.2f} {false:7.2f}",
            flush=True,
        )


def _columns(n, alpha, seed):
    rng, own = np.random.default_rng(seed), np.arange(n)
    rho = rng.uniform(0.2, 0.45, 300)
    noise = [
        0.8**0.5 * rng.normal(size=(n, 300)) + 0.02**0.5 * rng.normal(size=(n, 10)) @ rng.normal(size=(10, 300))
        for _ in range(3)
    ]
    X, Y = (np.sqrt(rho) * noise[0] + np.sqrt(1 - rho) * side for side in noise[1:])
    ring, partner = rng.permutation(n)[:7], np.arange(n)
    partner[ring] = np.roll(ring, 1)
    matcher = quiet(CalibratedMatcher(alpha=alpha, random_state=seed, same_columns=True).fit, X, Y[partner])
    found = quiet(matcher.repair, X, Y[partner])
    named = (found.partner >= 0) & (found.partner != own)
    return [
        (found.suspects & (partner != own)).sum(),
        (found.suspects & (partner == own)).sum(),
        found.n_innocent,
        named.sum(),
        (named & (found.partner != np.argsort(partner))).sum(),
    ]


def clumps(seeds, alpha, jobs):
    """Rows in clusters, a tenth of the pairs in a ring: wrong names, and wrong ones among new pairs and partners."""
    print(f"{'mean over the seeds':36s}   named     FDP   FDP of new pairs   of partners found")
    for k, within in ((30, 0.5), (200, 0.3), (200, 0.1)):
        for has_groups in (False, True):
            lines = Parallel(jobs)(delayed(_clump)(k, within, has_groups, alpha, seed) for seed in range(seeds))
            name = f"{k} clusters, {within} wide" + (", given as groups" if has_groups else "")
            n_named, *rates = np.mean(lines, axis=0)
            print(f"{name:36s} {n_named:7.1f} {rates[0]:7.3f} {rates[1]:18.3f} {rates[2]:19.3f}", flush=True)


def _clump(k, within, has_groups, alpha, seed):
    rng, n, own = np.random.default_rng(seed), 600, np.arange(600)
    centres, cluster = rng.normal(size=(k, 10)), rng.integers(0, k, (2, n))
    X, new = (centres[of] + within * rng.normal(size=(n, 10)) for of in cluster)
    Y, new_y = (rows[:, ::-1] + 0.3 * rng.normal(size=(n, 10)) for rows in (X, new))
    partner, of_new = np.arange(n), np.arange(n)
    for order, size in ((partner, 60), (of_new, 300)):
        ring = rng.permutation(n)[:size]
        order[ring] = np.roll(ring, 1)
    given = {"groups": cluster[0]} if has_groups else {}
    matcher = quiet(CalibratedMatcher(alpha=alpha, random_state=seed).fit, X, Y[partner], **given)
    found = quiet(matcher.repair, X, Y[partner], **given)
    named = (found.partner >= 0) & (found.partner != own)
    accepted = matcher.predict_pairs(new, new_y[of_new]).q_values <= alpha
    proposed = matcher.find_partners(new, 1, among=new_y)
    sure = proposed.q_values[:, 0] <= alpha
    return [
        named.sum(),
        (named & (found.partner != np.argsort(partner))).sum() / max(named.sum(), 1),
        (accepted & (of_new != own)).sum() / max(accepted.sum(), 1),
        (sure & (proposed.rows[:, 0] != own)).sum() / max(sure.sum(), 1),
    ]


def speed():
    """Time of repair over that of the fit, in one run."""
    for n, d in ((100_000, 50), (1_000_000, 50)):
        X, Y, partner = mixed_up(n, d, 0.3, 0.01, np.random.default_rng(0))
        start = perf_counter()
        matcher = CalibratedMatcher(random_state=0).fit(X, Y)
        middle = perf_counter()
        found = matcher.repair(X, Y)
        end = perf_counter()
        wrong = partner != np.arange(n)
        right = found.partner == np.argsort(partner)
        print(
            f"{n:,} x {d}: repair / fit = {(end - middle) / (middle - start):.2f} (fit {middle - start:.1f} s); "
            f"{(right & wrong).sum():,} of {wrong.sum():,} partners named, "
            f"{((found.partner >= 0) & ~right).sum():,} wrong",
            flush=True,
        )


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", choices=("tables", "real", "suspects", "permuted", "copies", "columns", "clumps", "speed")
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument(
        "--only",
        nargs="*",
        default=(),
        help="tables, first words of permuted, n,d,noise or n,d,noise,share of suspects",
    )
    parser.add_argument("--aside", action="store_true", help="the tables that were kept aside")
    parser.add_argument("--first", type=int, default=0, help="first seed of suspects")
    parser.add_argument("--jobs", type=int, default=1, help="draws at a time")
    given = parser.parse_args()
    start = perf_counter()
    {
        "tables": lambda: tables(given.seeds, given.only, given.alpha, given.aside, given.jobs),
        "real": lambda: real(given.alpha),
        "suspects": lambda: suspects(given.seeds, given.only, given.jobs, given.first),
        "permuted": lambda: permuted(given.seeds, given.only, given.jobs),
        "copies": lambda: copies(given.seeds, given.jobs),
        "columns": lambda: columns(given.seeds, given.alpha, given.jobs),
        "clumps": lambda: clumps(given.seeds, given.alpha, given.jobs),
        "speed": speed,
    }[given.what]()
    print(f"({perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
