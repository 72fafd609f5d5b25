"""Every error of its own that a user can meet; what is said in one is put together where the facts are."""

from __future__ import annotations

from typing import Any


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

    def __init__(self, message: str, evidence: Any = None) -> None:
        super().__init__(message)
        self.evidence = evidence


class DegenerateConfigurationError(ValueError):
    """The pairs leave the transformation undetermined; the message says why and what it takes.

    Attributes
    ----------
    rank : int or None
        Number of independent directions in which the pairs say something.
    rank_needed : int or None
        How many it takes.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier import DegenerateConfigurationError, estimate_transformation
    >>> line = np.outer(np.arange(5.0), [1, 2, 3])
    >>> try:
    ...     estimate_transformation("rigid", line, line)
    ... except DegenerateConfigurationError as error:
    ...     print(error.rank, error.rank_needed)
    1 2
    """

    def __init__(self, message: str, rank: int | None = None, rank_needed: int | None = None) -> None:
        super().__init__(message)
        self.rank, self.rank_needed = rank, rank_needed


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


class DependenceWarning(UserWarning):
    """What an answer rests on seems not to hold; the sentence says what that is, and what to do."""


class UnusableFileError(ValueError):
    """A file that cannot be used: the sentence names it, says why, and what to do."""
