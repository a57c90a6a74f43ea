"""What CI leaves out is what a change cannot reach."""

from __future__ import annotations

import pytest

from eyespot.extras import EXTRAS
from scripts import changed
from scripts.changed import Change
from scripts.extras import TABLE


class SameTables(Change):
    """A change of files that leaves pyproject.toml and extras.toml as they are."""

    def before(self, file: str) -> str:
        return (changed.ROOT / file).read_text(encoding="utf-8")


def long_tests(*files: str) -> set[str]:
    return changed.long_tests(Change("HEAD", frozenset(files)))[0]


@pytest.mark.parametrize(
    ("file", "reached", "spared"),
    [
        ("eyespot/reports/figures/bars.py", "tests/reports/test_report.py", "tests/storage/test_atomic.py"),
        ("eyespot/encoders/starter.py", "tests/gallery/test_segments.py", "tests/indexes/test_contract.py"),
        ("eyespot/web/why.py", "tests/web/test_browser.py", "tests/search/test_kept.py"),
        ("tests/web/test_browser.py", "tests/web/test_browser.py", "tests/web/test_team_browser.py"),
        ("docs/tune.md", "tests/test_docs.py", "tests/web/test_browser.py"),
    ],
)
def test_a_change_reaches_what_runs_it_and_spares_the_rest(file: str, reached: str, spared: str) -> None:
    """Encoders are loaded by name: no import statement shows who uses them."""
    chosen = long_tests(file)

    assert reached in chosen and spared not in chosen


@pytest.mark.parametrize(
    "file", ["eyespot/storage/atomic.py", "constraints.txt", "tests/worlds/servers.py", "tests/web/conftest.py"]
)
def test_what_all_stand_on_reaches_all(file: str) -> None:
    assert long_tests(file) == changed.test_files()


def test_a_change_that_runs_nowhere_reaches_nothing() -> None:
    assert long_tests("CHANGELOG.md") == set()


def test_without_a_history_everything_is_tried() -> None:
    assert changed.long_tests(Change(None, frozenset()))[0] == changed.test_files()
    assert changed.changed_rows(Change(None, frozenset()), TABLE, EXTRAS).keys() == TABLE.keys()


def test_an_extra_is_tried_if_its_packages_or_places_changed_or_each_time() -> None:
    always = {"none", "web", "doors", "release"}
    change = SameTables("HEAD", frozenset({"eyespot/photos/raw.py", "eyespot/curate/recos/checking.py"}))

    assert changed.changed_rows(change, TABLE, EXTRAS).keys() == always | {"raw", "recos"}


def test_an_extra_is_tried_if_its_line_or_its_commands_changed() -> None:
    table = {**TABLE, "heif": {"commands": "eyespot index other"}}

    assert "heif" in changed.changed_rows(SameTables("HEAD", frozenset()), table, EXTRAS)


def test_every_place_of_an_extra_is_there() -> None:
    places = [place for row in TABLE.values() for place in row.get("places", ())]

    assert [place for place in places if not (changed.ROOT / place).exists()] == []
