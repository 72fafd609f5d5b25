"""What a repair says, for JSON and for the page: a record for each row that is not kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.repair.answer import COPY, KEPT, LOST, MOVED, NOT_CLEAR, SLIPPED, SWAPPED, Repair
from inlier.repair.slips.slip import Slip

_LIKELY = 0.5  # chance of a candidate above which it is named as the one to look at

REPAIRED = {  # what becomes of a row that is not kept, in the order of tables
    SWAPPED: "its partner stands in another row, and the partner of that row in this one: exchange the labels",
    MOVED: "its partner stands in another row, in a chain or a ring, or in one that had none: put it there",
    COPY: "it nearly repeats another row: look for what was measured twice",
    LOST: "what stands beside it belongs to another row, and none here fits it: look for its partner elsewhere",
    NOT_CLEAR: "the scores do not tell: a right pair that fits like a stranger's, a bad measurement, a wrong partner; "
    "it stays where it is",
}


def rows_to_check(repair: Repair) -> Array:
    """Rows to check, in that order: by verdict, then those with a likely partner; not what a slip explains.

    Both rows of an exchange stand together. Of rows without a likely partner the one that fits least comes first.
    """
    order = {kind: place for place, kind in enumerate(REPAIRED)}
    rows = np.flatnonzero(~np.isin(repair.kind, (KEPT, SLIPPED)))
    kinds = np.array([order[kind] for kind in repair.kind[rows]], dtype=int)
    tenths = np.where(repair.named[rows], 1.0, repair.chances[rows, 0].round(1))
    exchange = np.where(repair.kind[rows] == SWAPPED, np.minimum(rows, repair.partner[rows]), 0)
    return rows[np.lexsort((-repair.own_rank[rows], exchange, repair.q_values[rows], -tenths, kinds))]


def what_to_do(repair: Repair, row: int, of_x: Any, of_y: Any) -> str:
    """What a laboratory does about a row that is not kept, in a few words."""
    kind, partner = str(repair.kind[row]), repair.partner[row]
    if kind == SWAPPED:
        return f"exchange it with {of_y[partner]}"
    if kind == MOVED:
        return f"put it with {of_y[partner]}"
    if kind == COPY:
        return f"see what was measured twice: it repeats {of_x[repair.copy_of[row]]}"
    if kind == LOST:
        return "look for its partner elsewhere"
    if repair.chances[row, 0] > _LIKELY:
        return f"see whether it belongs with {of_y[repair.candidates[row, 0]]}"
    taken_by = np.flatnonzero(repair.named & (repair.partner == row))
    if row >= repair.kind.size - repair.n_unpaired[0]:
        return "look for its partner elsewhere: none is named here"
    if taken_by.size:
        return f"look for its partner: what stands beside it belongs to {of_x[taken_by[0]]}"
    if repair.own_rank[row] == 1:
        return "leave it: none fits it better"
    return "check its label, measure it again"


def slip_to_dict(slip: Slip, labels: Any) -> dict[str, Any]:
    """A slip, its sentence with it; rows by their numbers and labels."""
    return {
        "kind": slip.kind,
        "from": str(labels[slip.start]),
        "to": str(labels[slip.stop - 1]),
        "start": slip.start,
        "stop": slip.stop,
        "amount": slip.amount,
        "changed_by": slip.changed_by,
        "p_value": slip.p_value,
        "n_explained": slip.n_explained,
        "unsure": list(slip.unsure),
        "text": slip.text(labels),
    }


def repair_to_dict(repair: Repair) -> dict[str, Any]:
    """What a repair says, and of each row that is not kept who it is and with whom it belongs, as `rows_to_check`.

    Rows are called by their labels; None stands for nobody.
    """
    rows = rows_to_check(repair)
    of_x, of_y = repair.labels or (np.arange(repair.kind.size), np.arange(repair.n_rows_y))

    def name(labels: Any, row: int) -> str | None:
        return None if row < 0 else str(labels[row])

    return {
        "answer": repair.answer,
        "alpha": repair.alpha,
        "n_suspects": int(repair.suspects.sum()),
        "chains": repair.chains,
        "slips": [slip_to_dict(slip, of_x) for slip in repair.slips],
        "left_over": [str(of_y[row]) for row in repair.left_over],
        "rows": [
            {
                "row": str(of_x[row]),
                "verdict": str(repair.kind[row]),
                "what_to_do": what_to_do(repair, row, of_x, of_y),
                "partner": name(of_y, repair.partner[row]) if repair.named[row] else None,
                "q_value": float(repair.q_values[row]),
                "candidates": [
                    {"row": name(of_y, candidate), "chance": float(chance)}
                    for candidate, chance in zip(repair.candidates[row], repair.chances[row], strict=True)
                    if candidate >= 0
                ],
                "own_rank": int(repair.own_rank[row]) or None,
                "copy_of": name(of_x, repair.copy_of[row]),
                "gaps": int(repair.gaps[row]),
            }
            for row in rows
        ],
    }
