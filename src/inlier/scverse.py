"""Single cells: which cells of two modalities belong together, written where AnnData and MuData keep such things.

Neither package is imported: their objects are told by what they can do.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from inlier._checks import warn
from inlier._typing import Array
from inlier.estimators.calibrated import CalibratedMatcher
from inlier.exceptions import ParameterError
from inlier.result import MatchResult
from inlier.rows.sparse import is_sparse, strongest_directions

__all__ = ["check"]


def check(
    data: Any,
    x: str,
    y: str,
    *,
    x_rep: str | None = None,
    y_rep: str | None = None,
    stratum: str | None = None,
    alpha: float = 0.01,
    random_state: int | None = 0,
    key_added: str = "inlier",
) -> MatchResult:
    """Tell which cells are the same in two modalities, and write it into ``.obs`` and ``.uns``.

    Parameters
    ----------
    data : MuData or AnnData
        Both modalities.
    x, y : str
        The modalities, by name; in an AnnData two of its ``.obsm``. Cells are joined on their names.
    x_rep, y_rep : str, optional
        Which ``.obsm`` of a modality is compared, such as ``"X_pca"``. By default its ``X``, of which a sparse one is
        compared by its 50 strongest directions, with a warning that says so.
    stratum : str, optional
        A column of ``.obs``: wrong partners come from cells with the same value, such as a sample or a cell type.
    alpha : float, default=0.01
        Largest expected share of wrong pairs among those accepted.
    random_state : int, optional
        Seed.
    key_added : str, default="inlier"
        ``.obs`` gets columns of this name (whether the cell is accepted, missing where only one modality has it),
        with ``_score``, ``_q_value`` and ``_certain`` behind it; ``.uns`` how it was done.

    Returns
    -------
    MatchResult
        Of the cells that both have, in the order of ``x``.

    Examples
    --------
    An object of its own stands for a MuData here:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from types import SimpleNamespace as Cells
    >>> from inlier import scverse
    >>> from inlier.datasets import make_gaussian_pairs
    >>> pairs = make_gaussian_pairs(n=300, d=8, inlier_fraction=0.8, noise=0.1, rng=0)
    >>> names = pd.Index([f"cell{k}" for k in range(300)])
    >>> mod = {"rna": Cells(X=pairs.X, obs_names=names, obsm={}), "prot": Cells(X=pairs.Y, obs_names=names, obsm={})}
    >>> mdata = Cells(mod=mod, obs=pd.DataFrame(index=names), obs_names=names, uns={})
    >>> scverse.check(mdata, "rna", "prot").n_inliers
    240
    >>> list(mdata.obs), mdata.uns["inlier"]["n_inliers"]
    (['inlier', 'inlier_score', 'inlier_q_value', 'inlier_certain'], 240)
    """
    sides = [_side(data, name, rep) for name, rep in ((x, x_rep), (y, y_rep))]
    names, of_x, of_y = _joined(sides[0][1], sides[1][1], x, y)
    in_all = data.obs_names.get_indexer(names)
    strata = None if stratum is None else np.asarray(_column(data, stratum)[in_all]).astype(str)
    matcher = CalibratedMatcher(alpha=alpha, random_state=random_state)
    result = matcher.fit(sides[0][0][of_x], sides[1][0][of_y], strata=strata).result_
    _write(data, key_added, in_all, result)
    settings = {"x": x, "y": y, "x_rep": x_rep, "y_rep": y_rep, "stratum": stratum, "alpha": alpha}
    settings |= {"random_state": random_state, "n_pairs": len(names), "n_inliers": result.n_inliers}
    known = {name: value for name, value in settings.items() if value is not None}  # files cannot hold None
    data.uns[key_added] = {**known, "version": version("inlier")}
    return result


def _side(data: Any, name: str, rep: str | None) -> tuple[Array, Any]:
    """The numbers of a modality, and the names of its cells."""
    mods = getattr(data, "mod", None)
    if mods is None:
        return _numbers(_entry(data.obsm, name, ".obsm"), name), data.obs_names
    cells = _entry(mods, name, "modality")
    table = cells.X if rep is None else _entry(cells.obsm, rep, f".obsm of {name}")
    return _numbers(table, name if rep is None else f"{rep} of {name}"), cells.obs_names


def _entry(of: Any, name: str, what: str) -> Any:
    if name not in of:
        raise ParameterError(name, f"is no {what}; there is {', '.join(map(str, of)) or 'none'}.")
    return of[name]


def _numbers(table: Any, name: str) -> Array:
    if not is_sparse(table) and hasattr(table, "to_memory"):  # sparse, in a file
        table = table.to_memory()
    if is_sparse(table):
        values, said = strongest_directions(table)
        warn(f"X of {name} is sparse: compared are {said}.")
        return values
    return np.asarray(table[:] if not hasattr(table, "to_numpy") else table.to_numpy())


def _joined(names_x: Any, names_y: Any, x: str, y: str) -> tuple[Any, Array, Array]:
    """Cells that both have, in the order of x, and their rows in each."""
    for names, of in ((names_x, x), (names_y, y)):
        if not names.is_unique:
            raise ParameterError(of, "has cells of the same name. Call its obs_names_make_unique() first.")
    rows_y = names_y.get_indexer(names_x)
    rows_x = np.flatnonzero(rows_y >= 0)
    if not rows_x.size:
        raise ParameterError(x, f"and {y} have no cell of the same name, such as {names_x[0]} and {names_y[0]}.")
    return names_x[rows_x], rows_x, rows_y[rows_x]


def _column(data: Any, name: str) -> Any:
    if name not in data.obs:
        raise ParameterError("stratum", f"is {name!r}, and .obs has {', '.join(map(str, data.obs)) or 'no columns'}.")
    return data.obs[name].to_numpy()


def _write(data: Any, key: str, rows: Array, result: MatchResult) -> None:
    columns = result.columns()
    for name, column in (("", "inlier"), ("_score", "score"), ("_q_value", "q_value"), ("_certain", "certain")):
        values = np.asarray(columns[column])
        whole: Array = np.full(len(data.obs_names), np.nan)
        whole[rows] = values
        is_flag = values.dtype.kind == "b"
        is_whole = rows.size == whole.size
        data.obs[f"{key}{name}"] = whole.astype(bool) if is_flag and is_whole else _flags(whole) if is_flag else whole


def _flags(values: Array) -> Array:
    """True and false as words, for there is no flag for cells that only one modality has."""
    return np.where(np.isnan(values), "", np.where(values == 1, "True", "False"))
