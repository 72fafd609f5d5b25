"""From a fit to a `Judge`: what was learned from some of the pairs, and the null of pairs that it has not seen.

The judges of the folds are such: each has learned from all pairs but those of its fold. Of few pairs beside their
columns even the preparation of rows, which all of them share, knows every row: there it is learned anew without each
fold. The null, and what a score is worth, are those of all folds together; what is sent is the judge that has learned
from most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.utils import check_random_state

from inlier._typing import Array, FloatArray
from inlier.calibration.checks.copied_columns import without_columns
from inlier.calibration.cross_fit import Fold
from inlier.calibration.folds import training_without
from inlier.calibration.models.anchors import AnchorPairs
from inlier.calibration.models.learner import KINDS, Learner, PairScorer, PreparedPairs, prepared_rows
from inlier.calibration.models.linear_map import LinearMap, Regression, learn_map
from inlier.calibration.models.ridge_map import RidgeMap
from inlier.calibration.models.same_columns import LearnerWithColumns, TwoViews
from inlier.calibration.models.significance import SHARP, Significance
from inlier.calibration.p_values import p_values
from inlier.calibration.verdict import Verdict
from inlier.estimators._base import Preparation, prepare_model_pairs
from inlier.estimators._frozen import frozen, side_of
from inlier.estimators._learned import Learned
from inlier.judge import Judge
from inlier.judge.levels import Levels
from inlier.rows.backend import to_host
from inlier.rows.null_pairs import n_shifts, pair_labels, re_pairings
from inlier.rows.threads import single_threaded_blas

_RE_PAIRINGS = 200_000  # about
_FEW = 16  # pairs per column, fewer of which the preparation of rows knows
_REFITS = 5  # folds, of few pairs, that are learned without
_SAMPLED, _HELD_OUT = 60_000, 3  # rows that a map is learned anew from, where no judge is as small; one in so many
_MOST_LEARNED_FROM = 20_000


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """What was learned from some pairs, and rows of the fit that it has not seen."""

    scorer: PairScorer
    preparation: Preparation
    rows: Array
    centre: float = 0.0  # and unit of the scores
    unit: float = 1.0


def judge_of(learned: Learned, verdict: Verdict, alpha: float, names: tuple[Any, Any]) -> Judge:
    """The judge of a fit; one that has learned nothing where nothing was found."""
    found = _judges(learned) if (verdict.q_values < 1).any() else []
    share, labels = float(verdict.inlier_fraction), _given_labels(learned)
    if not found:
        d_x, d_y = (side.shape[1] for side in (learned.pairs.X, learned.pairs.Y)) if learned.pairs else (0, 0)
        sides = side_of(None, None, int(d_x), learned.copied[0]), side_of(None, None, int(d_y), learned.copied[1])
        return Judge(sides, (), Levels.of_nothing(), alpha, 0, 0, share, *names)
    rng, certain = check_random_state(learned.seed), _certain(learned, verdict)
    judges, scores, null = [], [], list[FloatArray]()
    for held_out in found:
        x, y = learned.tables(held_out.rows)
        parts = frozen(
            held_out.scorer,
            held_out.preparation,
            (x.shape[1], y.shape[1]),
            learned.copied,
            held_out.centre,
            held_out.unit,
        )
        judge = Judge(*parts, Levels.of_nothing(), alpha, held_out.rows.size, 0, share, *names)
        judges.append(judge)
        scores.append(judge(x, y).scores)
        of_rows = pair_labels(x, y, *(None if of is None else of[held_out.rows] for of in labels))
        shifts = re_pairings(of_rows, n_shifts(len(x), _RE_PAIRINGS // len(found)), rng)
        null.extend(judge(x[i], y[j]).scores for i, j in shifts)
    strangers = np.sort(np.concatenate(null))
    rows = np.concatenate([held_out.rows for held_out in found])
    if not strangers.size:
        return replace(judges[0], views=())
    levels = Levels.of(np.concatenate(scores), certain[rows], strangers, 1 - share)
    best = max(range(len(found)), key=lambda k: found[k].scorer.support)
    return replace(judges[best], levels=levels, n_pairs=rows.size, n_re_pairings=strangers.size)


def _judges(learned: Learned) -> list[_HeldOut]:
    """What was learned from all pairs but some, several times, or once of many pairs."""
    assert learned.pairs is not None
    folds: list[Fold] = [fold for fold in learned.judges.folds if fold.rows.size]
    if not folds:
        return _map_of_many(learned)
    kinds = {_kind_of(fold.judge) for fold in folds}
    is_plain = all(isinstance(fold.judge, (LinearMap, RidgeMap, AnchorPairs, TwoViews)) for fold in folds)
    width = max(learned.preparation.map_x.n_columns, learned.preparation.map_y.n_columns)
    if learned.pairs.n_pairs >= _FEW * width and is_plain and None not in kinds:
        return [_HeldOut(fold.judge, learned.preparation, fold.rows, fold.centre, fold.unit) for fold in folds]
    kind = next((kind for kind in kinds if kind is not None), "map")
    return _learned_without_each(learned, folds[:_REFITS], kind)


def _kind_of(scorer: PairScorer) -> str | None:
    """Of what kind the model of pairs alone is; None where it knows other rows."""
    if isinstance(scorer, TwoViews):
        return _kind_of(scorer.views[-1])
    names = {Regression: "regression", LinearMap: "map", RidgeMap: "ridge", AnchorPairs: "anchors"}
    return next((name for of, name in names.items() if isinstance(scorer, of)), None)


def _learned_without_each(learned: Learned, folds: list[Fold], kind: str) -> list[_HeldOut]:
    """Prepare rows and learn, from all pairs but those of a fold, for each of some folds."""
    rng, found = check_random_state(learned.seed), []
    x, y = (without_columns(table, some) for table, some in zip(learned.tables(), learned.copied, strict=True))
    groups, strata = _given_labels(learned)
    labels = pair_labels(x, y, groups, strata)
    for fold in folds:
        rows = training_without(fold.rows, labels, has_groups=groups is not None)
        with catch_warnings(), single_threaded_blas():
            simplefilter("ignore", UserWarning)  # which were said when all of them were prepared
            pairs = prepare_model_pairs(x[rows], y[rows], whiten=learned.whiten)
            every = np.arange(rows.size)
            data = PreparedPairs(pairs, labels[:, rows], prepared_rows(pairs, slice(0, rows.size)))
            if learned.columns is not None:
                learner = Learner(data, rng, kind, rows.size)
                scorer = LearnerWithColumns(learner, pairs, learned.columns, labels[:, rows], rng).learn(every)
            else:
                scorer = KINDS[kind](data, rng.permutation(every), rng)
        if scorer is not None:
            null = scorer.significance
            unit = (null.centre, null.spread) if kind == "anchors" else (0.0, 1.0)
            found.append(_HeldOut(scorer, pairs.later, fold.rows, *unit))
    return found


def _map_of_many(learned: Learned) -> list[_HeldOut]:
    """A linear map from a sample of the pairs that are likely real, and others that it has not seen."""
    assert learned.pairs is not None
    rng, n = check_random_state(learned.seed), learned.pairs.n_pairs
    rows = np.unique(rng.randint(n, size=_SAMPLED, dtype=np.int64)) if n > _SAMPLED else np.arange(n)
    own, others = np.split(rng.permutation(rows), [rows.size // _HELD_OUT])
    tables = learned.tables(others[:_MOST_LEARNED_FROM])
    p = p_values(learned.scores(*tables), learned.judges.null_scores)
    x, y = (np.asarray(to_host(side), dtype=np.float64) for side in learned.prepared(*tables))
    scorer = learn_map(x, y, rng, None, Significance(p, 0.0, 1.0, 0.0).weights(SHARP))
    return [] if scorer is None else [_HeldOut(scorer, learned.preparation, np.sort(own))]


def _given_labels(learned: Learned) -> tuple[Array | None, Array | None]:
    return (None, None) if learned.compared is None else (learned.compared.groups, learned.compared.strata)


def _certain(learned: Learned, verdict: Verdict) -> FloatArray:
    """The certain q-value of each pair that was compared; 1 where pairs are judged in bins, or no others were asked."""
    if learned.p_values is None:
        assert learned.pairs is not None
        return np.ones(learned.pairs.n_pairs)
    certain = verdict.certain_q_values
    return certain if learned.numbers is None else certain[learned.numbers]
