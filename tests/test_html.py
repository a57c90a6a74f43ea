"""The HTML kit: texts do no harm in any template, a forgotten value is an error, jinja2 is paid for by pages only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import escape

import eyespot
from eyespot.html import environment, render, tidy

PACKAGE = Path(eyespot.__file__).parent
FOLDERS = [PACKAGE / "html" / "templates", PACKAGE / "web" / "templates"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_text_is_escaped_and_reads_as_it_is_written(folder: Path) -> None:
    text = "<script>\u202egpj.exe\udcff\n&"
    page = environment(folder).from_string("<p title='{{ text }}'>{{ text }}</p>").render(text=text)

    assert page == "<p title='{0}'>{0}</p>".format(escape(tidy(text)))
    assert "<script>" not in page and "\u202e" not in page and page.encode()


def test_lines_keep_their_indentation() -> None:
    page = environment().from_string("<pre>{{ text|lines }}</pre>").render(text="a\n  <b>  c\r\n\u202ed")

    assert page == "<pre>a\n  &lt;b&gt; c\nd</pre>"


def test_a_value_that_is_not_given_is_an_error() -> None:
    """Half a page would look like a whole one."""
    with pytest.raises(UndefinedError, match="'panels' is undefined"):
        render("contact_sheet.html", title="", footer="")


def test_a_command_that_writes_no_page_does_not_import_jinja2(child_env: dict[str, str]) -> None:
    code = (
        "import sys, eyespot.html, eyespot.search.contact_sheet, eyespot.pipelines.data_card, eyespot.reports.folder, "
        "eyespot.reports.moved; sys.exit('jinja2' in sys.modules or 'markupsafe' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], env=child_env).returncode == 0
