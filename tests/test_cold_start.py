"""How much is compiled before the first answer of a new installation."""

from __future__ import annotations

from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

MOST_SPECIALISATIONS = 45  # each costs whoever installs the package about 0.15 s, whatever the optimiser does
PROCESSOR_SECONDS_AGAIN = 1.0  # import and fit, from the compiled code that the first process has left


def test_a_first_registration_compiles_no_more_than_it_must_and_a_second_one_nothing(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from cold_start import measure

    first, second = (measure(None, "Registration", tmp_path) for _ in range(2))
    assert 0 < first.specialisations <= MOST_SPECIALISATIONS
    assert second.specialisations == 0
    assert second.importing + second.fitting < min(PROCESSOR_SECONDS_AGAIN, first.fitting / 2)
