"""Numbers as people say them."""

from __future__ import annotations

from math import ceil, floor, log10

_COARSE = 2.0  # per cent between the ends of an interval, from which whole ones are printed; with each digit a tenth
_RAISED = str.maketrans("0123456789-", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b")


def percent(share: float) -> str:
    """A share in per cent, with as many digits as it has to show: 1 %, 49.6 %, 0.05 %."""
    value = 100 * share
    if value == 0 or value >= 10:
        return f"{value:.1f}".removesuffix(".0") + " %"
    return f"{value:.2g} %"


def interval_in_words(low: float, high: float) -> str:
    """An interval of a share as people say it, rounded outwards: an end that says nothing is left out."""
    width = 100 * (high - low)
    digits = 0 if width >= _COARSE else 1 if width >= _COARSE / 10 else 2
    step = 10.0**-digits
    # what is left of a product by rounding must not move an end by a whole step
    least, most = floor(round(100 * low / step, 6)) * step, ceil(round(100 * high / step, 6)) * step
    if least <= 0 and most >= 100:
        return "cannot be told from these scores"
    if most >= 100:
        return f"at least {least:.{digits}f} %"
    return f"at most {most:.{digits}f} %" if least <= 0 else f"between {least:.{digits}f} and {most:.{digits}f} %"


def power_of_ten(value: float, digits: int = 1) -> str:
    """A number far from 1 as people write it: 2.9 x 10^13, with signs and raised figures of their own."""
    mantissa, power = f"{value:.{digits}e}".split("e")
    raised, sign = str(int(power)).translate(_RAISED), "-" if value < 0 else ""
    factor = sign if abs(float(mantissa)) == 1 else f"{mantissa}\N{DOT OPERATOR}"
    return f"{factor}10{raised}".replace("-", "\N{MINUS SIGN}")


def rounded_up(value: float) -> float:
    """Two digits, and not below: what is printed as enough must be enough."""
    step = 10.0 ** (floor(log10(value)) - 1)
    return ceil(value / step) * step


def pairs_in_words(n_pairs: int) -> str:
    """The beginning of a sentence on so many pairs."""
    return "No pair is" if n_pairs == 0 else "One pair is" if n_pairs == 1 else f"{n_pairs:,} pairs are"
