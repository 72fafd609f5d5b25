"""Write docs/commands.md from the help of the commands and the list of formats.

    python tools/make_command_page.py

A test compares the page with what this would write.
"""

from __future__ import annotations

from pathlib import Path

import click

from inlier.cli import main
from inlier.io import FORMATS, write_file

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
_WIDTH = 100

_HEAD = """# Commands

What `inlier --help` and `inlier COMMAND --help` print, and what holds for all commands. This page is written by
`python tools/make_command_page.py`.

- **The answer goes to standard output; notes, progress and errors to standard error**, so that
  `inlier match x.csv y.csv --json | jq .n_inliers` works. What goes on is shown only on a terminal, and only where it
  takes longer than a second: a bar, or that loops are compiled, once for each machine.
- **Exit codes**: 0 done; 1 nothing found (or, with `match --max-wrong`, more is wrong; with `reproduce --compare`,
  other numbers than before); 2 something wrong with the input, said in one sentence; 130 interrupted.
- **Nothing of yours is overwritten**: an output takes the place of an earlier output of its own kind, and of nothing
  else without `--force`; what is read is never written over. [SECURITY.md](../SECURITY.md) has more on files.
- **Files are written beside and renamed**: after Ctrl-C or a full disk there is the old file or none, never half
  of one.
- **Nothing is sent or fetched.** The pages that are written need no network either.

## Shell completion

Put one of these into your shell's start-up file:

```
eval "$(_INLIER_COMPLETE=bash_source inlier)"         # ~/.bashrc
eval "$(_INLIER_COMPLETE=zsh_source inlier)"          # ~/.zshrc
_INLIER_COMPLETE=fish_source inlier | source          # ~/.config/fish/config.fish
```

## Files

The suffix says how a file is read and written. Rows are points (pixels, voxels, vertices), columns are dimensions.
"""

_FILES_TAIL = """
- One of several arrays or sheets in a file is named after a colon: `data.npz:x`, `data.h5:group/x`, `book.xlsx:Sheet2`.
- `-` is standard input, for one of the two files of `match`; `--format csv` says what it holds.
- Of point clouds and surfaces x, y and z are read, of pictures the colours; `--columns` chooses others.
- csv may have a header or none, quotes, semicolons or tabs, decimal commas with semicolons; an empty field or `NA` is a
  missing number, and so is an empty line in a file of one column: `match` fills it in (`--method calibrated`), other
  methods refuse it by row and column. A note says what may have been meant otherwise: a first line of numbers, decimal
  commas, points for thousands.
- A header that is one field short, as R's `write.table` makes it, names all columns but the first, which names the rows
  (`--key ''`). txt files may have a header, too.
- Genes in rows, samples in columns: where the header of one file holds the ids of the other, the table is turned over,
  with a note; `--transpose` does so for both.
- A column of lists (parquet, feather, jsonl) is a table of vectors; where a file has one such column, it is what is
  compared. `inlier match FILE --x emb_a --y emb_b -o OUT`: both sides in one file, whose rows OUT has, with `inlier`,
  `inlier_score`, `inlier_q_value` and so on beside them. Such columns are left out where OUT is read again.
- `match --method calibrated` also compares columns of dates, yes and no, categories and text (parquet, feather, csv,
  jsonl, xlsx): a note says what was made of each. A txt file of sentences, or of one word in each line, is one column
  of text: `inlier match de.txt en.txt --clean clean.tsv`. Other methods leave words out.
- Ids of another file than the numbers: `--key x_ids.txt --key y_ids.txt`, one for each row.
- Ids that R has changed (`TCGA.A0FJ` for `TCGA-A0FJ`, an X before a digit), or that differ in upper and lower case, in
  blanks or in zeros in front, are joined, with a note how many and which. In csv, a text that a spreadsheet would run
  as a formula (`=1+1`) gets an apostrophe before it, which is left out where it is read as an id.
- KITTI's bin, pts, obj and stl are read, not written; of a surface the corners are the points.
- Single cells: `x.h5ad` (its `X`), `x.h5ad:X_pca`, `x.h5ad:layers/counts`, `x.h5mu:rna:X_pca`. Cells are called by
  the index of `obs` and joined on it where both files have one; `--key COLUMN`, `--group` and `--stratum` name columns
  of `obs`. Sparse tables are compared by their 50 strongest directions, counts by those of their logarithms.
- Word vectors (vec) are a word and its numbers in each line; `--key word` joins on the words, and with `--pairs` a
  dictionary says which word belongs to which.
- npy files of 64 MiB or more stay on disk and are read as they are used. `inlier match` reads npy, zarr, hdf5 and
  vectors in parquet in stretches where both together hold 1 GiB or an eighth of the memory; the environment variable
  `INLIER_STREAM_FROM` (in GiB) changes that. Vectors in parquet are unpacked once, into the folder for temporary files
  (`TMPDIR`) where there is four times the room of each table. [More](from-laptop-to-cluster.md).
- Nothing is ever unpickled, and no file can run code ([SECURITY.md](../SECURITY.md)).
- A compressed file may unpack to half of the memory that the process may use (of the
  machine, or of its container); the environment variable `INLIER_MAX_UNPACKED` (in GiB) changes that.
- png and tiff with 16 bits are read and written with all of them.
- npy, npz, csv, tsv, jsonl, txt, xyz, vec, xlsx, ply, pcd (not compressed), png and jpg need nothing else; the others
  need a package that the error names, or all of them `pip install '.[io]'` in a copy of this repository. With it, csv
  is read faster.
"""


def render() -> str:
    """Return the page."""
    formats = "\n".join(
        f"| {item.name} | {' '.join(f'`{suffix}`' for suffix in item.suffixes)} | {item.kind.value} |"
        for item in FORMATS
    )
    context = _context(main, "inlier", None)
    sections = [_section("inlier", main, context)]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        sections.append(_section(f"inlier {name}", command, _context(command, name, context)))
    table = f"\n| format | suffixes | holds |\n|---|---|---|\n{formats}\n"
    return f"{_HEAD}{table}{_FILES_TAIL}\n" + "\n".join(sections)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    settings = {**main.context_settings, **command.context_settings}
    return click.Context(command, parent, info_name=name, terminal_width=_WIDTH, max_content_width=_WIDTH, **settings)


def _section(title: str, command: click.Command, context: click.Context) -> str:
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    return f"## {title}\n\n```\n{text}\n```\n"


if __name__ == "__main__":
    write_file(PAGE, render())
    print(PAGE)
