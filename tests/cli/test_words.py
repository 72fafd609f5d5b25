from __future__ import annotations

import warnings

import pytest

from inlier.cli._answers import BadInput
from inlier.cli._words import in_options, naming_files


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("X is constant: all 5 rows are the same.", "a.csv is constant: all 5 rows are the same."),
        ("1 of the 3 columns of y hold a single value.", "1 of the 3 columns of b.npz:y hold a single value."),
        ("X has 3 column(s) and y 2. Use model='affine'.", "a.csv has 3 column(s) and b.npz:y 2. Use --model affine."),
        ("y.npy ends early; X.csv, data/y, data.npz:y and my-y do not.",) * 2,
        ("n_splits=4 is too many; use n_splits=2 or less.", "--splits 4 is too many; use --splits 2 or less."),
        ("Use whiten=False.", "Use --no-whiten."),
        ("noise_bound must be positive; noise_bound_ is.", "--noise-bound must be positive; noise_bound_ is."),
        ("weights must not be negative.", "--weights must not be negative."),
        ("Some entries of sample_weight are weights of 0.", "Some entries of --weights are weights of 0."),
    ],
)
def test_options_for_parameters_and_files_for_tables(sentence, said):
    assert in_options(sentence, "a.csv", "b.npz:y") == said


def test_errors_of_the_library_name_the_files():
    with pytest.raises(BadInput, match=r"^b\.npy contains NaN\.$"), naming_files("a.npy", "b.npy", []):
        raise ValueError("y contains NaN.")


def test_warnings_of_the_library_name_the_files():
    notes: list[str] = []
    with naming_files("a.npy", "b.npy", notes):
        warnings.warn("A column of X says nothing.", UserWarning, stacklevel=1)
    assert notes == ["A column of a.npy says nothing."]
