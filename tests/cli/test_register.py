from __future__ import annotations

import csv
import io
import json
import shlex
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

from inlier import Registration, Transformation
from inlier.cli import main
from inlier.cli.register import _problem, read_both
from inlier.datasets import make_scans
from inlier.exceptions import ParameterWarning
from inlier.io import read_table, write_table

N = 300
SCANS = make_scans(900, N, 0.3, noise=0.2, rng=0)
X, Y = SCANS.source[SCANS.pairs[:, 0]], SCANS.target[SCANS.pairs[:, 1]]
IDS = np.array([f"p{number:03d}" for number in range(N)])
FITTED = Registration(random_state=0).fit(X, Y)
BY_PAIRS = ("source.ply", "target.ply", "--pairs", "pairs.csv")
XYZ = ("x", "y", "z")


def columns_of(points, names=XYZ):
    return dict(zip(names, points.T, strict=True))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two scans with a table of matches; the same matches row by row, and with ids."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(1)
    write_table(folder / "source.ply", columns_of(SCANS.source) | {"red": np.arange(900) % 256})
    write_table(folder / "target.ply", SCANS.target)
    ends = {"source": SCANS.pairs[:, 0], "target": SCANS.pairs[:, 1]}
    write_table(folder / "pairs.csv", {**ends, "trust": rng.random(N)})
    write_table(folder / "x.npy", X)
    write_table(folder / "y.npy", Y)
    order = rng.permutation(N)
    write_table(folder / "x.csv", {"id": IDS, **columns_of(X)})
    write_table(folder / "y.csv", {"id": IDS[order], **columns_of(Y[order], ("u", "v", "w"))})
    return folder


@pytest.fixture(autouse=True)
def folder(files, tmp_path, monkeypatch):
    """A copy of the files, to work in."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, ["register", *map(str, words)])


def content_of(*words):
    outcome = run(*words, "--json-pairs", "--quiet")
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def read_problem(sources, pairs, keys, weights):
    return _problem(read_both(*sources, keys, ()), sources, pairs, keys, weights)


class TestWhatIsRead:
    def test_row_by_row(self):
        problem = read_problem(("x.npy", "y.npy"), None, (), None)
        np.testing.assert_array_equal(problem.pairing.X, X)
        assert (problem.ends, problem.weights, problem.clouds) == (None, None, None)

    def test_by_pairs(self):
        problem = read_problem(("source.ply", "target.ply"), "pairs.csv", (), "trust")
        np.testing.assert_array_equal(problem.pairing.X, X)
        np.testing.assert_array_equal(problem.pairing.Y, Y)
        np.testing.assert_array_equal(np.stack(problem.ends, axis=1), SCANS.pairs)
        np.testing.assert_array_equal(problem.weights, read_table("pairs.csv", columns=["trust"]).values[:, 0])
        np.testing.assert_array_equal(problem.clouds[0], SCANS.source)

    def test_by_id_with_a_weight_for_each_row_of_the_source(self):
        write_table("more.csv", {"id": np.array(["alone", *IDS]), **columns_of(np.vstack([[0, 0, 0], X]))})
        write_table("trust.npy", np.arange(N + 1.0))
        problem = read_problem(("more.csv", "y.csv"), None, ("id",), "trust.npy")
        np.testing.assert_array_equal(problem.weights, np.arange(1.0, N + 1))
        np.testing.assert_array_equal(problem.pairing.Y, Y)
        assert len(problem.clouds[0]) == N + 1  # more than are in pairs

    def test_weights_may_be_an_array_inside_a_file(self):
        np.savez("trust.npz", first=np.arange(N), second=np.arange(1.0, N + 1))
        problem = read_problem(("x.npy", "y.npy"), None, (), "trust.npz:second")
        np.testing.assert_array_equal(problem.weights, np.arange(1.0, N + 1))


def test_the_answer_in_words():
    outcome = run(*BY_PAIRS)
    assert outcome.exit_code == 0, outcome.output
    lines = outcome.stdout.splitlines()
    n = FITTED.inlier_mask_.sum()
    farthest = FITTED.residuals_[FITTED.inlier_mask_].max()
    assert lines[0] == f"{n} of 300 pairs agree on one rigid motion, to within {farthest:.3g}."
    assert lines[1].startswith("It turns by 120.")
    assert "about the axis (0.3" in lines[1]
    assert " and moves by (1" in lines[1]
    bound = f"the noise bound found from the data is {FITTED.noise_bound_:.3g}."
    assert f"At most 1 % of them are expected to be wrong; {bound}" in lines
    share, error = 100 * FITTED.inlier_fraction_, 196 * FITTED.inlier_fraction_error_
    said = next(line for line in lines if line.startswith("Share of real pairs, found or not: between "))
    low, high = (float(word) for word in said.removesuffix(" %.").split("between ")[1].split(" and "))
    assert share - error - 1 < low <= share - error < share + error <= high < share + error + 1
    assert f"{FITTED.residuals_.max():.4g}" in outcome.stdout.split("The worst pairs")[1]
    assert outcome.stderr == ""


def test_three_ways_to_say_which_points_belong_together():
    by_pairs, by_row, by_id = (
        content_of(*BY_PAIRS),
        content_of("x.npy", "y.npy", "--paired"),
        content_of("x.csv", "y.csv", "--key", "id"),
    )
    assert by_pairs["pairs"]["residual"] == by_row["pairs"]["residual"] == pytest.approx(FITTED.residuals_.tolist())
    assert by_pairs["pairs"]["inlier"] == by_row["pairs"]["inlier"] == FITTED.inlier_mask_.tolist()
    np.testing.assert_allclose(by_id["transformation"]["matrix"], FITTED.transformation_.matrix, atol=0.01)
    assert by_id["pairs"]["key"] == IDS.tolist()
    assert by_pairs["pairs"]["source"] == SCANS.pairs[:, 0].tolist()
    assert "source" not in by_row["pairs"]
    assert "score" not in by_row["pairs"]


@pytest.mark.parametrize(
    ("words", "registration"),
    [
        (["--alpha", "0.1", "--seed", "3"], Registration(alpha=0.1, random_state=3)),
        (["--noise-bound", "0.6"], Registration(noise_bound=0.6, random_state=0)),
        (["--model", "similarity", "--reflection"], Registration("similarity", reflection=True, random_state=0)),
        (["--model", "affine"], Registration("affine", random_state=0)),
    ],
)
def test_every_setting_reaches_the_registration(words, registration):
    content = content_of("x.npy", "y.npy", *words)
    registration.fit(X, Y)
    assert content["transformation"]["matrix"] == registration.transformation_.matrix.tolist()
    assert content["pairs"]["q_value"] == registration.q_values_.tolist()
    assert content["pairs"]["inlier"] == registration.inlier_mask_.tolist()
    assert content["transformation"]["noise_bound_was_given"] == ("--noise-bound" in words)
    assert set(content["settings"]) == {"model", "alpha", "noise_bound", "reflection", "random_state"}


@pytest.mark.parametrize("model", ["rotation", "orthogonal"])
def test_models_about_the_origin(model):
    write_table("turned.npy", np.where(FITTED.inlier_mask_[:, None], X @ SCANS.rotation.T, Y))
    content = content_of("x.npy", "turned.npy", "--model", model)
    np.testing.assert_allclose(content["transformation"]["rotation"], SCANS.rotation, atol=1e-3)
    assert content["details"][0].endswith(" 0.921).")  # nothing about moving


def test_columns():
    write_table("wide.csv", {"name": IDS, "t": np.arange(N), **columns_of(X), "u": Y[:, 0], "v": Y[:, 1], "w": Y[:, 2]})
    content = content_of("wide.csv", "wide.csv", "--columns", "x,y,z", "--columns", "u,v,w")
    np.testing.assert_allclose(content["transformation"]["matrix"], FITTED.transformation_.matrix, atol=1e-6)


def test_weights_from_a_file_or_a_column():
    trust = read_table("pairs.csv", columns=["trust"]).values[:, 0]
    write_table("trust.npy", trust)
    write_table("xt.csv", {"id": IDS, **columns_of(X), "trust": trust})
    expected = Registration(random_state=0).fit(X, Y, sample_weight=trust).transformation_.matrix
    assert not np.array_equal(expected, FITTED.transformation_.matrix)
    for words in (
        [*BY_PAIRS, "--weights", "trust"],
        [*BY_PAIRS, "--weights", "trust.npy"],
        ["x.npy", "y.npy", "--weights", "trust.npy"],
        ["xt.csv", "y.npy", "--weights", "trust", "--columns", "x,y,z", "--columns", "0,1,2"],
    ):
        np.testing.assert_allclose(content_of(*words)["transformation"]["matrix"], expected, atol=1e-8)
    by_id = content_of(
        "xt.csv", "y.csv", "--key", "id", "--weights", "trust", "--columns", "x,y,z", "--columns", "u,v,w"
    )
    np.testing.assert_allclose(by_id["transformation"]["matrix"], expected, atol=0.01)


def test_pairs_need_no_names_if_there_are_two_columns_and_may_be_our_own_output():
    write_table("two.txt", SCANS.pairs)
    write_table("named.csv", {"index": SCANS.pairs[:, 0], "id": SCANS.pairs[:, 1]})
    run(*BY_PAIRS, "-o", "again.csv", "--quiet")
    for name in ("two.txt", "named.csv", "again.csv"):
        outcome = run("source.ply", "target.ply", "--pairs", name, "--json-pairs")
        assert json.loads(outcome.stdout)["pairs"]["residual"] == pytest.approx(FITTED.residuals_.tolist())
        assert "Note" not in outcome.stderr


@pytest.mark.parametrize("suffix", [".txt", ".npy"])
def test_the_matrix(suffix):
    run(*BY_PAIRS, "-t", f"motion{suffix}", "--quiet")
    np.testing.assert_array_equal(read_table(f"motion{suffix}").values, FITTED.transformation_.matrix)


def test_the_transformation_as_json():
    run(*BY_PAIRS, "-t", "motion.json", "--quiet")
    content = json.loads(Path("motion.json").read_text())
    again = Transformation.from_dict(content)
    np.testing.assert_array_equal(again(X), FITTED.transform(X))
    assert content["noise_bound"] == FITTED.noise_bound_
    assert (content["n_pairs"], content["n_inliers"]) == (N, FITTED.inlier_mask_.sum())
    assert "standard_errors" in content
    assert (
        content["command"] == "inlier register source.ply target.ply --pairs pairs.csv --transform motion.json --quiet"
    )


def test_the_moved_source_in_its_own_format():
    outcome = run(*BY_PAIRS, "--moved", "moved.ply")
    assert outcome.stderr == "Moved: moved.ply\n"
    moved = read_table("moved.ply", columns=["x", "y", "z", "red"]).values
    np.testing.assert_allclose(moved[:, :3], FITTED.transform(SCANS.source), atol=1e-9)
    assert moved[:, 3].tolist() == (np.arange(900) % 256).tolist()  # the rest of the file is kept


def test_the_moved_source_keeps_its_ids():
    extra = {"id": np.array([*IDS, "alone"]), **columns_of(np.vstack([X, [[1.0, 2, 3]]]))}
    write_table("more.csv", extra)
    outcome = run("more.csv", "y.csv", "--key", "id", "--moved", "moved.csv", "-t", "m.npy")
    assert "Note: 1 id of more.csv is not in y.csv: alone." in outcome.stderr
    moved = read_table("moved.csv", key="id", columns=XYZ)
    assert moved.keys.tolist() == [*IDS, "alone"]  # all points, with a partner or without
    matrix = np.load("m.npy")
    np.testing.assert_allclose(moved.values[-1], matrix[:3, :3] @ [1, 2, 3] + matrix[:3, 3])


def test_another_dimension():
    write_table("flat.npy", Y[:, :2])
    content = content_of("x.npy", "flat.npy", "--model", "affine", "--moved", "moved.csv")
    assert np.shape(content["transformation"]["matrix"]) == (3, 4)
    assert read_table("moved.csv").values.shape == (N, 2)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_output_by_suffix(suffix):
    assert run(*BY_PAIRS, "-o", f"out{suffix}", "--quiet").output == ""
    table = read_table(f"out{suffix}", columns=["row", "source", "target", "residual", "q_value"], key="inlier")
    columns = [np.arange(N), *SCANS.pairs.T, FITTED.residuals_, FITTED.q_values_]
    assert [text.lower() == "true" for text in table.keys] == FITTED.inlier_mask_.tolist()
    np.testing.assert_allclose(table.values, np.stack(columns, axis=1), atol=1e-9)


def test_output_as_json_as_a_mask_and_to_stdout():
    run(*BY_PAIRS, "-o", "out.json", "--quiet")
    assert json.loads(Path("out.json").read_text())["pairs"]["inlier"] == FITTED.inlier_mask_.tolist()
    run(*BY_PAIRS, "-o", "mask.npy", "--quiet")
    np.testing.assert_array_equal(np.load("mask.npy"), FITTED.inlier_mask_)
    outcome = run(*BY_PAIRS, "-o", "-")
    rows = list(csv.DictReader(io.StringIO(outcome.stdout)))
    assert [row["inlier"] == "true" for row in rows] == FITTED.inlier_mask_.tolist()
    assert "pairs agree on one rigid motion" in outcome.stderr


def test_report_and_the_command_to_repeat_it():
    outcome = run(*BY_PAIRS, "--report", "here/report.html")
    assert outcome.stderr == "Report: here/report.html\n"
    page = Path("here/report.html").read_text()
    assert "pairs agree on one rigid motion" in page
    assert "inlier register source.ply target.ply --pairs pairs.csv --report here/report.html" in page
    content = content_of(*BY_PAIRS, "--model", "similarity", "--seed", "7")
    again = json.loads(run(*shlex.split(content["command"])[2:]).stdout)
    assert again == content


def test_warnings_are_notes_in_the_words_of_the_command_line(monkeypatch):
    original = Registration.fit

    def fit(self, *data, **options):
        warnings.warn("A mirror image would fit.", stacklevel=2)
        warnings.warn(ParameterWarning("noise_bound", "leaves none."), stacklevel=2)
        warnings.warn(ParameterWarning("y", "turn.", before="Some rows of "), stacklevel=2)
        return original(self, *data, **options)

    monkeypatch.setattr(Registration, "fit", fit)
    outcome = run(*BY_PAIRS)
    assert outcome.exit_code == 0
    assert outcome.stderr.splitlines() == [
        "Note: A mirror image would fit.",
        "Note: --noise-bound leaves none.",
        "Note: Some rows of target.ply turn.",
    ]


def test_a_note_about_a_column_names_the_file():
    write_table("flat.npy", X * [1, 1, 0])
    outcome = run("flat.npy", "y.npy", "--model", "affine")
    assert "Note: 1 of the 3 columns of flat.npy holds a single value, or none (column 2)." in outcome.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            ["ax.csv", "ay.csv", "--key", "id"],
            "Rows with the same id were paired; check that it means the same in ax.csv",
        ),
        (
            ["ax.csv", "ay.csv", "--columns", "x,y,z", "--pairs", "rows.csv"],
            "The first column of --pairs names rows of ax.csv, the second rows of ay.csv; check that they do.",
        ),
    ],
)
def test_no_consensus_says_how_the_points_were_paired(words, hint):
    rng = np.random.default_rng(0)
    for name in ("ax.csv", "ay.csv"):
        write_table(name, {"id": IDS[:200], **columns_of(rng.normal(size=(200, 3)))})
    write_table("rows.csv", {"source": np.arange(200), "target": np.arange(200)})
    outcome = run(*words)
    assert outcome.exit_code == 1
    assert hint in outcome.stderr


def test_a_mirror_image():
    write_table("mirrored.npy", np.where(FITTED.inlier_mask_[:, None], X * [-1, 1, 1], Y))
    outcome = run("x.npy", "mirrored.npy", "--reflection")
    assert outcome.exit_code == 0
    assert "It mirrors and moves by" in outcome.stdout


def test_no_consensus_is_exit_code_1_and_writes_nothing(folder):
    rng = np.random.default_rng(0)
    write_table("ax.npy", rng.normal(size=(200, 3)))
    write_table("ay.npy", rng.normal(size=(200, 3)))
    before = sorted(path.name for path in folder.iterdir())
    outcome = run(
        "ax.npy", "ay.npy", "-o", "out.csv", "-t", "t.txt", "--moved", "m.npy", "--report", "r.html", "--json"
    )
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    assert outcome.stderr.startswith(
        "The 200 pairs do not agree on any rigid transformation. The best one found brings "
    )
    assert (
        "use --model similarity; if one side may be a mirror image, --reflection. Row i of ax.npy was taken for"
        in outcome.stderr
    )
    assert "the partner of row i of ay.npy; if it is not, say who is with --pairs" in outcome.stderr
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x.npy"], "Missing argument 'TARGET'"),
        (["x.npy", "absent.npy"], "there is no file absent.npy"),
        (["x.csv", "y.npy"], "column 'id' of x.csv does not hold numbers"),
        (["source.ply", "y.npy", "--paired"], "source.ply has 900 rows and y.npy has 300"),
        (["x.npy", "flat.npy"], "x.npy has 3 columns and flat.npy has 2. Choose the coordinates with --columns"),
        (
            ["x.npy", "nan.npy", "--paired"],
            "nan.npy contains NaN or infinity: 1 value(s), the first (nan) in row 3, column 2",
        ),
        (
            ["nan.npy", "y.npy", "--paired"],
            "nan.npy contains NaN or infinity: 1 value(s), the first (nan) in row 3, column 2",
        ),
        (
            ["x.npy", "nan.npy", "--pairs", "twice.csv"],
            "nan.npy contains NaN or infinity: 1 value(s), the first (nan) in row 3, column 2",
        ),
        (
            ["x.csv", "hole.csv", "--key", "id"],
            "hole.csv contains NaN or infinity: 1 value(s), the first (nan) in id p003, column z",
        ),
        (["x.npy", "same.npy", "--paired"], "same.npy is constant: all 300 rows are the same"),
        (["same.npy", "y.npy", "--paired"], "same.npy is constant: all 300 rows are the same"),
        ([*BY_PAIRS[:3], "one_target.csv"], "one_target.csv names row 5 of target.ply in each of its 3 rows"),
        (["one.npy", "one.npy"], "At least 2 pairs are needed to compare, but there is 1"),
        (["x.npy", "y.npy", "--weights", "minus.npy"], "--weights must not be negative: 300 of 300 are"),
        ([*BY_PAIRS, "--key", "id"], "--pairs and --key both say which points belong together"),
        ([*BY_PAIRS[:3], "out.csv"], "out.csv names target row 900 in its row 1, but target.ply has 900 rows, 0 to"),
        ([*BY_PAIRS[:3], "negative.csv"], "negative.csv names source row -1 in its row 0, but source.ply has 900 rows"),
        ([*BY_PAIRS[:3], "half.csv"], "half.csv must hold row numbers, counted from 0, but its row 0 has 0.5 for the"),
        ([*BY_PAIRS[:3], "x.npy"], "x.npy must have two columns, a row of source.ply and a row of target.ply; it has"),
        ([*BY_PAIRS[:3], "absent.csv"], "there is no file absent.csv"),
        ([*BY_PAIRS, "--weights", "hope"], "pairs.csv has no column named 'hope'"),
        ([*BY_PAIRS, "--weights", "same.npy"], "same.npy must hold one weight for each of the 300 rows of pairs.csv"),
        (["x.npy", "y.npy", "--weights", "zero.npy"], "All 300 entries of --weights are zero"),
        ([*BY_PAIRS, "--model", "magic"], "is not one of"),
        ([*BY_PAIRS, "--model", "rotation", "--reflection"], "never reflects. Use --model orthogonal"),
        ([*BY_PAIRS, "--noise-bound", "0"], "not in the range"),
        ([*BY_PAIRS, "--alpha", "0.7"], "not in the range"),
        ([*BY_PAIRS, "-o", "out.docx"], "out.docx ends in '.docx'"),
        ([*BY_PAIRS, "-o", "out.ply"], "out.ply (ply) would hold points"),
        ([*BY_PAIRS, "-t", "motion.csv"], "motion.csv: a transformation is written as .txt, .json or .npy"),
        ([*BY_PAIRS, "--moved", "moved.png"], "moved.png would be a picture"),
        ([*BY_PAIRS, "--moved", "moved"], "moved has no suffix"),
        (["flat.npy", "flat.npy", "--moved", "moved.ply"], "three coordinates, but those of flat.npy have 2"),
        ([*BY_PAIRS, "--moved", "source.ply"], "source.ply is read by this command, and would be overwritten"),
        ([*BY_PAIRS, "-o", "pairs.csv"], "pairs.csv is read by this command, and would be overwritten"),
        ([*BY_PAIRS, "-o", "sub/../pairs.csv"], "sub/../pairs.csv is read by this command, and would be overwritten"),
        ([*BY_PAIRS, "--moved", "link.ply"], "link.ply is read by this command, and would be overwritten"),
        ([*BY_PAIRS[:3], "ends.npz:ends", "-o", "ends.npz"], "ends.npz is read by this command"),
        (["x.npy", "y.npy", "--weights", "zero.npy", "-o", "zero.npy"], "zero.npy is read by this command"),
        ([*BY_PAIRS, "-o", "a.npy", "-t", "a.npy"], "-t and -o would both write a.npy"),
        ([*BY_PAIRS, "-t", "sub/../mm.txt", "--moved", "mm.txt"], "-t and --moved would both write mm.txt"),
        ([*BY_PAIRS, "-o", "-", "--json"], "-o - and --json both print to standard output. Give -o a file"),
        ([*BY_PAIRS, "--noise-bound", "inf"], "Error: --noise-bound must be a finite number; got inf"),
        ([*BY_PAIRS, "--noise-bound", "nan"], "Error: --noise-bound must be a finite number; got nan"),
        ([*BY_PAIRS, "-t", "ok.txt", "--report", "x.csv/r.html"], "a file stands where a folder is needed"),
        ([*BY_PAIRS, "-t", "ok.txt", "--report", "."], "it is a folder"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(folder, words, message):
    write_table("flat.npy", Y[:, :2])
    write_table("one.npy", Y[:1])
    np.savez("ends.npz", ends=SCANS.pairs)
    Path("sub").mkdir()
    Path("link.ply").symlink_to("source.ply")
    write_table("same.npy", np.ones((N, 3)))
    write_table("zero.npy", np.zeros(N))
    write_table("minus.npy", -np.ones(N))
    broken = Y.copy()
    broken[3, 2] = np.nan
    write_table("nan.npy", broken)
    write_table("hole.csv", {"id": IDS, **columns_of(broken)})
    write_table("twice.csv", {"source": [5, 6, 7], "target": [8, 3, 3]})
    write_table("one_target.csv", {"source": [5, 6, 7], "target": [5, 5, 5]})
    for name, first, second in (("out", [0, 1], [0, 900]), ("negative", [-1, 1], [0, 1]), ("half", [0.5, 1], [0, 1])):
        write_table(f"{name}.csv", {"source": first, "target": second})
    before = {path.name: path.is_dir() or path.read_bytes() for path in folder.iterdir()}
    outcome = run(*words)
    assert outcome.exit_code == 2, outcome.output
    assert message in " ".join(outcome.stderr.split())
    assert "Traceback" not in outcome.output
    assert outcome.stdout == ""
    # nothing half written, nothing overwritten
    assert {path.name: path.is_dir() or path.read_bytes() for path in folder.iterdir()} == before


def test_a_failed_write_leaves_the_old_file(folder, monkeypatch):
    Path("motion.txt").write_text("old")

    def fail(path, content):
        path.write_text("half")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("numpy.savetxt", lambda stream, *rest, **options: fail(Path(stream.name), None))
    outcome = run(*BY_PAIRS, "-t", "motion.txt", "--force")
    assert outcome.exit_code == 2
    assert "motion.txt could not be written or read: No space left on device." in outcome.stderr
    assert Path("motion.txt").read_text() == "old"
    assert not list(folder.glob(".inlier-*"))


def test_without_the_report_extra_the_work_is_not_begun(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    outcome = run(*BY_PAIRS, "--report", "report.html")
    assert outcome.exit_code == 2
    assert "pip install jinja2" in outcome.stderr


def test_scans_to_try_it_on():
    outcome = CliRunner().invoke(main, ["demo", "--save-scans", "scans"])
    assert outcome.exit_code == 0, outcome.output
    content = content_of("scans/source.ply", "scans/target.ply", "--pairs", "scans/pairs.csv")
    truth = make_scans(rng=0)
    found = np.array(content["transformation"]["rotation"])
    assert Rotation.from_matrix(found @ truth.rotation.T).magnitude() < np.radians(0.2)
    wrong = np.array(content["pairs"]["inlier"]) != truth.inlier_mask
    assert wrong.sum() <= 10
