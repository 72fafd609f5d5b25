"""Judge: what was learned from some pairs, small enough to be sent to where all the others are."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from inlier._checks import check_number, check_paired
from inlier._typing import Array, FloatArray
from inlier.exceptions import ParameterError
from inlier.judge import batches
from inlier.judge.drift import Drift
from inlier.judge.files import content_of, packed
from inlier.judge.levels import Levels
from inlier.judge.side import Side
from inlier.judge.views import View, as_dict, of_dict
from inlier.result import MatchResult
from inlier.rows import as_table
from inlier.rows.backend import to_host

_ROWS = 4096  # that are judged at a time; the answer of a row does not depend on it
_DRIFT_LEVELS = 64  # bins in which the scores of a stream are compared


@dataclass(frozen=True, eq=False, repr=False)
class Judge:
    """Tells of new pairs how likely they are real, without a fit: the null of the fit is frozen.

    Made by `CalibratedMatcher`, as ``matcher.judge_``. The answer of a pair is the same, bit for bit, whether it comes
    alone or among a million others. It can be pickled, and kept in a file of less than a megabyte that no program has
    to trust.

    Attributes
    ----------
    n_features_in, n_outputs : int
        Number of columns of x and of y.
    alpha : float
        Rate at which pairs are accepted: that of the matcher.
    n_pairs, n_re_pairings : int
        Pairs that the judge has not learned from, and re-pairings of them, from which its p- and q-values come.
    inlier_fraction : float
        Share of real pairs in the fit.
    columns_x, columns_y : tuple of str, optional
        Names of the columns, where the fit had frames.

    Notes
    -----
    *p-values* compare with re-pairings of the fit, *q-values* with its pairs: they hold as long as the new pairs are
    like those, drawn alike and wrong as often. `drift` tells where that ends. `CalibratedMatcher.predict_pairs` judges
    a batch beside its own re-pairings, and needs no such promise.

    A pair is *certain* if pairs of the fit that scored as high could not be replaced by another row: on average over
    these, at most ``alpha`` of them could, or are wrong. The rows that it lives among are not asked.

    Examples
    --------
    >>> from inlier import CalibratedMatcher, Judge
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=2000, d=20, inlier_fraction=0.7, noise=0.2, rng=0)
    >>> judge = CalibratedMatcher(random_state=0).fit(data.X[:1000], data.Y[:1000]).judge_
    >>> result = judge(data.X[1000:], data.Y[1000:])
    >>> round(float((result.inlier_mask == data.inlier_mask[1000:]).mean()), 2)
    1.0
    >>> float(judge(data.X[1234:1235], data.Y[1234:1235]).scores[0]) == float(result.scores[234])
    True
    """

    sides: tuple[Side, Side]
    views: tuple[View, ...]
    levels: Levels
    alpha: float
    n_pairs: int
    n_re_pairings: int
    inlier_fraction: float
    columns_x: tuple[str, ...] | None = None
    columns_y: tuple[str, ...] | None = None

    @property
    def n_features_in(self) -> int:
        """Number of columns of x."""
        return self.sides[0].n_columns

    @property
    def n_outputs(self) -> int:
        """Number of columns of y."""
        return self.sides[1].n_columns

    def __call__(self, x: Any, y: Any) -> MatchResult:
        """Judge pairs.

        Parameters
        ----------
        x, y : array-like of shape (m, d_x), (m, d_y)
            Row i of one is the supposed partner of row i of the other: arrays, frames, columns of vectors.

        Returns
        -------
        MatchResult
            Scores, p-, q- and certain q-values, and which pairs are accepted and certain at ``alpha``.
        """
        x, y = (self._read(table, side) for table, side in ((x, 0), (y, 1)))
        check_paired(x, y, fewest=0)
        scores = self._scores(x, y)
        p, q, certain = self.levels.read(scores)
        accepted, threshold = q <= self.alpha, self.levels.lowest(self.alpha)
        is_certain = certain <= self.alpha
        return MatchResult("Judge", accepted, scores, threshold, p, q, certain, is_certain)

    def add_to(self, batch: Any, x: Any, y: Any) -> Any:
        """Judge the rows of a batch, and return it with the answer beside them.

        Parameters
        ----------
        batch : Arrow record batch or table, pandas or polars frame, mapping of names to columns
            As `datasets`, Ray, Spark, Dask and DuckDB hand them to a function.
        x, y : str or list of str
            The column of each side, of vectors, or its columns of numbers.

        Returns
        -------
        the same kind
            With ``inlier``, ``inlier_score``, ``inlier_p_value``, ``inlier_q_value``, ``inlier_certain_q_value`` and
            ``inlier_certain``.

        Examples
        --------
        >>> import numpy as np
        >>> from inlier import CalibratedMatcher
        >>> from inlier.datasets import make_gaussian_pairs
        >>> data = make_gaussian_pairs(n=1000, d=20, inlier_fraction=0.7, noise=0.2, rng=0)
        >>> judge = CalibratedMatcher(random_state=0).fit(data.X, data.Y).judge_
        >>> judged = judge.add_to({"id": np.arange(1000), "a": data.X, "b": data.Y}, x="a", y="b")
        >>> list(judged)[:5]
        ['id', 'a', 'b', 'inlier', 'inlier_score']
        """
        result = self(batches.table_of(batch, x, "x"), batches.table_of(batch, y, "y"))
        columns = {name if name == "inlier" else f"inlier_{name}": of for name, of in result.columns().items()}
        return batches.with_columns(batch, {"inlier": columns.pop("inlier"), **columns})

    def drift(self, error: float = 0.01) -> Drift:
        """Watch a stream: from which row on are the pairs unlike those of the fit?

        Parameters
        ----------
        error : float, default=0.01
            Chance that a stream that is like the fit is ever called unlike it.

        Returns
        -------
        Drift
            Give it each batch's answer in turn, ``update(judge(x, y))``, and look at ``from_row``.

        Examples
        --------
        >>> from inlier import CalibratedMatcher
        >>> from inlier.datasets import make_gaussian_pairs
        >>> data = make_gaussian_pairs(n=4000, d=20, inlier_fraction=0.7, noise=0.2, rng=0)
        >>> judge = CalibratedMatcher(random_state=0).fit(data.X[:1000], data.Y[:1000]).judge_
        >>> watch = judge.drift().update(judge(data.X[1000:], data.Y[1000:]))
        >>> watch
        <nothing says that these 3,000 pairs are unlike those of the fit>
        >>> watch.update(judge(data.X[:1000] + 3, data.Y[:1000])).from_row > 2000
        True
        """
        levels, counts = self.levels.pairs, self.levels.counts
        ends = np.searchsorted(np.cumsum(counts[1:]), np.linspace(0, counts.sum(), _DRIFT_LEVELS + 1)[1:-1])
        kept = np.unique(np.minimum(ends, levels.size - 1))
        counts = np.add.reduceat(counts, np.concatenate([[0], kept + 1]))
        return Drift(levels[kept], counts, check_number(error, "error", low=0, high=1))

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write the judge to a file (npz): arrays and a line of JSON, no pickle.

        Parameters
        ----------
        path : path
            Where to. A file that is there is replaced, at once or not at all.
        """
        from inlier.io.write import write_file

        write_file(Path(path), self._packed())

    @staticmethod
    def from_file(path: str | PathLike[str]) -> Judge:
        """Read a judge that `to_file` wrote. Nothing in the file is run.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Judge

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from inlier import CalibratedMatcher, Judge
        >>> from inlier.datasets import make_gaussian_pairs
        >>> data = make_gaussian_pairs(n=500, d=5, inlier_fraction=0.8, noise=0.2, rng=0)
        >>> judge = CalibratedMatcher(random_state=0).fit(data.X, data.Y).judge_
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     judge.to_file(Path(folder) / "judge.npz")
        ...     again = Judge.from_file(Path(folder) / "judge.npz")
        >>> bool((again(data.X, data.Y).scores == judge(data.X, data.Y).scores).all())
        True
        """
        judge: Judge = content_of(Path(path), Judge._of_parts)
        return judge

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (self._packed(),)

    def __repr__(self) -> str:
        what = "nothing was learned" if not self.views else f"{self.n_re_pairings:,} re-pairings in its null"
        return f"<Judge of pairs of {self.n_features_in} and {self.n_outputs} columns: {what}>"

    def _packed(self) -> bytes:
        arrays = {
            f"{name}_{of}": part
            for name, side in zip("xy", self.sides, strict=True)
            for of, part in side.arrays().items()
        }
        arrays |= {f"levels_{of}": part for of, part in self.levels.arrays().items()}
        names = ("alpha", "n_pairs", "n_re_pairings", "inlier_fraction", "columns_x", "columns_y")
        facts = {name: getattr(self, name) for name in names} | {"views": [as_dict(view) for view in self.views]}
        return packed(facts, arrays)

    @staticmethod
    def _of_parts(facts: dict[str, Any], arrays: dict[str, Array]) -> Judge:
        """Put together what was stored; KeyError, TypeError or ValueError where it is no judge."""

        def part(prefix: str) -> dict[str, Array]:
            return {name.removeprefix(prefix): of for name, of in arrays.items() if name.startswith(prefix)}

        sides = Side.of_arrays(part("x_")), Side.of_arrays(part("y_"))
        width = min(side.offset.size for side in sides)
        views = tuple(of_dict(view, width) for view in facts["views"])
        names = tuple(None if facts[of] is None else tuple(map(str, facts[of])) for of in ("columns_x", "columns_y"))
        counts = int(facts["n_pairs"]), int(facts["n_re_pairings"])
        levels, alpha, share = Levels.of_arrays(part("levels_")), float(facts["alpha"]), float(facts["inlier_fraction"])
        return Judge(sides, views, levels, alpha, *counts, share, *names)

    def _read(self, table: Any, number: int) -> Array:
        name, expected = "xy"[number], (self.columns_x, self.columns_y)[number]
        given = batches.column_names(table)
        if expected is not None and given is not None and given != expected:
            raise ParameterError(name, f"has other columns than in the fit, or in another order: {given[:5]}.")
        rows = to_host(as_table(table, name, one_column=True))
        side = self.sides[number]
        if rows.shape[1] != side.n_columns:
            raise ParameterError(name, f"has {rows.shape[1]} columns, and had {side.n_columns} in the fit.")
        return rows

    def _scores(self, x: Array, y: Array) -> FloatArray:
        scores = np.zeros(len(x))
        if not self.views:
            return scores
        for rows in _stretches(len(x)):
            for name, table in (("x", x), ("y", y)):
                if np.isinf(table[rows]).any():
                    raise ParameterError(name, "contains infinity. Leave such rows out, or write NaN for missing.")
            with np.errstate(over="ignore", invalid="ignore"):
                a, b = (side.features(table[rows]) for side, table in zip(self.sides, (x, y), strict=True))
                total = sum(view.scores(a, b) for view in self.views)
            scores[rows] = np.where(np.isnan(total), -np.inf, total)  # of numbers too large to be squared
        return scores


def _stretches(n: int) -> Iterator[slice]:
    yield from (slice(start, min(start + _ROWS, n)) for start in range(0, n, _ROWS))


def _unpacked(content: bytes) -> Judge:
    judge: Judge = content_of(io.BytesIO(content), Judge._of_parts)
    return judge
