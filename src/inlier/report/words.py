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
    digits = _digits(high - low)
    step = 10.0**-digits
    # what is left of a product by rounding must not move an end by a whole step
    least, most = floor(round(100 * low / step, 6)) * step, ceil(round(100 * high / step, 6)) * step
    if least <= 0 and most >= 100:
        return "cannot be told from these scores"
    if most >= 100:
        return f"at least {least:.{digits}f} %"
    return f"at most {most:.{digits}f} %" if least <= 0 else f"between {least:.{digits}f} and {most:.{digits}f} %"


def share_in_words(share: float, at_least: float | None, *, found: bool) -> str:
    """A sentence on the share of real pairs: an estimate, and a bound from below, rounded downwards."""
    if not found and not at_least:
        return "How many of all pairs are real, found or not, cannot be told from these scores."
    digits = 0 if at_least is None else _digits(2 * (share - at_least))
    about = f"About {100 * share:.{digits}f} % of all pairs are real, found or not"
    if at_least is None:
        return f"{about}."
    least = floor(round(100 * at_least * 10**digits, 6)) / 10**digits
    return f"{about}; " + (
        f"at least {least:.{digits}f} % with 95 % confidence." if least > 0 else "how few cannot be told."
    )


def certain_in_words(n_certain: int, n_others: int, fit: tuple[int, int], alpha: float) -> str:
    """A sentence on accepted pairs: of how many it can be no other row, and how many rows typically fit the others."""
    if n_others == 0:
        return f"{'It is' if n_certain == 1 else 'All of them are'} certain: no other row would fit."
    low, high = fit
    rows = f"one of up to {high:,} rows" if low == 1 else f"one of {low:,} to {high:,} rows"
    rows = f"one of {high:,} rows" if low == high else rows
    unsure = f"not sure enough for alpha = {alpha:g}"
    if n_certain == 0:
        who, beginning = ("it", "It is not certain") if n_others == 1 else ("most", "None is certain")
        if high == 1:
            return f"{beginning}: no other row seems to fit, but that is {unsure}."
        return f"{beginning}: {who} could as well be {rows}."
    beginning = f"{n_certain:,} {'is' if n_certain == 1 else 'are'} certain: no other row would fit"
    if high == 1:
        return f"{beginning}; the other {'one is' if n_others == 1 else f'{n_others:,} are'} {unsure}."
    return f"{beginning}; {'the other one' if n_others == 1 else 'most of the others'} could as well be {rows}."


def _digits(width: float) -> int:
    """Digits after the point that a share in per cent is worth, known up to so much."""
    return 0 if 100 * width >= _COARSE else 1 if 100 * width >= _COARSE / 10 else 2


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


def pairs_in_words(n_pairs: int, are: str = "are") -> str:
    """The beginning of a sentence on so many pairs."""
    one = {"are": "is", "were": "was"}[are]
    return f"No pair {one}" if n_pairs == 0 else f"One pair {one}" if n_pairs == 1 else f"{n_pairs:,} pairs {are}"
