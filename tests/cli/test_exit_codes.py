"""1 means that nothing was found, and nothing else; what failed is said in one sentence."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import zipfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from inlier.cli import main
from inlier.cli._common import answering, sentence_of
from inlier.io import write_table
from tests.cli.conftest import RNG, X, Y

pytestmark = pytest.mark.usefixtures("folder")


def refused(*words):
    """What a command says that ends with 2: one line, after the usage if that was wrong."""
    outcome = CliRunner().invoke(main, [str(word) for word in words])
    assert outcome.exit_code == 2, outcome.output
    assert "made a mistake of its own" not in outcome.stderr
    assert "Traceback" not in outcome.output
    (line,) = outcome.stderr.strip().splitlines()
    return line


def shell(command, **options):
    """Run a line of the shell in which ``inlier`` is the command; its outcome."""
    start = f"inlier() {{ {sys.executable} -c 'from inlier.cli import main; main()' \"$@\"; }}; "
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        ["bash", "-c", start + command], capture_output=True, text=True, env=environment, timeout=120, **options
    )


class TestFilesThatCannotBeRead:
    """R3: whatever a library raises is a sentence that names the file, and exit code 2."""

    def test_a_number_alone(self):
        np.save("s.npy", np.float64(3))
        assert "s.npy holds an array of shape ()" in refused("match", "s.npy", "y.npy")

    def test_hdf5_with_an_empty_dataset_is_read(self):
        import h5py

        with h5py.File("a.h5", "w") as file:
            file["values"] = X
            file["note"] = h5py.Empty("f8")
        assert CliRunner().invoke(main, ["match", "a.h5", "y.npy"]).exit_code == 0
        with h5py.File("b.h5", "w") as file:
            file["note"] = h5py.Empty("f8")
        assert "holds no array to read" in refused("match", "b.h5", "y.npy")

    def test_npy_without_its_closing_brace(self):
        content = Path("x.npy").read_bytes().replace(b"}", b" ", 1)
        Path("x.npy").write_bytes(content)
        assert "x.npy could not be read as npy" in refused("match", "x.npy", "y.npy")

    @pytest.mark.parametrize("text", ["null", "[]", "3", '{"zarr_format": 3}', '{"node_type": "array"}', "{", "\xff"])
    @pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zgroup"])
    def test_zarr_metadata(self, text, name):
        Path("a.zarr").mkdir()
        Path("a.zarr", name).write_text(text)
        assert "a.zarr" in refused("match", "a.zarr", "y.npy")

    def test_damage_that_shows_up_while_rows_are_read_in_stretches(self, monkeypatch):
        import zarr

        monkeypatch.setenv("INLIER_STREAM_FROM", "0")
        zarr.create_array("a.zarr", data=X, chunks=(20, 3))
        chunk = sorted(path for path in Path("a.zarr").rglob("*") if path.is_file() and path.name != "zarr.json")[-1]
        chunk.write_bytes(b"\x28\xb5\x2f\xfd" + b"nonsense")
        for words in ((), ("-o", "out.csv")):
            said = refused("match", "a.zarr", "y.npy", "--method", "row-sum", *words)
            assert "a.zarr could not be read as zarr" in said
        assert not Path("out.csv").exists()

    def test_a_bug_is_called_one(self, monkeypatch, capsys):
        def fail():
            raise ZeroDivisionError("no way")

        for traceback_wanted in (False, True):
            monkeypatch.setenv("INLIER_TRACEBACK", "1" if traceback_wanted else "")
            with (
                pytest.raises(Exception, match="a mistake of its own: ZeroDivisionError: no way") as caught,
                answering(),
            ):
                fail()
            assert caught.value.exit_code == 2
            assert ("Traceback" in capsys.readouterr().err) == traceback_wanted


def test_options_are_called_what_is_typed():
    """Sentences of the readers name the option and Python's argument; here only the option."""
    Path("words.csv").write_text("id,a\n" + "".join(f"s{k},{k}\n" for k in range(60)))
    for words in (
        ("x.npy", "words.csv"),
        ("words.csv", "y.npy", "--key", "id"),
        ("x.npy", "y.npy", "--pairs", "words.csv"),
    ):
        assert "=)" not in refused("match", *words)
    write_table("numbers.csv", {"id": np.arange(60), **{f"a{number}": column for number, column in enumerate(X.T)}})
    noted = CliRunner().invoke(main, ["match", "numbers.csv", "y.npy"])
    assert "If it names the rows, join on it with --key id.\n" in noted.stderr
    assert (
        sentence_of(ValueError("Say which: fit(X, y, strata=...), or --stratum COLUMN."))
        == "Say which: --stratum COLUMN."
    )


class TestStandardOutput:
    def test_a_reader_who_has_had_enough(self):
        """R13: quietly, and not with the exit code for "nothing found"."""
        rng = np.random.default_rng(0)
        np.save("x.npy", rng.normal(size=(30_000, 2)))
        for start, words in (("", "--json"), ("INLIER_STREAM_FROM=0 ", "-o -"), ("", "")):
            done = shell(
                f"{start}inlier match x.npy x.npy {words} --method row-sum -q | head -n 1; exit ${{PIPESTATUS[0]}}"
            )
            assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full on this system")
    def test_a_full_device(self):
        """R11."""
        for words in ("", "-o -"):
            done = shell(f"inlier match x.npy y.npy --method row-sum {words} > /dev/full")
            assert done.returncode == 2
            assert "Error: Standard output could not be written or read: No space left on device." in done.stderr
            assert len(done.stderr.strip().splitlines()) <= 5

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full on this system")
    @pytest.mark.parametrize(
        ("words", "code"),
        [
            ("--help > /dev/full", 2),
            ("--version > /dev/full", 2),
            ("match x.npy y.npy --method row-sum -o out.csv 2> /dev/full", 0),  # the answer is there, its words are not
            ("match absent.npy y.npy 2> /dev/full", 2),
            ("no-such-command 2> /dev/full", 2),
            ("match absent.npy y.npy >&- 2>&-", 2),
            ("match x.npy y.npy --method row-sum -o out.csv <&- >&- 2>&-", 0),
            ("match x.npy y.npy --method row-sum -o - >&-", 2),
            ("match x.npy y.npy --method row-sum --json >&-", 2),
            ("match - y.npy --format npy <&-", 2),
        ],
    )
    def test_streams_that_are_full_or_closed(self, words, code):
        """1 would be "nothing found"; and no file may get the number of a stream, to which libraries print."""
        done = shell(f"inlier {words}")
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert "mistake of its own" not in done.stderr
        assert len(done.stderr.strip().splitlines()) <= 2

    def test_a_stream_that_holds_few_signs(self):
        """An id with an accent among the worst pairs."""
        x = np.random.default_rng(2).normal(size=(60, 3))
        for name, rows in (("x.csv", x), ("y.csv", x[[1, 0, *range(2, 60)]])):
            lines = [f"\u00e9{number},{','.join(map(str, row))}" for number, row in enumerate(rows.tolist())]
            Path(name).write_text("\n".join(["id,a,b,c", *lines]), encoding="utf-8")
        done = shell("PYTHONIOENCODING=ascii inlier match x.csv y.csv --key id")
        assert done.returncode == 0, done.stderr
        assert "found or not; " in done.stdout
        assert "\\xe90" in done.stdout

    def test_a_folder_that_is_gone(self):
        done = shell("mkdir gone; cd gone; rmdir ../gone; inlier match x.npy y.npy -o out.csv")
        assert done.returncode == 2
        assert "Error: The current folder could not be written or read: No such file or directory." in done.stderr

    def test_a_reader_of_the_help_who_has_gone(self):
        done = shell("inlier --help | true; exit ${PIPESTATUS[0]}")
        assert (done.returncode, done.stderr) == (0, "")

    def test_a_name_that_is_not_utf8(self):
        """R11."""
        name = os.fsdecode(b"x\xff.npy")
        Path("x.npy").rename(name)
        for words in (["--report", "page.html"], ["--json"], ["-o", "out.json"], []):
            outcome = CliRunner().invoke(main, ["match", name, "y.npy", *words])
            assert outcome.exit_code == 0, outcome.output
        assert "x\\xff.npy" in Path("page.html").read_text()
        assert "x\\\\xff.npy" in Path("out.json").read_text()


def test_a_full_disk_in_the_words_of_hdf5(monkeypatch):
    """R11: HDF5 hides the system's error in a text of several lines, with the name of the file beside."""

    def full(self, path, content):
        raise OSError(
            f"Can't synchronously write data\n(file write failed: time = Mon\n, filename = '{path}', "
            f"errno = 28, error message = 'No space left on device', buf = 0x1)"
        )

    monkeypatch.setattr("inlier.io._array_files.Hdf5.write", full)
    said = refused("match", "x.npy", "y.npy", "-o", "out.h5")
    assert said == "Error: out.h5 could not be written or read: No space left on device."


def test_a_terminal_of_no_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    outcome = CliRunner().invoke(main, ["match", "x.npy", "y.npy"])
    assert "60 of 60 pairs are real" in outcome.stdout


def test_names_with_line_breaks_make_no_lines():
    assert refused("match", "no\nError: all is lost", "y.npy").startswith("Error: no\\nError: all is lost")


def interrupt(*given, **named):
    """What Ctrl-C does; its signal is ignored where tests run in the background."""
    raise KeyboardInterrupt


class TestInterrupted:
    """Wherever Ctrl-C comes, it is not "nothing found"."""

    @pytest.mark.parametrize("where", ["inlier.cli.match.standard_input", "inlier.cli._LazyCommands.get_command"])
    def test_while_working(self, where, monkeypatch):
        monkeypatch.setattr(where, interrupt)
        outcome = CliRunner().invoke(main, ["match", "x.npy", "y.npy"])
        assert outcome.exit_code == 130
        assert outcome.stderr == "Interrupted. No file was left half written.\n"

    def test_twice(self, monkeypatch):
        for where in ("inlier.cli.match.standard_input", "inlier.cli._common.say"):
            monkeypatch.setattr(where, interrupt)
        assert CliRunner().invoke(main, ["match", "x.npy", "y.npy"]).exit_code == 130

    def test_before_a_command_is_known(self, monkeypatch):
        monkeypatch.setattr(main, "parse_args", interrupt)
        assert CliRunner().invoke(main, ["match", "x.npy", "y.npy"]).exit_code == 130


class TestTerminal:
    """R10: ids and names are shown; a terminal takes no orders from them."""

    HOSTILE = "\x1b]0;owned\x07\x1b[31mred"

    @pytest.fixture
    def files(self):
        ids = np.array([f"{self.HOSTILE}{number}" for number in range(60)])
        y = np.where(np.arange(60)[:, None] < 40, Y, RNG.normal(size=Y.shape))
        write_table("x.csv", {"id": ids, **{f"a{number}": column for number, column in enumerate(X.T)}})
        write_table("y.csv", {"id": ids[1:], **{f"b{number}": column[1:] for number, column in enumerate(y.T)}})

    def test_words(self, files):
        outcome = CliRunner().invoke(main, ["match", "x.csv", "y.csv", "--key", "id"])
        assert "owned" in outcome.output
        assert "\x1b" not in outcome.output
        outcome = CliRunner().invoke(main, ["match", "x.csv", "y.npy", "--key", self.HOSTILE])
        assert outcome.exit_code == 2
        assert "\x1b" not in outcome.output

    def test_a_table_on_a_terminal_and_in_a_pipe(self, files):
        piped = shell("inlier match x.csv y.csv --method row-sum --key id -o - -q")
        assert "\x1b]0;owned" in piped.stdout  # data stays data
        ours, theirs = pty.openpty()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        words = ["match", "x.csv", "y.csv", "--key", "id", "-o", "-", "-q"]
        command = [sys.executable, "-c", "from inlier.cli import main; main()", *words]
        with subprocess.Popen(command, stdout=theirs, env=environment) as child:
            os.close(theirs)
            shown = b""
            while True:
                try:
                    part = os.read(ours, 4096)
                except OSError:  # how Linux says that the other end was closed
                    break
                if not part:
                    break
                shown += part
        os.close(ours)
        assert child.returncode == 0
        assert b"owned" in shown
        assert b"\x1b" not in shown


class _Page(HTMLParser):
    """What a page could do: handlers of events, and addresses outside of it; and how many of each tag there are."""

    def __init__(self, path):
        super().__init__()
        self.acts, self.tags = [], Counter()
        self.feed(Path(path).read_text())

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        for name, value in attributes:
            is_address = name in ("src", "href") and not value.startswith(("data:", "#"))
            self.acts += [(name, value)] if is_address or name.startswith("on") else []


class TestNamesThatAreCode:
    """Ids, columns and file names with tags and escapes in them: shown on pages and terminals, obeyed by neither."""

    HOSTILE = "<img src=x onerror=alert(1)><!--<script>\x1b]0owned\x07\u202e=1+1'\"&"

    def run(self, *words, code=0):
        outcome = CliRunner().invoke(main, list(map(str, words)))
        assert outcome.exit_code == code, outcome.output
        assert not set(outcome.output) & {"\x1b", "\x07", "\u202e"}
        return outcome

    def tables(self, name):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(120, 4))
        y = x @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + 0.05 * rng.normal(size=x.shape)
        y[[3, 7]], x[5, 2] = y[[7, 3]], 1e9  # a swap to repair, and a value to be noted
        ids = np.array([f"{name}{number}" for number in range(120)])
        for file, values in (("x", x), ("y", y)):
            columns = {f"{name}{number}": column for number, column in enumerate(values.T)}
            write_table(f"{name}{file}.csv".replace("/", ""), {f"{name}id": ids, **columns})
        return f"{name}x.csv", f"{name}y.csv", "--key", f"{name}id"

    @pytest.mark.parametrize("words", [("match", "--repair", "fixed.csv"), ("register", "--model", "orthogonal")])
    def test_tables(self, words):
        pages = []
        for name in ("a", self.HOSTILE):
            said = self.run(words[0], *self.tables(name), *words[1:], "--report", "page.html", "--force").output
            assert "look like" in said
            pages.append(_Page("page.html"))
        assert pages[1].acts == []
        assert pages[1].tags == pages[0].tags  # nothing that stands in a name became a part of the page

    def test_raw_clouds_and_photos(self):
        self.run("demo", "--save-scans", "scans", "--save-photos", "photos")
        pages = []
        for name in ("a", self.HOSTILE):
            for path in (*Path("scans").glob("*.ply"), *Path("photos").glob("*.png")):
                Path(f"{name}{path.name}").write_bytes(path.read_bytes())
            self.run("register", f"{name}source.ply", f"{name}target.ply", "--report", "page.html")
            self.run("diff", f"{name}before.png", f"{name}after.png", "-o", f"{name}out")
            pages.append((_Page("page.html"), _Page(Path(f"{name}out", "report.html"))))
        for plain_page, page in zip(*pages, strict=True):
            assert page.acts == []
            assert page.tags == plain_page.tags

    def test_a_sheet_holds_text_and_no_formulas(self):
        self.run("match", *self.tables("=1+1"), "-o", "pairs.xlsx", "--repair", "fixed.xlsx")
        for name in ("pairs.xlsx", "fixed.xlsx"):
            with zipfile.ZipFile(name) as archive:
                sheet = archive.read("xl/worksheets/sheet1.xml").decode()
            assert "<f" not in sheet
            assert '<c t="inlineStr"><is><t xml:space="preserve">=1+1' in sheet


class TestOddValues:
    """S5: codes and absurd values are named once, with row and column, and what becomes of them."""

    def test_codes(self):
        y = Y.copy()
        y[RNG.random(y.shape) < 0.02] = -9999
        y[5, 1] = -9999
        np.save("y.npy", y)
        run = CliRunner().invoke(main, ["match", "x.npy", "y.npy"])
        assert run.stderr.count("look like codes for missing values") == 1
        assert "of y.npy look like" in run.stderr
        assert "the first (-9999) in row" in run.stderr
        assert "They count as missing" in run.stderr
        assert run.exit_code == 0

    def test_a_row(self):
        x = X.copy()
        x[17] = 1e9
        np.save("x.npy", x)
        said = CliRunner().invoke(main, ["match", "x.npy", "y.npy"]).stderr
        assert said.count("1e+09") == 1
        assert "3 values of x.npy look like" in said
        assert "(1e+09) in row 17, column 0. They count as missing" in said

    @pytest.mark.parametrize(
        ("words", "becomes"),
        [
            (("register", "--paired"), "If they are codes or mistakes"),
            (("match", "--method", "row-sum"), "They are compared like any other number"),
        ],
    )
    def test_a_row_where_all_numbers_are_compared(self, words, becomes):
        x = X.copy()
        x[17] = 1e9
        np.save("x.npy", x)
        command, *rest = words
        said = CliRunner().invoke(main, [command, "x.npy", "y.npy", *rest]).stderr
        assert f"(1e+09) in row 17, column 0. {becomes}" in said

    def test_by_names(self):
        rows = "\n".join(f"s{k},{a},{b}" for k, (a, b) in enumerate(np.round(X[:, :2], 3)))
        Path("x.csv").write_text(f"id,height,weight\n{rows}\nlast,3,1e12\n")
        Path("y.csv").write_text(f"id,a,b\n{rows}\nlast,3,1\n")
        said = CliRunner().invoke(main, ["match", "x.csv", "y.csv", "--key", "id"]).stderr
        assert "(1e+12) in id last, column weight." in said

    def test_sound_data_get_no_note(self):
        for values in (X, RNG.lognormal(size=X.shape), RNG.integers(0, 2, X.shape).astype(float), X * 1e6, X * 1e-9):
            np.save("x.npy", values)
            assert "look like codes" not in CliRunner().invoke(main, ["match", "x.npy", "y.npy"]).stderr
