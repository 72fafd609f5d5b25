"""Who belongs to whom: the partners that are named, and the rest of what is said of wrong rows.

    python benchmarks/repair.py tables --seeds 10              # displaced rows in ../shared/data/tables
    python benchmarks/repair.py tables --seeds 10 --aside      # the tables that nothing was chosen by
    python benchmarks/repair.py real                           # known mix-ups of samples
    python benchmarks/repair.py bad --seeds 10                 # bad samples, nothing displaced: who is named or lost?
    python benchmarks/repair.py permuted --seeds 10            # 90 % of 500 pairs are permuted
    python benchmarks/repair.py copies --seeds 60              # a noisy copy of a row: is it named, and of whom?
    python benchmarks/repair.py columns --seeds 20             # columns of the same name, seven wrong rows
    python benchmarks/repair.py clumps --seeds 4               # rows in clusters: names, new pairs, partners
    python benchmarks/repair.py speed                          # repair / fit, from 150 to a million pairs

Rows are displaced in tables in many ways: exchanged in pairs; in chains of five, each row with the y of the one before,
the first with a y that is nobody's; in one ring; 3 % or 20 % at random, or inside strata, which are given or not; and
mixed: exchanges, rings of three, losses and near-copies. "Accepted" are the wrong rows that the fit has taken for real,
which is not the fault of names; "unclear" and "right" rows that are not clear, and those of them that are with their
partner. The peer is an own re-implementation of the idea of lineup
(Broman and others, 2015): of the columns of Y that are predicted best, by the x of nearest neighbours, the correlation
of each row with all rows; a row is flagged if its own partner is not the best, and the best is its partner if the two
choose each other. It gives no error rate. At the end the chances of candidates, beside how often they are right.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import ortho_group

from inlier import CalibratedMatcher
from tables import REAL_TABLES, filled, real_tables

ASIDE = ("digits_fac_fou", "liver_gene_clinic")  # nothing was chosen by these
LONGEST = 5  # rows of a chain
COUNTS = ("wrong", "accepted", "named", "falsely", "lost", "falsely", "copies", "falsely", "unclear", "right")
COUNTS += ("lineup", "falsely")
BINS = np.array([0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0])  # of chances


def exchanged(rows, rng):
    """Pairs of rows have each other's y: for each row the one whose y it gets, -1 for one that is nobody's."""
    half = rows.size // 2
    return rows[: 2 * half], np.concatenate([rows[half : 2 * half], rows[:half]])


def in_chains(rows, rng):
    """Chains: each row has the y of the one before, the first one that is nobody's; the last one's y is gone."""
    source = np.roll(rows, 1)
    source[::LONGEST] = -1
    return rows, source


def in_a_ring(rows, rng):
    """All in one ring."""
    return rows, np.roll(rows, 1)


def scattered(rows, rng):
    """At random."""
    return rows, rng.permutation(rows)


WAYS = {  # how rows are displaced, the share of them, inside strata, whether these are given
    "exchanged, 20 %": (exchanged, 0.2, False, False),
    "chains, 10 %": (in_chains, 0.1, False, False),
    "one ring, 20 %": (in_a_ring, 0.2, False, False),
    "at random, 3 %": (scattered, 0.03, False, False),
    "at random, 20 %": (scattered, 0.2, False, False),
    "inside strata, 3 %": (scattered, 0.03, True, True),
    "inside strata, 20 %": (scattered, 0.2, True, True),
    "strata not given, 20 %": (scattered, 0.2, True, False),
    "mixed, 10 %": (None, 0.1, False, False),
}


def displaced(X, Y, way, strata, rng):
    """Displace rows in one of the `WAYS`.

    Returns both tables, the row of Y of each row of X (-1 if it is not there), which rows are copies, and which rows
    of the given tables these are.
    """
    how, share, inside, _ = WAYS[way]
    if how is None:
        X, Y, truth, kind, rows = planted(X, Y, rng, share)
        return X, Y, truth, kind == "copy", rows
    order = rng.permutation(len(X))
    n_spare = max(1, -(-round(share * len(X)) // LONGEST))
    spare, rows = order[:n_spare], np.sort(order[n_spare:])
    X, original, strangers = X[rows], Y[rows], Y[spare]
    n, y = len(X), Y[rows].copy()
    of = np.zeros(n, dtype=int) if not inside else np.unique(strata[rows], return_inverse=True)[1]
    truth = np.arange(n)
    for stratum in range(of.max() + 1):
        some = rng.permutation(np.flatnonzero(of == stratum))
        some, source = how(some[: round(share * some.size)], rng)
        truth[some] = -1
        y[some] = np.where((source >= 0)[:, None], original[source], strangers[np.cumsum(source < 0) - 1])
        truth[source[source >= 0]] = some[source >= 0]
    return X, y, truth, np.zeros(n, dtype=bool), rows


def planted(X, Y, rng, share):
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
    return quiet(quiet(CalibratedMatcher(alpha=alpha, random_state=seed).fit, X, Y, **given).repair)


def named_and_falsely(found, truth):
    """How many partners are named, and how many of these are wrong."""
    return found.named.sum(), (found.named & (found.partner != truth)).sum()


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
    """Rows displaced in many ways: who is named, lost, a copy, not clear."""
    print(f"alpha {alpha}; sums over the seeds; rows without a partner here count as wrong")
    print(f"{'':48s} " + " ".join(f"{key:>7s}" for key in COUNTS) + "  wrong names")
    of_way, of_table, of_bins = {}, {}, np.zeros((3, BINS.size - 1))
    for name, X, Y, strata, groups in real_tables(only):
        if (name in ASIDE) != aside and not only:
            continue
        groups = None if name == "nutrimouse" else groups
        for way in WAYS:
            if WAYS[way][2] and strata is None:
                continue
            drawn = Parallel(jobs)(
                delayed(_names)(X, Y, way, strata, groups, alpha, seed) for seed in range(100, 100 + seeds)
            )
            counts = np.sum([line for line, _ in drawn], axis=0)
            of_bins += np.sum([bins for _, bins in drawn], axis=0)
            of_way[way], of_table[name] = of_way.get(way, 0) + counts, of_table.get(name, 0) + counts
            print(f"{name + ', ' + way:48s} " + _row(counts), flush=True)
    for name, counts in (*of_way.items(), *of_table.items(), ("all", sum(of_table.values()))):
        print(f"{'all: ' + name if name != 'all' else name:48s} " + _row(counts))
    show_chances(of_bins)


def _names(X, Y, way, strata, groups, alpha, seed):
    """Counts of one draw, in the order of `COUNTS`, and of chances."""
    x, y, truth, is_copy, rows = displaced(X, Y, way, strata, np.random.default_rng(seed))
    given = {} if groups is None else {"groups": groups[rows]}
    if WAYS[way][3]:
        given["strata"] = strata[rows]
    matcher = quiet(CalibratedMatcher(alpha=alpha, random_state=seed).fit, x, y, **given)
    found, own, peer = quiet(matcher.repair), np.arange(len(x)), lineup(x, y)
    lost, copies, unclear = (found.kind == kind for kind in ("lost", "copy", "not clear"))
    counts = [
        (truth != own).sum(),
        (matcher.inlier_mask_ & (truth != own)).sum(),
        *named_and_falsely(found, truth),
        lost.sum(),
        (lost & (truth >= 0)).sum(),
        copies.sum(),
        (copies & ~is_copy).sum(),
        unclear.sum(),
        (unclear & (truth == own)).sum(),
        (peer != own).sum(),
        ((peer != own) & (peer != truth)).sum(),
    ]
    return np.array(counts), in_bins(found, truth)


def in_bins(found, truth):
    """How many candidates have a chance in each of the bins, the sum of these chances, and how many are right."""
    is_one = found.candidates >= 0
    chances, right = found.chances[is_one], (found.candidates == truth[:, None])[is_one]
    return np.array(
        [np.histogram(chances, BINS, weights=each)[0] for each in (1.0 + 0 * chances, chances, 1.0 * right)]
    )


def show_chances(of_bins):
    """Print the chances of candidates, and how often they are right."""
    print("chance of a candidate:  from      to  candidates  stated   right")
    for low, high, (count, stated, right) in zip(BINS[:-1], BINS[1:], of_bins.T, strict=True):
        rates = f"{stated / max(count, 1):7.3f} {right / max(count, 1):7.3f}"
        print(f"{low:28.2f} {high:7.2f} {count:11.0f} {rates}")


def _row(counts):
    return " ".join(f"{value:7.0f}" for value in counts) + f" {counts[3] / max(counts[2], 1):12.3f}"


def real(alpha):
    """Mix-ups that were made in earnest."""
    for name in ("pfda_protein_rna", "pfda_pca"):
        with np.load(REAL_TABLES / f"{name}.npz", allow_pickle=False) as arrays:
            X, Y, truth = (arrays[key] for key in ("X", "Y", "truth"))
        for seed in range(5):
            found = ours(X.astype(float), Y.astype(float), seed, alpha)
            named, same, is_wrong = found.named, truth == found.partner, truth != np.arange(len(X))
            for i in np.flatnonzero(named & (truth >= 0)):  # equal rows count for each other
                same[i] |= bool(np.array_equal(Y[truth[i]], Y[found.partner[i]]))
            counts = {str(kind): int((found.kind == kind).sum()) for kind in np.unique(found.kind)}
            print(
                f"{name} seed {seed}: {(named & same).sum()} right names, {(named & ~same).sum()} wrong; {counts}; "
                f"{(found.kind == 'kept')[is_wrong].sum()} of {is_wrong.sum()} wrong rows kept",
                flush=True,
            )


def mixed_up(n, d, noise, wrong, rng):
    """Gaussian pairs, a share of them in a ring."""
    X = rng.normal(size=(n, d))
    Y = X @ ortho_group.rvs(d, random_state=rng) + noise * rng.normal(size=(n, d))
    ring, partner = rng.permutation(n)[: max(2, round(wrong * n))], np.arange(n)
    partner[ring] = np.roll(ring, 1)
    return X, Y[partner], partner


def like_embeddings(n, wrong, rng):
    """Two noisy views of twelve factors, a share of them in a ring: the nearest is the partner in four of five rows."""
    factors = rng.normal(size=(n, 12))
    X, Y = (factors @ rng.normal(size=(12, d)) + 0.6 * 12**0.5 * rng.normal(size=(n, d)) for d in (40, 60))
    ring, partner = rng.permutation(n)[: round(wrong * n)], np.arange(n)
    partner[ring] = np.roll(ring, 1)
    return X, Y[partner], partner


def bad(seeds, only, alpha, jobs):
    """A tenth of the rows with noise of 1.5 and 3 standard deviations, nothing displaced: rows named, lost, copies."""
    print(
        f"{'sums over the seeds':36s} {'noise':>6s}    rows     bad  unclear   named    lost  copies  alpha of the rows"
    )
    made = [(f"Gaussian 500 x {d}, noise {noise}", d, noise) for d, noise in ((20, 0.3), (8, 0.5))]
    for sd in (1.5, 3.0):
        for name, d, noise in made:
            lines = Parallel(jobs)(
                delayed(_bad)(*mixed_up(500, d, noise, 0.0, np.random.default_rng(seed))[:2], sd, alpha, seed)
                for seed in range(seeds)
            )
            _show_bad(name, sd, lines, alpha)
        for name, X, Y, _strata, _groups in real_tables(only):
            lines = Parallel(jobs)(delayed(_bad)(X, Y, sd, alpha, seed) for seed in range(seeds))
            _show_bad(name, sd, lines, alpha)


def _show_bad(name, sd, lines, alpha):
    n, *counts = np.sum(lines, axis=0)
    print(f"{name:36s} {sd:6g} {n:7d} " + " ".join(f"{c:7d}" for c in counts) + f" {alpha * n:18.0f}", flush=True)


def _bad(X, Y, sd, alpha, seed):
    rng = np.random.default_rng(1000 + seed)
    rows = rng.permutation(len(X))[: round(0.1 * len(X))]
    Y = Y.copy()
    Y[rows] += sd * np.nanstd(Y, axis=0) * rng.normal(size=Y[rows].shape)
    kind = ours(X, Y, seed, alpha).kind
    counts = [(kind == one).sum() for one in ("not clear", "lost", "copy")]
    return [len(X), rows.size, counts[0], np.isin(kind, ("swapped", "moved")).sum(), *counts[1:]]


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
    named, wrong = named_and_falsely(quiet(matcher.repair), truth)
    return [
        (mask & real_pair).sum() / real_pair.sum(),
        (mask & ~real_pair).sum() / max(mask.sum(), 1),
        named - wrong,
        wrong,
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
    found = quiet(matcher.repair)
    return [matcher.inlier_mask_[12], found.kind[12] == "kept", found.kind[87] == "copy", found.copy_of[87] == 12]


def columns(seeds, alpha, jobs):
    """300 columns that correlate .2 to .45 with their namesake, seven rows in a ring: who is kept, who is named?"""
    print(f"{'mean over the seeds':24s} wrong rows: kept   named   wrong  right rows not kept   worst draw")
    for n in (60, 120):
        lines = Parallel(jobs)(delayed(_columns)(n, alpha, seed) for seed in range(500, 500 + seeds))
        kept, named, wrong, refused = np.mean(lines, axis=0)
        worst = f"{max(line[0] for line in lines)} and {max(line[3] for line in lines)}"
        print(
            f"{n} rows".ljust(24) + f" {kept:16.2f} {named:7.2f} {wrong:7.2f} {refused:20.2f} {worst:>12s}", flush=True
        )


def _columns(n, alpha, seed):
    rng = np.random.default_rng(seed)
    rho = rng.uniform(0.2, 0.45, 300)
    noise = [
        0.8**0.5 * rng.normal(size=(n, 300)) + 0.02**0.5 * rng.normal(size=(n, 10)) @ rng.normal(size=(10, 300))
        for _ in range(3)
    ]
    X, Y = (np.sqrt(rho) * noise[0] + np.sqrt(1 - rho) * side for side in noise[1:])
    ring, partner = rng.permutation(n)[:7], np.arange(n)
    partner[ring] = np.roll(ring, 1)
    matcher = quiet(CalibratedMatcher(alpha=alpha, random_state=seed, same_columns=True).fit, X, Y[partner])
    found, is_wrong = quiet(matcher.repair), partner != np.arange(n)
    kept = found.kind == "kept"
    return [(kept & is_wrong).sum(), *named_and_falsely(found, np.argsort(partner)), (~kept & ~is_wrong).sum()]


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
    named, wrong = named_and_falsely(quiet(matcher.repair), np.argsort(partner))
    accepted = matcher.predict_pairs(new, new_y[of_new]).q_values <= alpha
    proposed = matcher.find_partners(new, 1, among=new_y)
    sure = proposed.q_values[:, 0] <= alpha
    return [
        named,
        wrong / max(named, 1),
        (accepted & (of_new != own)).sum() / max(accepted.sum(), 1),
        (sure & (proposed.rows[:, 0] != own)).sum() / max(sure.sum(), 1),
    ]


SIZES = (
    (150, 200, 0.1),
    (400, 200, 0.1),
    (5_000, 40, 0.1),
    (10_000, 40, 0.2),
    (20_000, 40, 0.2),
    (1_000_000, 50, 0.01),
)


def speed(only, alpha):
    """Time of repair over that of the fit, in one run; who is named, and called lost, though all partners are here.

    From 5,000 to 20,000 pairs are like two embeddings; others are clear.
    """
    for n, d, share in SIZES:
        if only and str(n) not in only:
            continue
        rng = np.random.default_rng(0)
        if n <= 400:
            latent = rng.normal(size=(n, 10))
            X, Y = (latent @ rng.normal(size=(10, d)) + rng.normal(size=(n, d)) for _ in range(2))
            partner, ring = np.arange(n), rng.permutation(n)[: round(share * n)]
            partner[ring] = np.roll(ring, 1)
            Y = Y[partner]
        elif n <= 20_000:
            X, Y, partner = like_embeddings(n, share, rng)
        else:
            X, Y, partner = mixed_up(n, d, 0.3, share, rng)
        start = perf_counter()
        matcher = quiet(CalibratedMatcher(alpha=alpha, random_state=0).fit, X, Y)
        middle = perf_counter()
        found = matcher.repair()
        end = perf_counter()
        named, wrong = named_and_falsely(found, np.argsort(partner))
        print(
            f"{n:,} x {d}: repair / fit = {(end - middle) / (middle - start):.2f} (fit {middle - start:.1f} s); "
            f"{named:,} of {(partner != np.arange(n)).sum():,} partners named, {wrong:,} wrong, "
            f"{(found.kind == 'lost').sum():,} called lost",
            flush=True,
        )


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tables", "real", "bad", "permuted", "copies", "columns", "clumps", "speed"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--only", nargs="*", default=(), help="tables, first words of permuted, or numbers of rows")
    parser.add_argument("--aside", action="store_true", help="the tables that were kept aside")
    parser.add_argument("--jobs", type=int, default=1, help="draws at a time")
    given = parser.parse_args()
    start = perf_counter()
    {
        "tables": lambda: tables(given.seeds, given.only, given.alpha, given.aside, given.jobs),
        "real": lambda: real(given.alpha),
        "bad": lambda: bad(given.seeds, given.only, given.alpha, given.jobs),
        "permuted": lambda: permuted(given.seeds, given.only, given.jobs),
        "copies": lambda: copies(given.seeds, given.jobs),
        "columns": lambda: columns(given.seeds, given.alpha, given.jobs),
        "clumps": lambda: clumps(given.seeds, given.alpha, given.jobs),
        "speed": lambda: speed(given.only, given.alpha),
    }[given.what]()
    print(f"({perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
