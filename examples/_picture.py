"""What the examples share: the command line option for a picture, and writing it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from inlier.plotting import as_png


def folder_for_pictures(description: str) -> Path | None:
    """Read the command line: where to write the picture, if anywhere."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="also write a picture here")
    return parser.parse_args().out


def write_picture(figure: Any, folder: Path, name: str) -> None:
    """Write a figure as PNG and say where."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(as_png(figure))
    print(f"The picture is in {path}.")
