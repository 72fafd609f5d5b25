"""What a calibrated fit is given besides the pairs: trust, rows without a partner, columns that correspond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inlier._checks import check_flag, check_labels, relative_weights
from inlier._typing import Array, FloatArray, Mask
from inlier.calibration.cross_fit import MOST_DEALS, Teacher
from inlier.calibration.models.learner import Learner, PairScorer
from inlier.calibration.models.same_columns import LearnerWithColumns
from inlier.estimators._base import ModelPairs, column_names, row_labels
from inlier.exceptions import ParameterError
from inlier.rows import PairedRows, as_table
from inlier.rows.backend import to_host
from inlier.rows.gaps import fill_gaps

_FEWEST_SHARED = 3  # columns of the same name that are noticed: fewer correlate by chance
_DEALS_OF_POOLS = 1  # of the folds, at most; with rows that have no partner each deal takes minutes


@dataclass(frozen=True, eq=False)
class SideInformation:
    """What is known besides the pairs; nothing by default."""

    trust: FloatArray | None = None  # of each pair, between 0 and 1
    unpaired: tuple[FloatArray, FloatArray] | None = None  # rows without a partner
    columns: tuple[Array, Array] | None = None  # numbers of the columns that correspond

    def of(self, rows: Mask) -> SideInformation:
        """The same for some of the pairs."""
        return self if self.trust is None else replace(self, trust=self.trust[rows])

    @property
    def most_deals(self) -> int:
        """How often the folds are dealt at most."""
        return MOST_DEALS if self.unpaired is None else _DEALS_OF_POOLS

    def rest(self, prepared: ModelPairs) -> tuple[FloatArray, FloatArray] | None:
        """Rows without a partner, prepared as the pairs are."""
        return (
            None if self.unpaired is None else (prepared.later.x(self.unpaired[0]), prepared.later.y(self.unpaired[1]))
        )

    def helper(
        self, prepared: PairedRows, labels: Array, rng: np.random.RandomState
    ) -> Callable[[Learner], Teacher] | None:
        """What makes of a learner one that knows this; None where there is nothing to know."""
        if self.trust is None and self.columns is None:
            return None

        def helped(learner: Learner) -> Teacher:
            teacher: Teacher = learner
            if self.columns is not None:
                teacher = LearnerWithColumns(teacher, prepared, self.columns, labels, rng)
            return teacher if self.trust is None else _Trusting(teacher, self.trust, rng)

        return helped


@dataclass(frozen=True, eq=False)
class _Trusting:
    """Learns from each pair with a chance in proportion to how much it is trusted."""

    teacher: Teacher
    trust: FloatArray
    rng: np.random.RandomState

    def learn(self, training: Array) -> PairScorer | None:
        taken = training[self.rng.uniform(size=training.size) < self.trust[training]]
        return self.teacher.learn(taken) if taken.size else None


def read_side_information(
    given: tuple[Any, Any],
    tables: tuple[Array, Array],
    same_columns: Any,
    sample_weight: Any,
    unpaired: Any,
    most: int,
) -> SideInformation:
    """Check what was given besides the pairs, which are known as they were given and as tables."""
    n = int(tables[0].shape[0])
    trust = relative_weights(sample_weight, n)
    trust = None if trust is None or (trust == 1).all() else trust
    rest = None if unpaired is None else filled_tables(read_unpaired(unpaired, tables))
    rest = None if rest is None or not len(rest[0]) + len(rest[1]) else rest
    columns = _read_columns(given, tables, same_columns)
    for name, value in (("sample_weight", trust), ("unpaired", rest), ("same_columns=True", columns)):
        if value is not None and n > most:
            if name == "same_columns=True" and same_columns == "auto":
                return SideInformation()
            raise ParameterError(
                name, f"is respected among up to {most:,} pairs, and there are {n:,}. Fit a part of them."
            )
    return SideInformation(trust, rest, columns)


def read_labels(n: int, groups: Any, strata: Any, fewest_groups: int, most: int) -> tuple[Array | None, Array | None]:
    """Check groups and strata, and number them."""
    groups, strata = check_labels(groups, "groups", n), check_labels(strata, "strata", n)
    if groups is not None and groups.max() + 1 < fewest_groups:
        raise ParameterError(
            "groups",
            f"name {groups.max() + 1} group(s), and at least {fewest_groups} are needed: a group is judged by "
            f"what was learned from others, and compared with others. If wrong partners come from the same group, "
            f"give them as strata.",
        )
    if strata is not None and strata.max() + 1 == n:
        raise ParameterError("strata", "are different for every pair, so that there is nothing to re-pair inside one.")
    for name, labels in (("groups", groups), ("strata", strata)):
        if labels is not None and n > most:
            raise ParameterError(
                name,
                f"are respected among up to {most:,} pairs, and there are {n:,}. "
                f"Fit a part of the groups or strata at a time.",
            )
    return groups, strata


def filled_tables(tables: tuple[Array, Array]) -> tuple[FloatArray, FloatArray]:
    """Rows of both sides in float64, their gaps filled."""
    x, y = (np.asarray(fill_gaps(table).values, dtype=np.float64) for table in tables)
    return x, y


def read_unpaired(unpaired: Any, tables: tuple[Array, Array]) -> tuple[Array, Array]:
    """Check rows without a partner, which have the columns of the tables."""
    if not isinstance(unpaired, (tuple, list)) or len(unpaired) != 2:
        raise ParameterError("unpaired", "must be two tables, of rows without a partner: (X_rest, y_rest).")
    rest = []
    for name, rows, like in zip(("X", "y"), unpaired, tables, strict=True):
        table = to_host(as_table(rows, f"unpaired {name}", one_column=name == "y"))
        if table.shape[1] != like.shape[1]:
            raise ParameterError(
                "unpaired", f"has rows of {table.shape[1]} columns for {name}, which has {like.shape[1]}."
            )
        rest.append(table)
    return rest[0], rest[1]


def read_unpaired_groups(groups: Any, rest: tuple[Array, Array], names: Array | None) -> tuple[Array, Array] | None:
    """Numbers of the groups of rows without a partner, as those of the pairs are numbered; new ones behind them."""
    if groups is None:
        return None
    if names is None:
        raise ParameterError(
            "unpaired_groups", "belong to a fit with groups. Give fit(X, y, groups) those of the pairs."
        )
    if (
        not isinstance(groups, (tuple, list))
        or len(groups) != 2
        or [len(of) for of in groups] != [len(t) for t in rest]
    ):
        raise ParameterError(
            "unpaired_groups", "must be two lists, a group for each row of unpaired: (groups_X, groups_y)."
        )
    number = {name: k for k, name in enumerate(names.astype(str).tolist())}
    told = [np.asarray(of).astype(str).tolist() for of in groups]
    of_x, of_y = (np.array([number.setdefault(name, len(number)) for name in of], dtype=np.int64) for of in told)
    return of_x, of_y


def _read_columns(given: tuple[Any, Any], tables: tuple[Array, Array], same_columns: Any) -> tuple[Array, Array] | None:
    """Numbers of the columns of X and of y that correspond; None where none do."""
    if isinstance(same_columns, (tuple, list)):
        return _by_number(same_columns, tables)
    if not (isinstance(same_columns, str) and same_columns == "auto"):
        check_flag(same_columns, "same_columns")
        if not same_columns:
            return None
    names = [column_names(table) for table in given]
    if names[0] is not None and names[1] is not None:
        place = {name: k for k, name in enumerate(names[1])}
        shared = [(k, place[name]) for k, name in enumerate(names[0]) if name in place]
        if len(shared) >= _FEWEST_SHARED or (same_columns is True and shared):
            return np.array([k for k, _ in shared]), np.array([k for _, k in shared])
        if same_columns is True:
            raise ParameterError("same_columns", "is True, but no column of X has the name of one of y.")
        return None
    if same_columns is not True:
        return None
    n_x, n_y = (int(table.shape[1]) for table in tables)
    if n_x != n_y:
        raise ParameterError(
            "same_columns",
            f"is True, but X has {n_x} columns and y has {n_y}, and they have no names. Give data frames, or tables "
            f"with the columns that correspond in the same order.",
        )
    return np.arange(n_x), np.arange(n_y)


def _by_number(same_columns: Sequence[Any], tables: tuple[Array, Array]) -> tuple[Array, Array]:
    """Columns that were named by their numbers, in X and in y."""
    numbers = [np.asarray(side) for side in same_columns]
    if len(numbers) != 2 or any(side.ndim != 1 or side.dtype.kind not in "iu" for side in numbers):
        raise ParameterError("same_columns", "must be two lists of column numbers, of X and of y, or True or False.")
    if numbers[0].size != numbers[1].size or not numbers[0].size:
        raise ParameterError(
            "same_columns", f"names {numbers[0].size} columns of X and {numbers[1].size} of y; they must be as many."
        )
    for side, table, name in zip(numbers, tables, ("X", "y"), strict=True):
        if side.min() < 0 or side.max() >= table.shape[1]:
            raise ParameterError(
                "same_columns", f"names column {side.max()} of {name}, which has {table.shape[1]}, counted from 0."
            )
    return numbers[0], numbers[1]


def labels_of_both(X: Any, y: Any) -> tuple[Any, Any] | None:
    """Labels of the rows of two data frames, if both have any."""
    labels = row_labels(X), row_labels(y)
    return None if any(of is None for of in labels) else labels


def labels_with_rest(labels: tuple[Any, Any] | None, unpaired: Any) -> tuple[Any, Any] | None:
    """The same with those of rows without a partner behind them, if all have any."""
    rest = labels_of_both(*unpaired)
    if labels is None or rest is None:
        return None
    of_x, of_y = (of.append(others) for of, others in zip(labels, rest, strict=True))
    return of_x, of_y
