"""Repair, the answer: which rows are wrong, and with whom they belong instead. How it is found is in `_repairing`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from inlier._typing import Array, FloatArray, Mask
from inlier.rows.backend import to_host

KINDS = ("kept", "swapped", "moved", "copy", "lost", "poor", "doubtful")
MORE_LIKELY = 0.5  # chance from which a row is a suspect, or lost


@dataclass(frozen=True, eq=False, repr=False)
class Repair:
    """What becomes of each row of X: kept with its partner, or with whom instead.

    Attributes
    ----------
    kind : ndarray of str, shape (n,)
        ``kept``; ``swapped`` (with its partner's pair); ``moved`` (in a chain or a cycle of more than two); ``copy``
        (its y, or its x, is a near-copy of that of the pair ``copy_of``); ``lost`` (its partner is not here); ``poor``
        (fits badly, but is hardly with a wrong partner: a bad sample); ``doubtful``.
    partner : ndarray of int, shape (n,)
        Row of y that belongs to each row of X; -1 where it is not here, or cannot be told. Rows that were given without
        a partner are counted behind the others, of X as of y.
    q_values : ndarray of shape (n,)
        Smallest ``alpha`` at which the partner is named; of kept rows, that of the pair.
    probability : ndarray of shape (n,)
        Chance that what is said of the row is right: that this is its partner, or that it has none here.
    chance_wrong : ndarray of shape (n,)
        Chance that the row is not with its partner as the tables are; NaN where it was given without one.
    own_rank : ndarray of int, shape (n,)
        Place of the row's own partner among the y that fit its x, and of its x among those that fit its y, on average;
        1 if none fits better, counted among all rows looked at; 0 if not compared.
    runner_up : ndarray of int, shape (n,)
        Row of y that comes next; -1 where there is none.
    copy_of : ndarray of int, shape (n,)
        Pair that the row repeats; -1 where it repeats none.
    gaps : ndarray of int, shape (n,)
        How many of the pair's values were missing and had to be filled in.
    alpha : float
        Largest expected share of wrong names among those given.
    tells_innocent : bool
        Whether scores part right pairs from wrong ones so far that `n_innocent` is to be relied on. Where the share of
        real pairs has no upper end near its estimate, right pairs look like wrong ones, and it is a bound from below.

    Notes
    -----
    Made by `CalibratedMatcher.repair`.

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=1, noise=0.1, rng=0)
    >>> y = data.Y.copy()
    >>> y[[3, 7]] = y[[7, 3]]
    >>> repaired = CalibratedMatcher(random_state=0).fit(data.X, y).repair(data.X, y)
    >>> int(repaired.suspects.sum()), repaired.kind[3].item(), repaired.partner[3].item(), repaired.chains
    (2, 'swapped', 7, ['3 ↔ 7'])
    """

    kind: Array
    partner: Array
    q_values: FloatArray
    probability: FloatArray
    chance_wrong: FloatArray
    own_rank: Array
    runner_up: Array
    copy_of: Array
    gaps: Array
    alpha: float
    labels: tuple[Any, Any] | None = None  # of the rows of X and y, where they have any
    n_unpaired: tuple[int, int] = 0, 0  # rows of X and of y, behind the others, that were given without a partner
    tells_innocent: bool = True
    within_strata: bool = False  # whether partners were looked for in the same stratum alone

    @property
    def n_rows_y(self) -> int:
        """How many rows of y there are, with and without a partner."""
        return int(self.partner.size - self.n_unpaired[0] + self.n_unpaired[1])

    @property
    def suspects(self) -> Mask:
        """Rows that are more likely wrong than right as the tables are."""
        return self.chance_wrong > MORE_LIKELY

    @property
    def n_innocent(self) -> float:
        """How many of the suspects are expected to be right."""
        return float(np.sum(1 - self.chance_wrong[self.suspects]))

    @property
    def suspects_error_rate(self) -> float:
        """Expected share of right pairs among the suspects."""
        return self.n_innocent / max(int(self.suspects.sum()), 1)

    @property
    def left_over(self) -> Array:
        """Rows of y that are nobody's partner."""
        return np.setdiff1d(np.arange(self.n_rows_y), self.partner)

    @property
    def chains(self) -> list[str]:
        """Whose partner is with whom, with arrows: after each row the one that has its partner, or a row of y alone."""
        n_pairs = self.kind.size - self.n_unpaired[0]
        of_x, of_y = (range(self.kind.size), range(self.n_rows_y)) if self.labels is None else self.labels
        named = np.isin(self.kind, ("swapped", "moved"))
        left, chains = set(np.flatnonzero(named).tolist()), []
        ends = set(left) - set(self.partner[named & (self.partner < n_pairs)].tolist())
        for start in [*sorted(ends), *sorted(left - ends)]:
            if start not in left:
                continue
            chain = [start]
            while chain[-1] in left and (len(chain) == 1 or chain[-1] < n_pairs):
                left.discard(chain[-1])
                chain.append(int(self.partner[chain[-1]]))
            is_swap = len(chain) == 3 and chain[0] == chain[2]
            chain = chain[:2] if is_swap else chain
            arrow = " \N{LEFT RIGHT ARROW} " if is_swap else " \N{RIGHTWARDS ARROW} "
            chains.append(arrow.join(map(str, [*(of_x[row] for row in chain[:-1]), of_y[chain[-1]]])))
        return chains

    @property
    def innocent_in_words(self) -> str:
        """How many of the suspects are innocent, and how well that is known."""
        if not self.tells_innocent:
            why = "many right pairs look like wrong ones here"
            return f"at least {self.n_innocent:.1f} are innocent, perhaps far more: {why}"
        return f"about {self.n_innocent:.1f} are innocent" if self.n_innocent >= 0.05 else "hardly any is innocent"

    @property
    def answer(self) -> str:
        """What was found, in a few sentences."""
        n_pairs = self.kind.size - self.n_unpaired[0]
        pairs, others = (Counter(part.tolist()) for part in np.split(self.kind, [n_pairs]))
        suspects, named = int(self.suspects.sum()), pairs["swapped"] + pairs["moved"]
        if not suspects + named + pairs["kept"] + others["moved"]:
            return f"Of none of the {n_pairs:,} rows can be told whether it is with its partner."
        if suspects or named:
            seem = ("looks" if suspects == 1 else "look") + " mispaired"
            if self.tells_innocent:
                seem = ("is" if suspects == 1 else "are") + " more likely with a wrong partner than not"
            text = f"{suspects:,} of {n_pairs:,} rows {seem}; of these {self.innocent_in_words}. "
            names = f"{_count(named, 'partner is', 'partners are')} named"
            how = f"{pairs['swapped']:,} swapped, {pairs['moved']:,} in chains or cycles"
            text += f"{names}: {how}." if named else "No partner could be named."
        else:
            text = f"None of the {n_pairs:,} rows is more likely with a wrong partner than not."
        if self.n_unpaired[0]:
            have = "has one" if others["moved"] == 1 else "have one"
            rows = _count(self.n_unpaired[0], "row", "rows")
            text += f" Of the {rows} given without a partner, {others['moved']:,} {have} now."
        where = "in the same stratum" if self.within_strata else "here"
        rest = {
            _count(pairs["copy"], "copy", "copies"): pairs["copy"],
            f"{pairs['lost']:,} whose partner was not found {where}": pairs["lost"],
            f"{pairs['poor']:,} poor (bad rather than wrongly paired)": pairs["poor"],
            f"{pairs['doubtful']:,} doubtful": pairs["doubtful"],
        }
        if any(rest.values()):
            kept = [] if suspects or named else [f"{pairs['kept']:,} kept"]
            text += f" {', '.join(kept + [words for words, number in rest.items() if number])}."
        with_gaps = int((self.suspects & (self.gaps > 0)).sum())
        if with_gaps:
            text += f" {_count(with_gaps, 'suspect has', 'of the suspects have')} gaps that were filled in."
        return text

    def __repr__(self) -> str:
        return f"<Repair: {self.answer}>"

    def apply(self, y: Any) -> Any:
        """Return ``y`` in the order of X: row i is the partner of row i of X, NaN where there is none.

        Parameters
        ----------
        y : array-like or data frame
            The table that was matched, or any other in the same order; where rows without a partner were given, these
            behind it.

        Returns
        -------
        DataFrame, Series or ndarray
            A frame of pandas or polars where ``y`` is one, else a NumPy array, wherever ``y`` lives.
        """
        y = y if hasattr(y, "iloc") or hasattr(y, "gather_every") else to_host(y)
        if len(y) != self.n_rows_y:
            raise ValueError(f"y has {len(y)} rows, but {self.n_rows_y} were repaired. Give the y that was matched.")
        gone = self.partner < 0
        if hasattr(y, "iloc"):
            moved = y.iloc[np.where(gone, 0, self.partner)].copy()
            if self.labels is not None:
                moved.index = self.labels[0]
            elif self.n_unpaired == (0, 0):
                moved.index = y.index
            return moved.mask(gone) if moved.ndim == 1 else moved.mask(np.repeat(gone[:, None], moved.shape[1], axis=1))
        if hasattr(y, "gather_every"):  # of polars, where a missing number of a row makes a missing row
            import polars

            rows = polars.Series([None if row < 0 else row for row in self.partner.tolist()], dtype=polars.Int64)
            return y.select(polars.all().gather(rows)) if hasattr(y, "columns") else y.gather(rows)
        moved = y[self.partner]
        if gone.any():
            moved = moved.astype(np.result_type(y.dtype, np.float32) if y.dtype.kind in "biu" else y.dtype)
            moved[gone] = "" if y.dtype.kind in "US" else np.nan
        return moved

    def columns(self) -> dict[str, Array]:
        """Everything there is per row of X, by name."""
        return {
            "kind": self.kind,
            "partner": self.partner,
            "q_value": self.q_values,
            "probability": self.probability,
            "chance_wrong": self.chance_wrong,
            "own_rank": self.own_rank,
            "runner_up": self.runner_up,
            "copy_of": self.copy_of,
            "gaps": self.gaps,
        }

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per row of X, with the labels of the tables where they have any."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame needs pandas; install it with: pip install 'inlier[io]'") from error
        if self.labels is None:
            return pandas.DataFrame(self.columns(), index=pandas.RangeIndex(self.kind.size, name="row"))
        of_x, of_y = (np.asarray(labels, dtype=object) for labels in self.labels)
        columns = self.columns()
        for name, labels in (("partner", of_y), ("runner_up", of_y), ("copy_of", of_x)):
            found = labels[columns[name]]
            found[columns[name] < 0] = None
            columns[name] = found
        return pandas.DataFrame(columns, index=self.labels[0])


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
