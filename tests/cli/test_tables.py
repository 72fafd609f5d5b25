"""Two tables that are not simply two files: standard input, a column per sample, pairs in a file of their own."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from inlier.cli import main
from inlier.io import write_table

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 4))
Y = X[:, ::-1] + 0.01 * RNG.normal(size=(N, 4))
IDS = np.array([f"s{k}" for k in range(N)])


def run(*arguments, **given):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], **given)


def answer(outcome):
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.stdout.splitlines()[0]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("y.npy", Y)


def named(values, prefix):
    return {f"{prefix}{k}": column for k, column in enumerate(values.T)}


class TestStandardInput:
    def text(self):
        return "\n".join(",".join(map(repr, row)) for row in X.tolist()) + "\n"

    def test_it_is_read(self):
        expected = answer(run("match", "x.npy", "y.npy"))
        outcome = run("match", "-", "y.npy", "--format", "csv", "--json", input=self.text())
        assert outcome.exit_code == 0, outcome.stderr
        assert '"-"' in outcome.stdout
        assert answer(run("match", "-", "y.npy", "--format", ".CSV", input=self.text())) == expected
        assert sorted(path.name for path in Path().iterdir()) == ["x.npy", "y.npy"]

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("-", "y.npy"), "Say what it holds, as in --format csv"),
            (("-", "-", "--format", "csv"), "Only one of the two files"),
            (("x.npy", "y.npy", "--format", "csv"), "neither file is -"),
            (("-", "y.npy", "--format", "docx"), "--format docx is not a format"),
            (("-", "y.npy", "--format", "zarr"), "--format zarr is not a format"),
        ],
    )
    def test_mistakes(self, arguments, said):
        outcome = run("match", *arguments, input=self.text())
        assert outcome.exit_code == 2
        assert said in outcome.stderr

    def test_what_is_wrong_with_it_names_it(self):
        outcome = run("match", "-", "y.npy", "--format", "csv", input="a,b\n1,x\n2,3\n")
        assert outcome.exit_code == 2
        assert "column 'b' of standard input does not hold numbers" in outcome.stderr
        assert "/inlier-" not in outcome.stderr

    def test_it_has_a_limit(self, monkeypatch):
        monkeypatch.setenv("INLIER_MAX_UNPACKED", "0.000001")
        outcome = run("match", "-", "y.npy", "--format", "csv", input=self.text())
        assert outcome.exit_code == 2
        assert "larger than the limit" in outcome.stderr


class TestColumns:
    def test_words_are_compared_and_single_values_left_out_by_name(self):
        write_table("x.csv", {"site": np.array(["a", "b"] * 30), "year": np.full(60, 2019), **named(X, "a")})
        write_table("y.csv", {**named(Y, "b"), "batch": np.full(60, np.nan)})
        outcome = run("match", "x.csv", "y.csv")
        assert "60 of 60" in answer(outcome)
        assert "'site': category, 0 and 1 for each word; 'year' left out: it holds a single value" in outcome.stderr
        assert "y.csv holds a single value, or none (column batch)" in outcome.stderr

    def test_what_one_file_has_is_left_out_of_that_one(self):
        write_table("x.csv", {"site": np.array([f"site {k}" for k in range(60)]), **named(X, "a")})
        write_table("y.csv", named(Y, "b"))
        refused = run("match", "x.csv", "y.csv")
        assert refused.exit_code == 2
        assert "--columns ^site" in refused.stderr
        assert "60 of 60" in answer(run("match", "x.csv", "y.csv", "--columns", "^site"))  # as it recommends

    def test_twice(self):
        write_table("x.csv", {"site": np.array(["a", "b"] * 30), **named(X, "a")})
        write_table("y.csv", named(Y, "b"))
        answer(run("match", "x.csv", "y.csv", "--columns", "a0,a1", "--columns", "b2,b3"))
        answer(run("match", "x.csv", "y.csv", "--columns", "^site", "--columns", "*"))

    def test_what_neither_has(self):
        write_table("x.csv", named(X, "a"))
        write_table("y.csv", named(Y, "b"))
        outcome = run("match", "x.csv", "y.csv", "--columns", "^site")
        assert outcome.exit_code == 2
        assert "Neither x.csv nor y.csv has a column named 'site'" in outcome.stderr


class TestTransposed:
    """Genes in rows, samples in columns."""

    def write(self, name, values, prefix, ids, first="gene"):
        rows = {first: np.array([f"{prefix}{k}" for k in range(values.shape[1])])}
        write_table(name, {**rows, **{str(key): row for key, row in zip(ids, values, strict=True)}})

    def test_both_are_noticed(self):
        self.write("x.csv", X, "rna", IDS)
        self.write("y.tsv", Y[::-1], "protein", IDS[::-1])
        outcome = run("match", "x.csv", "y.tsv")
        assert "60 of 60" in answer(outcome)
        assert "a column per sample" in outcome.stderr

    @pytest.mark.parametrize("turned", [0, 1])
    def test_one_is_noticed(self, turned):
        tables, names = (X, Y), ["x.csv", "y.csv"]
        self.write(names[turned], tables[turned], "rna", IDS)
        write_table(names[1 - turned], {"sample": IDS[::-1], **named(tables[1 - turned][::-1], "p")})
        for options in ((), ("--key", "sample")):  # which only the other has
            outcome = run("match", *names, *options)
            assert "60 of 60" in answer(outcome)
            assert f"The header of {names[turned]} holds the ids" in outcome.stderr

    def test_of_two_that_could_be_turned_the_key_says_which(self):
        genes = np.random.default_rng(1).normal(size=(4, 12))
        write_table("x.csv", {"sample": IDS, **named(X @ genes, "g")})
        rows = {"gene": np.array([f"g{k}" for k in range(12)])}
        write_table("y.csv", {**rows, **{str(key): row for key, row in zip(IDS, X @ genes + 0.01, strict=True)}})
        outcome = run("match", "x.csv", "y.csv", "--key", "sample")
        assert "60 of 60" in answer(outcome)
        assert "The header of y.csv holds the ids" in outcome.stderr

    def test_row_names_of_r_are_named_where_a_key_is_missing(self):
        write_table("x.csv", {"sample": IDS, **named(X, "a")})
        lines = [" ".join(f'"p{k}"' for k in range(Y.shape[1]))]
        lines += [f'"{name}" ' + " ".join(map(str, row)) for name, row in zip(IDS, Y.tolist(), strict=True)]
        Path("y.txt").write_text("\n".join(lines) + "\n")
        outcome = run("match", "x.csv", "y.txt", "--key", "sample")
        assert outcome.exit_code == 2
        assert "no column named 'sample'; it has p0" in outcome.stderr
        assert "as R writes row names: that is --key ''" in outcome.stderr
        assert "60 of 60" in answer(run("match", "x.csv", "y.txt", "--key", "sample", "--key", ""))

    def test_as_it_is_said(self):
        self.write("x.csv", X, "gene", IDS)
        self.write("y.csv", Y, "gene", IDS)  # the same names in rows and columns: nobody could know
        assert "60 of 60" in answer(run("match", "x.csv", "y.csv", "--transpose"))
        np.save("xt.npy", X.T)
        np.save("yt.npy", Y.T)
        assert "60 of 60" in answer(run("match", "xt.npy", "yt.npy", "--transpose"))

    def test_rows_that_have_ids_of_their_own_are_not_turned(self):
        write_table("x.csv", {"id": IDS, **named(X, "a")})
        write_table("y.csv", {"id": IDS, **named(Y, "a")})
        outcome = run("match", "x.csv", "y.csv")
        assert outcome.exit_code == 2
        assert "--key id" in outcome.stderr
        assert "60 of 60" in answer(run("match", "x.csv", "y.csv", "--key", "id"))

    def test_columns_cannot_be_chosen(self):
        outcome = run("match", "x.npy", "y.npy", "--transpose", "--columns", "1")
        assert outcome.exit_code == 2
        assert "--transpose makes columns of rows" in outcome.stderr


class TestPairs:
    def test_rows_many_to_many(self):
        ends = np.stack([np.r_[np.arange(N), 0, 1], np.r_[np.arange(N), 5, 0]], axis=1)
        write_table("pairs.csv", {"source": ends[:, 0], "target": ends[:, 1]})
        outcome = run("match", "x.npy", "y.npy", "--pairs", "pairs.csv", "-o", "out.csv")
        assert "60 of 62" in answer(outcome)
        lines = Path("out.csv").read_text().splitlines()
        assert lines[0].replace('"', "").startswith("row,source,target,")
        assert lines[61].startswith("60,0,5,")

    @pytest.mark.parametrize("header", [True, False])
    def test_a_dictionary(self, header):
        write_table("x.vec", {"word": IDS, **named(X, "")})
        write_table("y.vec", {"word": np.char.add("t", IDS), **named(Y, "")})
        order = RNG.permutation(N)
        lines = [f"s{k} ts{k}" for k in order] + ["s1 ts7", "s2 nowhere"]
        Path("words.txt").write_text("\n".join((["source target"] if header else []) + lines) + "\n")
        outcome = run("match", "x.vec", "y.vec", "--pairs", "words.txt", "--key", "word", "-o", "out.csv")
        assert "60 of 61" in answer(outcome)
        assert "1 line of words.txt left out: 'nowhere' is not in y.vec" in outcome.stderr
        assert f'0,"s{order[0]}","ts{order[0]}",' in Path("out.csv").read_text()

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("0,1\n1,99\n", "names target row 99"),
            ("a,b,c\n1,2,3\n", "must have two columns"),
            ("0,0\n0,1\n", "in each of its 2 rows"),
        ],
    )
    def test_mistakes(self, content, said):
        Path("pairs.csv").write_text(content)
        outcome = run("match", "x.npy", "y.npy", "--pairs", "pairs.csv")
        assert outcome.exit_code == 2
        assert said in outcome.stderr

    def test_words_without_a_key(self):
        Path("pairs.csv").write_text("english,german\none,eins\ntwo,zwei\n")
        outcome = run("match", "x.npy", "y.npy", "--pairs", "pairs.csv")
        assert outcome.exit_code == 2
        assert "pairs.csv holds words, not row numbers. If they are ids, say with --key" in outcome.stderr

    def test_ids_that_nobody_has(self):
        for name, values in (("x.csv", X), ("y.csv", Y)):
            write_table(name, {"id": IDS, **named(values, "a")})
        Path("pairs.csv").write_text("source,target\nu,v\n")
        outcome = run("match", "x.csv", "y.csv", "--key", "id", "--pairs", "pairs.csv")
        assert outcome.exit_code == 2
        assert "No line of pairs.csv names an id" in outcome.stderr
