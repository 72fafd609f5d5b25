"""CalibratedMatcher: which pairs are real, with a false discovery rate; and which are this one and no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self
from warnings import catch_warnings, filterwarnings

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from inlier._checks import check_count, check_flag, check_number, labels_as_one_kind, warn, warn_if_transposed
from inlier._typing import Array, Mask
from inlier.calibration.checks import chosen_by_nearness, one_column
from inlier.calibration.checks.copied_columns import copied_columns, warning_of, without_columns
from inlier.calibration.cross_fit import CrossFit, cross_fit
from inlier.calibration.models.learner import PreparedPairs, prepared_rows
from inlier.calibration.p_values import evenly_spaced
from inlier.calibration.sampled_fit import sampled_fit
from inlier.calibration.true_partners import without_true_partners
from inlier.calibration.verdict import Verdict
from inlier.estimators._base import ModelPairs, Preparation, RowNames, prepare_model_pairs
from inlier.estimators._learned import Compared, Learned
from inlier.estimators._new_pairs import LearnedMap
from inlier.estimators._repairing import repair_pairs
from inlier.estimators._side_information import (
    SideInformation,
    filled_tables,
    labels_of_both,
    labels_with_rest,
    read_labels,
    read_side_information,
    read_unpaired,
    read_unpaired_groups,
)
from inlier.estimators._slipping import put_in_step, read_plates, repair_in_step
from inlier.exceptions import DependenceWarning, ParameterError, ParameterWarning
from inlier.repair.answer import Repair
from inlier.repair.odds import MOST_COMPARED, Odds
from inlier.repair.partner_sets import PartnerSets, look_for_others
from inlier.rows import PairedRows
from inlier.rows.backend import to_host
from inlier.rows.columns import in_usual_units
from inlier.rows.gaps import Filled, crossed, gap_classes, is_skewed, number_of_gaps, without_gaps
from inlier.rows.null_pairs import pair_labels

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
        Chance that a wrong pair scores as high as this one.
    q_values_ : ndarray of shape (n,)
        Smallest ``alpha`` at which the pair is accepted: better than a stranger's.
    inlier_mask_ : ndarray of bool, shape (n,)
        True where ``q_values_ <= alpha``.
    certain_q_values_ : ndarray of shape (n,)
        Smallest ``alpha`` at which the pair is certain: this one and no other, whatever mistakes there are. 1 where
        another row would fit as well.
    certain_mask_ : ndarray of bool, shape (n,)
        True where ``certain_q_values_ <= alpha``.
    n_rivals_ : ndarray of int, shape (n,)
        Other rows of y that fit x_i as a partner would, or of X that fit y_i, whichever are more; -1 where none were
        compared.
    inlier_fraction_ : float
        Estimated share of real pairs, accepted or not.
    inlier_fraction_at_least_ : float
        Bound on that share from below, with 95 % confidence. There is none from above: real pairs with much noise look
        like strangers.
    left_out_ : ndarray of bool, shape (n,)
        Rows of which nothing can be said, because they hold no value.
    verdict_ : Verdict
        All of this as one frozen value; ``verdict_.why_not(alpha)`` says what refused each pair.
    detection_p_value_ : float
        Chance of evidence this strong if no pair at all were real.
    scores_ : ndarray of shape (n,)
        By what has not seen the pair: the log likelihood ratio of "real" against "wrong" by a linear map; the sum of
        two cosines by ridges; by inner products, 0 for the median re-pairing, 1 where the highest hundredth begins.
    null_scores_ : ndarray
        Scores of re-pairings, which are wrong for sure, in rising order; of more than 10,000, evenly spaced ones.
    n_re_pairings_ : int
        How many re-pairings there were; no p-value is below ``1 / (n_re_pairings_ + 1)``.
    threshold_ : float
        Scores at or above it are accepted; above every score if none is.
    result_ : MatchResult
        The answer as one object.
    map_ : PairMap
        The map y = ``offset`` + x ``matrix`` that the pairs agree on: orthogonal, linear or low-rank (``kind``,
        ``rank``), as held-out pairs prefer. Worked out when it, `transform` or `predict` is first asked for.
    columns_ : tuple of (side, column, kind, n, how)
        Of frames with more than numbers: what each column holds, and how many columns of numbers it became, or why
        none. Empty for tables of numbers.
    n_features_in_, n_outputs_ : int
        Number of columns of ``X`` and of ``y``, as they are compared.

    Notes
    -----
    There are two promises. *Accepted*: better than a stranger's. The false discovery rate holds if the wrong pairs' x
    and y are independent of each other and drawn like the others'; with ``strata``, inside a stratum; with ``groups``,
    between groups. *Certain*: this one and no other, which holds whatever the mistakes are, as long as the partner is
    in the table. Pairs that were chosen because they are near each other in the columns that judge them are refused.

    Rows with an equal x, or an equal y, count as one: none is judged by what was learned from another. If each of them
    was measured by itself, say so with ``groups=np.arange(n)``. A column that is the same in both tables in every row
    is left out.

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
    >>> data = make_gaussian_pairs(n=1000, d=50, inlier_fraction=0.3, noise=0.3, rng=0)
    >>> matcher = CalibratedMatcher(random_state=0).fit(data.X, data.Y)
    >>> bool((matcher.inlier_mask_ == data.inlier_mask).all())
    True
    >>> print(f"{matcher.inlier_fraction_:.2f}, at least {matcher.inlier_fraction_at_least_:.2f}")
    0.30, at least 0.28
    >>> bool(matcher.certain_mask_.sum() > 250), matcher.wrong_at_most() <= 5
    (True, True)
    >>> matcher.map_.kind, matcher.transform(data.X[:3]).shape
    ('orthogonal', (3, 50))
    """

    verdict_: Verdict
    inlier_fraction_: float
    inlier_fraction_at_least_: float
    is_calibrated = True
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
            One side of the pairs. Frames may also have columns of dates, of yes and no, of categories and of text:
            ``columns_`` says what was made of each.
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
        check_number(self.alpha, "alpha", low=0, high=0.5)
        check_flag(self.whiten, "whiten")
        check_count(self.n_folds, "n_folds", low=2)
        X, y, unpaired = self._as_numbers(X, y, unpaired)
        given = X, y
        X, Y = self._read_pairs(X, y)
        side = read_side_information(given, (X, Y), self.same_columns, sample_weight, unpaired, MOST_ONE_BY_ONE)
        self.n_outputs_, self._names_y = Y.shape[1], RowNames.of(y, side.unpaired and unpaired[1])
        self._group_names = None if groups is None else np.unique(labels_as_one_kind(groups))
        groups, strata = self._read_labels(X.shape[0], groups, strata)
        filled, copied = (without_gaps(X, "X"), without_gaps(Y, "y")), self._copied(X, Y)
        kept = self._with_values(*filled)
        null_strata = crossed(strata, gap_classes(*(table.share_missing for table in filled)))
        x, y = (table.values if kept is None else table.values[kept] for table in filled)
        pairs = PairedRows(x, y)
        if kept is not None:
            groups, strata, null_strata = (None if of is None else of[kept] for of in (groups, strata, null_strata))
            side = side.of(kept)
        gaps = number_of_gaps(filled) if kept is None else number_of_gaps(filled)[kept]
        rng = check_random_state(self.random_state)
        later, fit, verdict, odds = self._judge(pairs, copied, groups, (strata, null_strata), side, rng)
        if verdict.said:
            warn(" ".join(verdict.said), DependenceWarning)
        compared, seed = Compared.of(odds, fit, (groups, strata), gaps), rng.randint(2**31 - 1)
        self._learned = Learned.of(pairs, later, fit, verdict, self, side, copied, kept, seed, compared)
        self._answer(verdict, fit, pairs, kept)
        for table, name in zip(filled, ("X", "y"), strict=True):
            self._hint_at_logarithms(table.values, name)
        if self.same_columns == "auto" and not verdict.accepted(self.alpha).any():  # wide tables are common
            warn_if_transposed(X, Y)
        return self

    def _judge(
        self,
        pairs: PairedRows,
        copied: tuple[Array, Array],
        groups: Array | None,
        strata: tuple[Array | None, Array | None],
        side: SideInformation,
        rng: np.random.RandomState,
    ) -> tuple[Preparation, CrossFit, Verdict, Odds | None]:
        """The whole method: prepare, choose a model, cross-fit, judge by chance, look for other partners, check.

        ``strata`` are those that were given, and these crossed with gaps, inside which pairs are re-paired.
        """
        if pairs.n_pairs > MOST_ONE_BY_ONE:
            prepared = self.prepare(pairs.X, pairs.Y)
            fit: CrossFit = sampled_fit(prepared, self.n_folds, rng)
            return prepared.later, fit, Verdict.by_chance(fit), None
        near = pairs.near(slice(0, pairs.n_pairs))  # few enough to bring here, once
        X, Y = (without_columns(to_host(table), some) for table, some in zip((near.X, near.Y), copied, strict=True))
        with catch_warnings():
            if copied[0].size:  # of which it has been said that they are left out
                filterwarnings("ignore", ".*holds? a single value", ParameterWarning)
            prepared = self.prepare(X, Y)
        labels = pair_labels(X, Y, groups, strata[1])
        data = PreparedPairs(prepared, labels, prepared_rows(prepared, slice(0, len(X))), side.rest(prepared))
        helped = side.helper(prepared, labels, rng)
        fit = cross_fit(data, self.n_folds, rng, helped, side.most_deals, has_groups=groups is not None)
        fit = without_true_partners(fit, data, rng)
        verdict, odds = look_for_others(Verdict.by_chance(fit), fit, data, strata[0], rng)
        verdict = chosen_by_nearness.check(one_column.check(verdict, X, Y), in_usual_units(X), in_usual_units(Y), rng)
        return prepared.later, fit, verdict, odds

    def _answer(self, verdict: Verdict, fit: CrossFit, pairs: PairedRows, kept: Mask | None) -> None:
        """Set what the verdict says of every pair that was given, where the pairs live."""
        accepted = verdict.accepted(self.alpha)
        self.threshold_ = (
            float(fit.levels[accepted].min()) if accepted.any() else float(np.nextafter(fit.highest(pairs), np.inf))
        )
        self.null_scores_, self.n_re_pairings_ = evenly_spaced(fit.null_scores), fit.null_scores.size
        self.scores_, whole = fit.scores(pairs), verdict
        if kept is not None:
            lowest = min(self.scores_.min(), fit.null_scores[0])
            whole, scores = verdict.among(kept), np.full(kept.size, lowest)
            scores[kept] = self.scores_
            self.scores_ = scores
        columns = {
            "p_values_": whole.p_values,
            "q_values_": whole.q_values,
            "inlier_mask_": whole.accepted(self.alpha),
            "certain_q_values_": whole.certain_q_values,
            "certain_mask_": whole.certain(self.alpha),
            "n_rivals_": whole.n_rivals,
        }
        for name, values in columns.items():
            setattr(self, name, values if kept is not None else fit.per_pair(values, pairs))
        self.verdict_, self.detection_p_value_ = whole, whole.detection_p_value
        self.inlier_fraction_, self.inlier_fraction_at_least_ = whole.inlier_fraction, whole.inlier_fraction_at_least

    def _copied(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """Columns that stand in both tables, which are left out, with a word."""
        nothing = np.empty(0, dtype=np.int64)
        if not all(isinstance(table, np.ndarray) for table in (X, Y)) or len(X) > MOST_ONE_BY_ONE:
            return nothing, nothing
        if any(np.isinf(table).any() for table in (X, Y)):  # which are refused when they are prepared
            return nothing, nothing
        copied = copied_columns(X, Y)
        if copied[0].size:
            names = getattr(self, "feature_names_in_", np.arange(X.shape[1]))
            warn(warning_of([str(name) for name in names[copied[0]]]), DependenceWarning)
        return copied

    def _with_values(self, x: Filled, y: Filled) -> Mask | None:
        """Pairs of which both rows hold a value; None where all do."""
        empty = [table.share_missing == 1 for table in (x, y) if table.share_missing is not None]
        left_out = np.any(empty, axis=0) if empty else np.zeros(1, dtype=bool)
        if not left_out.any() or (~left_out).sum() < self._fewest_pairs:
            return None
        warn(
            f"{int(left_out.sum())} of the {left_out.size} pairs have a row without any value, the first in row "
            f"{np.flatnonzero(left_out)[0]}; nothing can be said of them, and they are not accepted.",
        )
        return ~left_out

    def wrong_at_most(self, alpha: float | None = None, confidence: float = 0.95) -> int:
        """Bound how many of the accepted pairs are wrong: at most so many, with this confidence.

        It holds for all ``alpha`` at once, so that one may be chosen after looking; like q-values, beside strangers.

        Parameters
        ----------
        alpha : float, optional
            The rate at which pairs are accepted; that of the matcher by default.
        confidence : float, default=0.95
            Chance that the bound holds, in tables like this one.

        Returns
        -------
        int
        """
        check_is_fitted(self, "q_values_")
        alpha = self.alpha if alpha is None else check_number(alpha, "alpha", low=0, high=0.5)
        check_number(confidence, "confidence", low=0, high=1)
        return self.verdict_.wrong_at_most(alpha, confidence)

    def partner_sets(self, X: Any, y: Any) -> PartnerSets:
        """For each row of ``X`` of the fit, the rows of ``y`` that fit it as a partner would.

        The set of a row holds its partner with a chance of 95 %, wherever that stands, as long as it is in the table.
        It is everything rather than wrong: where nothing was found, all rows of y are in each.

        Parameters
        ----------
        X, y : as in `fit`
            The same tables, of up to 20,000 pairs.

        Returns
        -------
        PartnerSets
            ``of(row)``, ``contains(rows, partners)``, ``sizes``.

        Examples
        --------
        >>> from inlier import CalibratedMatcher
        >>> from inlier.datasets import make_gaussian_pairs
        >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=1, noise=0.1, rng=0)
        >>> y = data.Y.copy()
        >>> y[[3, 7]] = y[[7, 3]]
        >>> sets = CalibratedMatcher(random_state=0).fit(data.X, y).partner_sets(data.X, y)
        >>> sets.of(3), sets.of(7)
        (array([7]), array([3]))
        """
        check_is_fitted(self, "q_values_")
        n = self._read_again(X, y)[0].shape[0]
        if n > MOST_COMPARED:
            raise ParameterError(
                "X", f"has {n:,} rows; sets are told of up to {MOST_COMPARED:,}. Of more, n_rivals_ says how many fit."
            )
        return PartnerSets(n) if self.verdict_.sets is None else self.verdict_.sets

    def repair(
        self,
        X: Any = None,
        y: Any = None,
        alpha: float | None = None,
        unpaired: Any = None,
        wells: Any = None,
        unpaired_groups: Any = None,
        order: Any = None,
    ) -> Repair:
        """Say which rows are with a wrong partner, and with whom they belong instead.

        First it is asked whether one slip explains many of them: lines of y that are missing or too many, blocks that
        were exchanged or stand in reverse order, plates put in the wrong way round. Slips are undone, and learned from
        again. Then rows are looked at that are not accepted, by the judges, the groups and the strata of the fit.
        Groups whose rows stand together are sequences, in each of which lines may be missing.

        Parameters
        ----------
        X, y : as in `fit`, optional
            The same tables, to be sure; by default those of the fit.
        alpha : float, optional
            Largest expected share of wrong names among those given; that of the matcher by default.
        unpaired : (array-like of shape (m_x, d_x), array-like of shape (m_y, d_y)), optional
            Rows that only one of the tables has, such as those whose id is misspelled: partners are looked for among
            them, and for them, too. They are counted behind the others. Not together with strata.
        wells : (int, int) or sequence of str, optional
            Where rows come from plates: how many rows and columns of wells each has, if the rows of the tables come
            plate by plate and row by row, as in ``(8, 12)``; or the well of each pair, as in ``["A01", "A02", ...]``.
        unpaired_groups : (array-like of shape (m_x,), array-like of shape (m_y,)), optional
            Groups of the rows in ``unpaired``, where the fit had groups. In sequences that are longer on one side,
            those rows stand behind the pairs of their group.
        order : array-like of int, shape (n,), optional
            Where the y of each pair stood in its file, if the pairs are in another order: slips are looked for in that
            order, too. A column of ids that has slipped against the values is one in the order of its file.

        Returns
        -------
        Repair

        Examples
        --------
        >>> from inlier import CalibratedMatcher
        >>> from inlier.datasets import make_gaussian_pairs
        >>> data = make_gaussian_pairs(n=500, d=20, inlier_fraction=1, noise=0.1, rng=0)
        >>> y = data.Y.copy()
        >>> y[[3, 7]] = y[[7, 3]]
        >>> repaired = CalibratedMatcher(random_state=0).fit(data.X, y).repair()
        >>> repaired.kind[[3, 7]].tolist(), repaired.partner[[3, 7]].tolist()
        (['swapped', 'swapped'], [7, 3])
        >>> bool((repaired.apply(y) == data.Y).all())
        True
        """
        check_is_fitted(self, "q_values_")
        alpha = self.alpha if alpha is None else check_number(alpha, "alpha", low=0, high=0.5)
        if (X is None) != (y is None):
            raise ParameterError("X" if X is None else "y", "is missing. Give both tables of the fit, or none.")
        labels = (self._labels, self._names_y.labels) if X is None else labels_of_both(X, y)
        rest_groups = None
        if X is not None and y is not None:
            self._read_again(X, y)
        learned, rest = self._learned, None
        if unpaired is not None:
            if learned.compared is not None and learned.compared.strata is not None:
                raise ParameterError("unpaired", "rows have no stratum: fit without strata.")
            unpaired = self._rest_as_numbers(unpaired)
            rest = read_unpaired(unpaired, learned.tables(np.arange(1)))
            labels = labels_with_rest(labels, unpaired)
            rest_groups = read_unpaired_groups(unpaired_groups, rest, self._group_names)
            rest = filled_tables(rest)
        q = np.asarray(to_host(self.q_values_))
        kept = np.arange(q.size) if learned.numbers is None else learned.numbers
        plates, order = read_plates(wells, q.size, kept), None if order is None else np.asarray(order)
        if order is not None and order.shape != (q.size,):
            raise ParameterError("order", f"must be one place in y for each of the {q.size:,} pairs.")
        order = None if order is None else order[kept]
        in_step, said = put_in_step(self, rest, rest_groups, plates, order, self.random_state)
        if in_step is None:
            found = repair_pairs(learned, q[kept], self.detection_p_value_, rest, alpha, self.random_state)
            found = replace(found, **said)
        else:
            found = repair_in_step(in_step, alpha, self.random_state)
        if learned.numbers is not None:
            found = found.among(kept, q.size)
        within = learned.compared is not None and learned.compared.strata is not None
        has_all = labels is not None and all(of is not None for of in labels)
        return replace(found, labels=labels if has_all else None, within_strata=within)

    def _hint_at_logarithms(self, table: Any, name: str) -> None:
        """Say so where little was found in a table that looks like raw counts or amounts."""
        if isinstance(table, np.ndarray) and self.inlier_mask_.mean() < _LITTLE_FOUND and is_skewed(table):
            reason = "holds no negative number and its columns are skewed, as counts and amounts are. Take logarithms"
            warn(ParameterWarning(name, f"{reason} first, as in np.log1p: the large ones drown all others."))

    def _read_labels(self, n: int, groups: Any, strata: Any) -> tuple[Array | None, Array | None]:
        return read_labels(n, groups, strata, self._fewest_pairs, MOST_ONE_BY_ONE)

    def _fit(self, X: Array, Y: Array) -> None:
        self.fit(X, Y)

    def prepare(self, X: Array, Y: Array) -> ModelPairs:
        """Centre both sets, whiten them as far as there are pairs for it, give them unit mean square."""
        return prepare_model_pairs(X, Y, whiten=self.whiten)
