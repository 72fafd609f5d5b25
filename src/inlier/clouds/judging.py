"""A motion that somebody else found: what do the surfaces say of it?

It is asked what every motion of a search is asked (`second_opinion`), after the surfaces have settled it as they settle
those; and it has to be stronger than all others of that search. What the surfaces cannot settle nearby is not right,
however near the place is where they do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from inlier._typing import FloatArray
from inlier.clouds.octaves import Finding
from inlier.clouds.refinement import Motion
from inlier.clouds.second_opinion import ranked
from inlier.clouds.suggestions import different, refined

_MOST_MOVED = 1.5  # sides of a coarse cell, as far as points touch: a motion that surfaces move farther is another one


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a search says of a claimed motion."""

    finding: Finding  # with the claimed motion, as the surfaces settle it, before all others
    is_strongest: bool  # of all that were looked at
    moved: float  # root mean square distance by which the surfaces moved the source from where it was claimed to be
    most_moved: float  # as far as that is still the same motion

    @property
    def is_where_claimed(self) -> bool:
        """Whether the surfaces leave it about where it is."""
        return self.moved <= self.most_moved


def judged(claim: Motion, finding: Finding) -> Judgement:
    """Compare a motion with those of a search, by the same evidence."""
    level = finding.levels[-1]
    settled = refined(level, [claim])[0]
    opinion = finding.opinion_on(settled)
    others = [one for one in finding.opinions if len(different([settled, one.motion], finding.levels[0])) > 1]
    order = ranked([opinion, *others])
    is_strongest = order[0].motion is settled
    first = order[0] if is_strongest else opinion
    rest = [one for one in order if one.motion is not settled]
    points = finding.levels[0].source.points
    return Judgement(
        replace(finding, opinions=[first, *rest]),
        is_strongest,
        distance_between(claim, settled, points),
        _MOST_MOVED * finding.levels[0].side,
    )


def distance_between(one: Motion, other: Motion, points: FloatArray) -> float:
    """Root mean square distance of the images of points."""
    return float(np.sqrt(((one(points) - other(points)) ** 2).sum(axis=1).mean()))
