"""H = (X X^T) o (Y Y^T), eq. (1) of the paper, as an operator that is never formed.

Notation (code <-> paper): rows are points here, columns there. X (n, d_x), Y (n, d_y); H (n, n); S = H 1 the row sums;
v the leading eigenvector, by three routes that give one answer. K, the row-wise Kronecker product of X and Y, has
H = K K^T; it is not in the paper, and is what makes everything linear in n.

Which way to compute is cheapest is told by one cost rule on (n, d_x, d_y). The unit of cost is one multiply-add
inside a large matrix product. Against it, reading and preparing a row costs ``_PER_ROW`` and each of its numbers
``_PER_NUMBER``; an entry of a temporary array that is written and read once costs ``_PER_TEMPORARY``, and an entry of
H that is read from memory again ``_PER_REREAD``. ``benchmarks/solver_choice.py`` prints how often the rule picks the
fastest solver and what it loses where it does not.

With D = d_x d_y, a *pass* the cost of reading and preparing all rows once, and L Lanczos steps:

- ``moments``: 2 passes, form the products (n D) and K^T K (n D^2 / 4), solve it (2 D^3); holds 8 D^2 bytes;
- ``operator``: L times (one pass and 2 n D); when D > n, H v instead: L times (two passes and 2 n D);
- ``dense``: form H, n^2 (d_x + d_y), write it, then read it L times; holds 8 n^2 bytes.

A solver whose matrix exceeds the memory budget is not considered.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from inlier._checks import check_choice, check_paired
from inlier._typing import Array, FloatArray
from inlier.rows import ColumnSummary, Extremes, PairedRows, Scores, as_table, check_finite, summarise_columns
from inlier.rows.backend import to_host
from inlier.rows.threads import single_threaded_blas

Solver = Literal["moments", "operator", "dense"]
SOLVERS: tuple[str, ...] = ("auto", *get_args(Solver))

DEFAULT_MEMORY_BUDGET = 2 * 1024**3  # bytes; a dense H of 16,384 pairs

_LANCZOS_STEPS = 20
_PER_ROW = 900
_PER_NUMBER = 50
_PER_TEMPORARY = 80
_PER_REREAD = 10

_ROWS_OF_H = 256  # formed at a time for dense row sums
_UNDECIDED = 1e-8  # a sum of the unit vector's entries, over its largest possible, that does not tell its sign
_NARROW = 128  # dimensions
_SMALLEST_FOR_LANCZOS = 32  # below this a full eigendecomposition is both faster and safer


class GramOverlap:
    """The overlap H = (X X^T) o (Y Y^T) of two Gram matrices, as a linear operator.

    ``H[i, j] = (x_i . x_j) (y_i . y_j)``: large when pairs i and j agree on how similar they are.
    The rows are taken as they are; the matchers centre them and scale them to unit length first.

    Parameters
    ----------
    X : array-like of shape (n, d_x)
        One side of the pairs.
    Y : array-like of shape (n, d_y) or (n,)
        The other side, in the same order. ``d_x`` and ``d_y`` are free.
    memory_budget : int, default=2 GiB
        Bytes that a matrix formed on the way (the dense H, or K^T K) may take.

    Notes
    -----
    ``row_sums`` takes O(n d_x d_y) time and O(n + d_x d_y) memory beyond the input. Its sum is
    ``||X^T Y||_F^2``, so with centred rows S_i is pair i's share of the linear CKA (HSIC) of the two sets.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier import GramOverlap
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> H = GramOverlap(X, X)
    >>> H.row_sums()
    array([2., 2., 6.])
    >>> np.allclose(H.row_sums(), H.to_dense().sum(axis=1))
    True
    """

    def __init__(self, X: Any, Y: Any, *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> None:
        X, Y = as_table(X, "X", in_place=True), as_table(Y, "Y", one_column=True, in_place=True)
        check_paired(X, Y)
        summaries = [summarise_columns(table) for table in (X, Y)]
        for table, summary, name in zip((X, Y), summaries, ("X", "Y"), strict=True):
            check_finite(table, summary, name)
        _check_products(*summaries)
        self._pairs = PairedRows(X, Y)
        self.memory_budget = memory_budget

    @classmethod
    def from_pairs(cls, pairs: PairedRows, *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> GramOverlap:
        """Overlap of rows that are prepared as they are read, and were checked before."""
        overlap = cls.__new__(cls)
        overlap._pairs = pairs
        overlap.memory_budget = memory_budget
        return overlap

    def __repr__(self) -> str:
        d_x, d_y = self._pairs.dimensions
        return f"GramOverlap(n={self._pairs.n_pairs}, d_x={d_x}, d_y={d_y})"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self._pairs.n_pairs, self._pairs.n_pairs

    def matvec(self, v: Any) -> FloatArray:
        """H v = rowsum((X M_v) * Y) with M_v = X^T diag(v) Y: two thin products."""
        v = self._as_vector(v)
        return self._pairs.bilinear(self._pairs.cross_moment(v))

    def matmat(self, V: Any) -> FloatArray:
        """H V, one column at a time."""
        V = np.asarray(V, dtype=np.float64)
        if V.ndim != 2 or len(V) != self.shape[0]:
            raise ValueError(f"H has shape {self.shape}; it cannot multiply an array of shape {V.shape}.")
        return np.stack([self.matvec(v) for v in V.T], axis=1) if V.shape[1] else V.copy()

    def row_sums(self, solver: str = "auto") -> FloatArray:
        """S = H 1, i.e. S_i = x_i^T (X^T Y) y_i."""
        if self._row_sum_solver(solver) == "dense":
            return self._dense_row_sums()
        return self._pairs.bilinear(self._pairs.cross_moment())

    def leave_one_out_row_sums(self, solver: str = "auto") -> FloatArray:
        """S_i - H_ii: each pair's agreement with all the others, its own share left out."""
        if self._row_sum_solver(solver) == "dense":
            return self._dense_row_sums() - to_host(self.diagonal())
        return self._pairs.leave_one_out(self._pairs.cross_moment())

    def row_sum_scores(self, solver: str = "auto") -> Scores:
        """d_x d_y (S_i - H_ii), the paper's S_i - d^2, for rows of unit length."""
        d_x, d_y = self._pairs.dimensions
        if self._row_sum_solver(solver) == "dense":
            return self._scores_of(d_x * d_y * (self._dense_row_sums() - to_host(self.diagonal())))
        return self._pairs.leave_one_out_scores(self._pairs.cross_moment(), d_x * d_y)

    def eigenvector_scores(self, solver: str = "auto") -> Scores:
        """sqrt(n) v_i, for rows of unit length."""
        found = self._leading(solver)
        if isinstance(found, MomentSide):
            return self._pairs.bilinear_scores(found.matrix, np.sqrt(self.shape[0]) / found.length)
        return self._scores_of(np.sqrt(self.shape[0]) * found.vector)

    def _scores_of(self, values: FloatArray) -> Scores:
        return Scores.of_values(self._pairs.store.from_host(values, self._pairs.X))

    def diagonal(self) -> FloatArray:
        """``H_ii = |x_i|^2 |y_i|^2``."""
        return self._pairs.norm_product()

    def trace(self) -> float:
        """Sum of the diagonal, which is also the sum of the eigenvalues."""
        return float(to_host(self.diagonal()).sum())

    def leading_eigenvector(self, solver: str = "auto") -> Eigenpair:
        """Largest eigenvalue of H and its unit eigenvector, signed so that its entries have a positive sum."""
        found = self._leading(solver)
        return found.eigenpair(self._pairs) if isinstance(found, MomentSide) else found

    def _leading(self, solver: str) -> Eigenpair | MomentSide:
        check_choice(solver, SOLVERS, "solver")
        n, (d_x, d_y) = self._pairs.n_pairs, self._pairs.dimensions
        if solver == "auto":
            solver = choose_eigen_solver(n, d_x, d_y, self.memory_budget, self._pairs.store.in_memory)
        check_fits(solver, n, d_x, d_y, self.memory_budget)
        if solver == "moments":
            return eigenpair_by_moments(self._pairs)
        if solver == "operator":
            return eigenpair_by_operator(self._pairs)
        return eigenpair_of_dense(self.to_dense())

    def to_dense(self) -> FloatArray:
        """H itself, n x n, if it fits the memory budget."""
        n, (d_x, d_y) = self._pairs.n_pairs, self._pairs.dimensions
        check_fits("dense", n, d_x, d_y, self.memory_budget)
        H = np.empty((n, n))
        for rows in self._pairs.blocks():
            self._fill_row_block(rows, H[rows])
        return H

    def as_linear_operator(self) -> LinearOperator:
        """H as a SciPy ``LinearOperator``, for its iterative solvers."""
        return LinearOperator(self.shape, matvec=self.matvec, rmatvec=self.matvec, matmat=self.matmat, dtype=np.float64)

    def _row_sum_solver(self, solver: str) -> str:
        check_choice(solver, SOLVERS, "solver")
        if solver == "auto":
            return choose_row_sum_solver(self._pairs.n_pairs, *self._pairs.dimensions, self._pairs.store.in_memory)
        return solver

    def _dense_row_sums(self) -> FloatArray:
        """Row sums of H from blocks of its rows: cheaper than X^T Y when d exceeds n, and never n x n."""
        n = self.shape[0]
        sums = np.empty(n)
        step = max(1, min(_ROWS_OF_H, self.memory_budget // (8 * n)))
        block = np.empty((min(step, n), n))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            part = block[: rows.stop - rows.start]
            self._fill_row_block(rows, part)
            sums[rows] = part.sum(axis=1)
        return sums

    def _fill_row_block(self, rows: slice, out: FloatArray) -> None:
        """Write H[rows, :] into ``out``, reading the columns' rows again rather than keeping a copy."""
        x, y = self._pairs.take(rows)
        for columns in self._pairs.blocks():
            other_x, other_y = self._pairs.take(columns)
            np.multiply(x @ other_x.T, y @ other_y.T, out=out[:, columns])

    def _as_vector(self, v: Any) -> FloatArray:
        v = np.asarray(v, dtype=np.float64)
        if v.size != self.shape[0] or v.ndim > 2:
            raise ValueError(f"H has shape {self.shape}; it cannot multiply a vector of shape {v.shape}.")
        return v.ravel()


def _check_products(x: ColumnSummary, y: ColumnSummary) -> None:
    """Refuse values whose fourth-order products overflow: they would come out as infinity."""
    largest = np.log10(np.maximum([x.magnitude.max(), y.magnitude.max()], 1e-300))
    sizes = np.log10([x.mean.size, y.mean.size])
    if 2 * largest.sum() + sizes.sum() + np.log10(x.n_rows) > np.log10(np.finfo(np.float64).max):
        raise ValueError(
            f"X has values as large as {10 ** largest[0]:.3g} and Y as large as {10 ** largest[1]:.3g}; "
            f"products of four of them overflow. Divide each set by its largest value first."
        )


# ---- the cost rule


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


# ---- its leading eigenvector


class Eigenpair(NamedTuple):
    """An eigenvalue and its unit eigenvector."""

    value: float
    vector: FloatArray


class MomentSide(NamedTuple):
    """The leading eigenvector as u, seen from the other side of H = K K^T: v = K u / length, K u = x_i^T U y_i."""

    value: float
    matrix: FloatArray
    length: float

    def eigenpair(self, pairs: PairedRows) -> Eigenpair:
        """Return v itself."""
        return Eigenpair(self.value, pairs.bilinear(self.matrix, 1 / self.length))


def eigenpair_by_moments(pairs: PairedRows) -> Eigenpair | MomentSide:
    """Form K^T K (d_x d_y square) in one pass; its leading eigenvector u gives v = K u / |K u|."""
    products, all_ones = pairs.product_moments()
    value, u = _leading_of_dense(_kronecker_moment(products, *pairs.dimensions))
    return _from_side_of_moments(pairs, value, u, all_ones)


def eigenpair_by_operator(pairs: PairedRows) -> Eigenpair | MomentSide:
    """Lanczos without a matrix, on whichever side of H = K K^T is smaller.

    In the space of (d_x, d_y) matrices one step reads the rows once and moves d_x d_y numbers; with
    fewer pairs than d_x d_y a step is H v, two thin products.
    """
    # Threads inside products this small wait for each other longer than they work, above all on a busy machine.
    with single_threaded_blas() if max(pairs.dimensions) <= _NARROW else nullcontext():
        return _by_operator(pairs)


def _by_operator(pairs: PairedRows) -> Eigenpair | MomentSide:
    d_x, d_y = pairs.dimensions

    def step_in_moments(u: FloatArray) -> FloatArray:
        return pairs.gram_step(u.reshape(d_x, d_y)).ravel()

    def step_in_pairs(v: FloatArray) -> FloatArray:
        return to_host(pairs.bilinear(pairs.cross_moment(v)))

    all_ones = pairs.cross_moment()  # K^T 1: the row sums already point at the inliers
    if d_x * d_y <= pairs.n_pairs:
        value, u = _leading_by_lanczos(step_in_moments, all_ones.ravel())
        return _from_side_of_moments(pairs, value, u, all_ones)
    start = to_host(pairs.bilinear(all_ones))
    value, v = _leading_by_lanczos(step_in_pairs, start)
    return Eigenpair(value, _oriented(v))


def eigenpair_of_dense(H: FloatArray) -> Eigenpair:
    """Leading eigenpair of H itself, already formed."""
    if len(H) < _SMALLEST_FOR_LANCZOS:
        value, v = _leading_of_dense(H)
    else:
        value, v = _leading_by_lanczos(lambda v: H @ v, H.sum(axis=1))
    return Eigenpair(value, _oriented(v))


def _from_side_of_moments(
    pairs: PairedRows, value: float, u: FloatArray, all_ones: FloatArray
) -> MomentSide | Eigenpair:
    """Give v its length and sign without computing it: |K u|^2 = u^T (K^T K u), and its sum is u^T K^T 1."""
    matrix = u.reshape(pairs.dimensions)
    if value <= 0.0:
        return Eigenpair(0.0, np.full(pairs.n_pairs, pairs.n_pairs**-0.5))  # H = 0: any unit vector will do
    length = float(np.sqrt(value))
    total = float(np.vdot(matrix, all_ones)) / length
    if abs(total) <= _UNDECIDED * np.sqrt(pairs.n_pairs):
        total = sum(pairs.store.total(Extremes(), pairs.bilinear(matrix)))
    return MomentSide(value, -matrix if total < 0 else matrix, length)


def _kronecker_moment(product_moment: FloatArray, d_x: int, d_y: int) -> FloatArray:
    """K^T K, (d_x d_y, d_x d_y), from its distinct entries: entry (ab, ce) is the sum of x_a y_b x_c y_e."""
    blocks = product_moment[_product_index(d_x)[:, :, None, None], _product_index(d_y)]  # a, c, b, e
    return blocks.transpose(0, 2, 1, 3).reshape(d_x * d_y, d_x * d_y)


def _product_index(d: int) -> Array:
    """Where the product of coordinates a and c stands among the distinct ones."""
    index = np.empty((d, d), dtype=np.intp)
    first, second = np.triu_indices(d)
    index[first, second] = index[second, first] = np.arange(first.size)
    return index


def _leading_of_dense(matrix: FloatArray) -> tuple[float, FloatArray]:
    last = len(matrix) - 1
    values, vectors = eigh(matrix, subset_by_index=[last, last])
    return float(values[0]), vectors[:, 0]


def _leading_by_lanczos(step: Callable[[FloatArray], FloatArray], start: FloatArray) -> tuple[float, FloatArray]:
    size = start.size
    if size < _SMALLEST_FOR_LANCZOS:
        matrix = np.stack([step(column) for column in np.eye(size)])
        return _leading_of_dense((matrix + matrix.T) / 2)
    # A little fixed noise: a start orthogonal to the answer would never find it.
    noise = np.random.default_rng(0).standard_normal(size)
    scale = np.linalg.norm(start) or 1.0
    start = start / scale + 1e-3 * noise / np.linalg.norm(noise)
    if not step(start).any():  # the matrix is zero: every vector is an eigenvector
        return 0.0, start
    operator = LinearOperator((size, size), matvec=lambda u: step(np.ravel(u)), dtype=np.float64)
    values, vectors = eigsh(operator, k=1, which="LA", v0=start)
    return float(values[0]), vectors[:, 0]


def _oriented(v: FloatArray) -> FloatArray:
    """Unit length, and the sign that makes the sum positive (the longer tail, if the sum says nothing)."""
    length = np.linalg.norm(v)
    if length == 0.0:  # H = 0: every unit vector is an eigenvector
        return np.full(v.size, v.size**-0.5)
    v = v / length
    total = v.sum()
    undecided = abs(total) <= _UNDECIDED * np.sqrt(v.size)
    sign = v.max() + v.min() if undecided else total
    return -v if sign < 0 else v
