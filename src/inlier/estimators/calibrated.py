"""CalibratedMatcher: which pairs are real, with a false discovery rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from inlier._checks import check_choice, check_count, check_flag, check_number, warn
from inlier._typing import Array, Mask
from inlier.calibration.competition import surely_beaten
from inlier.calibration.cross_fit import CrossFit, cross_fit
from inlier.calibration.dependence import blank_rows, most_alike, warn_of_clusters, warn_of_dependence
from inlier.calibration.p_values import Calibration, evenly_spaced
from inlier.calibration.sampled_fit import sampled_fit
from inlier.calibration.second_map import tell_maps_apart
from inlier.calibration.strategy import prepared_rows
from inlier.estimators._base import ModelPairs, RowNames, prepare_model_pairs
from inlier.estimators._beside import (
    Beside,
    labels_of_both,
    labels_with_rest,
    read_beside,
    read_labels,
    read_unpaired,
)
from inlier.estimators._learned import Learned
from inlier.estimators._new_pairs import LearnedMap
from inlier.estimators._repairing import Stacked, repair_pairs
from inlier.estimators.repair import Repair
from inlier.exceptions import DependenceWarning, ParameterError, ParameterWarning
from inlier.rows import PairedRows
from inlier.rows.gaps import crossed, gap_classes, is_skewed, mostly_missing, without_gaps
from inlier.rows.null_pairs import pair_labels

_CURVED = (
    "The accepted pairs follow two linear maps better than one, and neighbours follow the same: a second map for part "
    "of the rows, or one relation that is curved? If it is a second map, its pairs are among the accepted: match the "
    "parts one by one."
)
_LOOK_ALIKES, _ROWS_FOR_LOOK_ALIKES = 200, 20_000  # pairs whose y is exchanged for the one most like it; rows looked at
_LITTLE_FOUND = 0.5  # share of accepted pairs below which a table of raw counts is pointed out
MOST_ONE_BY_ONE = 200_000  # of more pairs, maps are learned from a sample, and a histogram of the scores is judged


class CalibratedMatcher(LearnedMap):
    """Matching with p-values, q-values and a false discovery rate: the default choice.

    Learns the linear map between the two sets from the pairs that agree, or where these are few, which of them agree
    with each other by their inner products; scores each pair by what was learned without it, and compares with
    re-paired data. Says "nothing matches" when nothing does, and keeps everything when everything does.

    Parameters
    ----------
    alpha : float, default=0.01
        Largest expected share of wrong pairs among those accepted.
    whiten : bool, default=True
        First map both sets to an orthonormal basis, so that no direction dominates; where there are too few
        pairs for that, as far as they allow. Without it the directions keep their variances.
    n_folds : int, default=5
        Number of folds of the cross-fit.
    random_state : int, RandomState or None, default=None
        Deals the folds and the re-pairings.
    same_columns : bool, "auto" or two lists of int, default="auto"
        Whether column j of ``X`` and of ``y`` measure related things, such as a gene and its protein: then their
        agreement in a row is one more view of the pair. "auto" takes the columns of two frames that have the same
        names, True those or, without names, all by their position; two lists name columns of ``X`` and of ``y``.

    Attributes
    ----------
    p_values_ : ndarray of shape (n,)
        Chance that a wrong pair scores as high as this one. In many small strata, where re-pairings let nothing pass:
        that the best other row of the stratum fits as well.
    q_values_ : ndarray of shape (n,)
        Smallest ``alpha`` at which the pair is accepted; over one half for pairs that score as wrong ones do, which are
        wrong where real ones stand apart. Pairs whose x and y other rows fit far better come last.
    inlier_mask_ : ndarray of bool, shape (n,)
        True where ``q_values_ <= alpha``.
    inlier_fraction_, inlier_fraction_error_ : float
        Estimated share of real pairs, accepted or not, and its standard error (twice the binomial one; it does not
        cover the bias that remains where the scores of real and wrong pairs overlap, as the interval does).
    inlier_fraction_interval_ : (float, float)
        95 % interval of that share. Its upper end is 1 where nothing was detected, and its lower end 0 where wrong
        partners seem to resemble the right ones, or no pair stands out of its stratum: then the share is only bounded
        from one side.
    look_alike_rate_ : float
        What the promise does not cover: the share of the accepted pairs that would be accepted with the y most like
        their own, too. Near 0, swaps between the most similar rows are noticed; near 1, only ``strata`` help against
        them. NaN where nothing was accepted, of more than 200,000 pairs, or where they are not in memory.
    left_out_ : ndarray of bool, shape (n,)
        Rows of which nothing can be said, because they hold no value, or are blank as failed samples are.
    n_maps_ : int
        Number of maps that pairs follow: 0 where nothing was found. Each further map was detected among the pairs that
        the ones before left over, by the same test with its rate ``alpha``, in tables with at least ten times as many
        such pairs as columns; not looked for among more than 200,000 pairs or on a device.
    map_labels_ : ndarray of int, shape (n,)
        The map that each pair follows, 0 for the one whose pairs are accepted; -1 for none.
    detection_p_value_ : float
        Chance of evidence this strong if no pair at all were real.
    scores_ : ndarray of shape (n,)
        Log likelihood ratio of "real" against "wrong", by a map that has not seen the pair. Where inner products had
        to decide, in any of the folds, all scores are in other units: 0 for the median re-pairing, 1 where the highest
        hundredth of them begins.
    null_scores_ : ndarray
        Scores of re-pairings, which are wrong for sure, in rising order; of more than 10,000, evenly spaced ones.
    n_re_pairings_ : int
        How many re-pairings there were; no p-value is below ``1 / (n_re_pairings_ + 1)``.
    threshold_ : float
        Scores at or above it are accepted, unless another row fits better; above every score if none is.
    result_ : MatchResult
        The answer as one object.
    map_ : PairMap
        The map y = ``offset`` + x ``matrix`` that the pairs agree on: orthogonal, linear or low-rank (``kind``,
        ``rank``), as held-out pairs prefer. Worked out when it, `transform` or `predict` is first asked for.
    n_features_in_, n_outputs_ : int
        Number of columns of ``X`` and of ``y``.

    Notes
    -----
    The false discovery rate holds if the wrong pairs' x and y are independent of each other and drawn like the
    others'; with ``strata``, inside a stratum; with ``groups``, between groups. Where rows or mistakes seem to depend
    on each other and neither was given, a `DependenceWarning` names what to give. Pairs that are wrong in the same way
    (a second motion, a shifted block) agree with each other and are found as if they were real. Equal points are
    recognised: a point is never re-paired with itself, and equal pairs share a fold.

    Missing values (NaN) of tables in memory are filled in from the other columns of the same table.

    Of more than 200,000 pairs, the maps and the re-pairings come from a random sample of that many, and inner products
    are not compared; all pairs are scored, where they live. Their p- and q-values are then those of the
    lower end of a bin that holds about 1 / 16,000 of the pairs or of the re-pairings, so never too small; nothing per
    pair is kept on the host.

    The tables of the fit are kept, not copied, for `map_` and `find_partners`.

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.datasets import make_gaussian_pairs
    >>> data = make_gaussian_pairs(n=1000, d=50, inlier_fraction=0.1, noise=0.3, rng=0)
    >>> matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    >>> bool((matcher.inlier_mask_ == data.inlier_mask).all())
    True
    >>> print(f"{matcher.inlier_fraction_:.2f} +- {matcher.inlier_fraction_error_:.2f}")
    0.10 +- 0.01
    >>> matcher.map_.kind, matcher.transform(data.X[:3]).shape
    ('orthogonal', (3, 50))
    """

    inlier_fraction_: float
    inlier_fraction_error_: float
    inlier_fraction_interval_: tuple[float, float]
    look_alike_rate_: float
    is_calibrated = True
    _wrong_ones_resemble = False  # whether wrong partners seem to resemble the right ones
    _in_any_store = True
    _fewest_pairs = 4  # two folds of two, the least that can be re-paired

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __init__(
        self,
        alpha: float = 0.01,
        whiten: bool = True,
        n_folds: int = 5,
        random_state: Any = None,
        same_columns: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.whiten = whiten
        self.n_folds = n_folds
        self.random_state = random_state
        self.same_columns = same_columns

    def fit(
        self, X: Any, y: Any, groups: Any = None, strata: Any = None, sample_weight: Any = None, unpaired: Any = None
    ) -> Self:
        """Decide which rows of ``X`` and ``y`` are real pairs.

        Parameters
        ----------
        X : array-like of shape (n, d_x)
            One side of the pairs.
        y : array-like of shape (n, d_y) or (n,)
            The other side: row i is the partner of row i of ``X``.
        groups : array-like of shape (n,), optional
            Label of what each pair belongs to, where pairs stand or fall together: the subject of replicates, the scan
            line of a pixel. Pairs of one group are never split between folds, nor re-paired with each other.
        strata : array-like of shape (n,), optional
            Label of where a wrong partner comes from: the plate, the tissue, the day. Re-pairings stay inside it.
        sample_weight : array-like of shape (n,), optional
            How much each pair is trusted beforehand: it is learned from with a chance, and counts in ``map_``, in
            proportion. A pair of weight 0 does not help to learn, but is judged like the others.
        unpaired : (array-like of shape (m_x, d_x), array-like of shape (m_y, d_y)), optional
            Rows without a partner, such as the rest of two vocabularies, which help to learn: rows of both sides that
            are each other's nearest neighbours are learned from too, again and again.

        Returns
        -------
        self
        """
        given = X, y
        X, Y = self._read_pairs(X, y)
        beside = read_beside(given, (X, Y), self.same_columns, sample_weight, unpaired, MOST_ONE_BY_ONE)
        self.n_outputs_, self._names_y = Y.shape[1], RowNames.of(y, None if unpaired is None else unpaired[1])
        groups, strata = self._read_labels(X.shape[0], groups, strata)
        filled_x, filled_y = without_gaps(X, "X"), without_gaps(Y, "y")
        of_x, of_y = filled_x.share_missing, filled_y.share_missing
        strata = crossed(strata, gap_classes(of_x, of_y))
        empty = [share == 1 for share in (of_x, of_y) if share is not None and (share == 1).any()]
        left_out: Mask | None = np.any(empty, axis=0) if empty else None
        self._fit_but(left_out, filled_x.values, filled_y.values, groups, strata, beside)
        poor = mostly_missing(of_x, of_y)
        if poor is not None:
            low, high = self.inlier_fraction_interval_
            self.inlier_fraction_interval_ = low, min(high + float((poor & ~self.inlier_mask_).mean()), 1.0)
        if left_out is not None:
            warn(
                f"{int(left_out.sum())} of the {left_out.size} pairs have a row without any value, the first in row "
                f"{np.flatnonzero(left_out)[0]}; nothing can be said of them, and they are not accepted.",
            )
        for table, name in ((filled_x.values, "X"), (filled_y.values, "y")):
            self._hint_at_logarithms(table, name)
        return self

    def repair(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        strata: Any = None,
        alpha: float | None = None,
        unpaired: Any = None,
        candidates: str = "auto",
    ) -> Repair:
        """Say which rows are with a wrong partner, and with whom they belong instead.

        Give the tables again, as to `fit`.

        Parameters
        ----------
        X, y, groups, strata : as in `fit`
            The same tables and labels.
        alpha : float, optional
            Largest expected share of wrong names among those given; that of the matcher by default.
        unpaired : (array-like of shape (m_x, d_x), array-like of shape (m_y, d_y)), optional
            Rows that only one of the tables has, such as those whose id is misspelled: partners are looked for among
            them, and for them, too. They are counted behind the others. Not together with groups or strata.
        candidates : {"auto", "all"}, default="auto"
            Whose y may be named as partners. "auto": those of all rows of up to 5,000 pairs; of more, those of rows
            that may be wrong themselves. "all": those of all rows, of up to 20,000 pairs.

        Returns
        -------
        Repair

        Examples
        --------
        >>> import numpy as np
        >>> from inlier import CalibratedMatcher
        >>> from inlier.datasets import make_gaussian_pairs
        >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=1, noise=0.1, rng=0)
        >>> y = data.Y.copy()
        >>> y[[3, 7]] = y[[7, 3]]
        >>> repaired = CalibratedMatcher(random_state=0).fit(data.X, y).repair(data.X, y)
        >>> repaired.kind[[3, 7]].tolist(), repaired.partner[[3, 7]].tolist()
        (['swapped', 'swapped'], [7, 3])
        >>> bool((repaired.apply(y) == data.Y).all())
        True
        """
        check_is_fitted(self, "q_values_")
        alpha = self.alpha if alpha is None else check_number(alpha, "alpha", low=0, high=0.5)
        check_choice(candidates, ("auto", "all"), "candidates")
        labels, given = labels_of_both(X, y), (X, y)
        X, Y = self._read_again(X, y)
        n = X.shape[0]
        groups, strata = self._read_labels(n, groups, strata)
        beside = read_beside(given, (X, Y), self.same_columns, None, None, MOST_ONE_BY_ONE)
        stacked = Stacked(n)
        if unpaired is not None:
            if groups is not None or strata is not None:
                raise ParameterError("unpaired", "rows have no group and no stratum: leave these out, or the rows.")
            rest = read_unpaired(unpaired, (X, Y))
            stacked = Stacked(n, *map(len, rest))
            X, Y = stacked.tables(X, Y, rest)
            labels = labels_with_rest(labels, unpaired)
        with catch_warnings():  # of what `fit` has said already
            simplefilter("ignore")
            filled_x, filled_y = without_gaps(X, "X"), without_gaps(Y, "y")
        gaps = np.zeros(stacked.n_all, dtype=np.int64)
        for filled in (filled_x, filled_y):
            gaps += 0 if filled.missing is None else filled.missing.sum(axis=1)
        pairs = self.prepare(filled_x.values, filled_y.values)  # gaps make no strata here: they moved with their rows

        def common(some: Array) -> Array:
            near = pairs.near(some)
            found = pair_labels(near.X, near.Y, *(None if of is None else of[some] for of in (groups, strata)))
            return stacked.set_apart(found, some)

        wants_all = candidates == "all"
        found = repair_pairs(self, pairs, stacked, common, gaps, alpha, labels, beside, wants_all=wants_all)
        return replace(found, within_strata=strata is not None)

    def _hint_at_logarithms(self, table: Any, name: str) -> None:
        """Say so where little was found in a table that looks like raw counts or amounts."""
        if isinstance(table, np.ndarray) and self.inlier_mask_.mean() < _LITTLE_FOUND and is_skewed(table):
            reason = "holds no negative number and its columns are skewed, as counts and amounts are. Take logarithms"
            warn(ParameterWarning(name, f"{reason} first, as in np.log1p: the large ones drown all others."))

    def _read_labels(self, n: int, groups: Any, strata: Any) -> tuple[Array | None, Array | None]:
        return read_labels(n, groups, strata, self._fewest_pairs, MOST_ONE_BY_ONE)

    def _fit_but(
        self,
        left_out: Mask | None,
        X: Array,
        Y: Array,
        groups: Array | None,
        strata: Array | None,
        beside: Beside,
    ) -> None:
        """Fit all pairs but some, of which nothing can be said: these are not accepted, and may be real or not."""
        if left_out is None or (~left_out).sum() < self._fewest_pairs:
            self._fit(X, Y, groups, strata, beside)
            return
        kept = ~left_out
        groups, strata = (None if given is None else given[kept] for given in (groups, strata))
        self._fit(X[kept], Y[kept], groups, strata, beside.of(kept))
        self._learned = self._learned.among(kept)
        lowest = min(self.scores_.min(), self.null_scores_[0])
        fill = {"scores_": lowest, "p_values_": 1.0, "q_values_": 1.0, "inlier_mask_": False, "map_labels_": -1}
        for name, value in fill.items():
            found = getattr(self, name)
            whole = np.full(kept.size, value, dtype=found.dtype)
            whole[kept] = found
            setattr(self, name, whole)
        share, (low, high) = float(kept.mean()), self.inlier_fraction_interval_
        self.inlier_fraction_ *= share
        self.inlier_fraction_error_ *= share
        self.inlier_fraction_interval_ = share * low, 1 - share * (1 - high)

    def _fit(
        self,
        X: Array,
        Y: Array,
        groups: Array | None = None,
        strata: Array | None = None,
        beside: Beside = Beside(),  # noqa: B008 (frozen)
    ) -> None:
        check_number(self.alpha, "alpha", low=0, high=0.5)
        check_flag(self.whiten, "whiten")
        check_count(self.n_folds, "n_folds", low=2)
        pairs = PairedRows(X, Y)
        prepared, rows = self._prepared_rows(pairs)
        blank = None if rows is None else blank_rows(*rows)
        if blank is not None and (~blank).sum() >= self._fewest_pairs:
            # rows that failed agree with each other, and with nothing else
            self._fit_but(blank, X, Y, groups, strata, beside)
            return
        # deal folds; learn on the others; score pairs and re-pairings
        fit, seed = self._cross_fit(prepared, rows, groups, strata, beside)
        # p-values, share, q-values; a pair is not accepted where other rows fit far better
        judged, interval, self._wrong_ones_resemble = fit.judged(self.alpha, has_strata=strata is not None)
        self.inlier_fraction_interval_ = interval
        judged, labels = self._beside_other_maps(judged, X, Y, rows, groups, strata)  # nor where another map does
        accepted = judged.accepted(self.alpha)
        self.map_labels_ = fit.per_pair(np.where(accepted, 0, -1) if labels is None else labels, pairs)
        self.n_maps_ = int(accepted.any() if labels is None else labels.max(initial=-1) + 1)
        self.scores_ = fit.scores(pairs)
        self.p_values_ = fit.per_pair(judged.p_values, pairs)
        self.q_values_ = fit.per_pair(judged.q_values, pairs)
        self.inlier_mask_ = fit.per_pair(accepted, pairs)
        lowest = fit.levels[accepted].min() if accepted.any() else np.nextafter(fit.highest(pairs), np.inf)
        self.threshold_ = float(lowest)
        self.inlier_fraction_ = judged.inlier_fraction
        if groups is None and strata is None and accepted.any() and rows is not None:
            self._look_for_clusters(X, Y, rows, fit, float(accepted.mean()))
        self.look_alike_rate_ = self._rate_of_look_alikes(Y, rows, groups, fit, accepted)
        self.inlier_fraction_error_ = judged.inlier_fraction_error
        self.detection_p_value_ = judged.detection_p_value
        self.null_scores_ = evenly_spaced(fit.null_scores)
        self.n_re_pairings_ = fit.null_scores.size
        self._learned = Learned.of(pairs, prepared.later, fit, judged, self, beside, seed)

    def _beside_other_maps(
        self,
        judged: Calibration,
        X: Array,
        Y: Array,
        rows: tuple[Any, Any] | None,
        groups: Array | None,
        strata: Array | None,
    ) -> tuple[Calibration, Array | None]:
        """Tell pairs apart that follow another map; where they were accepted with the first, take that back.

        Also which map each pair follows; None where that is not looked for.
        """
        accepted = judged.accepted(self.alpha)
        if rows is None or not isinstance(rows[0], np.ndarray) or not accepted.any():
            return judged, None

        def fit_rest(rest: Array) -> Array:
            given = (None if labels is None else labels[rest] for labels in (groups, strata))
            with catch_warnings():
                simplefilter("ignore")  # what there is to say has been said of all pairs
                return np.asarray(clone(self).fit(X[rest], Y[rest], *given).map_labels_)

        maps = tell_maps_apart(*rows, accepted, fit_rest, check_random_state(self.random_state))
        if maps.is_curve:
            warn(_CURVED, DependenceWarning)
        doubtful = judged.doubting(maps.chance_other)
        lost = float(np.mean(accepted & ~doubtful.accepted(self.alpha)))
        if lost > 0:
            low, high = self.inlier_fraction_interval_
            error = (lost / accepted.size) ** 0.5 + doubtful.inlier_fraction_error
            # The upper end stays: where a relation bends, what follows another map is real all the same.
            self.inlier_fraction_interval_ = max(low - lost - 2 * error, 0.0), high
            doubtful = replace(doubtful, inlier_fraction=max(doubtful.inlier_fraction - lost, 0.0))
        return doubtful, maps.labels

    def _look_for_clusters(
        self, X: Array, Y: Array, rows: tuple[Any, Any], fit: CrossFit, share_accepted: float
    ) -> None:
        """Warn of swaps inside clusters of rows, if they would be accepted and nothing has been said of the kind."""
        low, high = self.inlier_fraction_interval_
        if low == 0:
            return
        found = min(share_accepted / max(self.inlier_fraction_, low), 1.0)

        def accept(x: Any, y: Any) -> Mask:
            return fit.judge(x, y) >= self.threshold_

        if warn_of_clusters((X, Y), rows, accept, found, self.alpha, check_random_state(self.random_state)):
            self.inlier_fraction_interval_ = 0.0, high

    def _rate_of_look_alikes(
        self, Y: Array, rows: tuple[Any, Any] | None, groups: Array | None, fit: CrossFit, accepted: Mask
    ) -> float:
        """Exchange the y of some accepted pairs for the one most like it: how many would still be accepted?

        Not where x would fit its own y, which another pair then has, so much better that this is sure to be noticed.
        """
        if rows is None or not isinstance(Y, np.ndarray) or not accepted.any():
            return float("nan")
        kept = check_random_state(self.random_state).permutation(len(accepted))[:_ROWS_FOR_LOOK_ALIKES]
        some = np.flatnonzero(accepted[kept])[:_LOOK_ALIKES]
        other = most_alike(Y[kept], some, None if groups is None else groups[kept])
        some, other = kept[some[other >= 0]], kept[other[other >= 0]]
        if not some.size:
            return float("nan")
        x, y = rows
        scores = fit.judge(x[some], y[other])
        passed = scores >= self.threshold_
        if fit.by_rivals is not None:
            passed &= fit.judge(x[some], y[some]) - scores <= surely_beaten(len(x))
        return float(np.mean(passed))

    def _prepared_rows(self, pairs: PairedRows) -> tuple[ModelPairs, tuple[Any, Any] | None]:
        """The pairs, prepared as they are read; also all rows at once, unless there are too many."""
        if pairs.n_pairs > MOST_ONE_BY_ONE:
            return self.prepare(pairs.X, pairs.Y), None
        near = pairs.near(slice(0, pairs.n_pairs))  # few enough to bring here, unless they are on a device
        prepared = self.prepare(near.X, near.Y)
        return prepared, prepared_rows(prepared, slice(0, pairs.n_pairs))

    def _cross_fit(
        self,
        prepared: ModelPairs,
        rows: tuple[Any, Any] | None,
        groups: Array | None,
        strata: Array | None,
        beside: Beside,
    ) -> tuple[CrossFit, int]:
        """Score all pairs and re-pairings; also a seed for what is worked out later."""
        rng = check_random_state(self.random_state)
        if rows is None:
            return sampled_fit(prepared, self.n_folds, rng), rng.randint(2**31 - 1)
        labels = pair_labels(prepared.X, prepared.Y, groups, strata)
        depend = groups is None and strata is None and warn_of_dependence(*rows, labels, rng)
        helped = beside.helper(prepared, labels, rng)
        fit = cross_fit(prepared, labels, self.n_folds, rng, rows, helped, beside.most_deals)
        return replace(fit, rows_depend=depend), rng.randint(2**31 - 1)

    def prepare(self, X: Array, Y: Array) -> ModelPairs:
        """Centre both sets, whiten them as far as there are pairs for it, give them unit mean square."""
        return prepare_model_pairs(X, Y, whiten=self.whiten)
