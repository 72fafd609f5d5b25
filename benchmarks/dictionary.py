"""A dirty dictionary: two vocabularies, 1,500 entries of which many are wrong, and the words without an entry.

Usage::

    python benchmarks/dictionary.py [--data FOLDER] [--draws 3] [--wrong 0.2 0.5 0.8 0.9]
    python benchmarks/dictionary.py --large 100000      # partners for so many rows among as many: time, memory

3,000 English words in two embedding spaces (``highd/words_glove100_wordllama*``): 1,500 are entries, the partners of a
part of them are exchanged among each other, the others are left without a partner on both sides. For each method: how
often the first name for a word without an entry is right, among all 3,000 (P@1); which entries are kept, and how many
of these are wrong; and of the new entries with a q-value up to 0.1, how many there are and how many are wrong. With
``--gone 0.5``, the partners of half of the words without an entry are not among the candidates.

Beside `CalibratedMatcher`, from the pairs alone and with the unpaired words, stand two methods of the field, written
here from their papers: Procrustes with CSLS, refined five times by mutual neighbours (MUSE, Conneau et al. 2018), and
self-learning with whitening, re-weighting and a dictionary that is thinned out less and less (VecMap, Artetxe et al.
2018). They keep an entry if its words are each other's nearest neighbours, and give no error rate.

Draws 0 and 1 were looked at when the constants of `inlier.calibration.retrieval` were set, draws 10 to 15 when it was
decided how names are scored; draws 2 to 9 were not.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import numpy as np
from joblib import Parallel, delayed

from inlier import CalibratedMatcher

FILE = "highd/words_glove100_wordllama_3000x100.npz"
N_ENTRIES = 1_500
RATES = (0.01, 0.05)
ANY_NAME = 0.1


@dataclass
class Problem:
    """Entries (row i of x with row i of y), words without one, and who belongs to whom."""

    x: np.ndarray
    y: np.ndarray
    x_rest: np.ndarray
    y_rest: np.ndarray
    right: np.ndarray  # of each entry
    partner: np.ndarray  # of each word without an entry: a row of y, then of y_rest
    is_there: np.ndarray  # which of these rows are candidates for a name


def draw(X, Y, wrong, seed, gone=0.0):
    """Exchange the partners of a share of the entries."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    entries, rest = order[:N_ENTRIES], order[N_ENTRIES:]
    partner = entries.copy()
    bad = rng.permutation(N_ENTRIES)[: round(wrong * N_ENTRIES)]
    partner[bad] = partner[np.roll(bad, 1)]
    of_rest = N_ENTRIES + np.arange(len(rest))
    is_there = np.append(np.ones(N_ENTRIES, dtype=bool), rng.random(len(rest)) >= gone)
    return Problem(X[entries], Y[partner], X[rest], Y[rest], entries == partner, of_rest, is_there)


def ours(problem, with_unpaired):
    """P@1, what is accepted at each rate, and new entries with their share of wrong ones."""
    unpaired = (problem.x_rest, problem.y_rest) if with_unpaired else None
    matcher = CalibratedMatcher(random_state=0).fit(problem.x, problem.y, unpaired=unpaired)
    candidates = np.concatenate([problem.y, problem.y_rest])[problem.is_there]
    found = matcher.find_partners(problem.x_rest, among=candidates)
    is_right = np.flatnonzero(problem.is_there)[found.rows[:, 0]] == problem.partner
    named = found.q_values[:, 0] <= ANY_NAME
    kept = [matcher.q_values_ <= rate for rate in RATES]
    return is_right.mean(), kept, (int(named.sum()), int((named & ~is_right).sum()))


def normalised(rows):
    """Unit length, centred, unit length."""
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows - rows.mean(axis=0)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def csls(a, b, k=10):
    """2 cos - r(x) - r(y) of all rows with all rows."""
    cosines = a.astype(np.float32) @ b.T.astype(np.float32)
    around_a = np.partition(cosines, -k, axis=1)[:, -k:].mean(axis=1)
    around_b = np.partition(cosines, -k, axis=0)[-k:].mean(axis=0)
    return 2 * cosines - around_a[:, None] - around_b


def mutual(scores):
    """Rows that are each other's best."""
    best, back = scores.argmax(axis=1), scores.argmax(axis=0)
    i = np.flatnonzero(back[best] == np.arange(len(best)))
    return i, best[i]


def unit(rows):
    """Rows of unit length."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def judged(scores, problem):
    """P@1 of the words without an entry, and the entries whose words are each other's best."""
    rest = scores[N_ENTRIES:].argmax(axis=1)
    i, j = mutual(scores)
    kept = np.zeros(N_ENTRIES, dtype=bool)
    kept[i[(i == j) & (i < N_ENTRIES)]] = True
    return (rest == problem.partner).mean(), [kept], None


def muse_like(problem, rounds=5):
    """Procrustes on the entries, then on mutual neighbours."""
    a, b = (normalised(np.concatenate(s)) for s in ((problem.x, problem.x_rest), (problem.y, problem.y_rest)))
    i = j = np.arange(N_ENTRIES)
    for _ in range(rounds + 1):
        left, _, right = np.linalg.svd(a[i].T @ b[j])
        scores = csls(a @ left @ right, b)
        i, j = mutual(scores)
    return judged(scores, problem)


def vecmap_like(problem, seed=0, most_rounds=60):
    """Self-learning: a map from the entries, then nearest neighbours both ways, kept with a growing chance."""
    rng = np.random.default_rng(seed)
    a, b = (normalised(np.concatenate(s)) for s in ((problem.x, problem.x_rest), (problem.y, problem.y_rest)))
    i = j = np.arange(N_ENTRIES)
    keep, best, since = 0.1, -np.inf, 0
    for _ in range(most_rounds):
        left, _, right = np.linalg.svd(a[i].T @ b[j])
        scores = csls(a @ left, b @ right.T)
        objective = (scores.max(axis=1).mean() + scores.max(axis=0).mean()) / 2
        since = 0 if objective > best + 1e-6 else since + 1
        best = max(best, objective)
        if since >= 5:
            if keep >= 1:
                break
            keep, since = min(1.0, 2 * keep), 0
        thinned = np.where(rng.random(scores.shape, dtype=np.float32) < keep, scores, -np.inf) if keep < 1 else scores
        i = np.concatenate([np.arange(len(a)), thinned.argmax(axis=0)])
        j = np.concatenate([thinned.argmax(axis=1), np.arange(len(b))])
    white_a, white_b = (np.linalg.inv(np.linalg.cholesky(s.T @ s).T) for s in (a, b))
    left, shared, right = np.linalg.svd((a @ white_a)[i].T @ (b @ white_b)[j])
    root = np.sqrt(shared)
    x = (a @ white_a @ left * root) @ right @ np.linalg.inv(white_b)
    y = (b @ white_b @ right.T * root) @ right @ np.linalg.inv(white_b)
    return judged(csls(unit(x), unit(y)), problem)


def large(n, d=300, n_entries=3_000):
    """Print how long it takes to find partners of n made rows among n, and the most memory that was held."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    Y = X @ np.linalg.qr(rng.normal(size=(d, d)))[0].astype(np.float32)
    Y += rng.normal(size=Y.shape).astype(np.float32)
    matcher = CalibratedMatcher(random_state=0).fit(X[:n_entries], Y[:n_entries])
    before = getrusage(RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    found = matcher.find_partners(X, among=Y)
    seconds = time.perf_counter() - start
    right = found.rows[:, 0] == np.arange(n)
    held = getrusage(RUSAGE_SELF).ru_maxrss / 2**20
    n_named = (found.q_values <= 0.1).sum()
    print(f"{n:,} x {n:,} x {d}: {seconds:.0f} s, P@1 {right.mean():.3f}, {n_named:,} names at q <= .1")
    print(f"at most {held:.1f} GiB held, {before:.1f} before; a matrix of all cosines takes {4 * n**2 / 2**30:.1f} GiB")


METHODS = {
    "inlier, pairs alone": lambda problem: ours(problem, with_unpaired=False),
    "inlier, with unpaired words": lambda problem: ours(problem, with_unpaired=True),
    "Procrustes + CSLS (MUSE-like)": muse_like,
    "self-learning (VecMap-like)": vecmap_like,
}


def main():
    """Print a line for each share, draw and method."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--wrong", type=float, nargs="+", default=[0.2, 0.5, 0.8, 0.9])
    parser.add_argument("--methods", default="", help="a word of the names of those to run")
    parser.add_argument("--gone", type=float, default=0.0, help="share of new words whose partner is no candidate")
    parser.add_argument("--jobs", type=int, default=1, help="problems at a time")
    parser.add_argument("--large", type=int, metavar="N")
    options = parser.parse_args()
    if options.large:
        large(options.large)
        return
    with np.load(options.data / FILE) as file:
        X, Y = file["X"].astype(np.float64), file["Y"].astype(np.float64)
    warnings.simplefilter("ignore")
    head = f"{'wrong':>5} {'draw':>4}  {'method':30} {'P@1':>5}  kept entries: right/wrong"
    print(f"{head}  new at q<=.1: n/wrong  seconds")
    problems = [
        (wrong, seed) for wrong in options.wrong for seed in range(options.first, options.first + options.draws)
    ]
    for lines in Parallel(options.jobs, return_as="generator")(
        delayed(solved)(draw(X, Y, wrong, seed, options.gone), f"{wrong:5.2f} {seed:4d}", options.methods)
        for wrong, seed in problems
    ):
        print("\n".join(lines), flush=True)


def solved(problem, name_of_problem, methods):
    """A line for each method."""
    warnings.simplefilter("ignore")
    lines = []
    for name, method in METHODS.items():
        if methods not in name:
            continue
        start = time.perf_counter()
        at_one, kept, new = method(problem)
        entries = ", ".join(f"{(k & problem.right).sum()}/{(k & ~problem.right).sum()}" for k in kept)
        rates = " at .01, .05" if len(kept) > 1 else ""
        names = "-" if new is None else f"{new[0]}/{new[1]}"
        seconds = time.perf_counter() - start
        lines.append(f"{name_of_problem}  {name:30} {at_one:5.3f}  {entries + rates:26} {names:>12} {seconds:8.0f}")
    return lines


if __name__ == "__main__":
    main()
