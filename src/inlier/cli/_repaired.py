"""Write the table that was put right: Y in the order of X, with what became of each row."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inlier._typing import Array
from inlier.estimators.repair import Repair
from inlier.io import write_table
from inlier.io.table import Pairing


def write_repaired(path: Path, repair: Repair, pairing: Pairing, names: tuple[str, ...] | None) -> None:
    """Write verdict, partner, q-value and probability per row of X, and the columns of Y of its partner."""
    rows = pairing.rows if pairing.rows_y is None else pairing.rows_y
    found = repair.partner >= 0
    columns: dict[str, Array] = {"row": pairing.rows}
    if pairing.keys is None:
        columns["partner"] = np.where(found, rows[repair.partner], -1)
    else:
        columns["key"] = pairing.keys
        columns["partner"] = np.where(found, pairing.keys[repair.partner], "")
    columns |= {"verdict": repair.kind, "q_value": repair.q_values, "probability": repair.probability}
    fixed = repair.apply(np.asarray(pairing.Y))
    taken = set(columns)
    for number, column in enumerate(fixed.T):
        name = str(number) if names is None else names[number]
        columns[f"{name} of y" if name in taken else name] = column
    write_table(path, columns)
