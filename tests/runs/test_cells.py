"""CSV for spreadsheets: no text is a formula there, and our own readers give the text back."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from eyespot.storage.tables import escape_cell, rows_of, unescape_cell, write_csv
from hypothesis import given
from hypothesis import strategies as st

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
TEXTS = st.text(st.sampled_from("'=+-@＝＠ab \t\n,\";é"), max_size=6)


@given(TEXTS)
def test_a_cell_comes_back_and_is_no_formula(text: str) -> None:
    cell = escape_cell(text)

    assert unescape_cell(cell) == text
    assert not cell.startswith(FORMULAS)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
def test_a_table_comes_back_but_for_outer_spaces(pairs: list[tuple[str, str]]) -> None:
    rows = [("id", text.strip(), other.strip()) for text, other in pairs]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_csv(path, [("id", "=text", "other"), *rows])

        assert [tuple(row.values()) for _, row in rows_of(path)] == rows
        with path.open(newline="", encoding="utf-8") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
    assert [cell for cell in cells if cell.startswith(FORMULAS)] == []


def test_numbers_stay_numbers_and_tabbed_files_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\ttext\n1\t'=x\n")

    assert (escape_cell(-1.5), escape_cell(None)) == (-1.5, None)
    assert [row for _, row in rows_of(tmp_path / "a.tsv")] == [{"id": "1", "text": "'=x"}]
