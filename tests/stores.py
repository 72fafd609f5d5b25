"""Every place where rows can live, for tests that run in each."""

from __future__ import annotations

from importlib.util import find_spec

import array_api_strict
import dask.array as da
import h5py
import numpy as np
import pytest
import zarr

from inlier.rows.backend import to_host
from inlier.rows.files import NpyFile, StoredRows

STRICT_DEVICE = array_api_strict.Device("device1")  # not the one on which arrays are made unless told


def in_memory(table, folder, name):
    return table


def in_memory_map(table, folder, name):
    np.save(folder / f"{name}.npy", table)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def in_npy_file(table, folder, name):
    np.save(folder / f"{name}.npy", table)
    return StoredRows(NpyFile(folder / f"{name}.npy"), keep_vectors=False)


def in_zarr(table, folder, name):
    return zarr.create_array(store=folder / f"{name}.zarr", data=table, chunks=(37, table.shape[1]), overwrite=True)


def in_hdf5(table, folder, name):
    return h5py.File(folder / f"{name}.h5", "w").create_dataset("table", data=table, chunks=(37, table.shape[1]))


def in_dask(table, folder, name):
    return da.from_array(table, chunks=(170, -1) if name == "X" else (200, 1))  # chunks that do not fit together


def on_strict_device(table, folder, name):
    return array_api_strict.asarray(table, device=STRICT_DEVICE)


def in_torch(table, folder, name):
    import torch

    return torch.from_numpy(table)


STORES = [
    in_memory,
    in_memory_map,
    in_npy_file,
    in_zarr,
    in_hdf5,
    in_dask,
    on_strict_device,
    pytest.param(
        in_torch,
        marks=pytest.mark.skipif(find_spec("torch") is None, reason="torch is the user's to bring, and is not here"),
    ),
]

__all__ = ["STORES", "STRICT_DEVICE", "in_dask", "in_npy_file", "to_host"]
