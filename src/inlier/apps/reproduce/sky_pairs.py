"""The two scenarios of section 6.3: pixels of a photo paired with those of the same photo, changed and noisy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inlier._typing import Mask
from inlier.datasets import MovableSquares, permuted_squares, random_cycle, swapped_squares

SWAP, PERMUTATION = "1: two squares swapped", "2: thirty squares permuted"
SCENARIOS = (SWAP, PERMUTATION)


def scenarios_and_noises(variances: Sequence[float]) -> list[dict[str, Any]]:
    """Every scenario at every noise level: the points of the sky experiments."""
    return [{"scenario": scenario, "noise_variance": variance} for scenario in SCENARIOS for variance in variances]


Photo = NDArray[np.uint8]


class PixelPairs(NamedTuple):
    """Colours of pixels before and after, and which of them stayed in place."""

    X: NDArray[np.uint8]
    Y: NDArray[np.float32]
    unmoved: Mask


@lru_cache(maxsize=4)
def squares_of(scenario: str, height: int, width: int) -> MovableSquares:
    """Return the squares that move in a scenario."""
    return {SWAP: swapped_squares, PERMUTATION: permuted_squares}[scenario](height, width)


def draw_pairs(
    photo: Photo, scenario: str, noise_variance: float, n: int | None, random: np.random.Generator
) -> PixelPairs:
    """Move the squares by a random permutation without fixed points, add noise, and sample n pixels, or all.

    Truth is where a pixel comes from: one that moved is a wrong pair even where the new colour is the old one.
    """
    squares = squares_of(scenario, *photo.shape[:2])
    colours = photo.reshape(-1, 3)
    origin = random_cycle(len(squares.corners), random)
    pixels = np.arange(len(colours)) if n is None else random.choice(len(colours), size=n, replace=False)
    source, unmoved = squares.rearrange(origin, pixels)
    noise = random.standard_normal((len(pixels), 3), dtype=np.float32)
    changed = colours[source] + np.float32(noise_variance**0.5) * noise
    return PixelPairs(colours[pixels], changed, unmoved)
