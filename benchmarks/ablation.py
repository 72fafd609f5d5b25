"""What each part of the calibrated matcher is worth: every one is left out in turn, on the same draws.

    python benchmarks/ablation.py --jobs 16                        # everything, five draws of each problem
    python benchmarks/ablation.py --only anchors textbook          # parts, groups or problems named so
    python benchmarks/ablation.py --first-seed 2000 --seeds 20 --only ridge "few real" -o few.txt

The problems are those of `pair_problems.py`. Of every group: what the whole matcher ("all") does, then each part left
out, with the difference that makes and its standard error over the draws, and a star where it is beyond two of them
(one in twenty would be by chance). "sets" is how often the partner set of a row holds its partner; "wrong" is the share
of wrong pairs among the certain. Seconds are those of the processor for a fit.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from textwrap import wrap
from unittest.mock import patch

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")  # before NumPy is loaded

import numpy as np

from inlier.calibration import cross_fit
from inlier.calibration.checks import chosen_by_nearness, one_column
from inlier.calibration.models import learner
from inlier.estimators import _side_information, calibrated
from other_tables import missing_packages
from pair_problems import Problem, problems
from tables import REAL_TABLES, coverage_of_sets, fit, measures

ALPHA, BEYOND, WIDTH = 0.05, 2.0, 130
COLUMNS = {"recall": 3, "FDP": 3, "certain": 3, "wrong": 3, "sets": 3, "warned": 2, "seconds": 2}  # and decimals
NOTHING = np.empty(0, dtype=np.int64)


# ---------------------------------------------------------------- parts, and how each is taken out


def without_model(name: str) -> AbstractContextManager:
    """A model that finds nothing; without maps, the others are tried in few dimensions too."""

    def nothing(*_given):
        return None

    out = ExitStack()
    out.enter_context(patch.dict(learner.KINDS, {name: nothing}))
    out.enter_context(patch.multiple(learner, **{f"_learn_{name}": nothing}))
    if name == "map":
        out.enter_context(patch.multiple(learner, _NARROWEST=1))
    return out


def groups_alone(labels, *, has_groups):
    """Units without equal rows."""
    return UNITS_OF(labels, has_groups=True) if has_groups else None


def apart_from_itself(own, labels, *, has_groups):
    """Everything else may be learned from, whatever it has in common with what is judged."""
    return TRAINING_WITHOUT(own, labels, has_groups=True)


UNITS_OF, TRAINING_WITHOUT, PREPARED = cross_fit.units_of, cross_fit.training_without, calibrated.prepare_model_pairs
LEFT_OUT: dict[str, Callable[[], AbstractContextManager]] = {
    "all": nullcontext,
    "map": partial(without_model, "map"),
    "regression": partial(without_model, "regression"),
    "ridge": partial(without_model, "ridge"),
    "anchors": partial(without_model, "anchors"),
    "neighbours": partial(without_model, "neighbours"),
    "copied columns": lambda: patch.multiple(calibrated, copied_columns=lambda X, Y: (NOTHING, NOTHING)),
    "chosen by nearness": lambda: patch.multiple(chosen_by_nearness, check=lambda verdict, *_: verdict),
    "one column": lambda: patch.multiple(one_column, check=lambda verdict, *_: verdict),
    "partner sets": lambda: patch.multiple(calibrated, look_for_others=lambda verdict, *_: (verdict, None)),
    "several deals": lambda: patch.multiple(cross_fit, how_many_deals=lambda n: 1),
    "more folds": lambda: patch.multiple(cross_fit, _MORE_FOLDS=1),
    "units": lambda: patch.multiple(cross_fit, units_of=groups_alone),
    "equal rows apart": lambda: patch.multiple(cross_fit, training_without=apart_from_itself),
    "same columns": lambda: patch.multiple(_side_information, _read_columns=lambda *_: None),
    "whitening": lambda: patch.multiple(
        calibrated, prepare_model_pairs=lambda X, Y, whiten: PREPARED(X, Y, whiten=False)
    ),
}


# ---------------------------------------------------------------- runs and figures


CHOSEN: list[Problem] = []  # filled before the processes are forked, which have it from there


def run(job: tuple[int, int, str]) -> list[float]:
    """Fit one draw of a problem without a part, and say what `COLUMNS` names."""
    number_of_problem, seed, part = job
    problem = CHOSEN[number_of_problem]
    pairs = problem.make(np.random.default_rng([seed, *problem.name.encode()]))
    with LEFT_OUT[part]():
        matcher = fit(pairs.X, pairs.Y, ALPHA, seed, **pairs.given)
        sets = np.nan if part == "partner sets" else coverage_of_sets(matcher, pairs.X, pairs.Y, pairs.home)
    found = measures(matcher, pairs.home == np.arange(len(pairs.X))) | {"sets": sets}
    return [found[name] for name in COLUMNS]


def compared(found: np.ndarray, usual: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means over the draws, differences to the whole matcher, and their standard errors; a row is a draw."""
    differences = found - usual
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of what is known of no draw, or of one
        error = np.nanstd(differences, axis=0, ddof=1) / np.sqrt(np.isfinite(differences).sum(axis=0))
        return np.nanmean(found, axis=0), np.nanmean(differences, axis=0), error


def number(value: float, decimals: int, sign: str = "") -> str:
    """As short as it goes: .12, +.3, a dash for what is not known."""
    text = "-" if np.isnan(value) else f"{value:{sign}.{decimals}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def block(group: str, names: list[str], values: dict[str, np.ndarray], changes: dict[str, list[str]]) -> list[str]:
    """The lines of a group; notes what each part changes in it."""
    lines = ["", *wrap(f"{group} ({', '.join(names)})", WIDTH, subsequent_indent="    ")]
    lines.append(f"{'':19s}" + "".join(f"{name:<16s}" for name in COLUMNS).rstrip())
    for part, found in values.items():
        cells = []
        for name, mean, difference, error in zip(COLUMNS, *compared(found, values["all"]), strict=True):
            decimals = COLUMNS[name]
            cell = f"{number(mean, decimals):>4s}"
            if part != "all" and np.isfinite(difference):
                change, is_beyond = number(difference, decimals, "+"), abs(difference) > BEYOND * error
                cell += f" {change}±{number(error, decimals)}{'*' * is_beyond}"
                if is_beyond and name != "seconds":
                    changes[part].append(f"{name} {change} ({group})")
            cells.append(f"{cell:<16s}")
        lines.append(f"{part:19s}" + "".join(cells).rstrip())
    return lines


def report(parts: list[str], rows: dict[tuple, list[float]], seeds: range) -> list[str]:
    """A block for each group, and what each part changes."""
    lines, changes = [], {part: [] for part in parts[1:]}
    for group in dict.fromkeys(problem.group for problem in CHOSEN):
        some = [k for k, problem in enumerate(CHOSEN) if problem.group == group]
        values = {part: np.array([rows[k, seed, part] for k in some for seed in seeds]) for part in parts}
        lines += block(group, [CHOSEN[k].name for k in some], values, changes)
    lines += ["", f"Left out, it changes, by more than {BEYOND:g} standard errors:"]
    for part, found in changes.items():
        lines += wrap(f"{part}: {'; '.join(found) or 'changes nothing'}", WIDTH, subsequent_indent="    ")
    return lines


def main() -> None:
    """Read the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seeds", type=int, default=5, help="draws of each problem")
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--only", nargs="+", default=[], metavar="WHAT", help="parts; words of groups and of problems")
    parser.add_argument("--tables", type=Path, default=REAL_TABLES, help="folder of the tables")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write what is printed there, too")
    given = parser.parse_args()
    parts = ["all", *(part for part in LEFT_OUT if part != "all" and part in given.only)]
    parts = parts if len(parts) > 1 else list(LEFT_OUT)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    CHOSEN.extend(problems(given.tables, [word for word in given.only if word not in LEFT_OUT]))
    jobs = [(k, seed, part) for k in range(len(CHOSEN)) for seed in seeds for part in parts]
    with get_context("fork").Pool(given.jobs) as pool:
        rows = dict(zip(jobs, pool.map(run, jobs, chunksize=1), strict=True))
    lines = ["$ " + " ".join(["python", "benchmarks/ablation.py", *sys.argv[1:]])]
    if missing_packages():
        lines.append(f"Without the tables of {' and '.join(missing_packages())}, which are not installed.")
    lines += report(parts, rows, seeds)
    print(*lines, sep="\n")
    if given.output:
        given.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
