from __future__ import annotations

from inlier.apps.reproduce.experiment import cells_of


def test_cells_cover_every_repetition_of_every_point_once():
    cells = cells_of([{"r": 0.5}, {"r": 0.9}], repetitions=7, per_cell=3)
    covered = [(cell["r"], repetition) for cell in cells for repetition in range(cell["first"], cell["last"])]
    assert covered == [(r, k) for r in (0.5, 0.9) for k in range(7)]
