"""Maps between point sets, as values: call them, invert them, compose them, ask for their residuals.

Notation (code <-> paper): rows are points here, columns there. rotation is R, an orthogonal (d, d) matrix;
y_i = scale * R x_i + translation, so that on rows Y = scale * X R^T + translation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from inlier._cards import card
from inlier._checks import check_choice, check_number, check_paired
from inlier._typing import Array, FloatArray
from inlier.rows import as_table
from inlier.rows.threads import row_blocks

_WITHOUT_TRANSLATION = ("orthogonal", "rotation")
_SIMILARITY_MODELS = (*_WITHOUT_TRANSLATION, "rigid", "similarity")
_ORTHOGONAL_TO = 1e-5  # what R^T R may differ from I: rotations kept in float32 pass
_WORST_CONDITION = 1e12  # of an affine map that is to be inverted
_NO_TURN = 1e-7  # degrees, below which it is rounding
_LARGEST_SHOWN = 12  # rows and columns of a matrix, in a notebook


class Transformation(ABC):
    """A map ``y = linear x + translation``; the common base of all of them.

    Attributes
    ----------
    model : str
        ``"orthogonal"``, ``"rotation"``, ``"rigid"``, ``"similarity"`` or ``"affine"``.
    linear : ndarray of shape (d_y, d_x)
        Its linear part.
    translation : ndarray of shape (d_y,)
        What is added.
    matrix : ndarray of shape (d_y + 1, d_x + 1)
        The homogeneous matrix, on column vectors.
    inverse : Transformation
        The map back.
    determined : bool
        False if the pairs it was fitted to left it free in some direction, see `estimate_transformation`.

    Examples
    --------
    >>> import numpy as np
    >>> from inlier import SimilarityTransformation, Transformation
    >>> T = SimilarityTransformation([[0, -1], [1, 0]], translation=[5, 0], scale=2)
    >>> isinstance(T, Transformation)
    True
    >>> T
    <similarity transformation in 2 dimensions: scales by 2, turns by 90 degrees counter-clockwise and moves by (5, 0)>
    >>> T([[1, 0], [0, 1]])
    array([[5., 2.],
           [3., 0.]])
    >>> np.allclose((T.inverse @ T).matrix, np.eye(3))
    True
    """

    model: str
    determined: bool
    linear: FloatArray
    translation: FloatArray

    @property
    @abstractmethod
    def inverse(self) -> Transformation:
        """The map back."""

    @property
    def matrix(self) -> FloatArray:
        """[[linear, translation], [0, 1]], on column vectors (x, 1)."""
        last = np.zeros(self.linear.shape[1] + 1)
        last[-1] = 1.0
        return np.vstack([np.column_stack([self.linear, self.translation]), last])

    def __call__(self, X: Any) -> FloatArray:
        """Map the rows of ``X``; float32 in gives float32 out, everything else float64."""
        X = self._as_points(X, "X", self.linear.shape[1])
        mapped = np.empty((len(X), self.linear.shape[0]), np.float32 if X.dtype == np.float32 else np.float64)
        for rows, image in self._images(X):
            mapped[rows] = image
        return mapped

    def residuals(self, X: Any, Y: Any) -> FloatArray:
        """``|y_i - T(x_i)|`` for each pair: Euclidean lengths, in the units of ``Y``."""
        X = self._as_points(X, "X", self.linear.shape[1])
        Y = self._as_points(Y, "Y", self.linear.shape[0])
        check_paired(X, Y, fewest=0)
        lengths = np.empty(len(X))
        for rows, image in self._images(X):
            lengths[rows] = np.linalg.norm(Y[rows] - image, axis=1)
        return lengths

    def __matmul__(self, first: Transformation) -> Transformation:
        """(self @ first)(x) = self(first(x))."""
        if not isinstance(first, Transformation):
            return NotImplemented
        if self.linear.shape[1] != first.linear.shape[0]:
            raise ValueError(
                f"These two cannot follow each other: the first gives points of {first.linear.shape[0]} dimension(s), "
                f"the second takes points of {self.linear.shape[1]}. In T2 @ T1, T1 is applied first."
            )
        return self._after(first)

    def _after(self, first: Transformation) -> Transformation:
        return AffineTransformation(
            self.linear @ first.linear,
            self.linear @ first.translation + self.translation,
            determined=self.determined and first.determined,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and words, ready for ``json.dumps``; `from_dict` reads it back."""
        parts = {"model": self.model, "determined": self.determined, "matrix": self.matrix, **self._fields()}
        return {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in parts.items()}

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Transformation:
        """Make the transformation that `to_dict` described."""
        kind = AffineTransformation if content["model"] == "affine" else SimilarityTransformation
        return kind(**{field.name: content[field.name] for field in fields(kind)})

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild a pickled one from its fields, so that its arrays are again read-only."""
        return type(self), tuple(self._fields().values())

    def _fields(self) -> dict[str, Any]:
        """What it was made of."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _images(self, X: Array) -> Iterator[tuple[slice, FloatArray]]:
        linear = self.linear
        for rows in row_blocks(len(X), sum(linear.shape)):
            yield rows, np.asarray(X[rows], dtype=np.float64) @ linear.T + self.translation

    def _as_points(self, data: Any, name: str, dimension: int) -> Array:
        points = as_table(data, name, one_column=dimension == 1)
        if points.shape[1] != dimension:
            raise ValueError(
                f"{name} has shape {points.shape}, so its points have {points.shape[1]} dimension(s); "
                f"this transformation takes X of {self.linear.shape[1]} to Y of {self.linear.shape[0]} dimension(s)."
            )
        return points

    def __repr__(self) -> str:
        d_y, d_x = self.linear.shape
        where = _dimensions(d_x) if d_x == d_y else f"from {d_x} to {_dimensions(d_y)}"
        free = "" if self.determined else "; the pairs did not determine all of it"
        return f"<{self.model} transformation {'in ' * (d_x == d_y)}{where}: {self.describe()}{free}>"

    def _repr_html_(self) -> str:
        """What notebooks show: what it does, in words and as a matrix, if that is small."""
        sentences = [f"It {self.describe()}."]
        if not self.determined:
            sentences.append("The pairs did not determine all of it.")
        matrix = self.matrix
        if max(matrix.shape) > _LARGEST_SHOWN:
            sentences.append(f"Its matrix has {matrix.shape[0]} x {matrix.shape[1]} numbers.")
            matrix = matrix[:0]
        rows = [{str(k): value for k, value in enumerate(line)} for line in matrix.tolist()]
        return card(f"{self.model.capitalize()} transformation", sentences, rows, headings=False)

    def describe(self) -> str:
        """What it does to a point, as the rest of a sentence: "turns by 90 degrees about ... and moves by ..."."""
        parts = self._linear_effects()
        if self.model not in _WITHOUT_TRANSLATION:
            parts.append(f"moves by {in_brackets(self.translation)}")
        return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]])) or "does not turn"

    @abstractmethod
    def _linear_effects(self) -> list[str]:
        """What the linear part does, in words."""


@dataclass(frozen=True, eq=False, repr=False)
class SimilarityTransformation(Transformation):
    """``y = scale * rotation x + translation``: all models except affine.

    Parameters
    ----------
    rotation : array-like of shape (d, d)
        R of the paper, orthogonal. With determinant -1 it is a reflection; model ``"rotation"`` has none.
    translation : array-like of shape (d,), optional
        0 by default, and for models ``"orthogonal"`` and ``"rotation"``.
    scale : float, default=1
        Positive; 1 except for model ``"similarity"``.
    model : str, default="similarity"
        ``"orthogonal"``, ``"rotation"``, ``"rigid"`` or ``"similarity"``.
    determined : bool, default=True
        Whether the pairs it was fitted to allowed no other.

    Examples
    --------
    >>> from inlier import SimilarityTransformation
    >>> turn = SimilarityTransformation([[0, -1], [1, 0]], model="rotation")
    >>> shift = SimilarityTransformation([[1, 0], [0, 1]], [3, 0], model="rigid")
    >>> shift @ turn
    <rigid transformation in 2 dimensions: turns by 90 degrees counter-clockwise and moves by (3, 0)>
    >>> (shift @ turn).residuals([[1, 0]], [[3, 2]])
    array([1.])
    """

    rotation: FloatArray
    translation: FloatArray = None  # type: ignore[assignment]  # zeros, once the dimension is known
    scale: float = 1.0
    model: str = "similarity"
    determined: bool = True

    def __post_init__(self) -> None:
        check_choice(self.model, _SIMILARITY_MODELS, "model")
        rotation = _frozen(self.rotation, "rotation", 2)
        d = len(rotation)
        translation = _frozen(np.zeros(d) if self.translation is None else self.translation, "translation", 1)
        scale = check_number(self.scale, "scale", low=0)
        _check_orthogonal(rotation)
        if translation.shape != (d,):
            raise ValueError(
                f"rotation has shape {rotation.shape}, so translation needs {d} numbers, not {translation.size}."
            )
        if scale == 0 or (scale != 1 and self.model != "similarity"):
            raise ValueError(
                f"scale must be {'positive' if scale == 0 else '1'} for model {self.model!r}; got {scale!r}."
            )
        if translation.any() and self.model in _WITHOUT_TRANSLATION:
            raise ValueError(f"Model {self.model!r} has no translation; use model='rigid'.")
        if self.model == "rotation" and np.linalg.det(rotation) < 0:
            raise ValueError("rotation has determinant -1: it is a reflection. Use model='orthogonal'.")
        for name, value in (("rotation", rotation), ("translation", translation), ("scale", scale)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "determined", bool(self.determined))

    @property
    def linear(self) -> FloatArray:  # type: ignore[override]  # read-only, as the frozen field of affine maps is
        """Scale * rotation."""
        return self.scale * self.rotation

    @property
    def inverse(self) -> SimilarityTransformation:
        """x = R^T (y - translation) / scale."""
        shift = -(self.rotation.T @ self.translation) / self.scale
        return SimilarityTransformation(self.rotation.T, shift, 1 / self.scale, self.model, self.determined)

    @property
    def is_reflection(self) -> bool:
        """Whether it turns left hands into right hands: det R = -1."""
        return bool(np.linalg.det(self.rotation) < 0)

    @property
    def angle(self) -> float:
        """Rotation angle in degrees: in 2-D from -180 to 180, counter-clockwise positive; in 3-D from 0 to 180."""
        R = self.rotation
        if len(R) not in (2, 3) or self.is_reflection:
            what = "a reflection" if self.is_reflection else f"a rotation in {_dimensions(len(R))}"
            raise AttributeError(f"The angle is defined for rotations in 2 and 3 dimensions; this is {what}.")
        if len(R) == 2:
            return float(np.degrees(np.arctan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])))
        return float(np.degrees(self.as_scipy_rotation().magnitude()))

    def as_scipy_rotation(self) -> Rotation:
        """R as a `scipy.spatial.transform.Rotation`, in 3-D: quaternions, Euler angles, rotation vectors."""
        if len(self.rotation) != 3 or self.is_reflection:
            raise ValueError(
                f"SciPy's Rotation is for rotations in 3 dimensions; this is a "
                f"{'reflection' if self.is_reflection else 'rotation'} in {_dimensions(len(self.rotation))}."
            )
        return Rotation.from_matrix(self.rotation)

    def _after(self, first: Transformation) -> Transformation:
        if not isinstance(first, SimilarityTransformation):
            return super()._after(first)
        return SimilarityTransformation(
            self.rotation @ first.rotation,
            self.linear @ first.translation + self.translation,
            self.scale * first.scale,
            _joint_model(self.model, first.model),
            self.determined and first.determined,
        )

    def _linear_effects(self) -> list[str]:
        effects, d = [f"scales by {self.scale:.6g}"] if self.model == "similarity" else [], len(self.rotation)
        if self.is_reflection:
            return [*effects, "mirrors"]
        if d not in (2, 3):
            return [*effects, f"turns in {d} dimensions"] if d > 1 else effects
        if abs(self.angle) < _NO_TURN:
            return [*effects, "does not turn"]
        if d == 2:
            how = "counter-clockwise" if self.angle > 0 else "clockwise"
        else:
            axis = self.as_scipy_rotation().as_rotvec()
            how = f"about the axis {in_brackets(axis / np.linalg.norm(axis), '.3f')}"
        return [*effects, f"turns by {abs(self.angle):.4g} degrees {how}"]


@dataclass(frozen=True, eq=False, repr=False)
class AffineTransformation(Transformation):
    """``y = linear x + translation`` with any matrix; the two dimensions may differ.

    It has neither ``rotation`` nor ``scale``: asking for them is an AttributeError that says so, and ``hasattr``
    is False. ``inverse`` exists if the matrix is square and its condition number is at most 1e12.

    Parameters
    ----------
    linear : array-like of shape (d_y, d_x)
        The matrix.
    translation : array-like of shape (d_y,)
        What is added.
    determined : bool, default=True
        Whether the pairs it was fitted to allowed no other.

    Examples
    --------
    >>> from inlier import AffineTransformation
    >>> drop_last = AffineTransformation([[1, 0, 0], [0, 1, 0]], [10, 0])
    >>> drop_last
    <affine transformation from 3 to 2 dimensions: stretches by 1 to 1 and moves by (10, 0)>
    >>> drop_last([[1, 2, 3]])
    array([[11.,  2.]])
    """

    linear: FloatArray
    translation: FloatArray
    determined: bool = True

    model = "affine"

    def __post_init__(self) -> None:
        linear, translation = _frozen(self.linear, "linear", 2), _frozen(self.translation, "translation", 1)
        if translation.shape != linear.shape[:1]:
            raise ValueError(
                f"linear has shape {linear.shape}, so translation needs {len(linear)} numbers, not {translation.size}."
            )
        for name, value in (("linear", linear), ("translation", translation), ("determined", bool(self.determined))):
            object.__setattr__(self, name, value)

    @property
    def rotation(self) -> FloatArray:
        """Not defined."""
        raise AttributeError("An affine transformation has no rotation of its own; use .linear, or another model.")

    @property
    def scale(self) -> float:
        """Not defined."""
        raise AttributeError("An affine transformation has no single scale; use .linear, or another model.")

    @property
    def inverse(self) -> AffineTransformation:
        """x = linear^-1 (y - translation)."""
        d_y, d_x = self.linear.shape
        if d_x != d_y:
            raise ValueError(f"A map from {d_x} to {_dimensions(d_y)} has no inverse. Fit one from Y to X instead.")
        condition = np.linalg.cond(self.linear)
        if not condition <= _WORST_CONDITION:
            raise ValueError(
                f"This affine map flattens some direction (condition number {condition:.2g}, over "
                f"{_WORST_CONDITION:.0e}), so it has no usable inverse. Fit it to points that fill all {d_x} "
                f"dimensions, or fit a map from Y to X."
            )
        inverse = np.linalg.inv(self.linear)
        return AffineTransformation(inverse, -inverse @ self.translation, self.determined)

    def _linear_effects(self) -> list[str]:
        stretch = np.linalg.svd(self.linear, compute_uv=False)
        return [f"stretches by {stretch[-1]:.4g} to {stretch[0]:.4g}"]


def _joint_model(second: str, first: str) -> str:
    """Return the smallest model that holds the composition of any two of these."""
    both = {second, first}
    if both <= {"orthogonal", "rotation"}:
        return "rotation" if both == {"rotation"} else "orthogonal"
    return "similarity" if "similarity" in both else "rigid"


def _frozen(values: Any, name: str, ndim: int) -> FloatArray:
    """Return a read-only float64 copy, checked."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != ndim or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be an array of finite numbers with {ndim} axes; got shape {array.shape}.")
    array.setflags(write=False)
    return array


def _check_orthogonal(rotation: FloatArray) -> None:
    if rotation.shape[0] != rotation.shape[1]:
        raise ValueError(f"rotation must be square; got shape {rotation.shape}.")
    off = float(np.abs(rotation.T @ rotation - np.eye(len(rotation))).max())
    if off > _ORTHOGONAL_TO:
        raise ValueError(
            f"rotation must be orthogonal, but R^T R differs from I by {off:.2g}. "
            f"Pass the scale apart from it, or use AffineTransformation."
        )


def in_brackets(values: FloatArray, form: str = ".4g") -> str:
    """A vector as a person reads it: what is nothing beside the other numbers is 0; of a long one, the length."""
    length = float(np.linalg.norm(values))
    if values.size > 3:
        return f"{length:.4g}"
    shown = np.where(np.abs(values) < 1e-9 * length, 0.0, values)
    return f"({', '.join(format(float(value), form) for value in shown)})"


def _dimensions(d: int) -> str:
    return f"{d} dimension{'s' * (d != 1)}"
