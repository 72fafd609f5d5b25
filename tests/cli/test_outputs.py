"""One door for all outputs: nothing of the user's is written over, and what is read stays as it is."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from inlier.cli import main
from inlier.cli._outputs import BadInput, Output, check_folder, check_outputs, check_place, never, plain
from inlier.io import first_foreign, write_table
from tests.cli.conftest import RNG, X

pytestmark = pytest.mark.usefixtures("folder")


def run(*words, code=0):
    outcome = CliRunner().invoke(main, [str(word) for word in words])
    assert outcome.exit_code == code, outcome.output
    return outcome.stderr


def check(outputs, inputs=(), force=False):
    check_outputs([Output("-o", "Pairs", Path(name), never) for name in outputs], map(Path, inputs), force=force)


def names():
    return sorted(path.name for path in Path().iterdir())


class TestPlaces:
    def test_what_is_read_is_not_written(self, folder):
        (folder / "x.csv").write_text("1\n")
        (folder / "link.csv").symlink_to("x.csv")
        os.link("x.csv", "hard.csv")
        for name in ("x.csv", "link.csv", "hard.csv", "sub/../x.csv"):
            with pytest.raises(BadInput, match=f"{name} is read by this command"):
                check([name], ["x.csv"], force=True)
        check(["y.csv"], ["x.csv"])

    def test_places_where_nothing_can_be_made(self, folder, monkeypatch):
        (folder / "file").write_text("")
        (folder / "folder").mkdir()
        for check_it, name, reason in (
            (check_place, "folder", "it is a folder"),
            (check_place, "file/deep/inside.csv", "a file stands where a folder is needed, file"),
            (check_folder, "file", "is a file, but a folder is needed"),
            (check_folder, "file/inside", "a file stands where a folder is needed, file"),
        ):
            with pytest.raises(BadInput, match=reason):
                check_it(Path(name))
        check_place(Path("new/deep/out.csv"))
        check_folder(Path("new/deep"))
        assert not (folder / "new").exists()  # only looked at

    @pytest.mark.parametrize(("number", "reason"), [(13, "you may not write"), (28, "no file can be made")])
    def test_what_the_system_says(self, monkeypatch, number, reason):
        def refuse(*_, **__):
            raise OSError(number, "no")

        monkeypatch.setattr("tempfile.mkdtemp", refuse)
        with pytest.raises(BadInput, match=reason):
            check_place(Path("out.csv"))


class TestFolders:
    """R2: an output that is a folder replaces a store of ours, and nothing else."""

    def test_a_folder_with_the_inputs_in_it(self):
        Path("all.zarr").mkdir()
        for name in ("x.npy", "y.npy"):
            Path(name).rename(Path("all.zarr", name))
        for words in ((), ("--force",)):
            said = run("match", "all.zarr/x.npy", "all.zarr/y.npy", "-o", "all.zarr", *words, code=2)
            assert "no part of a zarr store" in said
        assert sorted(path.name for path in Path("all.zarr").iterdir()) == ["x.npy", "y.npy"]

    @pytest.mark.parametrize("where", ["thesis.txt", "deep/thesis.txt", "row/thesis.txt", "row/c/thesis.txt"])
    def test_a_folder_with_anything_foreign(self, where):
        run("match", "x.npy", "y.npy", "-o", "proj.zarr")
        precious = Path("proj.zarr", where)
        precious.parent.mkdir(exist_ok=True)
        precious.write_text("precious")
        for words in ((), ("--force",)):
            assert "no part of a zarr store" in run("match", "x.npy", "y.npy", "-o", "proj.zarr", *words, code=2)
        assert precious.read_text() == "precious"
        with pytest.raises(OSError, match="no part of a zarr store"):  # the library holds it too
            write_table("proj.zarr", X)
        assert precious.read_text() == "precious"

    def test_a_store_of_the_users(self):
        write_table("mine.zarr", {"measured": X})
        assert "--force" in run("match", "x.npy", "y.npy", "-o", "mine.zarr", code=2)
        run("match", "x.npy", "y.npy", "-o", "mine.zarr", "--force")
        run("match", "x.npy", "y.npy", "-o", "mine.zarr")  # which is now an output of ours
        assert first_foreign(Path("mine.zarr")) is None

    def test_nothing_is_written_into_a_store_that_is_read(self):
        write_table("x.zarr", X)
        assert "which this command reads" in run("match", "x.zarr", "y.npy", "-o", "x.zarr/out.csv", code=2)


class TestKinds:
    """What was written before by the same command is replaced without a word; all else asks for --force."""

    @pytest.mark.parametrize("suffix", ["csv", "tsv.gz", "parquet", "feather", "npz", "h5", "zarr", "json", "xlsx"])
    def test_pairs(self, suffix):
        for _ in range(2):
            run("match", "x.npy", "y.npy", "-o", f"pairs.{suffix}")
        if suffix == "json":
            Path("mine.json").write_text('{"a": 1}')
        else:
            write_table(f"mine.{suffix}", {"a": X[:, 0], "b": X[:, 1]})
        said = run("match", "x.npy", "y.npy", "-o", f"mine.{suffix}", code=2)
        assert f"mine.{suffix} is there already, and is no earlier output of this kind (pairs, -o)" in said
        run("match", "x.npy", "y.npy", "-o", f"mine.{suffix}", "--force")

    def test_a_registration(self):
        words = ("register", "x.npy", "y.npy", "-o", "pairs.csv", "-t", "motion.txt", "--report", "page.html")
        words += ("--model", "orthogonal")
        for _ in range(2):
            run(*words)
        for name, option in (("motion.txt", "-t"), ("page.html", "--report"), ("pairs.csv", "-o")):
            before = Path(name).read_bytes()
            Path(name).write_text("1 2\n3 4\n")
            assert f"{option})" in run(*words, code=2)
            assert Path(name).read_text() == "1 2\n3 4\n"
            Path(name).write_bytes(before)
        Path("mine.json").write_text("{}")
        run("register", "x.npy", "y.npy", "--model", "orthogonal", "-t", "mine.json", code=2)

    def test_a_mask_cannot_be_told_from_others(self):
        np.save("mask.npy", np.ones(60, dtype=bool))
        assert "--force" in run("match", "x.npy", "y.npy", "-o", "mask.npy", code=2)
        assert np.load("mask.npy").all()
        run("match", "x.npy", "y.npy", "-o", "mask.npy", "--force")

    @pytest.mark.parametrize("mine", [np.array([[0], [0], [1]]), np.eye(3)[[0, 0, 1, 2]], np.array([[5.0, 1.0]])])
    def test_labels_are_no_transformation(self, mine):
        write_table("labels.txt", mine)
        before = Path("labels.txt").read_bytes()
        for words in (("register", "-t", "labels.txt", "--model", "orthogonal"), ("match", "--map", "labels.txt")):
            assert "--force" in run(words[0], "x.npy", "y.npy", *words[1:], code=2)
        assert Path("labels.txt").read_bytes() == before

    def test_what_was_learned(self):
        """The map, the repaired table and new pairs: replaced where they are ours, kept where they are the user's."""
        write_table("pairs.csv", {"source": np.arange(50), "target": np.arange(50)})
        for option, name, rest in (
            ("--map", "map.txt", ()),
            ("--repair", "fixed.csv", ()),
            ("--repair", "fixed.xlsx", ()),
            ("--suspects", "list.csv", ()),
            ("--new", "new.csv", ("--pairs", "pairs.csv", "--alpha", 0.05)),
        ):
            for _ in range(2):
                run("match", "x.npy", "y.npy", option, name, *rest)
            mine = X if name.endswith("txt") else {"a": X[:, 0], "b": X[:, 1]}
            write_table(name, mine)
            before = Path(name).read_bytes()
            assert f"{option})" in run("match", "x.npy", "y.npy", option, name, *rest, code=2)
            assert Path(name).read_bytes() == before

    def test_no_output_takes_the_place_of_an_input(self):
        write_table("x.csv", {"id": np.arange(60), "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
        write_table("pairs.csv", {"source": np.arange(50), "target": np.arange(50)})
        write_table("x.txt", X)
        write_table("x.ply", X)
        for words in (
            ("match", "x.csv", "x.txt", "--columns", "a,b,c", "--columns", "*", "-o", "x.csv"),
            ("match", "x.csv", "x.txt", "--columns", "a,b,c", "--columns", "*", "--repair", "x.csv"),
            ("match", "x.txt", "x.txt", "--map", "x.txt"),
            ("match", "x.txt", "x.txt", "--pairs", "pairs.csv", "--new", "pairs.csv"),
            ("match", "x.txt", "x.txt", "--pairs", "pairs.csv", "-o", "pairs.csv"),
            ("register", "x.ply", "x.ply", "--moved", "x.ply"),
            ("register", "x.txt", "x.txt", "-t", "x.txt"),
            ("register", "x.ply", "x.ply", "--pairs", "pairs.csv", "-o", "pairs.csv"),
        ):
            before = {path: path.read_bytes() for path in Path().iterdir()}
            assert "is read by this command" in run(*words, "--force", code=2)
            assert {path: path.read_bytes() for path in Path().iterdir()} == before

    def test_moved_points_cannot_be_told_from_others(self):
        words = ("register", "x.npy", "y.npy", "--model", "orthogonal", "--moved", "moved.ply")
        run(*words)
        assert "--force" in run(*words, code=2)
        run(*words, "--force")

    def test_an_empty_file_is_no_loss(self):
        Path("out.csv").touch()
        run("match", "x.npy", "y.npy", "-o", "out.csv")

    def test_examples_of_the_demo(self):
        """R9: the user's x.csv and y.csv stay."""
        Path("x.csv").write_text("precious")
        said = run("demo", "--pairs", 30, "--save-pairs", ".", code=2)
        assert "x.csv is there already" in said
        assert Path("x.csv").read_text() == "precious"
        assert names() == ["x.csv", "x.npy", "y.npy"]
        run("demo", "--pairs", 30, "--save-pairs", ".", "--force")
        run("demo", "--pairs", 30, "--save-pairs", ".")  # the same again
        assert "y.csv" in names()

    def test_a_difference(self):
        photo = RNG.integers(0, 255, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(photo).save("before.png")
        photo[10:40, 10:40] = 255
        Image.fromarray(photo).save("after.png")
        words = ("diff", "before.png", "after.png", "-o", "out", "--no-align")
        for _ in range(2):
            assert CliRunner().invoke(main, words).exit_code in (0, 1)
        for name in ("overlay.png", "mask.png", "scores.png", "regions.json", "report.html"):
            ours = Path("out", name).read_bytes()
            Path("out", name).write_text("precious")
            assert f"out/{name} is there already" in run(*words, code=2)
            assert Path("out", name).read_text() == "precious"
            Path("out", name).write_bytes(ours)


class TestLeftovers:
    """R12: what killed runs leave is cleared away; what only looks like it is not."""

    def test_only_ours_is_cleared_away(self):
        for name in (".inlier-unfinished-abcd1234", ".inlier-unfinished-notes", ".inlier-precious", ".inlier-"):
            Path(name).mkdir()
            Path(name, "thesis.txt").write_text("precious")
        Path("elsewhere").mkdir()
        Path("elsewhere", ".old-x.csv").write_text("precious")
        Path(".inlier-unfinished-zzzz9999").symlink_to("elsewhere")
        run("match", "x.npy", "y.npy", "-o", "out.csv")
        assert not Path(".inlier-unfinished-abcd1234").exists()
        kept = {".inlier-unfinished-notes", ".inlier-precious", ".inlier-", ".inlier-unfinished-zzzz9999"}
        assert set(names()) == {"x.npy", "y.npy", "out.csv", "elsewhere", *kept}
        assert Path("elsewhere", ".old-x.csv").read_text() == "precious"


class TestLinks:
    """R12: what a link points to is written, and the link stays."""

    def test_a_link_is_followed(self):
        Path("sub").mkdir()
        Path("link.csv").symlink_to("sub/real.csv")
        for _ in range(2):
            run("match", "x.npy", "y.npy", "-o", "link.csv")
            assert Path("link.csv").is_symlink()
            assert Path("sub/real.csv").read_text().startswith('"row"')
        assert [path.name for path in Path("sub").iterdir()] == ["real.csv"]

    def test_a_link_to_what_is_the_users(self):
        Path("thesis.csv").write_text("a,b\n1,2\n")
        Path("link.csv").symlink_to("thesis.csv")
        run("match", "x.npy", "y.npy", "-o", "link.csv", code=2)
        assert Path("thesis.csv").read_text() == "a,b\n1,2\n"

    def test_a_link_in_a_circle_stays(self):
        Path("link.csv").symlink_to("link.csv")
        assert "leads in a circle" in run("match", "x.npy", "y.npy", "-o", "link.csv", "--force", code=2)
        assert Path("link.csv").is_symlink()

    def test_a_pipe_is_no_file(self):
        os.mkfifo("pipe.csv")
        assert "a device or a pipe" in run("match", "x.npy", "y.npy", "-o", "pipe.csv", "--force", code=2)
        with pytest.raises(OSError, match="a device or a pipe"):
            write_table("pipe.csv", X)


def test_control_characters_are_shown_and_not_obeyed():
    assert plain("a\x1b]0;title\x07b\u202ec\nd\te") == "a\\x1b]0;title\\x07b\\u202ec\nd\te"
