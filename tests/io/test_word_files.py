"""Word vectors as text."""

import numpy as np
import pytest

from inlier.exceptions import UnusableFileError
from inlier.io import column_names, read_labels, read_table, write_table


@pytest.mark.parametrize("first", ["3 2\n", ""], ids=["fastText", "GloVe"])
def test_words_and_numbers(first, tmp_path):
    (tmp_path / "a.vec").write_text(f"{first}the 0.5 -1 \nh\u00e4user 1e-3 2\n</s> 3 4\n")
    table = read_table(tmp_path / "a.vec")
    assert table.values.tolist() == [[0.5, -1], [0.001, 2], [3, 4]]
    assert table.keys is None
    named = read_table(tmp_path / "a.vec", key="word")
    assert named.keys.tolist() == ["the", "h\u00e4user", "</s>"]
    assert named.values.tolist() == table.values.tolist()
    assert column_names(tmp_path / "a.vec") == ["word", "0", "1"]
    assert read_labels(tmp_path / "a.vec", "word").tolist() == named.keys.tolist()
    assert read_table(tmp_path / "a.vec", columns=["1"]).values.tolist() == [[-1], [2], [4]]


def test_words_come_back(tmp_path):
    values = np.random.default_rng(0).normal(size=(4, 3))
    write_table(
        tmp_path / "a.vec.gz",
        {"word": np.array(["a", "b", "new york", "d"]), **dict(zip("xyz", values.T, strict=True))},
    )
    table = read_table(tmp_path / "a.vec.gz", key="word")
    assert table.keys.tolist() == ["a", "b", "new_york", "d"]
    np.testing.assert_array_equal(table.values, values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the 1 2\nof 1\n", "is ragged: line 2 has 1 numbers where the first has 2"),
        ("the 1 2\nof 1 x\n", "has 'x' among the numbers of line 2"),
        ("5 2\nthe 1 2\n", "cut short: it announces 5 words and holds 1"),
        ("the\nof\n", "holds no numbers"),
        ("\n\n", "holds no numbers"),
    ],
)
def test_what_is_wrong(text, said, tmp_path):
    (tmp_path / "a.vec").write_text(text)
    with pytest.raises(UnusableFileError, match=said):
        read_table(tmp_path / "a.vec")


def test_a_limit(tmp_path, monkeypatch):
    (tmp_path / "a.vec").write_text("the 1 2 3 4\n" * 5000)
    monkeypatch.setenv("INLIER_MAX_UNPACKED", "0.00001")
    with pytest.raises(UnusableFileError, match="over the limit"):
        read_table(tmp_path / "a.vec")
