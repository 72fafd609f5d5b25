"""What the commands share: exit codes, errors as one sentence, where an answer goes and how it is said."""

from __future__ import annotations

import csv
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlier.cli._one_file import is_ours as beside_rows_of
from inlier.cli._one_file import write_beside_rows
from inlier.cli._outputs import (
    BadInput,
    Output,
    check_outputs,
    force_option,
    is_page,
    is_pairs,
    let_go_of,
    plain,
    print_csv,
    say,
)
from inlier.exceptions import DependenceWarning, ParameterError, ParameterWarning

if TYPE_CHECKING:
    from inlier._typing import Array
    from inlier.io import Pairing, Table
    from inlier.report import MatchSummary, Origin

_MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none", "#n/a")  # that text files may hold in place of a number
_OUR_WARNINGS = (UserWarning, ParameterWarning, DependenceWarning)
NOTHING_FOUND = 1
INTERRUPTED = 130  # what shells expect after Ctrl-C
STDOUT = Path("-")
_CHAINS_SHOWN = 8
_PLAIN_ARROWS = {0x2194: "<->", 0x2192: "->"}  # which any terminal can show
_WORST_SHOWN = 5
_HOPELESS = -1e6  # scores below are all alike
_WORST_COLUMNS = ("key", "row", "source", "target", "residual", "score", "q_value")
_CHECKED_COLUMNS = ("row", "verdict", "what_to_do")
_HEADINGS = {"q_value": "q-value", "what_to_do": "what to do"}
_COLUMN_NUMBERS = re.compile(r"(?<=\(column )\d+(, \d+)*")
_SAME_COLUMNS = re.compile(r"(?<=^Column )\d+(?= is the same in X)|(?<=^Columns )\d+(, \d+)*(?= are the same in X)")
_SETTING = re.compile(r"\b([a-z_]+)=('?)(\w+(?:\.\w+)*)\2")  # as one is written in Python
_ARGUMENT = re.compile(r" \((?:key|columns)=\)|fit\(X, y, \w+=\.\.\.\), or ")  # Python's word beside the option
_OPTION_OF = {"n_splits": "--splits", "sample_weight": "--weights"}  # where they are not called alike


def sentence_of(error: Exception) -> str:
    """What went wrong, in words; the system's own errors name the file."""
    if isinstance(error, OSError) and error.strerror:
        nameless = "The current folder" if isinstance(error, FileNotFoundError) else "Standard output"
        where = nameless if error.filename is None else error.filename
        return f"{where} could not be written or read: {error.strerror}."
    return _ARGUMENT.sub("", str(error))


@contextmanager
def answering() -> Iterator[None]:
    """Turn what went wrong into one sentence, and Ctrl-C into its own exit code; 1 is for "nothing found" alone."""
    try:
        yield
    except BrokenPipeError:  # whoever read our output has had enough
        let_go_of(sys.stdout)
        raise SystemExit(0) from None
    except SystemExit as error:  # with which rich ends on that, with 1
        raise SystemExit(0) if isinstance(error.__context__, BrokenPipeError) else error from None
    except (ValueError, ImportError, OSError) as error:
        if isinstance(error, OSError) and error.filename is None:
            let_go_of(sys.stdout)
        raise BadInput(sentence_of(error)) from error
    except MemoryError as error:
        raise BadInput("There is not enough memory for so many numbers; use fewer columns or --splits.") from error
    except KeyboardInterrupt:
        say("Interrupted. No file was left half written.")
        raise SystemExit(INTERRUPTED) from None
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        if os.environ.get("INLIER_TRACEBACK"):
            traceback.print_exc()
        raise BadInput(
            f"inlier made a mistake of its own: {type(error).__name__}: {error}. Please report it, with what it prints "
            f"when the environment variable INLIER_TRACEBACK is 1."
        ) from error


class ReadsFiles(click.Command):
    """A command whose help names the formats that it reads, off their table, where it says FORMATS."""

    def format_help_text(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help, with the formats in it."""
        from inlier.io import FORMATS, Kind

        kinds = [format for format in FORMATS if self.name != "register" or format.kind is not Kind.PICTURE]
        suffixes = [suffix[1:] for format in kinds for suffix in format.suffixes if not suffix.endswith(".gz")]
        plain, self.help = self.help, (self.help or "").replace("FORMATS", ", ".join(suffixes))
        try:
            super().format_help_text(context, formatter)
        finally:
            self.help = plain


def answer_options(columns: str, *, alpha_of: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add what every command with an answer per pair takes: how sure it is, where it goes, how it is said, the seed.

    ``columns`` names what a row of the output holds, ``alpha_of`` what --alpha belongs to.
    """
    alpha = f"Largest expected share of wrong pairs among those accepted{alpha_of}."
    options = (
        click.option("--alpha", type=click.FloatRange(0, 0.5), default=0.01, show_default=True, help=alpha),
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path),
            metavar="OUT",
            help=f"Write a row per pair ({columns}) as csv, parquet, npz, "
            "json, ... by the suffix; as npy the mask alone; - is csv on standard output.",
        ),
        click.option("--report", type=click.Path(path_type=Path), metavar="OUT.html", help="Write a page to look at."),
        force_option,
        click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON, without the pairs."),
        click.option(
            "--json-pairs", is_flag=True, help="Print the answer as JSON, with a list per column of the pairs."
        ),
        click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors, and what --json or -o - print."),
        click.option(
            "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of all choices."
        ),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):  # the last one added is the first one shown
            command = option(command)
        return command

    return add


@dataclass(frozen=True, eq=False)
class Job:
    """Two files, where the answer about them goes, and what is to be said on the way."""

    context: click.Context
    sources: tuple[str, str]  # as the user named them
    output: Path | None  # of the pairs
    report: Path | None
    as_json: bool
    quiet: bool
    force: bool = False  # to overwrite what is no earlier output
    others: tuple[Output, ...] = ()  # what else is written
    notes: list[str] = field(default_factory=list)  # what was left out or noticed, in sentences
    headings: dict[str, tuple[str, ...]] = field(default_factory=dict)  # columns of X and y, where they have names
    rows_of: str | None = None  # the one file that holds both sides of each pair, if there is one
    json_pairs: bool = False  # whether the pairs are printed, too, as JSON

    @property
    def _written(self) -> list[Output]:
        """The files that will be written."""
        files = [*self.others]
        if self.output not in (None, STDOUT):
            is_ours = is_pairs if self.rows_of is None else beside_rows_of(self.rows_of)
            files.append(Output("-o", "Pairs", self.output, is_ours))
        return files if self.report is None else [*files, Output("--report", "Report", self.report, is_page)]

    def check_outputs(self, *further: str) -> None:
        """Refuse, before the work is done, what could not be written after it; ``further`` files are read as well."""
        from inlier.io import check_can_hold_columns, split_source

        if self.output == STDOUT and self.as_json:
            raise BadInput("-o - and --json both print to standard output. Give -o a file, or leave one of them out.")
        if sys.stdout is None and (self.output == STDOUT or self.as_json):
            raise BadInput("Standard output is closed. Open it, or give -o a file.")
        if self.output is not None and self.output.suffix.lower() not in (".json", ".npy"):
            check_can_hold_columns(Path("stdout.csv") if self.output == STDOUT else self.output)
        if self.report is not None:
            from inlier.report.pages import find_template

            if self.report.suffix.lower() not in (".html", ".htm") and not self.report.is_dir():
                raise BadInput(f"{self.report} would hold a page, which is HTML. Give it a name that ends in .html.")
            find_template("page.html")  # needs an extra, which may be absent
        inputs = (split_source(name)[0] for name in (*self.sources, *further))
        check_outputs(self._written, inputs, force=self.force)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Let the library's errors name files and options instead of arguments, and its warnings become notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            try:
                yield
            except ParameterError as error:
                raise BadInput(self.in_words(error)) from error
            finally:
                said = [warning.message for warning in caught if warning.category in _OUR_WARNINGS]
                self.notes.extend(dict.fromkeys(map(self.in_words, said)))

    def in_words(self, said: Exception | str) -> str:
        """What the library says, with files and options instead of arguments."""
        if not isinstance(said, (ParameterError, ParameterWarning)):
            sentence = _SETTING.sub(self._as_option, _ARGUMENT.sub("", str(said)))
            return _SAME_COLUMNS.sub(lambda found: _named(found[0], self.headings.get("X", ())), sentence)
        options = {option.name: option.opts[-1] for option in self.context.command.params if option.name}
        tables = dict(
            zip(("X", "y", "Y", "source", "target"), (*self.sources, self.sources[1], *self.sources), strict=True)
        )
        name = {**options, **_OPTION_OF, **tables}.get(said.parameter, said.parameter)
        headings = self.headings.get(said.parameter, ())
        return _COLUMN_NUMBERS.sub(lambda found: _named(found[0], headings), said.naming(name))

    def _as_option(self, setting: re.Match[str]) -> str:
        """A setting as it is given on the command line; as it is, where there is no such option."""
        for option in self.context.command.params:
            if isinstance(option, click.Option) and option.name == setting[1]:
                return option.opts[-1] if option.is_flag else f"{option.opts[-1]} {setting[3]}"
        return setting[0]

    @property
    def origin(self) -> Origin:
        """Where the answer comes from, for those who read it later."""
        from inlier.cli._tables import name_of
        from inlier.report.match_summary import Origin

        notes = list(dict.fromkeys(self.notes))
        for source in self.sources:
            notes = [note.replace(source, "standard input") if name_of(source) == "-" else note for note in notes]
        sources = self.sources if self.rows_of is None else (self.rows_of,)
        names = tuple(_in_utf8(name_of(source)) for source in sources)
        return Origin(names, _in_utf8(command_line(self.context)), tuple(map(_in_utf8, notes)))

    @property
    def adds_to_rows(self) -> bool:
        """Whether the output is the one input with the results beside its rows."""
        is_table = self.output not in (None, STDOUT) and self.output.suffix.lower() not in (".json", ".npy")
        return self.rows_of is not None and is_table

    def write_pairs(self, summary: MatchSummary) -> None:
        """Write a row per pair, by the suffix; as npy the mask alone."""
        from inlier.io import write_table, written_beside

        if self.output == STDOUT:
            print_csv([summary.columns()])
        elif self.adds_to_rows:
            assert self.rows_of is not None
            assert self.output is not None
            write_beside_rows(self.rows_of, self.output, [summary.columns()], quiet=self.quiet)
        elif self.output is not None and self.output.suffix.lower() == ".json":
            with written_beside(self.output) as beside, beside.open("w", encoding="utf-8") as stream:
                stream.writelines(summary.json_parts(indent=1))
                stream.write("\n")
        elif self.output is not None:
            is_mask = self.output.suffix.lower() == ".npy"
            write_table(self.output, summary.result.inlier_mask if is_mask else summary.columns())

    def conclude(self, summary: MatchSummary) -> None:
        """Write the page, print the answer, and name the files that were written."""
        if self.report is not None:
            from inlier.report.pages import MatchReport, RegistrationReport
            from inlier.report.registration_summary import RegistrationSummary

            is_registration = isinstance(summary, RegistrationSummary)
            page = RegistrationReport(summary) if is_registration else MatchReport(summary)
            page.write_html(self.report)
        if self.as_json:
            for part in summary.json_parts(indent=1, pairs=self.json_pairs):
                click.echo(part, nl=False)
            click.echo()
        if self.quiet:
            return
        _print_words(summary, to_stderr=self.as_json or self.output == STDOUT)
        for written in self._written:
            say(f"{written.what}: {written.path}")


def _named(numbers: str, headings: tuple[str, ...]) -> str:
    """The same sentence with names of columns in place of their numbers."""
    return re.sub(r"\d+", lambda found: headings[int(found[0])], numbers) if headings else numbers


def _print_words(summary: MatchSummary, *, to_stderr: bool) -> None:
    """Print the notes, the answer, what else there is to say, and the worst pairs."""
    from rich.console import Console
    from rich.table import Table

    for note in summary.origin.notes:
        say(f"Note: {note}")
    console = Console(stderr=to_stderr, highlight=False, soft_wrap=True)
    console.print(plain(summary.answer), style="bold", markup=False)
    for sentence in summary.details:
        console.print(plain(sentence), markup=False)
    chains = [] if summary.repair is None else summary.repair.chains
    if chains:
        console.print("Whose partner is with whom (a -> b: the partner of a stands with b):", markup=False)
    for chain in chains[:_CHAINS_SHOWN]:
        console.print(f"  {plain(chain).translate(_PLAIN_ARROWS)}", markup=False)
    if len(chains) > _CHAINS_SHOWN:
        console.print(f"  and {len(chains) - _CHAINS_SHOWN:,} more", markup=False)
    if summary.n_inliers == summary.n_pairs or not summary.scores_differ:
        return
    title, worst = _first_to_look_at(summary)
    if not worst:
        return
    columns = _WORST_COLUMNS if summary.repair is None else _CHECKED_COLUMNS
    shown = [name for name in columns if name in worst[0]]
    table = Table(title=title, title_justify="left", title_style="")
    for name in shown:
        is_text = name == "key" or isinstance(worst[0][name], str)
        table.add_column(_HEADINGS.get(name, name), justify="left" if is_text else "right")
    for record in worst:
        table.add_row(*(_cell(record[name], name) if name in record else "" for name in shown))
    console.print(table)


def _first_to_look_at(summary: MatchSummary) -> tuple[str, list[dict[str, Any]]]:
    """The rows that a repair says to check first; without one the pairs with the lowest scores."""
    if summary.repair is None:
        title = "The worst pairs" if summary.tells_wrong else "The pairs with the lowest scores"
        return title, summary.worst(_WORST_SHOWN)
    from inlier.report.repair_summary import repair_to_dict

    first = repair_to_dict(summary.repair)["rows"][:_WORST_SHOWN]
    return "To check first", [{name: row[name] for name in _CHECKED_COLUMNS} for row in first]


def _cell(value: Any, name: str) -> str:
    """A cell of the table of worst pairs; scores far below all others say nothing by their size."""
    from rich.markup import escape

    if not isinstance(value, float):
        return escape(plain(str(value)))
    return f"< {_HOPELESS:.0g}" if name == "score" and value < _HOPELESS else f"{value:.4g}"


def _in_utf8(text: str) -> str:
    """A text that can be written: of a file's name that is not UTF-8, bytes are shown as \\xNN."""
    return os.fsencode(text).decode(errors="backslashreplace")


def command_line(context: click.Context) -> str:
    """What to type to run this command again with the same settings."""
    command, options = ["inlier", *context.command_path.split()[1:]], []
    for parameter in context.command.params:
        if context.get_parameter_source(parameter.name or "") is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = context.params[parameter.name or ""]
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(parameter, click.Argument):
            command += [str(one) for one in values]
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            options += [word for one in values for word in (parameter.opts[-1], str(one))]
    return shlex.join([*command, *options])


def read_both(
    x: str,
    y: str,
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    leave_out: tuple[str, ...] = (),
    read: Callable[..., Table] | None = None,
) -> tuple[Table, Table]:
    """Read two tables; keys and columns may be given once for both, or once for each.

    Columns that hold labels are left out where a file has them, unless columns are given. ``read`` reads each.
    """
    from inlier.cli._tables import columns_of_each
    from inlier.io import read_table

    read = read or read_table
    (key_x, key_y) = for_both(keys, "--key")
    columns_x, columns_y = columns_of_each((x, y), columns, columns_of_both(columns))
    has_labels = {name: [has_column(source, name) for source in (x, y)] for name in leave_out}
    for name, (in_x, in_y) in has_labels.items():
        if not in_x and not in_y:
            raise BadInput(f"Neither {x} nor {y} has a column named {name!r}. Check its spelling.")
    if leave_out and not columns:
        columns_x, columns_y = (
            [f"^{name}" for name, has in has_labels.items() if has[side]] or None for side in (0, 1)
        )
    first, second = (_read_named(read, *of) for of in ((x, key_x, columns_x), (y, key_y, columns_y)))
    return first, second


def _read_named(read: Callable[..., Table], source: str, key: str | None, columns: list[str] | None) -> Table:
    """A table whose rows are named by a column of its own, or by the lines of another file."""
    from inlier.io import column_names, read_labels

    if key is None or not Path(key).is_file() or has_column(source, key):
        return read(source, key=key, columns=columns)
    names = column_names(key)
    ids = read_labels(key, names[0] if names else "0")
    table = read(source, columns=columns)
    if ids is None or len(ids) != len(table):
        n_ids = 0 if ids is None else len(ids)
        raise BadInput(f"{key} has {n_ids:,} ids, and {source} has {len(table):,} rows. One is needed for each row.")
    return replace(table, keys=ids)


def has_column(source: str, name: str) -> bool:
    """Whether a file has a column of this name."""
    from inlier.io import read_labels

    return read_labels(source, name) is not None


def labels_of_pairs(column: str, sources: tuple[str, str], pairing: Pairing) -> Array:
    """The values of a column of the first file, or else of the second, for each pair; empty ones are refused."""
    from inlier.io import read_labels

    labels, rows, source = read_labels(sources[0], column), pairing.rows, sources[0]
    if labels is None:
        labels, rows, source = read_labels(sources[1], column), pairing.rows_of_y, sources[1]
    assert labels is not None  # `read_both` has looked
    chosen: Array = labels[rows]
    if (chosen == "").any():
        first = rows[int((chosen == "").argmax())]
        raise BadInput(f"Column {column!r} of {source} is empty in row {first}. Give such rows a label of their own.")
    return chosen


def missing_codes(text: str | None) -> list[float]:
    """Numbers between commas; words are left out, for they are read as missing anyway."""
    codes = []
    for code in (text or "").split(","):
        try:
            codes.append(float(code))
        except ValueError:
            if code.strip().lower() not in _MISSING_WORDS:
                raise BadInput(
                    f"--missing {code.strip()} is not a number. Empty cells, NA, NaN and null are missing as they are."
                ) from None
    return [code for code in codes if code == code]


def without_codes(table: Table, codes: list[float]) -> Table:
    """The table with NaN where it has one of these numbers."""
    import numpy as np

    if not codes:
        return table
    values = np.asarray(table.values)
    return replace(table, values=np.where(np.isin(values, codes), np.nan, values))


def for_both(values: tuple[str, ...], option: str) -> tuple[str | None, str | None]:
    """One value for both files, or one for each."""
    if len(values) > 2:
        raise BadInput(f"{option} was given {len(values)} times; give it once for both files, or twice.")
    return (values[0], values[-1]) if values else (None, None)


def columns_of_both(columns: tuple[str, ...]) -> tuple[list[str] | None, list[str] | None]:
    """Names between commas for each file; one that holds a comma stands in quotes."""
    first, second = (None if names is None else _split_names(names) for names in for_both(columns, "--columns"))
    return first, second


def _split_names(names: str) -> list[str]:
    if not names.strip():
        raise BadInput("--columns names no column. Give names with commas between them, such as --columns a,b.")
    try:
        return [name.strip() for name in next(csv.reader([names], skipinitialspace=True))]
    except csv.Error as error:  # a line break outside of quotes
        raise BadInput(f"--columns {names!r} could not be read as names with commas between them.") from error


def check_numbers(
    pairing: Pairing, names: tuple[str, str], tables: tuple[Table, Table], *, allow_gaps: bool = False
) -> None:
    """Refuse NaN and infinity by the names that the user knows: file, id or row, column; gaps may be allowed."""
    import numpy as np

    sides = ((pairing.X, pairing.rows), (pairing.Y, pairing.rows_of_y))
    for (values, rows), name, table in zip(sides, names, tables, strict=True):
        if isinstance(values, np.memmap) or values.dtype.kind != "f":
            continue  # a large file is looked through once, when it is matched
        bad = np.argwhere(np.isinf(values) if allow_gaps else ~np.isfinite(values))
        if len(bad):
            n_bad = len({(rows[pair], column) for pair, column in bad})  # a row may be in several pairs
            pair, column = bad[0]
            where = f"row {rows[pair]}" if table.keys is None else f"id {table.keys[rows[pair]]}"
            heading = column if table.columns is None else table.columns[column]
            raise BadInput(
                f"{name} contains NaN or infinity: {n_bad} value(s), the first ({values[pair, column]}) in "
                f"{where}, column {heading}. Leave those rows out, or fill the values in."
            )
