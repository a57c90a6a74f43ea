"""Answers that say what would do: another method, a number, a lighter weight, a gallery with photos."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.web.conftest import Ask


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/judgements", "GET, POST, DELETE"), ("/v1/runs/x/rerank", "GET, POST, DELETE"), ("/healthz", "GET")],
)
def test_a_wrong_method_is_told_all_that_would_do(client: TestClient, path: str, allowed: str) -> None:
    answer = client.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/runs/x/rerank", {"judge": "quick", "most": False}, "most"),
        ("/v1/judgements", {"q": "a", "item": "x", "verdict": "yes", "rank": True}, "rank"),
    ],
)
def test_a_truth_value_is_no_number(client: TestClient, path: str, body: dict[str, Any], field: str) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, field in answer.json()["detail"]) == (422, True)


def test_very_heavy_and_very_light_weights_are_counted_without_warnings(search: Ask) -> None:
    ids = [[item["id"] for item in search(q=q)["items"]] for q in ("1" + "0" * 45 + ":discs", "discs")]
    assert ids[0] == ids[1]
