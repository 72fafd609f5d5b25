"""Files that hold several arrays by name (npz, hdf5, zarr): which of them is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inlier._typing import Array
from inlier.io.table import Content, Request, UnusableFileError, check_numeric, listed


def choose_array(request: Request, arrays: Mapping[str, Array], all_names: Sequence[str]) -> Content:
    """Return the array that was asked for, the only one there is, or equally long lists as columns.

    With a key, the rows' names are a further array of the file.
    """
    path, inside = request.path, request.inside
    if inside is not None:
        if inside not in arrays:
            raise UnusableFileError(f"{path} has no array named {inside!r}; it has {listed(list(all_names))}.")
        return _with_key(arrays[inside], inside, arrays, request)
    candidates = {name: array for name, array in arrays.items() if name != request.key and array.ndim > 0}
    if not candidates:
        raise UnusableFileError(f"{path} holds no array to read.")
    if len(candidates) == 1:
        ((name, array),) = candidates.items()
        return _with_key(array, name, arrays, request)
    if all(array.ndim == 1 for array in arrays.values()) and len({len(array) for array in arrays.values()}) == 1:
        return arrays  # a column each
    shapes = [f"{name} {array.shape}" for name, array in candidates.items()]
    first = next(iter(candidates))
    raise UnusableFileError(
        f"{path} holds {len(shapes)} arrays: {listed(shapes)}. Choose one, for example {path}:{first}"
    )


def _with_key(array: Array, name: str, arrays: Mapping[str, Array], request: Request) -> Content:
    if request.key is None or array.dtype.names is not None:
        return array
    if request.key not in arrays:
        raise UnusableFileError(f"{request.path} has no array named {request.key!r} beside {name}.")
    keys = arrays[request.key]
    if keys.ndim != 1 or array.ndim not in (1, 2) or len(keys) != len(array):
        raise UnusableFileError(
            f"in {request.path} the key {request.key} has shape {keys.shape} and {name} has {array.shape}: "
            f"there must be one name per row."
        )
    check_numeric(array, request.path)
    columns = array.reshape(len(array), -1)
    return {**{str(number): column for number, column in enumerate(columns.T)}, request.key: keys}
