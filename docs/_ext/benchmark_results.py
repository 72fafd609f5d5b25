"""Results of benchmarks in pages: the file, the command, the commit; and figures of them for both themes.

```{results} linear_time.txt
:lines: 1-5
```
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(ROOT / "tools"))

import check_results  # noqa: E402

THEMES = {"light": ("#222222", "#DDDDDD"), "dark": ("#D8DEE4", "#3A4047")}  # of letters, of lines behind
SHOWN = {  # methods of the figure, with their colours
    "inlier": "#1E88D0",
    "least squares": "#999999",
    "SC2-PCR (reference)": "#2E9E73",
    "CLIPPER (reference)": "#8CBF3F",
    "Open3D RANSAC": "#E0662B",
    "KISS-Matcher": "#CC79A7",
    "MAGSAC++ (pymagsac)": "#D9A400",
}


class Results(SphinxDirective):
    """A file of results with where it comes from."""

    required_arguments = 1
    option_spec: ClassVar = {"lines": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Write the lines, and below them command and commit."""
        (name,) = self.arguments
        path = RESULTS / name
        if not path.exists():
            raise self.error(f"benchmarks/results has no file {name}")
        self.env.note_dependency(str(path))
        lines = path.read_text().splitlines()
        if "lines" in self.options:
            first, _, last = self.options["lines"].partition("-")
            lines = lines[int(first) - 1 : int(last or first)]
        block = nodes.literal_block("\n".join(lines), "\n".join(lines), language="text")
        found = next(result for result in known_results() if result.file == name)
        words = nodes.paragraph(classes=["provenance"])
        for place, part in enumerate(found.provenance.split("`")):
            words += nodes.literal(part, part) if place % 2 else nodes.Text(part)
        return [block, words]


_KNOWN: list[Any] = []


def known_results() -> list[Any]:
    """Ask git once."""
    if not _KNOWN:
        _KNOWN.extend(check_results.results(ROOT))
    return _KNOWN


def draw_peers(folder: Path) -> None:
    """Success by outlier rate at n = 1,000 and 10,000, and time by n, from peers.csv; once for each theme."""
    from matplotlib.figure import Figure

    rows = [row for row in csv.DictReader((RESULTS / "peers.csv").open()) if row["placement"] == "uniform"]
    success, time = defaultdict(list), defaultdict(list)
    for row in rows:
        if row["method"] in SHOWN and row["success"] and float(row["rate"]) < 1:  # at 1 there is nothing to find
            success[row["n"], row["method"]].append((float(row["rate"]), float(row["success"])))
            if row["rate"] == "0.95" and row["seconds"]:
                time[row["method"]].append((int(row["n"]), float(row["seconds"]), float(row["success"])))
    for theme, (ink, behind) in THEMES.items():
        figure = Figure(figsize=(11, 3.6), layout="constrained", facecolor="none")
        panels = figure.subplots(1, 3)
        for ax, n in zip(panels, ("1000", "10000"), strict=False):
            for name, colour in SHOWN.items():
                rates, shares = zip(*sorted(success[n, name]), strict=True) if success[n, name] else ((), ())
                places = [f"{100 * rate:g}" for rate in rates]
                ax.plot(places, shares, "o-", color=colour, label=name, linewidth=3 if name == "inlier" else 1.4)
            ax.set(title=f"n = {int(n):,}", xlabel="wrong matches in %", ylabel="success", ylim=(-0.05, 1.05))
        for name, colour in SHOWN.items():
            if time[name]:
                sizes, seconds, _ = zip(*sorted(time[name]), strict=True)
                panels[2].loglog(sizes, seconds, "o-", color=colour, linewidth=3 if name == "inlier" else 1.4)
        panels[2].set(title="95 % wrong", xlabel="matches", ylabel="seconds")
        for ax in panels:
            ax.set_facecolor("none")
            ax.grid(color=behind, linewidth=0.7)
            ax.tick_params(colors=ink)
            for spine in ax.spines.values():
                spine.set_color(behind)
            for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
                text.set_color(ink)
        legend = figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
        )
        for text in legend.get_texts():
            text.set_color(ink)
        figure.savefig(folder / f"peers-{theme}.svg", transparent=True, metadata={"Date": None})


def on_start(app: Any) -> None:
    """Draw the figures of the benchmarks where pages look for them."""
    folder = Path(app.srcdir) / "_static" / "generated"
    folder.mkdir(exist_ok=True)
    draw_peers(folder)


def setup(app: Any) -> dict[str, bool]:
    """Offer the directive; draw."""
    app.add_directive("results", Results)
    app.connect("builder-inited", on_start)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
