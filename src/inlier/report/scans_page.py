"""The page of a model of many scans: from above and in 3-D, the graph with its evidence, and what was refused."""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inlier._typing import FloatArray
from inlier.io import write_file
from inlier.report.match_summary import Origin, versions
from inlier.report.pages import Part, render_page

if TYPE_CHECKING:
    from inlier.scans.model import Model

_QUESTION = "How do the scans fit together?"
_DRAWN = 60_000  # points of all scans of a part
_HUE = 137.508  # degrees, the golden angle: neighbours in the list differ most
_WIDTH, _HEIGHT, _EDGE = 900.0, 520.0, 30.0  # pixels of the drawing from above
_MOST_REFUSED = 60  # pairs that are listed


class ScansReport:
    """A report of a `Model`, with pictures that can be turned.

    Parameters
    ----------
    model : Model
        From `inlier.register_scans`.
    origin : Origin, optional
        Where the scans came from.
    """

    def __init__(self, model: Model, origin: Origin | None = None) -> None:
        self.model, self.origin = model, origin or Origin()

    def __repr__(self) -> str:
        return f"<ScansReport: {self.model.answer}>"

    def html(self) -> str:
        """Return the page as one text that needs nothing else."""
        return render_page(_QUESTION, self._parts())

    def write_html(self, path: str | Path) -> None:
        """Write the page to a file."""
        write_file(Path(path), self.html())

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="inlier report" style="width: 100%; height: 42rem; border: 1px solid #8884" '
            f'sandbox="allow-scripts" srcdoc="{html.escape(self.html())}"></iframe>'
        )

    # what the parts "answer" and "settings" ask of a summary

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        return self.model.answer

    @property
    def method(self) -> str:
        """What was done."""
        return "registration of many scans"

    @property
    def settings(self) -> dict[str, Any]:
        """What it took."""
        return {"pairs asked": self.model.n_searches, "seconds": f"{self.model.seconds:.3g}"}

    def _parts(self) -> list[Part]:
        model = self.model
        answer = {"summary": self, "question": _QUESTION, "details": model.details, "counts": {}}
        parts = [Part("answer.html", answer)]
        for number, part in enumerate(part for part in model.parts if len(part) > 1):
            parts.append(Part("scans.html", _one_part(model, part, number), script="scans.js"))
        parts.append(Part("scan_tables.html", _tables(model)))
        return [*parts, Part("settings.html", {"summary": self, "versions": versions()})]


def _colour(scan: int) -> str:
    return f"hsl({_HUE * scan % 360:.0f} 62% {46 if scan % 2 else 58}%)"


def _one_part(model: Model, part: list[int], number: int) -> dict[str, Any]:
    """A part in 3-D, turned so that it lies as flat as it can, and its graph from above."""
    few = max(200, _DRAWN // len(part))
    points = {scan: model.placed[scan].motion(model.sketches[scan][:few]) for scan in part}
    together = np.vstack(list(points.values()))
    middle = np.median(together, axis=0)
    axes = np.linalg.svd(together[:: max(1, len(together) // 5_000)] - middle, full_matrices=False)[2]
    axes[2] *= np.linalg.det(axes)
    reach = float(np.quantile(np.linalg.norm(together - middle, axis=1), 0.98)) or 1.0
    flat = {scan: (one - middle) @ axes.T / reach for scan, one in points.items()}
    view = [
        {"name": model.names[scan], "colour": _colour(scan), "points": np.round(flat[scan], 4).ravel().tolist()}
        for scan in part
    ]
    return {
        "number": number,
        "several": sum(len(one) > 1 for one in model.parts) > 1,
        "view": view,
        "graph": _graph(model, part, flat),
        "size": len(part),
    }


def _graph(model: Model, part: list[int], flat: dict[int, FloatArray]) -> dict[str, Any]:
    """Scans where their middles lie, seen from above, and edges as thick as their evidence."""
    middles = np.array([flat[scan].mean(axis=0)[:2] for scan in part])
    low, high = middles.min(axis=0), middles.max(axis=0)
    scale = min((_WIDTH - 2 * _EDGE) / max(high[0] - low[0], 1e-9), (_HEIGHT - 2 * _EDGE) / max(high[1] - low[1], 1e-9))
    places = (middles - (low + high) / 2) * scale * [1, -1] + [_WIDTH / 2, _HEIGHT / 2]
    at = dict(zip(part, np.round(places, 1).tolist(), strict=True))
    in_loops = {id(edge) for loop in model.loops for edge in loop.edges}
    loops = {frozenset(edge.ends) for loop in model.loops for edge in loop.edges}
    lines = [
        {
            "from": at[edge.target],
            "to": at[edge.source],
            "wide": round(1 + min(5.0, -np.log10(max(edge.p_value, 1e-12)) / 2), 1),
            "kind": "kept" if id(edge) in in_loops or frozenset(edge.ends) in loops else "unchecked",
            "said": f"{model.names[edge.target]} and {model.names[edge.source]}: p-value {edge.p_value:.1g}, "
            f"overlap {max(edge.overlap):.0%}",
        }
        for edge in model.edges
        if edge.target in at
    ]
    lines += [
        {
            "from": at[edge.target],
            "to": at[edge.source],
            "wide": 1.5,
            "kind": "taken-out",
            "said": f"{model.names[edge.target]} and {model.names[edge.source]}: {edge.why_not}",
        }
        for edge in model.refused_edges
        if edge.motion is not None and edge.target in at and edge.source in at
    ]
    nodes = [{"at": at[scan], "colour": _colour(scan), "name": model.names[scan], "number": scan} for scan in part]
    return {"width": _WIDTH, "height": _HEIGHT, "lines": lines, "nodes": nodes}


def _tables(model: Model) -> dict[str, Any]:
    """Scans, edges and refusals, a row each."""
    n_edges = Counter(end for edge in model.edges for end in edge.ends)
    part_of = {scan: number + 1 for number, part in enumerate(model.parts) for scan in part}
    scans = [
        {
            "number": k,
            "name": name,
            "colour": _colour(k),
            "part": part_of[k] if k in model.placed else "-",
            "n_edges": n_edges[k],
            "degrees": f"{model.placed[k].degrees.max():.2g}" if k in model.placed else "-",
            "shift": f"{model.placed[k].shift.max():.2g}" if k in model.placed else "-",
            "apart": f"{model.apart[k]:.2g}" if k in model.apart else "-",
            "why_not": "" if k in model.placed else model.why_alone(k),
        }
        for k, name in enumerate(model.names)
    ]
    n_loops = {
        id(edge): sum(edge.ends in {one.ends for one in loop.edges} for loop in model.loops) for edge in model.edges
    }
    edges = [
        {
            "names": [model.names[end] for end in edge.ends],
            "p": f"{edge.p_value:.1g}",
            "overlap": f"{edge.overlap[1]:.0%} / {edge.overlap[0]:.0%}",
            "n_loops": n_loops[id(edge)],
            "shift": "-" if edge.errors is None else f"{edge.errors.shift_at_centre.max():.2g}",
        }
        for edge in model.edges
    ]
    order = sorted(model.refused_edges, key=lambda one: (one.motion is None, one.p_value))
    refused = [
        {"names": [model.names[end] for end in edge.ends], "p": f"{edge.p_value:.1g}", "why_not": edge.why_not}
        for edge in order[:_MOST_REFUSED]
    ]
    return {"scans": scans, "edges": edges, "refused": refused, "n_refused": len(order)}
