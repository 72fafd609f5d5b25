"""Build wheel and sdist, install each into an empty environment, and try it there.

    python tools/try_package.py [--out dist]

Both are built from what git tracks, as a fresh clone has it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_BYTES = 2_000_000  # of the wheel
TRIALS = (
    ["python", "-c", "import inlier; print(inlier.__version__)"],
    ["inlier", "--version"],
    ["inlier", "demo", "--pairs", "2000", "--out", "demo"],
)


def build(folder: Path) -> list[Path]:
    """Build both from a copy of the tracked files, so that nothing comes along by accident."""
    with tempfile.TemporaryDirectory() as space:
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, tracked.decode().split("\0")):
            copy = Path(space, name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), space], check=True)
    return sorted(folder.iterdir())


def run_in(environment: Path, command: list[str], cwd: Path) -> str:
    """Run a program of an environment; what it prints."""
    program = environment / ("Scripts" if sys.platform == "win32" else "bin") / command[0]
    done = subprocess.run([program, *command[1:]], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def try_out(package: Path) -> None:
    """Install one of the two into an empty environment and run what a newcomer would."""
    with tempfile.TemporaryDirectory() as space:
        environment = Path(space, "environment")
        venv.create(environment, with_pip=True)
        run_in(environment, ["python", "-m", "pip", "install", "--quiet", f"{package}[report]"], Path(space))
        for trial in TRIALS:
            print(f"  {' '.join(trial)}: {run_in(environment, trial, Path(space)).strip().splitlines()[-1]}")
        if not Path(space, "demo", "report.html").exists():
            raise SystemExit("inlier demo wrote no page.")


def main() -> None:
    """Build, weigh, try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for both; emptied first")
    for package in build(parser.parse_args().out.resolve()):
        size = package.stat().st_size
        print(f"{package.name}: {size:,} bytes")
        if package.suffix == ".whl" and size > MOST_BYTES:
            raise SystemExit(f"The wheel must not be larger than {MOST_BYTES:,} bytes.")
        try_out(package)


if __name__ == "__main__":
    main()
