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
from inlier.consensus.uncertainty import MotionUncertainty
from inlier.estimators.clouds import CloudRegistration
from inlier.report.match_summary import Origin, versions
from inlier.report.pages import MatchReport, Part, data_uri, render_page
from inlier.report.registration_summary import Overlay, make_overlay
from inlier.report.words import percent
from inlier.transforms import Transformation
from inlier.transforms.transformations import in_brackets

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
        found = self.registration
        if found.transformation_ is None:
            is_claim = found.judged_ is not None
            return "The motion is not sure to be right." if is_claim else "No motion between the two clouds is sure."
        of_source, of_target = found.overlap_
        begins = "One motion carries the source onto the target" if found.judged_ is None else "The motion is right"
        return (
            f"{begins}: {percent(of_source)} of the surface of the source and {percent(of_target)} of the target's "
            f"touch."
        )

    @property
    def details(self) -> list[str]:
        """What else there is to say, a sentence each."""
        found = self.registration
        if found.transformation_ is None:
            return [found.why_not_, *self._instead] if found.why_not_ else []
        sentences = [*self._off_by, f"It {motion_in_words(found.transformation_, self._centre)}."]
        errors = found.uncertainty_
        sentences += [] if errors is None else [cloud_errors_in_words(errors)]
        sentences.append(
            f"The chance that clouds of different places support a motion as well is {found.detection_p_value_:.2g}."
        )
        if found.runner_up_ is not None:
            sentences.append(
                f"Another motion has {found.runner_up_.n_places:.0f} supporting matches: a symmetry or a repeated "
                f"pattern. It {motion_in_words(found.runner_up_.transformation, self._centre)}."
            )
        return sentences

    @cached_property
    def _centre(self) -> FloatArray:
        """Of what the errors speak of; else of the source."""
        errors = self.registration.uncertainty_
        return _some(self.source).mean(axis=0) if errors is None else errors.centre

    @property
    def _off_by(self) -> list[str]:
        """How far a claimed motion is from where the surfaces put it."""
        if self.registration.off_by_ is None:
            return []
        degrees, distance = self.registration.off_by_
        return [f"The surfaces put the source {degrees:.2g} degrees and {distance:.2g} (at its centre) from there."]

    @property
    def _instead(self) -> list[str]:
        """The motion that beats one that is claimed, if there is one."""
        found = self.registration
        if found.judged_ is None or found.runner_up_ is None:
            return []
        return [f"The other motion {motion_in_words(found.runner_up_.transformation, self._centre)}."]

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
            "best_guess": None if found.best_guess_ is None else found.best_guess_.to_dict(),
            "runner_up": None if found.runner_up_ is None else found.runner_up_.transformation.to_dict(),
            "judged": self._judged_dict(),
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
            "at_centre": errors and _at_centre(errors),
            "information": errors and _information(errors, "origin"),
            "detection_p_value": found.detection_p_value_,
            "overlap": list(found.overlap_),
        }

    def _judged_dict(self) -> dict[str, Any] | None:
        """The motion that was to be judged, and how far the surfaces leave it from there."""
        found = self.registration
        if found.judged_ is None or found.off_by_ is None:
            return None
        degrees, distance = found.off_by_
        return {**found.judged_.to_dict(), "off_by_degrees": degrees, "off_by_distance": distance}

    def json_parts(self, indent: int | None = None) -> Iterator[str]:
        """The same as the text of a JSON object."""
        yield json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def json(self, indent: int | None = None) -> str:
        """Everything there is, as JSON."""
        return "".join(self.json_parts(indent))


def motion_in_words(motion: Transformation, centre: FloatArray) -> str:
    """What a motion does, with its shift told at the centre of the cloud: far off, that at the origin says nothing."""
    turn = " and ".join(motion._linear_effects()) or "does not turn"
    step = motion(centre[None])[0] - centre
    return f"{turn} and moves the centre of the source by {in_brackets(step)}"


def cloud_errors_in_words(errors: MotionUncertainty) -> str:
    """A sentence: how far the motion may be off, at the centre of what touches."""
    parts = [
        f"{float(np.max(errors.rotation)):.2g} degrees",
        f"{in_brackets(errors.shift_at_centre, '.2g')} in the place of the centre",
    ]
    if errors.motion.model == "similarity":
        parts.append(f"{errors.scale:.2g} in the scale")
    return f"Standard errors: {', '.join(parts)}."


def _at_centre(errors: MotionUncertainty) -> dict[str, Any]:
    """The motion of the centre and the errors there, in radians and the unit of the target, along its axes."""
    return {
        "centre": errors.centre.tolist(),
        "moved_to": errors.motion(errors.centre[None])[0].tolist(),
        "standard_errors": {"degrees": errors.rotation.tolist(), "shift": errors.shift_at_centre.tolist()},
        "covariance": errors.covariance_at_centre.tolist(),
        "information": _information(errors, "centre"),
    }


def _information(errors: MotionUncertainty, about: str) -> dict[str, Any] | None:
    """The 6 x 6 matrices that pose graphs take."""
    if errors.motion.model != "rigid":
        return None
    return {program: errors.information(program, about).tolist() for program in ("gtsam", "g2o", "open3d")}


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
        sentences = [f"It {motion_in_words(found.transformation_, summary._centre)}."]
        sentences += [] if found.uncertainty_ is None else [cloud_errors_in_words(found.uncertainty_)]
        motion = {"transformation": found.transformation_, "sentences": sentences, "is_small": True}
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
