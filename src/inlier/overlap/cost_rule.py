"""Which way to compute the overlap is cheapest: one cost rule on (n, d_x, d_y).

The unit of cost is one multiply-add inside a large matrix product. Against it, reading and preparing a
row costs ``_PER_ROW`` and each of its numbers ``_PER_NUMBER``; an entry of a temporary array that is
written and read once costs ``_PER_TEMPORARY``, and an entry of H that is read from memory again
``_PER_REREAD``. ``benchmarks/solver_choice.py`` prints how often the rule picks the fastest solver and
what it loses where it does not.

With D = d_x d_y, a *pass* the cost of reading and preparing all rows once, and L Lanczos steps:

- ``moments``: 2 passes, form the products (n D) and K^T K (n D^2 / 4), solve it (2 D^3); holds 8 D^2 bytes;
- ``operator``: L times (one pass and 2 n D); when D > n, H v instead: L times (two passes and 2 n D);
- ``dense``: form H, n^2 (d_x + d_y), write it, then read it L times; holds 8 n^2 bytes.

A solver whose matrix exceeds the memory budget is not considered.
"""

from __future__ import annotations

from typing import Literal, get_args

Solver = Literal["moments", "operator", "dense"]
SOLVERS: tuple[str, ...] = ("auto", *get_args(Solver))

DEFAULT_MEMORY_BUDGET = 2 * 1024**3  # bytes; a dense H of 16,384 pairs

_LANCZOS_STEPS = 20
_PER_ROW = 900
_PER_NUMBER = 50
_PER_TEMPORARY = 80
_PER_REREAD = 10


def choose_eigen_solver(
    n: int, d_x: int, d_y: int, memory_budget: int = DEFAULT_MEMORY_BUDGET, in_memory: bool = True
) -> Solver:
    """Return the cheapest solver for the leading eigenvector among those that fit the budget.

    Rows that are not in this computer's memory are never made into a dense H: it would be formed here.
    """
    width = d_x * d_y
    one_pass = _pass_cost(n, d_x, d_y)
    passes_per_step = 1 if width <= n else 2
    costs: dict[Solver, float] = {
        "moments": 2 * one_pass + n * width * (_PER_TEMPORARY + width / 4) + 2 * width**3,
        "operator": _LANCZOS_STEPS * (passes_per_step * one_pass + 2 * n * width),
        "dense": _dense_cost(n, d_x, d_y) + n**2 * _PER_REREAD * _LANCZOS_STEPS,
    }
    if not in_memory:
        del costs["dense"]
    affordable = {s: cost for s, cost in costs.items() if _bytes_needed(s, n, d_x, d_y) <= memory_budget}
    return min(affordable, key=lambda solver: affordable[solver])


def choose_row_sum_solver(n: int, d_x: int, d_y: int, in_memory: bool = True) -> Solver:
    """Return the cheapest solver for the row sums; both go block by block, so memory is no matter."""
    linear = 2 * (_pass_cost(n, d_x, d_y) + n * d_x * d_y)
    return "operator" if not in_memory or linear <= _dense_cost(n, d_x, d_y) else "dense"


def check_fits(solver: str, n: int, d_x: int, d_y: int, memory_budget: int) -> None:
    """Raise ``MemoryError`` if the matrix that ``solver`` forms exceeds the budget."""
    needed = _bytes_needed(solver, n, d_x, d_y)
    if needed > memory_budget:
        matrix = "n x n matrix H" if solver == "dense" else "(d_x d_y) x (d_x d_y) matrix K^T K"
        raise MemoryError(
            f"solver={solver!r} would form the {matrix}: with n = {n:,}, d_x = {d_x:,}, d_y = {d_y:,} it takes "
            f"{needed:,} bytes, over the memory budget of {memory_budget:,}. "
            f"Use solver='operator', which forms no such matrix, or GramOverlap with a larger memory_budget."
        )


def _pass_cost(n: int, d_x: int, d_y: int) -> float:
    return n * (_PER_ROW + _PER_NUMBER * (d_x + d_y))


def _dense_cost(n: int, d_x: int, d_y: int) -> float:
    return _pass_cost(n, d_x, d_y) + n**2 * (d_x + d_y + _PER_TEMPORARY)


def _bytes_needed(solver: str, n: int, d_x: int, d_y: int) -> int:
    return {"dense": 8 * n**2, "moments": 8 * (d_x * d_y) ** 2}.get(solver, 0)
