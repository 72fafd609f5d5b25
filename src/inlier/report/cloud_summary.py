"""What the registration of two raw clouds found, in words and numbers, and its page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image
from scipy.spatial import cKDTree

from inlier._typing import Array, FloatArray
from inlier.estimators.clouds import CloudRegistration
from inlier.report.match_summary import Origin, versions
from inlier.report.pages import MatchReport, Part, data_uri, render_page
from inlier.report.registration_summary import Overlay, errors_in_words, make_overlay
from inlier.report.words import percent

_DRAWN = 60_000  # points of each cloud that pictures are made of
_WIDTH, _HEIGHT = 900, 520  # pixels of the picture of distances
_FAR = 4.0  # spacings, from which a point is drawn as far
_QUESTION = "How does one cloud fit onto the other?"


@dataclass(frozen=True, eq=False, kw_only=True)
class CloudSummary:
    """The motion, how sure it is, and the evidence beside that for other motions. Made by `summarise_clouds`."""

    registration: CloudRegistration
    source: Array
    target: Array
    origin: Origin = field(default_factory=Origin)
    method: str = "registration of raw clouds"

    @property
    def settings(self) -> dict[str, Any]:
        """What the answer depends on."""
        state = self.registration.random_state
        return {"model": self.registration.model, "random_state": state if isinstance(state, int) else str(state)}

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        if self.registration.transformation_ is None:
            return "No motion between the two clouds is sure."
        of_source, of_target = self.registration.overlap_
        return (
            f"One motion carries the source onto the target: {percent(of_source)} of the surface of the source and "
            f"{percent(of_target)} of the target's touch."
        )

    @property
    def details(self) -> list[str]:
        """What else there is to say, a sentence each."""
        found = self.registration
        if found.transformation_ is None:
            return [found.why_not_] if found.why_not_ else []
        errors = found.uncertainty_
        sentences = [f"It {found.transformation_.describe()}."]
        sentences += [] if errors is None else [errors_in_words(errors, found.model)]
        sentences.append(
            f"The chance that clouds of different places support a motion as well is {found.detection_p_value_:.2g}."
        )
        if found.runner_up_ is not None:
            sentences.append(
                f"Another motion has {found.runner_up_.n_places:.0f} supporting matches: a symmetry or a repeated "
                f"pattern. It {found.runner_up_.transformation.describe()}."
            )
        return sentences

    @cached_property
    def overlay(self) -> Overlay | None:
        """Both clouds on top of each other, with matches that support the motion."""
        found = self.registration.transformation_
        if found is None:
            return None
        x, y = self.registration.matches_
        near = found.residuals(x, y) <= 2 * self.registration.spacing_
        verdicts = np.zeros(np.count_nonzero(near), dtype=int)
        return make_overlay(found, x[near], y[near], verdicts, verdicts.size, (self.source, self.target))

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """What speaks for the motions that were looked at, the best first."""
        return self.registration.evidence_

    def to_dict(self) -> dict[str, Any]:
        """Everything there is."""
        found = self.registration
        return {
            "answer": self.answer,
            "details": self.details,
            "notes": list(self.origin.notes),
            "n_source": len(self.source),
            "n_target": len(self.target),
            "success": found.success_,
            "detection_p_value": found.detection_p_value_,
            "overlap": list(found.overlap_) if found.success_ else None,
            "undetermined": found.undetermined_,
            "spacing": found.spacing_,
            "noise_bound": found.noise_bound_ if np.isfinite(found.noise_bound_) else None,
            "refinement": found.refinement_ if np.isfinite(found.refinement_) else None,
            "n_matches": len(found.matches_[0]),
            "evidence": self.evidence,
            "seconds": found.seconds_,
            "transformation": self.transformation_dict() or None,
            "sources": list(self.origin.sources),
            "method": self.method,
            "settings": self.settings,
            "versions": versions(),
            "command": self.origin.command,
        }

    def transformation_dict(self) -> dict[str, Any]:
        """The motion, with what it rests on; `Transformation.from_dict` reads it."""
        found = self.registration
        if found.transformation_ is None:
            return {}
        errors = found.uncertainty_
        return {
            **found.transformation_.to_dict(),
            "in_words": found.transformation_.describe(),
            "standard_errors": errors
            and {
                "degrees": errors.rotation.tolist(),
                "translation": errors.translation.tolist(),
                "scale": errors.scale,
            },
            "detection_p_value": found.detection_p_value_,
            "overlap": list(found.overlap_),
        }

    def json_parts(self, indent: int | None = None) -> Iterator[str]:
        """The same as the text of a JSON object."""
        yield json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def json(self, indent: int | None = None) -> str:
        """Everything there is, as JSON."""
        return "".join(self.json_parts(indent))


class CloudReport(MatchReport):
    """A report of two raw clouds, with a picture of both that can be turned.

    Parameters
    ----------
    summary : CloudSummary
        From `summarise_clouds`.
    """

    summary: CloudSummary  # type: ignore[assignment]

    def __init__(self, summary: CloudSummary) -> None:
        self.summary = summary

    def html(self) -> str:
        """Return the page as one text that needs nothing else."""
        return render_page(_QUESTION, _parts(self.summary))


def summarise_clouds(
    registration: CloudRegistration, source: Any, target: Any, origin: Origin | None = None
) -> CloudSummary:
    """Summarise what a fitted `CloudRegistration` found in two clouds.

    Examples
    --------
    >>> from inlier import CloudRegistration
    >>> from inlier.datasets import make_scans
    >>> from inlier.report import summarise_clouds
    >>> scans = make_scans(rng=0)
    >>> found = CloudRegistration(random_state=0).fit(scans.source, scans.target)
    >>> print(summarise_clouds(found, scans.source, scans.target).answer)
    One motion carries the source onto the target: ... % of the surface of the source and ... % of the target's touch.
    """
    clouds = (np.asarray(cloud) for cloud in (source, target))
    return CloudSummary(registration=registration, source=next(clouds), target=next(clouds), origin=origin or Origin())


def report_on_clouds(registration: CloudRegistration, source: Any, target: Any) -> CloudReport:
    """Return the page of a fitted `CloudRegistration`; the clouds are drawn."""
    return CloudReport(summarise_clouds(registration, source, target))


def _parts(summary: CloudSummary) -> list[Part]:
    """List the sections of the page, in order."""
    found = summary.registration
    answer = {"summary": summary, "question": _QUESTION, "details": summary.details, "counts": {}}
    parts = [Part("answer.html", answer)]
    if summary.overlay is not None and found.transformation_ is not None:
        parts.append(Part("overlay.html", {"overlay": summary.overlay, "lines": ["real"]}, script="overlay.js"))
        parts.append(Part("distances.html", _distances(summary)))
        motion = {"transformation": found.transformation_, "sentences": summary.details[:2], "is_small": True}
        parts.append(Part("transformation.html", motion))
    search = {"evidence": summary.evidence, "seconds": found.seconds_, "spacing": found.spacing_}
    parts.append(Part("evidence.html", {**search, "refinement": found.refinement_}))
    parts.append(Part("settings.html", {"summary": summary, "versions": versions()}))
    return parts


def _distances(summary: CloudSummary) -> dict[str, Any]:
    """The source after the motion, from above, coloured by its distance from the target."""
    found = summary.registration
    assert found.transformation_ is not None
    source, target = (_some(cloud) for cloud in (summary.source, summary.target))
    moved = found.transformation_(source)
    distance, _ = cKDTree(target).query(moved)
    shares = {
        "within half a spacing": float(np.mean(distance <= found.spacing_ / 2)),
        "within one": float(np.mean(distance <= found.spacing_)),
        "beyond four": float(np.mean(distance > _FAR * found.spacing_)),
    }
    return {
        "picture": data_uri(_picture(moved, target, distance / (_FAR * found.spacing_))),
        "spacing": found.spacing_,
        "shares": shares,
    }


def _picture(moved: FloatArray, target: FloatArray, far: FloatArray) -> bytes:
    """Draw both along the direction in which the target varies least: the target in grey, the source by colour."""
    middle = np.median(target, axis=0)
    axes = np.linalg.svd(target - middle, full_matrices=False)[2][:2]
    flat = [(cloud - middle) @ axes.T for cloud in (target, moved)]
    low, high = np.quantile(np.vstack(flat), [0.01, 0.99], axis=0)
    scale = 0.94 * min(_WIDTH / (high[0] - low[0]), _HEIGHT / (high[1] - low[1]))
    canvas = np.full((_HEIGHT, _WIDTH, 3), 250, dtype=np.uint8)
    near, away = np.array([38, 98, 178]), np.array([222, 122, 34])
    shade = (near + np.clip(far, 0, 1)[:, None] * (away - near)).astype(np.uint8)
    order = np.argsort(-far, kind="stable")  # what touches is drawn last
    grey = np.full((len(target), 3), 205, dtype=np.uint8)
    for points, colour in ((flat[0], grey), (flat[1][order], shade[order])):
        place = ((points - (low + high) / 2) * scale * [1, -1] + [_WIDTH / 2, _HEIGHT / 2]).astype(int)
        inside = ((place >= 0) & (place < [_WIDTH - 1, _HEIGHT - 1])).all(axis=1)
        for step in ((0, 0), (1, 0), (0, 1), (1, 1)):
            canvas[place[inside, 1] + step[1], place[inside, 0] + step[0]] = colour[inside]
    stream = BytesIO()
    Image.fromarray(canvas).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _some(points: Array) -> FloatArray:
    """Points that have a place, at most so many, as float64."""
    some = np.asarray(points[:: max(1, len(points) // _DRAWN)], dtype=np.float64)
    return some[np.isfinite(some).all(axis=1)]
