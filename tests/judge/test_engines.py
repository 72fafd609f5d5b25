"""What the page says of each engine runs, where that is installed, and answers as the judge itself."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from inlier import CalibratedMatcher
from inlier.datasets import make_gaussian_pairs

PAGE = (Path(__file__).parents[2] / "docs" / "judging-elsewhere.md").read_text(encoding="utf-8")
BLOCKS = [
    (heading, block)
    for heading, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
]
PACKAGES = {
    "Hugging Face datasets": "datasets",
    "DuckDB": "duckdb",
    "Ray": "ray",
    "Spark": "pyspark",
    "polars": "polars",
}
N, D = 10_000, 16


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    data = make_gaussian_pairs(n=N + 1000, d=D, inlier_fraction=0.7, noise=0.2, rng=0)
    judge = CalibratedMatcher(random_state=0).fit(data.X[:1000], data.Y[:1000]).judge_
    X, Y = (table[1000:].astype(np.float32) for table in (data.X, data.Y))
    folder = tmp_path_factory.mktemp("engines")
    columns = {
        name: arrow.FixedSizeListArray.from_arrays(arrow.array(table.ravel()), D).cast(arrow.list_(arrow.float32()))
        for name, table in (("a", X), ("b", Y))
    }
    parquet.write_table(arrow.table(columns), folder / "pairs.parquet", row_group_size=3000)
    return judge, folder, judge(X, Y)


@pytest.mark.filterwarnings("ignore")  # those of engines are theirs
@pytest.mark.parametrize(("heading", "block"), BLOCKS, ids=[heading for heading, _ in BLOCKS])
def test_what_the_page_says_runs(case, heading, block, monkeypatch):
    judge, folder, expected = case
    if heading in PACKAGES:
        pytest.importorskip(PACKAGES[heading], reason=f"pip install {PACKAGES[heading]}")
    if heading == "Spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_HOME", str(folder))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # of the workers, which import the package
    names = {"judge": judge}
    exec(block, names)
    found = names.get("result", names.get("judged"))
    if heading.startswith("Arrow"):
        import pyarrow.parquet as pq

        found = pq.read_table("judged.parquet").to_pydict()
    if isinstance(found, np.ndarray):
        np.testing.assert_array_equal(found, expected.scores)
        return
    np.testing.assert_array_equal(np.asarray(found["inlier_score"]), expected.scores)
    np.testing.assert_array_equal(np.asarray(found["inlier"]), expected.inlier_mask)
