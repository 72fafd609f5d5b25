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
