"""A small sound file of every format, in several of the ways that it can be written, to be damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from inlier.io import FORMATS, Kind, write_table

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(40, 3))
PICTURE = RNG.integers(0, 255, (12, 12, 3), dtype=np.uint8)
_SINGLE_CELLS = Path(__file__).parents[1] / "tests" / "io" / "single_cells"
COLUMNS = {"id": np.array([f"s{number}" for number in range(40)]), "a": TABLE[:, 0], "b": TABLE[:, 1]}


def make_seeds(folder: Path) -> list[Path]:
    """Write the seeds; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for format in (format for format in FORMATS if format.is_written):
        for suffix in format.suffixes:
            write_table(folder / f"plain{suffix}", PICTURE if format.kind is Kind.PICTURE else TABLE)
            if format.kind in (Kind.COLUMNS, Kind.ARRAYS):
                write_table(folder / f"columns{suffix}", COLUMNS)
    for path in _SINGLE_CELLS.glob("*.h5*"):
        shutil.copy(path, folder)
    for suffix in (".parquet", ".feather", ".jsonl"):
        write_table(folder / f"vectors{suffix}", {"id": COLUMNS["id"], "emb": TABLE})
    _arrays(folder)
    _arrow(folder)
    _clouds(folder)
    _scans(folder)
    _pictures(folder)
    _brains(folder)
    _texts(folder)
    return sorted(path for path in folder.iterdir() if path.suffix)


def _arrays(folder: Path) -> None:
    import h5py
    import zarr

    np.save(folder / "records.npy", np.zeros(40, dtype=[("x", "f8"), ("n", "i4")]))
    np.save(folder / "columns-first.npy", np.asfortranarray(TABLE))
    np.savez(folder / "several.npz", X=TABLE, Y=TABLE, n=3)
    with h5py.File(folder / "packed.h5", "w") as file:
        file.create_dataset("deep/a", data=TABLE, chunks=(10, 3), compression="gzip", shuffle=True, fletcher32=True)
        file["note"] = h5py.Empty("f8")
        file.create_dataset("id", data=COLUMNS["id"].astype(object), dtype=h5py.string_dtype())
    with h5py.File(folder / "late.h5", "w", libver="latest") as file:
        file.create_dataset("a", data=TABLE, chunks=(10, 3), compression="lzf", maxshape=(None, 3))
    zarr.create_array(folder / "second.zarr", data=TABLE, chunks=(20, 3), zarr_format=2)
    zarr.create_array(folder / "sharded.zarr", data=TABLE, chunks=(10, 3), shards=(40, 3))


def _arrow(folder: Path) -> None:
    import pyarrow
    import pyarrow.feather
    import pyarrow.parquet

    table = pyarrow.table({name: pyarrow.array(column) for name, column in COLUMNS.items()})
    table = table.append_column("kind", pyarrow.array(["x", "y"] * 20).dictionary_encode())
    for packing in ("zstd", "gzip", "none"):
        pyarrow.parquet.write_table(table, folder / f"{packing}.parquet", compression=packing, row_group_size=15)
    for packing in ("zstd", "uncompressed"):
        pyarrow.feather.write_feather(table, folder / f"{packing}.feather", compression=packing, chunksize=15)


def _clouds(folder: Path) -> None:
    import plyfile
    import pypcd4

    vertices = np.rec.fromarrays([*TABLE.T, np.arange(40, dtype=np.uint8)], names="x,y,z,red")
    faces = np.empty(5, dtype=[("vertex_indices", "O")])
    faces["vertex_indices"] = [np.arange(3, dtype=np.int32)] * 5
    elements = [plyfile.PlyElement.describe(vertices, "vertex"), plyfile.PlyElement.describe(faces, "face")]
    for name, how in (("text", {"text": True}), ("swapped", {"byte_order": ">"}), ("faces", {})):
        plyfile.PlyData(elements, **how).write(str(folder / f"{name}.ply"))
    cloud = pypcd4.PointCloud.from_xyz_points(TABLE.astype(np.float32))
    for encoding in pypcd4.Encoding:
        cloud.save(folder / f"{encoding.value}.pcd", encoding)


def _scans(folder: Path) -> None:
    np.column_stack([TABLE, TABLE[:, 0]]).astype("<f4").tofile(folder / "plain.bin")
    lines = [f"{x} {y} {z}" for x, y, z in TABLE]
    (folder / "plain.pts").write_text("\n".join([str(len(lines)), *lines]) + "\n")
    (folder / "plain.obj").write_text("".join(f"v {line}\n" for line in lines) + "f 1 2 3\n")
    triangles = np.zeros(12, dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    triangles["corners"] = TABLE[:36].reshape(12, 3, 3)
    (folder / "plain.stl").write_bytes(bytes(80) + np.uint32(12).tobytes() + triangles.tobytes())
    corners = ["".join(f"vertex {x} {y} {z}\n" for x, y, z in corner) for corner in TABLE[:36].reshape(12, 3, 3)]
    facets = "".join(f"facet normal 0 0 0\nouter loop\n{corner}endloop\nendfacet\n" for corner in corners)
    (folder / "words.stl").write_text(f"solid a\n{facets}endsolid a\n")
    _e57(folder / "plain.e57")


def _e57(path: Path) -> None:
    import pye57

    x, y, z = TABLE[:, :3].T
    file = pye57.E57(str(path), mode="w")
    file.write_scan_raw({"cartesianX": x, "cartesianY": y, "cartesianZ": z})
    file.close()


def _pictures(folder: Path) -> None:
    import tifffile
    from PIL import Image

    write_table(folder / "deep.png", PICTURE.astype(np.uint16) * 257)
    Image.fromarray(PICTURE).convert("P").save(folder / "palette.png")
    tifffile.imwrite(folder / "pages.tif", np.stack([PICTURE] * 2), photometric="rgb")
    tifffile.imwrite(folder / "float.tif", TABLE.astype(np.float32))
    for kind in ("GIF", "BMP", "WEBP", "PPM", "TGA"):
        Image.fromarray(np.kron(PICTURE, np.ones((4, 4, 1), np.uint8))).save(folder / f"{kind.lower()}.jpg", kind)


def _brains(folder: Path) -> None:
    import nibabel

    write_table(folder / "maps.gii", {"a": TABLE[:, 0], "b": TABLE[:, 1]})
    axis = nibabel.cifti2.BrainModelAxis.from_mask(np.ones(40, bool), "CortexLeft")
    scalars = nibabel.cifti2.ScalarAxis(["a", "b", "c"])
    nibabel.Cifti2Image(TABLE.T.astype(np.float32), (scalars, axis)).to_filename(folder / "maps.dscalar.nii")
    nibabel.Nifti2Image(TABLE.reshape(5, 8, 1, 3), np.eye(4)).to_filename(folder / "second.nii")


def _texts(folder: Path) -> None:
    rows = "\n".join(f'"s{number}" {a!r} {b!r}' for number, (a, b) in enumerate(TABLE[:, :2].tolist()))
    (folder / "from-r.txt").write_text(f'"a" "b"\n{rows}\n')
    write_table(folder / "words.vec", {"word": COLUMNS["id"], "0": TABLE[:, 0], "1": TABLE[:, 1]})
