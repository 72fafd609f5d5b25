"""Every public name with its parameters, and what each estimator has after a fit: compared with public_names.txt.

python -m tests.public_names > tests/public_names.txt      # after a change that is meant
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module

import numpy as np

import inlier

ELSEWHERE = {  # what the docs name beside the names of `inlier` itself
    "inlier.calibration": "Calibration calibrate",
    "inlier.datasets": "load_brain load_scenes load_sky make_gaussian_pairs make_mispaired make_scans make_scenes",
    "inlier.estimators.streaming": "fit_files stream_mask",
    "inlier.images": "Changes detect_changes",
    "inlier.io": "open_stored pair_tables read_image read_table write_blocks write_like write_table",
    "inlier.metrics": "error_rates",
    "inlier.plotting": "plot_accepted plot_alignment plot_map plot_points plot_scores",
    "inlier.scverse": "check",
}


def lines() -> Iterator[str]:
    """One line for each name, one for each of its members."""
    for name in inlier.__all__:
        yield from describe(f"inlier.{name}", getattr(inlier, name))
    for module, names in ELSEWHERE.items():
        for name in names.split():
            yield from describe(f"{module}.{name}", getattr(import_module(module), name))
    for estimator in fitted():
        yield f"fitted {type(estimator).__name__}: {', '.join(learned(estimator))}"


def describe(name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        yield f"class {name}{parameters(value)}"
        for member in sorted(public_members(value)):
            found = inspect.getattr_static(value, member)
            if isinstance(found, property) or not callable(getattr(value, member)):
                yield f"    .{member}"
            else:
                yield f"    .{member}{parameters(getattr(value, member))}"
    elif inspect.ismodule(value):
        yield f"module {name}"
    else:
        yield f"{name}{parameters(value)}"


def public_members(value: type) -> set[str]:
    """Members that are ours, not those of scikit-learn's or Python's classes; fields of a dataclass, too."""
    ours = [base for base in value.__mro__ if base.__module__.partition(".")[0] == "inlier"]
    names = {name for base in ours for name in vars(base)}
    names |= {field.name for field in fields(value)} if is_dataclass(value) else set()
    of_scikit_learn = {name for name in names if name.startswith("set_") and name.endswith("_request")}
    return {name for name in names - of_scikit_learn if not name.startswith("_") and hasattr(value, name)}


def parameters(function: object) -> str:
    """Names and defaults, without types."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return "(...)"
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def fitted() -> Iterator[object]:
    """Every estimator, after a small fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.roll(X, 1, axis=1) + 0.01 * rng.normal(size=X.shape)
    y[:60] = rng.normal(size=(60, 3))
    yield inlier.RowSumMatcher().fit(X, y)
    yield inlier.EigenvectorMatcher().fit(X, y)
    yield inlier.SplitMatcher(inlier.CalibratedMatcher(), n_splits=2, random_state=0).fit(X, y)
    yield inlier.CalibratedMatcher(random_state=0).fit(X, y)
    yield inlier.Registration(random_state=0).fit(X, y)


def learned(estimator: object) -> list[str]:
    """Attributes that end in an underscore, and can be read."""
    names = [name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")]
    return [name for name in names if hasattr(estimator, name)]


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
