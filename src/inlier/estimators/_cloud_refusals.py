"""Why no motion between two raw clouds is sure, in a sentence."""

from __future__ import annotations

import numpy as np

from inlier.clouds.judging import Judgement
from inlier.clouds.second_opinion import Opinion

_ANOTHER_UNIT = 30.0  # ratio of the sizes of two clouds that hardly show one place in one unit
_ANOTHER_SIZE = 2.0  # ratio from which on a refusal mentions the unit
_UNITS = {25.4: "inches and millimetres", 100.0: "centimetres and metres", 1000.0: "millimetres and metres"}
_ABOUT = 1.6  # factor that overlapping clouds of one place may differ by once they are in one unit


def another_unit(sizes: tuple[float, float]) -> str | None:
    """The sentence on clouds of very different sizes, if they are."""
    ratio = sizes[1] / sizes[0]
    if 1 / _ANOTHER_UNIT < ratio < _ANOTHER_UNIT:
        return None
    factor = max(ratio, 1 / ratio)
    smaller = "source" if ratio > 1 else "target"
    said = (
        f"The source has a size of {sizes[0]:.3g}, the target one of {sizes[1]:.3g}, which is {factor:.3g} times as "
        f"much or as little. Are they in one unit? "
    )
    for scale, units in _UNITS.items():
        if 1 / _ABOUT < factor / scale < _ABOUT:
            return (
                f"{said}A scale of {scale:g} would fit ({units} differ by that): multiply the coordinates of the "
                f"{smaller} by it and try again, or let model='similarity' find the scale."
            )
    return f"{said}If only the unit differs, let model='similarity' find the scale."


def refusal(opinions: list[Opinion], rival: Opinion | None, aside: Opinion | None, hint: str = "") -> str:
    """What speaks against the best motion that was found."""
    if not opinions:
        return (
            "The clouds have no surface in common that could be found: none of their points look alike in a way "
            "that one motion explains."
        )
    best = opinions[0]
    if best.undetermined is not None:
        return (
            f"The surfaces that can be brought together do not determine the motion: {best.undetermined} fits "
            f"as well, as along a plane, a pipe or a ball. What was found is one of many; scans "
            f"that show more would tell."
        )
    if rival is not None:
        return (
            f"Two different motions fit about as well: {best.n_supporting} and {rival.n_supporting} of "
            f"{best.n_matches} matches support them, and {best.contact:.0%} and {rival.contact:.0%} of the "
            f"points near the other surface touch it. What the clouds show may repeat itself or be symmetric; "
            f"scans that show more would tell."
        )
    if aside is not None:
        return (
            f"Another motion has more in its favour, {aside.n_supporting} against {best.n_supporting} of "
            f"{best.n_matches} matches, and is not determined itself: {aside.undetermined} fits as well. Scans that "
            f"show more would tell."
        )
    in_front = "" if best.in_front is None else f", and {best.in_front:.0%} of what is in view hangs in empty space"
    return (
        f"No motion is sure. The best one found is supported by {best.n_supporting} of {best.n_matches} matches, "
        f"{best.contact:.0%} of the points near the other surface touch it{in_front}; clouds of different places "
        f"do as well with a chance of {np.exp(best.log_p_value):.2g}. The clouds may not overlap, or by too "
        f"little.{hint}"
    )


def unit_hint(sizes: tuple[float, float], model: str) -> str:
    """A word on the unit, where sizes differ."""
    if model != "rigid" or 1 / _ANOTHER_SIZE < sizes[1] / sizes[0] < _ANOTHER_SIZE:
        return ""
    return " If they may be in different units, let model='similarity' find the scale."


def verdict_against(judgement: Judgement, off_by: tuple[float, float], is_other_sure: bool) -> str | None:
    """What speaks against a motion that was claimed, beside what speaks against every motion that is not sure."""
    claim, *others = judgement.finding.opinions
    if not judgement.is_where_claimed:
        return (
            f"The surfaces do not meet there: they pull the source by {off_by[0]:.3g} degrees and {off_by[1]:.3g} at "
            f"its centre."
        )
    if not judgement.is_strongest:
        best = others[0]
        surely = "and that is sure" if is_other_sure else "and that is not sure either"
        return (
            f"Another motion fits better, {surely}: {best.n_supporting} of {best.n_matches} matches support it, and "
            f"{best.contact:.0%} of the points near the other surface touch it, of this one {claim.n_supporting} and "
            f"{claim.contact:.0%}."
        )
    return None
