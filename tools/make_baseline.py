"""Turn the results of full runs into the committed baseline.

    inlier reproduce --all --brain S1200_L_32k.npz --photo PHOTO --out full
    python tools/make_baseline.py full [MORE_FOLDERS...]

Each experiment's record is kept without its verdicts, a row a line, in a file named after its data.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from inlier.apps.reproduce.runner import EXPERIMENTS
from inlier.io import write_file

BASELINE = Path(__file__).parents[1] / "src" / "inlier" / "apps" / "reproduce" / "baseline"
KEPT = ("experiment", "settings", "seed", "data", "versions", "seconds")


def main() -> None:
    """Write the baseline of every record in the given folders."""
    for folder in map(Path, sys.argv[1:]):
        for name in EXPERIMENTS:
            path = folder / f"{name}.json"
            if path.is_file():
                print(write_baseline(json.loads(path.read_text())))


def write_baseline(record: dict[str, Any]) -> Path:
    """Write one experiment's baseline and return its path."""
    if record["settings"] != json.loads(json.dumps(EXPERIMENTS[record["experiment"]].full)):
        sys.exit(f"{record['experiment']} is not a full run: {record['settings']}")
    source = "-".join(source["name"].split(".")[0].split()[0] for source in record["data"].values())
    path = BASELINE / f"{record['experiment']}{'.' if source else ''}{source}.json"
    head = json.dumps({key: record[key] for key in KEPT}, indent=1)[:-2]
    rows = ",\n".join("  " + json.dumps(row) for row in record["rows"])
    write_file(path, f'{head},\n "rows": [\n{rows}\n ]\n}}\n')
    return path


if __name__ == "__main__":
    main()
