"""How `pages.run_page` reads a page: one step for each command."""

from __future__ import annotations

from tests.pages import steps


def test_lines_that_end_in_a_backslash_are_one_command() -> None:
    text = "eyespot index photos \\\n    -g gallery \\\n  -e starter\n\ncat > x <<'END'\na \\\nEND\neyespot search\n"

    assert [step.split() for step in steps(text)] == [
        ["eyespot", "index", "photos", "-g", "gallery", "-e", "starter"],
        ["cat", ">", "x", "<<'END'", "a", "\\", "END"],
        ["eyespot", "search"],
    ]
