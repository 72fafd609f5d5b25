"""What a repair says, for JSON and for the page: a record for each row that is not kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from inlier._typing import Array
from inlier.repair.answer import COPY, LOST, MOVED, NOT_CLEAR, SLIPPED, SWAPPED, Repair
from inlier.repair.slips.slip import Slip

REPAIRED = {  # what becomes of a row that is not kept, in the order of tables
    SWAPPED: "its partner stands in another row, and the partner of that row in this one",
    MOVED: "its partner stands in another row, in a chain or a ring, or in one that had none",
    COPY: "nearly equal to another row",
    LOST: "what stands beside it belongs to another row, and no row here fits it",
    NOT_CLEAR: "with a wrong partner, or badly measured: measure it again before it is moved or left out",
}


def rows_to_look_at(repair: Repair) -> Array:
    """Rows that are not kept, nor where a slip that is told as a whole has put them."""
    return np.flatnonzero(~np.isin(repair.kind, ("kept", SLIPPED)))


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
    """What a repair says, and of each row that is not kept who it is and with whom it belongs, those with names first.

    Rows are called by their labels; None stands for nobody.
    """
    order = {kind: place for place, kind in enumerate(REPAIRED)}
    rows = rows_to_look_at(repair)
    kinds = np.array([order[kind] for kind in repair.kind[rows]], dtype=int)
    rows = rows[np.lexsort((-repair.chances[rows, 0], repair.q_values[rows], kinds))]
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
