"""The API as its own OpenAPI describes it: whatever a program sends, no answer is a server's error."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as trying

from eyespot.web import Role, ServerSettings, application
from tests.lazy_import import lazy_import, requires
from tests.web.conftest import TOKENS, make_gallery, serving

schemathesis = lazy_import("schemathesis")
pytestmark = requires("schemathesis")
OWNER = {"Authorization": f"Bearer {TOKENS[Role.OWNER]}"}


@pytest.fixture(scope="module")
def described(settings: ServerSettings, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A gallery of its own, for what is sent is also judged and kept."""
    gallery = make_gallery(tmp_path_factory.mktemp("schema"), photos=6)
    app = application(replace(settings, gallery=gallery, cache=None))
    app.state.house.prepare()
    while not app.state.house.ready:
        time.sleep(0.01)
    return schemathesis.openapi.from_asgi("/openapi.json", app, headers=OWNER)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of what generates the requests
def test_nothing_that_is_sent_breaks_the_server(described: Any) -> None:
    @trying(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def check(case: Any) -> None:
        answer = case.call(headers=OWNER)
        assert answer.status_code < 500, answer.text
        case.validate_response(answer, checks=[schemathesis.checks.not_a_server_error])
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == ["application/problem+json"]

    operations = [one.ok() for one in described.get_all_operations()]
    for operation in operations:
        given(case=operation.as_strategy())(check)()
    assert len(operations) >= 14


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
    gallery = make_gallery(tmp_path / "made", photos=6)
    program = Path(sys.executable).with_name("schemathesis")
    with serving(replace(settings, gallery=gallery, cache=None)) as address:
        line = [program, "run", f"{address}/openapi.json", "--checks", "all", "-n", "20", "--continue-on-failure"]
        ran = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)

    assert ran.returncode == 0, ran.stdout
    assert "Tested: " in ran.stdout
