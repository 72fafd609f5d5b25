"""Embeddings in parquet lists beside npy, streamed; and a judge in batches beside one batch.

    python benchmarks/embeddings.py files --rows 1000000     # two tables of 256 float32, 1 in 100 wrong: 4 GiB of disk
    python benchmarks/embeddings.py judge --rows 1000000     # in batches of 10,000: the same bits

`files` runs `inlier match` on npy and on parquet (lists, zstd, row groups of 100,000), reading in stretches
(INLIER_STREAM_FROM=0), and prints the ratio of the shortest times and the most memory that each took, at half of
the rows and at all of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inlier import CalibratedMatcher
from inlier.datasets import make_gaussian_pairs

D, AT_A_TIME, BATCH = 256, 100_000, 10_000
CHILD = """
import sys
from inlier.cli import main
try:
    main(sys.argv[1:])
except SystemExit:  # ru_maxrss would begin with the memory of whoever started this process
    print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def write_tables(folder, rows, rng):
    """Pairs as npy and as parquet, a stretch at a time."""
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0].astype(np.float32)
    arrays = [np.lib.format.open_memmap(folder / f"{side}.npy", "w+", np.float32, (rows, D)) for side in "xy"]
    schema = pa.schema([("emb", pa.list_(pa.float32()))])
    writers = [pq.ParquetWriter(folder / f"{side}.parquet", schema, compression="zstd") for side in "xy"]
    for start in range(0, rows, AT_A_TIME):
        x = rng.standard_normal((min(AT_A_TIME, rows - start), D), dtype=np.float32)
        y = x @ turn + rng.standard_normal(x.shape, dtype=np.float32)
        y[: len(y) // 100] = np.roll(y[: len(y) // 100], 1, axis=0)
        for array, writer, part in zip(arrays, writers, (x, y), strict=True):
            array[start : start + len(part)] = part
            offsets = np.arange(0, part.size + 1, D, dtype=np.int32)
            lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(part.reshape(-1)))
            writer.write_table(pa.table({"emb": lists}, schema=schema))
    for writer in writers:
        writer.close()


def run(folder, kind):
    """Seconds, MiB at most, and the mask."""
    out = folder / f"{kind}_mask.npy"
    words = ["match", f"x.{kind}", f"y.{kind}", "-o", out.name, "-q"]
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *words],
        cwd=folder,
        env={**os.environ, "INLIER_STREAM_FROM": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return perf_counter() - start, int(done.stdout.split()[-1]), np.load(out)


def files(rows, runs):
    """Both kinds of file in turn, at two sizes."""
    for n in (rows // 2, rows):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_tables(folder, n, np.random.default_rng(0))
            found = {kind: [run(folder, kind) for _ in range(runs)] for kind in ("npy", "parquet")}
        seconds = {kind: min(of[0] for of in found[kind]) for kind in found}
        memory = {kind: max(of[1] for of in found[kind]) for kind in found}
        same = np.array_equal(found["npy"][0][2], found["parquet"][0][2])
        ratio = seconds["parquet"] / seconds["npy"]
        print(
            f"{n:,} x {D}: parquet {ratio:.2f} times npy ({seconds['npy']:.1f} s); at most "
            f"{memory['npy']} MiB and {memory['parquet']} MiB; {'the same answer' if same else 'ANOTHER ANSWER'}",
            flush=True,
        )


def judge(rows):
    """Answers of one batch, of many, and of one row at a time."""
    data = make_gaussian_pairs(n=rows + 10_000, d=32, inlier_fraction=0.9, noise=0.5, rng=0)
    judge = CalibratedMatcher(random_state=0).fit(data.X[rows:], data.Y[rows:]).judge_
    start = perf_counter()
    whole = judge(data.X[:rows], data.Y[:rows])
    print(f"{rows:,} rows of 32 in one batch: {perf_counter() - start:.1f} s")
    stretches = [slice(at, at + BATCH) for at in range(0, rows, BATCH)]
    stretches += [slice(at, at + 1) for at in range(0, rows, rows // 100)]
    n_other = 0
    for part in stretches:
        found = judge(data.X[part], data.Y[part])
        for name in ("scores", "p_values", "q_values", "certain_q_values", "inlier_mask", "certain_mask"):
            n_other += int((getattr(found, name).view(np.uint8) != getattr(whole, name)[part].view(np.uint8)).sum())
    print(f"in batches of {BATCH:,}, and 100 rows alone: {n_other} bytes differ")


def main():
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["files", "judge"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    files(given.rows, given.runs) if given.what == "files" else judge(given.rows)


if __name__ == "__main__":
    main()
