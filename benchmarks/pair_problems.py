"""Problems with a known answer for `CalibratedMatcher`: tables with displaced rows, and made ones.

The tables are those of ../shared/data/tables and of `other_tables.py`, with a fifth of the rows displaced: in a ring at
random, in rings inside strata that are told or not, or each exchanged with the row whose y is most like its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import ortho_group

from calibration import draw_pairs
from other_tables import textbook_tables
from tables import beside_the_most_similar, real_tables, swapped

DISPLACED = 0.2  # of the rows


@dataclass(frozen=True, eq=False)
class Pairs:
    """Two tables; the row of Y where the partner of each row of X is, -1 where it is not; what `fit` is told."""

    X: np.ndarray
    Y: np.ndarray
    home: np.ndarray
    given: dict = field(default_factory=dict)


def paired(X, Y, partner, **given) -> Pairs:
    """Put row ``partner`` of Y beside each row of X; where a row is there twice, its own place counts."""
    home, own = np.full(len(X), -1), np.arange(len(X))
    home[partner] = own
    return Pairs(X, Y[partner], np.where(partner == own, own, home), given)


def strangers(X, Y, **given) -> Pairs:
    """Nobody's partner is here."""
    return Pairs(X, Y, np.full(len(X), -1), given)


def turned(X, noise, rng):
    """Rows turned at random, with noise."""
    return X @ ortho_group.rvs(X.shape[1], random_state=rng).T + noise * rng.normal(size=X.shape)


def gaussian(rng, n, d, real, noise, distribution="Gaussian") -> Pairs:
    """Pairs of the calibration grid."""
    X, Y, is_real = draw_pairs(n, d, real, noise, distribution, int(rng.integers(2**31)))
    return Pairs(X, Y, np.where(is_real, np.arange(n), -1))


def few_patients(rng) -> Pairs:
    """Genes and proteins of 60 patients, six factors."""
    latent = 3 * rng.normal(size=(60, 6))
    X, Y = (latent @ rng.normal(size=(6, d)) / 6**0.5 + 2 * rng.normal(size=(60, d)) for d in (400, 150))
    return paired(X, Y, swapped(60, DISPLACED, rng))


def namesakes(rng) -> Pairs:
    """300 columns that correlate .2 to .45 with their namesake, seven rows in a ring."""
    rho = rng.uniform(0.2, 0.45, 300)
    common, *sides = rng.normal(size=(3, 60, 300))
    X, Y = (np.sqrt(rho) * common + np.sqrt(1 - rho) * side for side in sides)
    return paired(X, Y, swapped(60, 7 / 60, rng), same_columns=True)


def subjects_on_visits(rng, related: bool) -> Pairs:
    """Rows of 40 subjects merged onto five visits of each: a fifth of the subjects displaced, or all unrelated."""
    subject = np.repeat(np.arange(40), 5)
    trait = rng.normal(size=(40, 20))
    X = 0.5**0.5 * (trait[subject] + rng.normal(size=(200, 20)))
    if not related:
        return strangers(X, rng.normal(size=(40, 10))[subject])
    partner = swapped(40, DISPLACED, rng)
    here = (5 * np.argsort(partner)[:, None] + np.arange(5)).ravel()  # where the rows of each subject's partner stand
    return Pairs(X, turned(trait, 0.3, rng)[partner][subject], here)


def many_to_one(rng) -> Pairs:
    """Controls chosen by likeness in the columns that judge, many to one."""
    X, Y = rng.normal(size=(2, 300, 5))
    return strangers(X, Y[cKDTree(Y).query(X)[1]])


def linked_records(rng) -> Pairs:
    """Unrelated people, nearest to each other in the columns that judge."""
    X, Y = rng.normal(size=(2, 800, 5))
    there, back = cKDTree(Y).query(X)[1], cKDTree(X).query(Y)[1]
    rows = np.flatnonzero(back[there] == np.arange(800))
    return strangers(X[rows], Y[there[rows]])


def copied_age(rng) -> Pairs:
    """Other people, joined by an age that stands in both tables."""
    age = np.round(rng.normal(50, 15, 300))
    return strangers(*(np.column_stack([rng.normal(size=(300, 5)), age]) for _ in range(2)))


def siblings(rng) -> Pairs:
    """Families of three; in a fifth of them the three are mixed up."""
    family = np.repeat(np.arange(100), 3)
    X = 0.8**0.5 * rng.normal(size=(100, 30))[family] + 0.2**0.5 * rng.normal(size=(300, 30))
    partner = np.arange(300).reshape(100, 3)
    mixed = rng.permutation(100)[:20]
    partner[mixed] = np.roll(partner[mixed], 1, axis=1)
    return paired(X, turned(X, 1.0, rng), partner.ravel())


def plates(rng, told: bool) -> Pairs:
    """Wells swapped inside of eight plates with batch effects."""
    plate = rng.integers(0, 8, 300)
    X = rng.normal(size=(300, 10)) + 1.5 * rng.normal(size=(8, 10))[plate]
    return paired(X, turned(X, 0.5, rng), swapped(300, DISPLACED, rng, plate), **({"strata": plate} if told else {}))


def off_by_one(rng) -> Pairs:
    """A slowly changing process, with one header too many: every row beside its neighbour's partner."""
    drift = np.cumsum(rng.normal(size=(600, 16)), axis=0)
    rows = np.hstack([(drift - drift.mean(axis=0)) / drift.std(axis=0), rng.normal(size=(600, 16))])
    return paired(rows, turned(rows, 0.3, rng), np.roll(np.arange(600), 1))


MADE = {
    "strangers": {
        "200 x 10, half real, heavy tails": partial(
            gaussian, n=200, d=10, real=0.5, noise=0.3, distribution="heavy-tailed"
        ),
        "1000 x 3, half real": partial(gaussian, n=1000, d=3, real=0.5, noise=0.3),
        "1000 x 20, all real, noisy": partial(gaussian, n=1000, d=20, real=1.0, noise=1.0),
        "300 x 10, nothing real": partial(gaussian, n=300, d=10, real=0.0, noise=0.3),
        "plates, told": partial(plates, told=True),
    },
    "few real pairs beside dimensions": {
        "500 x 200, 5 % real": partial(gaussian, n=500, d=200, real=0.05, noise=0.05),
        "500 x 50, 10 % real": partial(gaussian, n=500, d=50, real=0.1, noise=0.3),
        "60 patients": few_patients,
    },
    "columns that correspond": {"namesakes": namesakes},
    "look-alikes": {"siblings": siblings, "plates": partial(plates, told=False), "off by one": off_by_one},
    "equal rows, related": {"subjects on visits": partial(subjects_on_visits, related=True)},
    "equal rows, unrelated": {"merged visits": partial(subjects_on_visits, related=False), "many to one": many_to_one},
    "a copied column": {"copied age": copied_age},
    "chosen by nearness": {"linked records": linked_records},
}


def displaced(rng, X, Y, where, strata=None) -> Pairs:
    """Pairs of a table with a fifth of the rows displaced."""
    if where == "most similar":
        return paired(X, Y, beside_the_most_similar(Y, DISPLACED, rng))
    partner = swapped(len(X), DISPLACED, rng, None if where == "at random" else strata)
    return paired(X, Y, partner, **({"strata": strata} if where == "strata told" else {}))


@dataclass(frozen=True, eq=False)
class Problem:
    """What a problem is called, the group that it is told with, and how a draw of it is made."""

    group: str
    name: str
    make: Callable[[np.random.Generator], Pairs]


def problems(folder: Path, words: list[str]) -> list[Problem]:
    """Those whose group or name contains one of the words, the largest tables first."""
    found = []
    tables = [("tables", name, X, Y, strata) for name, X, Y, strata, _ in real_tables(folder=folder)]
    tables += [("textbook", name, X, Y, None) for name, X, Y in textbook_tables()]
    for kind, name, X, Y, strata in sorted(tables, key=lambda table: -table[2].size - table[3].size):
        for where in ("at random", "most similar", "strata told", "strata not told"):
            if strata is not None or "strata" not in where:
                make = partial(displaced, X=X, Y=Y, where=where, strata=strata)
                found.append(Problem(f"{kind}, {where}", name, make))
    found += [Problem(f"made, {group}", name, make) for group, of in MADE.items() for name, make in of.items()]
    return [one for one in found if not words or any(word in f"{one.group} | {one.name}" for word in words)]
