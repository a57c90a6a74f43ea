"""The API as its own OpenAPI describes it: whatever a program sends, no answer is a server's error."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as trying

from eyespot.web import Role, ServerSettings, application
from tests.lazy_import import lazy_import, requires
from tests.web.conftest import TOKENS, make_gallery

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
