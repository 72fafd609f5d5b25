"""Every error that a user can meet, and the warnings that have fields."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from inlier.consensus import Evidence, MapModel

_CURE = (
    "Check the pairing, the units and the order of the columns. If the scale differs use model='similarity'; "
    "if one side may be a mirror image, reflection=True; for batches, raise_on_failure=False."
)

_NEAR_ANYWAY = 0.3  # share of wrong pairs within the bound: that some are near says nothing


class NoConsensusError(ValueError):
    """The pairs do not agree on any transformation beyond chance; the message has the evidence.

    Attributes
    ----------
    evidence : Evidence or None
        What speaks for the best transformation that was looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier import NoConsensusError, Registration
    >>> X, y = np.random.default_rng(0).normal(size=(2, 200, 3))
    >>> try:
    ...     Registration(random_state=0).fit(X, y)
    ... except NoConsensusError as error:
    ...     print(error.evidence.n_pairs)
    200
    """

    def __init__(self, message: str, evidence: Evidence | None = None) -> None:
        super().__init__(message)
        self.evidence = evidence

    @classmethod
    def of(cls, model: MapModel, n: int, evidence: Evidence) -> Self:
        """Say of n pairs that they agree on no such map, how near they came, and what to try."""
        if n <= model.fewest_pairs + 1:
            return cls(
                f"{n} pairs are too few to tell: any {model.fewest_pairs} fit some {model.name} transformation of "
                f"{model.dimension}-dimensional points. Give several more, to see whether they agree with it.",
                evidence,
            )
        return cls(
            f"The {n} pairs do not agree on any {model.name} transformation. {_how_near(evidence)} {_CURE}", evidence
        )


def _how_near(evidence: Evidence) -> str:
    if evidence.by_chance > _NEAR_ANYWAY:
        return "None that was found brings more of them together than it brings wrong pairs."
    alarms = exp(min(evidence.log_false_alarms, 50.0))
    return (
        f"The best one found brings {evidence.n_supporting} of them within {evidence.bound:.3g}; among wrong pairs one "
        f"would expect {alarms:.2g} transformations with as much support."
    )


class _AboutArgument:
    """A sentence about an argument, for which a front end may put a name of its own."""

    def __init__(self, parameter: str, reason: str, before: str = "") -> None:
        super().__init__(parameter, reason, before)  # type: ignore[call-arg]  # as given, which pickling relies on
        self.parameter, self.reason, self.before = parameter, reason, before

    def __str__(self) -> str:
        return self.naming(self.parameter)

    def naming(self, name: str) -> str:
        """Say the same with another name for the argument: an option of the command line, a file."""
        return f"{self.before}{name}{'' if self.reason.startswith((':', '=')) else ' '}{self.reason}"


class ParameterError(_AboutArgument, ValueError):
    """An argument that cannot be used.

    Attributes
    ----------
    parameter : str
        The argument: a setting such as ``alpha``, or a table, ``X`` or ``y``.
    reason : str
        What is wrong with it and what to do: the sentence after the name.
    before : str
        What the sentence says before the name, if anything.

    Examples
    --------
    >>> from inlier import CalibratedMatcher
    >>> from inlier.exceptions import ParameterError
    >>> try:
    ...     CalibratedMatcher(alpha=2).fit([[1.0], [2.0], [3.0], [4.0]], [1, 2, 3, 4])
    ... except ParameterError as error:
    ...     print(error)
    ...     print(error.naming("--alpha"))
    alpha must lie between 0 and 0.5; got 2.
    --alpha must lie between 0 and 0.5; got 2.
    """


class ParameterWarning(_AboutArgument, UserWarning):
    """An argument of which something is left out or ignored; attributes as those of `ParameterError`."""


class UnusableFileError(ValueError):
    """A file that cannot be used: the sentence names it, says why, and what to do."""
