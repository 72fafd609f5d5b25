"""Tables on a device, for benchmarks that run in several processes."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from inlier import CalibratedMatcher


def put_on(device: str, table: np.ndarray) -> torch.Tensor:
    """Copy of a table on the device, where a first fit has loaded the libraries."""
    _load_libraries(device)
    return torch.from_numpy(table).to(device)


@cache
def _load_libraries(device: str) -> None:
    small = torch.from_numpy(np.random.default_rng(0).standard_normal((100, 3))).to(device)
    CalibratedMatcher(random_state=0).fit(small, small)
