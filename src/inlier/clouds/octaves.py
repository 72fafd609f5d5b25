"""Look for motions between two centred clouds: at one octave after the other, and at one scale after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from scipy.spatial.transform import Rotation

from inlier._typing import FloatArray
from inlier.clouds.refinement import Motion
from inlier.clouds.rivals import decoys
from inlier.clouds.second_opinion import Opinion, Views, opinion_on, ranked
from inlier.clouds.suggestions import Level, different, level_of, refined, roughly_refined, suggested_motions

OCTAVES = (2_000, 6_000)  # points of each cloud, about
_BEYOND_DOUBT = -8.0  # logarithm of the p-value at which no more suggestions of an octave are looked at
_WORTH_DOUBTING = -3.0  # logarithm of the p-value from which on decoys are put up
_FIRST = 10  # motions of an octave that are looked at before the others
_WORTH_REFINING = 8  # motions of an octave, the strongest by a quick look
_CARRIED_ON = 4  # motions of an octave that are tried at the next one


@dataclass(eq=False)
class Clock:
    """Seconds that each step took."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        """Take the time of what is done within."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + perf_counter() - start


@dataclass(frozen=True, eq=False)
class Finding:
    """What a search came to: motions of the source, times a scale, and what speaks for each, the strongest first."""

    scale: float
    views: Views
    levels: list[Level]
    opinions: list[Opinion]

    @property
    def is_beyond_doubt(self) -> bool:
        """Whether nothing else has to be looked at."""
        return bool(self.opinions) and self.opinions[0].log_p_value < _BEYOND_DOUBT

    def opinion_on(self, motion: Motion) -> Opinion:
        """Ask of another motion what those that were found were asked."""
        return opinion_on(motion, self.levels, self.views)

    def seen_at(self, scale: float) -> list[Opinion]:
        """The opinions, with motions of the source times another scale."""
        factor = self.scale / scale
        return [
            replace(one, motion=replace(one.motion, scale=factor * one.motion.scale), lead=0.0) for one in self.opinions
        ]


def search(
    source: FloatArray,
    target: FloatArray,
    origins: tuple[FloatArray, FloatArray],
    scales: list[float] | None,
    rng: np.random.Generator,
    clock: Clock,
) -> Finding:
    """Look for rigid motions; or at each of some scales, until one is beyond doubt, for motions of about that scale."""
    if scales is None:
        return _search_at(1.0, source, target, origins, rng, clock, free_scale=False)
    findings = list[Finding]()
    for scale in scales:
        moved = scale * origins[0], origins[1]
        findings.append(_search_at(scale, scale * source, target, moved, rng, clock, free_scale=True))
        if findings[-1].is_beyond_doubt:
            break
    return _united(findings)


def _united(findings: list[Finding]) -> Finding:
    """The finding with the strongest motion, with the motions of the others beside it."""
    best = ranked([one for finding in findings for one in finding.opinions[:1]])
    if not best:
        return findings[0]
    first = next(one for one in findings if one.opinions and one.opinions[0].motion is best[0].motion)
    of_motions = {one.motion: one for finding in (first, *findings) for one in finding.seen_at(first.scale)}
    kept = different(list(of_motions), first.levels[0])
    return Finding(first.scale, first.views, first.levels, ranked([of_motions[motion] for motion in kept]))


def _search_at(
    scale: float,
    source: FloatArray,
    target: FloatArray,
    origins: tuple[FloatArray, FloatArray],
    rng: np.random.Generator,
    clock: Clock,
    *,
    free_scale: bool,
) -> Finding:
    """Look for motions of a source of about one scale."""
    with clock("judge"):
        views = Views.of((source, target), (-origins[0], -origins[1]))

    def level_at(n_points: int) -> Level:
        # Each octave cuts the clouds along other axes: what its cells happen to hold is drawn anew.
        axes = Rotation.random(rng=rng).as_matrix()
        return level_of(source, target, n_points, axes, free_scale=free_scale)

    return search_on(views, level_at, rng, clock, scale)


def search_on(
    views: Views, level_at: Callable[[int], Level], rng: np.random.Generator, clock: Clock, scale: float = 1.0
) -> Finding:
    """Look for motions at one octave after the other, and for what a symmetry of the scene would put in their place.

    ``level_at`` thins both clouds to about so many points and matches them.
    """
    finding = Finding(scale, views, [], [])
    for n_points in OCTAVES:
        with clock("describe and match"):
            level = level_at(n_points)
        with clock("search"):
            suggested = suggested_motions(level, rng)
        coarser = [one.motion for one in finding.opinions[:_CARRIED_ON]]
        finding = Finding(scale, views, [*finding.levels, level], [])
        # Where the first few suggestions settle it, the others are not looked at.
        for some in ([*coarser, *suggested[:_FIRST]], suggested[_FIRST:]):
            finding = _with(finding, some, clock)
            if finding.is_beyond_doubt:
                break
    if finding.opinions and finding.opinions[0].log_p_value < _WORTH_DOUBTING:
        finding = _with(finding, decoys(level, finding.opinions[0].motion), clock)
    return finding


def _with(finding: Finding, some: list[Motion], clock: Clock) -> Finding:
    """The finding with more motions, once the surfaces have settled the strongest of them."""
    levels, known = finding.levels, {one.motion: one for one in finding.opinions}
    level = levels[-1]
    with clock("search"):
        rough = roughly_refined(level, some)
        quick = ranked([opinion_on(one, [level], finding.views, level.every) for one in rough])
        best = refined(level, [one.motion for one in quick[:_WORTH_REFINING]])
        motions = different([*known, *best], levels[0])
    with clock("judge"):
        opinions = [known.get(one) or opinion_on(one, levels, finding.views) for one in motions]
    return replace(finding, opinions=ranked([replace(one, lead=0.0) for one in opinions]))
