"""The cortical surface of section 6.1: six features per vertex of the left hemisphere."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from inlier._typing import FloatArray
from inlier.io.formats import load

FEATURE_NAMES = ("x", "y", "z", "thickness", "curvature", "myelin")
_COORDINATE_RANGE = 3.0  # Appendix A: "after centralisation, value is ranged between [-3, 3]"
_MYELIN_QUANTILE = 0.9999  # Appendix A: "omit the extreme values according to its 99.99 % quantile"
_ARRAY_NAMES = ("xyz", "thickness", "curvature", "myelin")
_LEFT_CORTEX = "CIFTI_STRUCTURE_CORTEX_LEFT"


@dataclass(frozen=True, eq=False)
class BrainTable:
    """Features of the vertices of a cortical surface.

    Attributes
    ----------
    features : ndarray of shape (n, 6)
        One row per vertex, pre-processed as in Appendix A of the paper.
    feature_names : tuple of str
        Names of the columns.
    source : str
        Where the table comes from.
    """

    features: FloatArray
    feature_names: tuple[str, ...]
    source: str


def load_brain(directory: str | PathLike[str] | None = None) -> BrainTable:
    """Load six features per vertex of a left hemisphere.

    Parameters
    ----------
    directory : path, optional
        Folder with Connectome Workbench files: a left ``*.midthickness*.surf.gii`` surface and the maps
        ``*corrThickness*``, ``*curvature*`` and ``*MyelinMap*`` as GIFTI (``.gii``) or CIFTI
        (``.dscalar.nii``). Reading them needs nibabel. Or an ``.npz`` file with the arrays ``xyz``,
        ``thickness``, ``curvature`` and ``myelin``. By default the group-average table inside the
        package is used: 29,271 cortical vertices from BrainSpace 0.3.0 (BSD-3-Clause), itself an average
        of Human Connectome Project subjects.

    Returns
    -------
    BrainTable

    Examples
    --------
    >>> from inlier.datasets import load_brain
    >>> brain = load_brain()
    >>> brain.features.shape
    (29268, 6)
    """
    if directory is not None:
        path = Path(directory)
        return _load_arrays(path) if path.suffix == ".npz" else _load_workbench(path)
    features = brain_features(**packaged_surface())
    return BrainTable(features, FEATURE_NAMES, "conte69 left hemisphere, from BrainSpace 0.3.0")


def packaged_surface() -> dict[str, FloatArray]:
    """The arrays of the table inside the package: ``xyz`` in millimetres, and a map each of the other three."""
    packaged = files("inlier.datasets") / "data" / "brain_conte69_left.npz"
    with packaged.open("rb") as stream, np.load(stream, allow_pickle=False) as table:
        return {name: np.asarray(table[name], dtype=np.float64) for name in _ARRAY_NAMES}


def brain_features(xyz: Any, thickness: Any, curvature: Any, myelin: Any) -> FloatArray:
    """Pre-process surface maps as in Appendix A of the paper.

    Vertices whose myelin lies above its 99.99 % quantile are dropped. The coordinates are centred and
    each axis is divided by its own largest absolute value, times 3; the other maps stay as they are.

    Parameters
    ----------
    xyz : array-like of shape (n, 3)
        Vertex coordinates.
    thickness, curvature, myelin : array-like of shape (n,)
        One value per vertex.

    Returns
    -------
    ndarray of shape (m, 6), float64
        m is at most n.
    """
    maps = np.column_stack([np.asarray(column, dtype=np.float64) for column in (thickness, curvature, myelin)])
    xyz = np.asarray(xyz, dtype=np.float64)
    if xyz.ndim != 2 or xyz.shape[1] != 3 or len(xyz) != len(maps):
        raise ValueError(f"xyz must have a row of 3 numbers per vertex: shape {xyz.shape} for {len(maps)} vertices.")
    kept = maps[:, 2] <= np.quantile(maps[:, 2], _MYELIN_QUANTILE)
    xyz = xyz[kept] - xyz[kept].mean(axis=0)
    return np.hstack([_COORDINATE_RANGE * xyz / np.abs(xyz).max(axis=0), maps[kept]])


def _load_arrays(path: Path) -> BrainTable:
    if not path.is_file():
        raise FileNotFoundError(f"There is no brain table at {path}.")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as table:
            missing = [name for name in _ARRAY_NAMES if name not in table.files]
            if missing:
                raise ValueError(f"it holds no array named {' or '.join(missing)}, only {', '.join(table.files)}")
            features = brain_features(*(table[name] for name in _ARRAY_NAMES))
    except (ValueError, EOFError, OSError, BadZipFile) as error:
        reason = "it is not an .npz file of plain numbers" if "pickle" in str(error) else error
        raise ValueError(f"{path} could not be read as a brain table: {reason}.") from error
    return BrainTable(features, FEATURE_NAMES, path.name)


def _load_workbench(directory: Path) -> BrainTable:
    if not directory.is_dir():
        raise NotADirectoryError(f"{directory} is not a folder; give the folder with the Workbench files, or an .npz.")
    surface = _only_file(directory, "*.L.*midthickness*.surf.gii")
    xyz = _read_image(surface).agg_data("pointset")
    maps = [
        _read_map(_only_file(directory, pattern), len(xyz))
        for pattern in ("*corrThickness*", "*curvature*", "*MyelinMap*")
    ]
    return BrainTable(brain_features(xyz, *maps), FEATURE_NAMES, str(directory))


def _only_file(directory: Path, pattern: str) -> Path:
    """Return the file that matches: the plainest name, so that smoothed variants are not taken by accident."""
    right = (".R.", "_R.", ".rh.")
    found = [
        path
        for path in directory.glob(pattern)
        if path.suffix in (".gii", ".nii") and not any(side in path.name for side in right)
    ]
    if not found:
        raise FileNotFoundError(f"{directory} holds no file named {pattern} for the left hemisphere (.gii or .nii).")
    return min(found, key=lambda path: (len(path.name), path.name))


def _read_image(path: Path) -> Any:
    nibabel = load("nibabel", "brain")
    try:
        return nibabel.load(path)
    except Exception as error:  # nibabel raises parser errors of many kinds
        raise ValueError(f"{path} could not be read as a GIFTI or CIFTI file: {error}") from error


def _read_map(path: Path, n_vertices: int) -> FloatArray:
    """One value per vertex of the left surface; vertices that a CIFTI file leaves out (medial wall) are 0."""
    image = _read_image(path)
    if hasattr(image, "agg_data"):  # GIFTI
        values = np.asarray(image.agg_data(), dtype=np.float64)
        values = values[0] if values.ndim == 2 else values
    else:
        values = np.zeros(n_vertices)
        for name, columns, model in image.header.get_axis(1).iter_structures():
            if name == _LEFT_CORTEX:
                values[model.vertex] = image.get_fdata()[0, columns]
                break
        else:
            raise ValueError(f"{path} has no values for the left cortex.")
    if values.shape != (n_vertices,):
        raise ValueError(f"{path} has {values.size} values, but the surface has {n_vertices} vertices.")
    return values
