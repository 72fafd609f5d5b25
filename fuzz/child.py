"""Read one file after the other, as named on standard input, and say on standard output how it went."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path

GIB = 1024**3
LIBRARIES = ("inlier.io", "h5py", "laspy", "nibabel", "plyfile", "pyarrow.parquet", "pypcd4", "tifffile", "zarr")
_ADDRESS_SPACE = 8 * GIB  # beyond which the system says no, should all else fail


def digest(path: Path) -> str:
    """What a file, or a folder, holds."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files if file.is_file())).hexdigest()


def read(path: Path) -> str:
    """Read a file in every way there is; return how that ended."""
    from inlier.io import UnusableFileError, open_stored, read_photo, read_table

    outcome = "refused"
    for reader in (lambda: read_table(path), lambda: read_table(path, key="id"), lambda: _stored(open_stored(path))):
        try:
            outcome = outcome if reader() is None else "read"
        except UnusableFileError as error:
            if "\n" in str(error):
                return f"a sentence of several lines: {error}"
    if path.suffix in (".jpg", ".png", ".tif"):
        with suppress(UnusableFileError):
            read_photo(path)
    return outcome


def _stored(table: object) -> object:
    """Rows that were opened, once they were read."""
    return None if table is None else table[0 : min(len(table), 10**6)]  # type: ignore[arg-type,index]


def command(path: Path) -> str:
    """Match a file with itself on the command line; return how that ended."""
    from click.testing import CliRunner

    from inlier.cli import main

    outcome = CliRunner().invoke(main, ["match", str(path), str(path), "--method", "row-sum", "--quiet"])
    if outcome.exit_code not in (0, 1, 2):
        return f"exit code {outcome.exit_code}: {outcome.output}"
    if "mistake of its own" in outcome.output or "Traceback" in outcome.output:
        return outcome.output
    return "refused" if outcome.exit_code == 2 else "read"


def _most_memory() -> int:
    """MiB at most so far. The kernel's other count, ru_maxrss, starts with what the parent held before exec."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Answer each line ``read PATH`` or ``command PATH`` with a line of JSON."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    for library in LIBRARIES:  # so that memory and time are counted from here
        import_module(library)
    print(json.dumps({"mib": _most_memory()}), file=answers, flush=True)
    for line in sys.stdin:
        kind, name = line.rstrip("\n").split(" ", 1)
        path = Path(name)
        before, start = digest(path), time.process_time()
        try:
            outcome = read(path) if kind == "read" else command(path)
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        if digest(path) != before:
            outcome = "the input was changed"
        answer = {
            "outcome": outcome,
            "seconds": time.process_time() - start,
            "mib": _most_memory(),
        }
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
