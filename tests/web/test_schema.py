"""The API as its own OpenAPI describes it: whatever a program sends, no answer is a server's error."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from eyespot.web import ServerSettings
from tests.lazy_import import requires
from tests.web.conftest import copy_gallery, serving

pytestmark = requires("schemathesis")

# A condition in SQL, a label's column, bytes that are a picture: no schema can say which are good, so 422 is an answer;
# and 431 refuses an address that is too long before anybody reads it.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "401", "403", "404", "409", "410", "422", "429", "431"]

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "410", "413", "415", "422", "429", "431", "5xx"]
"""


@pytest.mark.long
def test_its_own_program_finds_nothing_with_any_check(settings: ServerSettings, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    gallery = copy_gallery(tmp_path / "made", photos=6)
    program = Path(sys.executable).with_name("schemathesis")
    with serving(replace(settings, gallery=gallery, cache=None)) as address:
        line = [program, "run", f"{address}/openapi.json", "--checks", "all", "-n", "20", "--continue-on-failure"]
        ran = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)

    assert ran.returncode == 0, ran.stdout
    assert "Tested: " in ran.stdout
