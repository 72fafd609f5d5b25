"""h5ad and h5mu: AnnData, and several of them for the same cells, as the files are laid out, read with h5py alone.

A table is named as in AnnData: ``X``, ``obsm/X_pca`` or ``X_pca``, ``layers/counts``; in h5mu behind its modality, as
in ``rna:X_pca``. Rows are called by the index of ``obs``. Sparse tables are read by their strongest directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from inlier._checks import warn
from inlier._typing import Array
from inlier.exceptions import UnusableFileError
from inlier.io._array_files import check_filters, check_is_sound, texts_of
from inlier.io.formats import ReadOnly, load
from inlier.io.limits import check_unpacked_size
from inlier.io.table import Content, NoSuchColumnError, Request, Table, as_keys, check_numeric, listed
from inlier.rows.sparse import strongest_directions

_CURE = "write the table you need, such as obsm['X_pca'], as npy"
_CURE_TABLE = "Choose another one."
_PLACES = ("obsm", "layers")
_SPARSE = ("csr_matrix", "csc_matrix")
_INDEX = ("", "_index", "index", "obs_names")  # what may be meant by the index of obs
KINDS = {"anndata": ("AnnData", ".h5ad"), "MuData": ("MuData", ".h5mu")}


class SingleCells(ReadOnly):
    """Cells in rows, by the names that they have in the file."""

    def names(self, path: Path) -> list[str]:
        with _opened(path) as file:
            return _names_of(file)

    def read(self, request: Request) -> Content | Table:
        with _opened(request.path) as file:
            group, name = _place(file, request)
            if request.key is not None and request.columns == (request.key,):  # labels alone
                return {request.key: _obs(group, request.key, request.path)}
            keys = as_keys(_obs(group, request.key or "", request.path))
            values, columns = _values(group, name, request)
            labels = {*group["obs"]}
        if len(keys) != len(values):
            raise UnusableFileError(
                f"{name} in {request.path} has {len(values):,} rows, and obs has {len(keys):,}. Write the file again."
            )
        left_out = tuple(column for column in request.left_out if column not in labels or column in (columns or ()))
        return _chosen(Table(values, columns, keys, request.path), replace(request, left_out=left_out))


def kind_of(file: Any) -> str | None:
    """What an HDF5 file says that it is: "anndata", "MuData", or nothing known."""
    said = file.attrs.get("encoding-type", "")
    said = said.decode() if isinstance(said, bytes) else str(said)
    return said if said in KINDS else None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    check_is_sound(path)
    with load("h5py", "h5ad").File(path, "r") as file:
        if kind_of(file) is None and "obs" not in file and "mod" not in file:
            raise UnusableFileError(f"{path} is an HDF5 file, but no AnnData: it has no obs. Name it .h5.")
        yield file


def _names_of(file: Any) -> list[str]:
    if "mod" in file:
        return [f"{mod}:{name}" for mod in file["mod"] for name in _names_of(file["mod"][mod])]
    return [*(["X"] if "X" in file else []), *(f"{place}/{name}" for place in _PLACES for name in file.get(place, ()))]


def _place(file: Any, request: Request) -> tuple[Any, str]:
    """The AnnData that is meant, and the name of the table in it."""
    inside = (request.inside or "").replace(":", "/").strip("/")
    group = file
    if "mod" in file:
        mod, _, inside = inside.removeprefix("mod/").partition("/")
        if mod not in file["mod"]:
            mods = list(file["mod"])
            first = mods[0] if mods else "rna"
            raise UnusableFileError(
                f"{request.path} holds {listed(mods)}{f', and no {mod}' if mod else ''}. Choose one of them and a "
                f"table of it, as in {request.path}:{first} or {request.path}:{first}:X_pca"
            )
        group = file["mod"][mod]
    names = _names_of(group)
    if request.inside is None and "X" not in names and len(names) == 1:
        return group, names[0]
    name = next((name for name in (inside or "X", *(f"{place}/{inside}" for place in _PLACES)) if name in names), None)
    if name is None and inside == "raw/X" and "raw/X" in group:
        name = inside
    if name is None:
        raise UnusableFileError(f"{request.path} has no table named {inside or 'X'!r}; it has {listed(names)}.")
    return group, name


def _values(group: Any, name: str, request: Request) -> tuple[Array, tuple[str, ...] | None]:
    """The numbers of a table, and names of its columns."""
    item, path = group[name], request.path
    kind = item.attrs.get("encoding-type", "")
    if kind in _SPARSE:
        values, said = strongest_directions(_sparse(item, kind, name, path))
        warn(f"{name} of {path} is sparse: compared are {said}.")
        return values, None
    if hasattr(item, "keys"):
        columns = [str(column) for column in item.attrs.get("column-order", ())]
        if kind != "dataframe" or not columns:
            raise UnusableFileError(f"{name} in {path} holds no table of numbers ({kind or 'a group'}). {_CURE_TABLE}")
        return np.column_stack([_dense(item[column], f"{name}/{column}", path) for column in columns]), tuple(columns)
    values = _dense(item, name, path)
    values = values.reshape(len(values), -1) if values.ndim == 1 else values
    if values.ndim != 2:
        raise UnusableFileError(f"{name} in {path} has shape {values.shape}, which is no table. {_CURE_TABLE}")
    is_of_genes = (name == "X" or name.startswith("layers/")) and "var" in group
    names = tuple(_index(group["var"], path).tolist()) if is_of_genes else None
    return values, names if names is not None and len(names) == values.shape[1] else None


def _chosen(table: Table, request: Request) -> Table:
    """The columns that were asked for."""
    if request.columns is None and not request.left_out:
        return table
    names = table.columns or tuple(map(str, range(table.values.shape[1])))
    place = {name: number for number, name in enumerate(names)}
    for name in (*(request.columns or ()), *request.left_out):
        if name not in place:
            raise NoSuchColumnError(f"{request.path} has no column named {name!r}; it has {listed(list(names))}.")
    kept = [place[name] for name in request.columns or names if name not in request.left_out]
    return replace(table, values=np.ascontiguousarray(table.values[:, kept]), columns=tuple(names[k] for k in kept))


def _dense(item: Any, name: str, path: Path) -> Array:
    _check(item, name, path)
    values = np.asarray(item[...])
    check_numeric(values, path)
    return values


def _check(item: Any, name: str, path: Path) -> None:
    if item.shape is None or item.external or item.is_virtual:
        raise UnusableFileError(f"{name} in {path} is empty, or keeps its data in other files. Copy it in.")
    check_filters(item, name, path)
    check_unpacked_size(path, prod(item.shape) * item.dtype.itemsize, _CURE)


def _sparse(item: Any, kind: str, name: str, path: Path) -> Any:
    """A matrix of SciPy, once its places are known to lie inside of it: SciPy would follow them anywhere in memory."""
    from scipy.sparse import csc_matrix, csr_matrix

    data, indices, starts = (_dense(item[part], f"{name}/{part}", path) for part in ("data", "indices", "indptr"))
    shape = tuple(int(size) for size in item.attrs["shape"])
    n_lines, width = shape if kind == _SPARSE[0] else shape[::-1]
    are_sound = (
        starts.ndim == indices.ndim == data.ndim == 1
        and min(shape) > 0
        and starts.size == n_lines + 1
        and starts[0] == 0
        and (np.diff(starts.astype(np.int64)) >= 0).all()
        and starts[-1] == indices.size == data.size
        and (not indices.size or (indices.min() >= 0 and indices.max() < width))
    )
    if not are_sound:
        raise UnusableFileError(f"{name} in {path} is a sparse table whose places do not fit it. Write it again.")
    return (csr_matrix if kind == _SPARSE[0] else csc_matrix)((data, indices, starts), shape=shape)


# ---- names and labels of cells


def _obs(group: Any, name: str, path: Path) -> Array:
    """A column of ``obs``, or its index."""
    obs = group["obs"]
    if name not in obs and (name in _INDEX or name == str(obs.attrs.get("_index", ""))):
        return _index(obs, path)
    if name not in obs:
        known = [column for column in obs if column != obs.attrs.get("_index")]
        raise NoSuchColumnError(
            f"obs of {path} has no column named {name!r}; it has {listed(known)}. The names of the cells are --key ''."
        )
    return _labels(obs[name], name, path)


def _index(frame: Any, path: Path) -> Array:
    name = str(frame.attrs.get("_index", "_index"))
    return as_keys(_labels(frame[name], name, path))


def _labels(item: Any, name: str, path: Path) -> Array:
    """Text or numbers, one a row, whichever way they are encoded."""
    if hasattr(item, "keys") and "codes" in item:
        codes, categories = _labels(item["codes"], name, path), as_keys(_labels(item["categories"], name, path))
        if codes.dtype.kind not in "iu" or (codes.size and codes.max() >= categories.size):
            raise UnusableFileError(f"{name} in {path} has categories that are not there. Write it again.")
        return np.append(categories, "")[np.where(codes < 0, categories.size, codes)]
    if hasattr(item, "keys") and "values" in item:
        values = as_keys(_labels(item["values"], name, path))
        mask = _labels(item["mask"], name, path).astype(bool) if "mask" in item else np.zeros(len(values), dtype=bool)
        return np.where(mask, "", values) if mask.shape == values.shape else values
    if hasattr(item, "keys"):
        raise UnusableFileError(f"{name} in {path} is no list of labels. Choose another column.")
    _check(item, name, path)
    if item.dtype.kind == "O":
        return texts_of(item, path)
    return np.asarray(item[...])
