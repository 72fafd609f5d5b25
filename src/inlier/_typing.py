"""Names for the arrays that this package hands about; imports nothing of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FloatArray = NDArray[np.floating]
Mask = NDArray[np.bool_]
Photo = NDArray[np.uint8]  # red, green and blue, of shape (height, width, 3); or grey
