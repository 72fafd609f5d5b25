from __future__ import annotations

import numpy as np

from inlier.repair.answer import Repair
from inlier.report.repair_summary import REPAIRED, repair_to_dict, rows_to_check

IDS = np.array(list("abcdefgh"))
KIND = np.array(["kept", "swapped", "swapped", "not clear", "not clear", "moved", "copy", "not clear"])


def repair(**changed):
    """A repair of six pairs, one copy, and one x that was given without a partner."""
    n = KIND.size
    chances = np.zeros((n, 3))
    chances[[1, 2, 5], 0], chances[4, 0] = 0.99, 0.7
    candidates = np.full((n, 3), -1)
    candidates[[1, 2, 4, 5], 0] = [2, 1, 0, 3]
    given = {
        "kind": KIND,
        "partner": np.array([0, 2, 1, -1, 4, 3, -1, -1]),
        "q_values": np.array([0.0, 0.01, 0.01, 1.0, 0.2, 0.02, 1.0, 1.0]),
        "chance_wrong": np.array([0.0, 0.99, 0.99, 0.98, np.nan, 0.98, np.nan, np.nan]),
        "candidates": candidates,
        "chances": chances,
        "own_rank": np.array([0, 5, 5, 40, 3, 7, 2, 0]),
        "copy_of": np.array([-1, -1, -1, -1, -1, -1, 0, -1]),
        "gaps": np.zeros(n, dtype=int),
        "alpha": 0.05,
        "labels": (IDS, IDS),
        "n_unpaired": (1, 0),
    }
    return Repair(**{**given, **changed})


def test_what_to_check_first_is_on_top():
    assert IDS[rows_to_check(repair())].tolist() == ["b", "c", "f", "g", "e", "d", "h"]


def test_of_rows_without_a_likely_partner_the_oddest_comes_first():
    ranks = np.array([0, 5, 5, 4, 30, 7, 2, 0])
    found = rows_to_check(repair(chances=np.zeros((8, 3)), q_values=np.ones(8), own_rank=ranks))
    assert IDS[found].tolist() == ["b", "c", "f", "g", "e", "d", "h"]


def test_a_technician_is_told_what_to_do():
    rows = {row["row"]: row for row in repair_to_dict(repair())["rows"]}
    assert {name: row["what_to_do"] for name, row in rows.items()} == {
        "b": "exchange it with c",
        "c": "exchange it with b",
        "f": "put it with d",
        "g": "see what was measured twice: it repeats a",
        "e": "see whether it belongs with a",
        "d": "look for its partner: what stands beside it belongs to f",
        "h": "look for its partner elsewhere: none is named here",
    }
    assert {row["verdict"] for row in rows.values()} <= set(REPAIRED)
    alone = {"chances": np.zeros((8, 3)), "partner": np.arange(8)}
    for rank, told in ((3, "check its label, measure it again"), (1, "leave it: none fits it better")):
        rows = {row["row"]: row for row in repair_to_dict(repair(own_rank=np.full(8, rank), **alone))["rows"]}
        assert rows["e"]["what_to_do"] == told


def test_numbers_in_the_answer_add_up():
    answer = repair().answer
    assert answer.startswith("5 of 7 rows are with a wrong partner. 3 partners are named: 2 swapped, 1 in chains")
    assert "1 is a copy of another row." in answer
    assert "2 not clear: what stands beside 1 of them belongs to other rows; the scores do not tell whether" in answer
    assert "1 of these has a likely partner, with a chance above 50 %." in answer
