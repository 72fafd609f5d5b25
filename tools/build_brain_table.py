"""Build the brain table that ships with the package from the wheel of brainspace 0.3.0.

    pip download --no-deps brainspace==0.3.0
    python tools/build_brain_table.py brainspace-0.3.0-py3-none-any.whl

Needs nibabel. Writes src/inlier/datasets/data/brain_conte69_left.npz and the licence notice beside it.
"""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import nibabel
import numpy as np

DATA = Path(__file__).parents[1] / "src" / "inlier" / "datasets" / "data"
SURFACE = "brainspace/datasets/surfaces/conte69_32k_lh.gii"
MAPS = "brainspace/datasets/matrices/main_group/conte69_32k_{}.csv"
LICENCE = "brainspace-0.3.0.dist-info/licenses/LICENSE"


def main(wheel: str) -> None:
    """Read the left half of each map, drop the medial wall (NaN), write one compressed table."""
    with zipfile.ZipFile(wheel) as archive:
        surface = nibabel.GiftiImage.from_bytes(archive.read(SURFACE))
        xyz = surface.agg_data("pointset")
        maps = {
            name: np.loadtxt(io.BytesIO(archive.read(MAPS.format(column))))[: len(xyz)]
            for name, column in [("thickness", "thickness"), ("curvature", "curvature"), ("myelin", "t1wt2w")]
        }
        (DATA / "LICENSE-brainspace").write_bytes(archive.read(LICENCE))
    cortex = np.all([np.isfinite(values) for values in maps.values()], axis=0)
    table = {"xyz": xyz[cortex]} | {name: values[cortex] for name, values in maps.items()}
    path = DATA / "brain_conte69_left.npz"
    np.savez_compressed(path, **{name: values.astype(np.float32) for name, values in table.items()})
    print(f"{cortex.sum()} vertices, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
