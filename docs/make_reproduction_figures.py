"""Draw the pictures of docs/reproducing.md from the committed full runs.

python docs/make_reproduction_figures.py
"""

from __future__ import annotations

from pathlib import Path

from inlier.apps.reproduce.experiment import Run, load_sources
from inlier.apps.reproduce.output import load_baselines
from inlier.apps.reproduce.runner import EXPERIMENTS
from inlier.plotting import as_png

IMAGES = Path(__file__).parent / "images"
DRAWN = ("brain-ratio", "brain-split-eigenvector", "brain-split-row-sum", "sky-noise", "theory-row-sum")


def main() -> None:
    """Draw each experiment's own figure from the numbers of its baseline, the one nearest to the paper's data."""
    nothing = load_sources([])
    for name in DRAWN:
        baselines = load_baselines(name)
        record = next((b for b in baselines if "shipped" not in str(b["data"]) and "china" not in str(b["data"])), None)
        record = record or baselines[0]
        figure = EXPERIMENTS[name].plot(Run(name, record["settings"], nothing, record["seed"]), record["rows"])
        (IMAGES / f"reproduction-{name}.png").write_bytes(as_png(figure, dpi=80))
        print(f"{name}: {', '.join(source['name'] for source in record['data'].values()) or 'drawn from Assumption 1'}")


if __name__ == "__main__":
    main()
