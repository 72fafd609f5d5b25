"""Workbooks: what other programs write, and what they should not."""

import zipfile

import numpy as np
import pytest

from inlier.exceptions import UnusableFileError
from inlier.io import column_names, read_table, write_table

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LINKS = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def workbook(path, sheets, texts=(), head=""):
    """A workbook as Excel lays it out: texts shared by all sheets, cells by their place."""
    listed = "".join(f'<sheet name="{name}" sheetId="{k}" r:id="rId{k}"/>' for k, name in enumerate(sheets, start=1))
    links = "".join(f'<Relationship Id="rId{k}" Target="worksheets/sheet{k}.xml"/>' for k in range(1, len(sheets) + 1))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", f"<workbook {MAIN} {LINKS}><sheets>{listed}</sheets></workbook>")
        archive.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{links}</Relationships>")
        if texts:
            items = "".join(f"<si><r><t>{text[:1]}</t></r><r><t>{text[1:]}</t></r></si>" for text in texts)
            archive.writestr("xl/sharedStrings.xml", f"<sst {MAIN}>{items}</sst>")
        for k, rows in enumerate(sheets.values(), start=1):
            data = f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>"
            archive.writestr(f"xl/worksheets/sheet{k}.xml", f"{head}{data}")


HEADER = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>2</v></c></row>'
BODY = (
    '<row r="2"><c r="A2" t="s"><v>3</v></c><c r="B2"><v>1.5</v></c><c r="C2"><f>B2*2</f><v>3</v></c></row>'
    '<row r="3"><c r="A3" t="inlineStr"><is><t>bob</t></is></c><c r="C3" t="e"><v>#N/A</v></c></row>'
)


def test_what_a_spreadsheet_writes(tmp_path):
    path = tmp_path / "book.xlsx"
    workbook(
        path, {"first": HEADER + BODY, "second one": "<row><c><v>7</v></c></row>"}, ["id", "height", "twice", "ada"]
    )
    table = read_table(path, key="id")
    assert table.keys.tolist() == ["ada", "bob"]
    assert table.columns == ("height", "twice")
    np.testing.assert_array_equal(table.values, [[1.5, 3], [np.nan, np.nan]])
    assert column_names(path) == ["id", "height", "twice"]
    assert read_table(f"{path}:second one").values.tolist() == [[7]]
    assert read_table(path, columns=["^id", "^twice"]).columns == ("height",)
    with pytest.raises(UnusableFileError, match="has no sheet named 'third'; it has first, second one"):
        read_table(f"{path}:third")
    with pytest.raises(UnusableFileError, match=r"column 'id' of .* does not hold numbers"):
        read_table(path)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("", "empty sheet"),
        (HEADER, "header but no rows"),
        ('<row><c t="s"><v>9</v></c></row>', "a text that is not there"),
        ('<row><c r="ZZZ1"><v>9</v></c></row>', "beyond what a sheet can hold"),
        ('<row><c r="A1"><v>x</v></c></row>', "could not be read as xlsx"),
        (HEADER.replace("<v>1<", "<v>0<") + BODY, "more than one column named"),
    ],
)
def test_what_is_wrong(rows, said, tmp_path):
    workbook(tmp_path / "a.xlsx", {"one": rows}, ["id", "a", "b", "c"])
    with pytest.raises(UnusableFileError, match=said):
        read_table(tmp_path / "a.xlsx")


def test_entities_are_refused(tmp_path):
    bomb = '<!DOCTYPE lol [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
    workbook(tmp_path / "a.xlsx", {"one": '<row><c t="inlineStr"><is><t>&b;</t></is></c></row>'}, head=bomb)
    with pytest.raises(UnusableFileError, match="declares entities"):
        read_table(tmp_path / "a.xlsx")


def test_it_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("INLIER_MAX_UNPACKED", "0.001")
    wide = "".join(f'<row r="{k}"><c r="XFD{k}"><v>1</v></c></row>' for k in range(1, 200))
    workbook(tmp_path / "a.xlsx", {"one": wide})  # 5 kB on disk, three million cells
    with pytest.raises(UnusableFileError, match="over the limit"):
        read_table(tmp_path / "a.xlsx")


def test_text_that_xml_cannot_hold(tmp_path):
    write_table(tmp_path / "a.xlsx", {"id": np.array(["a<b>&", " blanks ", "e\x1bsc"]), "n": np.arange(3)})
    assert read_table(tmp_path / "a.xlsx", key="id").keys.tolist() == ["a<b>&", "blanks", "e?sc"]


def test_a_zip_archive_that_is_no_workbook(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(UnusableFileError, match="is no workbook"):
        read_table(tmp_path / "a.xlsx")
