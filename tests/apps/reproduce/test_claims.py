"""The verdicts come from the numbers: turn the numbers round, and the verdict turns."""

from __future__ import annotations

import pytest

from inlier.apps.reproduce.methods import ERRORS, METHODS
from inlier.apps.reproduce.runner import EXPERIMENTS
from inlier.apps.reproduce.swapped_sky import SCENARIOS

T3, T5, T7, EIGENVECTOR, ROW_SUM = METHODS


def verdict(name, rows, words):
    (claim,) = [claim for claim in EXPERIMENTS[name].claims(rows) if words in claim.text]
    return claim.holds


class TestBrainRatio:
    @pytest.fixture
    def rows(self, table_of):
        def make(**overall):
            levels = {T3: 0.4, T5: 0.2, T7: 0.5, EIGENVECTOR: 0.39, ROW_SUM: 0.38}
            on_g = {T3: 0.01, T5: 0.1, T7: 0.3, EIGENVECTOR: 0.01, ROW_SUM: 0.01}
            on_b = {T3: 0.5, T5: 0.4, T7: 0.3, EIGENVECTOR: 0.5, ROW_SUM: 0.5}
            chosen = {"error on G": on_g, "error on B": on_b, "error overall": levels}
            for quantity, changes in overall.items():
                chosen[quantity.replace("_", " ")] = {**chosen[quantity.replace("_", " ")], **changes}
            rows = []
            for quantity in ERRORS:
                for method in METHODS:
                    points = [{"inlier_fraction": r, "method": method} for r in (0.55, 0.9)]
                    rows += table_of(quantity, points, [chosen[quantity][method], chosen[quantity][method] / 2])
            return rows

        return make

    def test_the_slip_of_the_text_is_called_one(self, rows):
        assert not verdict("brain-ratio", rows(), "A larger threshold decreases the error on G")
        as_printed = rows(error_on_G={T3: 0.3, T5: 0.1, T7: 0.01}, error_on_B={T3: 0.3, T5: 0.4, T7: 0.5})
        assert verdict("brain-ratio", as_printed, "A larger threshold decreases the error on G")

    def test_falling(self, rows, table_of):
        assert verdict("brain-ratio", rows(), "As r increases")
        risen = [
            row | {"mean": 0.9} if row["inlier_fraction"] == 0.9 and row["method"] == T7 else row for row in rows()
        ]
        assert not verdict("brain-ratio", risen, "As r increases")

    def test_the_best_of_the_fixed(self, rows):
        assert verdict("brain-ratio", rows(), "t = 0.5 performs best")
        assert not verdict("brain-ratio", rows(error_overall={T3: 0.1}), "t = 0.5 performs best")

    def test_similar_and_best_at_the_end(self, rows):
        assert verdict("brain-ratio", rows(), "similarly to the case t = 0.3")
        assert not verdict("brain-ratio", rows(error_overall={EIGENVECTOR: 0.1}), "similarly to the case t = 0.3")
        assert not verdict("brain-ratio", rows(), "best performance when r = 0.9")
        assert verdict("brain-ratio", rows(error_overall={EIGENVECTOR: 0.1}), "best performance when r = 0.9")


class TestBrainSplit:
    @pytest.fixture
    def rows(self, table_of):
        def make(error=0.072, dense=(3.0, 2.1, 1.9, 1.8, 1.7, 1.65), ours=(0.01,) * 6):
            points = [{"splits": s} for s in (1, 2, 3, 4, 6, 12)]
            rows = []
            for solver, seconds in (("dense", dense), ("linear", ours)):
                named = [{"solver": solver, **point} for point in points]
                rows += table_of("error overall", named, error)
                rows += table_of("seconds per repetition", named, seconds)
            return rows

        return make

    @pytest.mark.parametrize(("error", "answer"), [(0.072, True), (0.0765, True), (0.0775, False)])
    def test_the_printed_error(self, rows, error, answer):
        assert verdict("brain-split-row-sum", rows(error), "The error is 0.072") is answer

    def test_times(self, rows):
        assert verdict("brain-split-row-sum", rows(), "about 30 %")
        assert not verdict("brain-split-row-sum", rows(dense=(3.0, 1.5, 1, 0.8, 0.5, 0.3)), "about 30 %")
        assert verdict("brain-split-row-sum", rows(), "six splits to twelve is relatively small")
        assert verdict("brain-split-row-sum", rows(), "unsplit, the linear solver is faster")
        assert not verdict(
            "brain-split-row-sum", rows(ours=(2.0, 1, 1, 1, 1, 1)), "unsplit, the linear solver is faster"
        )

    def test_unchanged(self, rows):
        assert not verdict("brain-split-row-sum", rows([0.07, 0.07, 0.07, 0.07, 0.07, 0.09]), "essentially unchanged")


class TestSkyNoise:
    @pytest.fixture
    def rows(self, table_of):
        def make(levels, rise=0.01):
            points = [
                ({"scenario": scenario, "method": method, "noise_variance": noise}, levels[method] + rise * noise / 100)
                for scenario in SCENARIOS
                for method in METHODS
                for noise in (0.0, 50.0, 100.0)
            ]
            return table_of("error overall", [point for point, _ in points], [level for _, level in points])

        return make

    def test_as_printed(self, rows):
        as_printed = {T3: 0.2, T5: 0.3, T7: 0.4, EIGENVECTOR: 0.105, ROW_SUM: 0.1}
        claims = EXPERIMENTS["sky-noise"].claims(rows(as_printed))
        assert [claim.holds for claim in claims] == [True] * 5 + [False]  # a constant lead peaks nowhere

    def test_turned_round(self, rows):
        turned = {T3: 0.4, T5: 0.3, T7: 0.2, EIGENVECTOR: 0.5, ROW_SUM: 0.9}
        assert not any(claim.holds for claim in EXPERIMENTS["sky-noise"].claims(rows(turned, rise=-0.01)))


@pytest.mark.parametrize(("slopes", "answers"), [((-0.45, 1.6), [True, True]), ((-0.3, 1.7), [False, False])])
def test_rates(table_of, slopes, answers):
    rows = [
        row | {"paper": theory}
        for norm, slope, theory in zip(("v_hat - v", "H - E[H]"), slopes, (-0.5, 1.5), strict=True)
        for row in table_of(f"slope of the norm of {norm}", [{}], slope)
    ]
    assert [claim.holds for claim in EXPERIMENTS["theory-eigenvector"].claims(rows)] == answers
