"""What programs send that were not written for eyespot: `/v1/embeddings` in several shapes, many searches at once."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import eyespot
from eyespot.search.embedding import embed
from eyespot.types import Query
from eyespot.web import ServerSettings
from tests.lazy_import import requires
from tests.web.conftest import Ask, serving
from tests.worlds import draw

requires("openai")


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("picture") / "one.jpg", 300)


@pytest.fixture(scope="module")
def encoded(picture: Path) -> str:
    return base64.b64encode(picture.read_bytes()).decode()


@pytest.fixture(scope="module")
def openai_client(settings: ServerSettings) -> Iterator[Any]:
    """OpenAI's own client, with an address in place of theirs."""
    import openai

    with serving(settings) as address, openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_the_official_client_gets_the_vectors_of_the_encoder(openai_client: Any) -> None:
    texts = ["a heron", "a boat at night", "2:heron - people"]  # no query language: a text is a text
    wanted = eyespot.load_encoder("starter").encode_texts(texts)
    packed = openai_client.embeddings.create(model="starter", input=texts)  # it asks for base64 by itself
    plain = openai_client.embeddings.create(model="starter", input=texts, encoding_format="float")
    assert [one.index for one in packed.data] == [0, 1, 2] and packed.model == "starter"
    assert packed.usage.prompt_tokens == packed.usage.total_tokens == 27  # [CLS] a photo of a … [SEP]: 7, 9 and 11
    for answer in (packed, plain):
        np.testing.assert_allclose([one.embedding for one in answer.data], wanted, atol=1e-6)


def test_the_official_client_says_what_is_wrong(openai_client: Any) -> None:
    import openai

    with pytest.raises(openai.NotFoundError, match="there are: starter"):
        openai_client.embeddings.create(model="text-embedding-3-small", input="a heron")
    with pytest.raises(openai.UnprocessableEntityError, match="512 dimensions"):
        openai_client.embeddings.create(model="starter", input="a heron", dimensions=256)


def test_pictures_as_other_services_send_them(client: TestClient, picture: Path, encoded: str) -> None:
    encoder, data = eyespot.load_encoder("starter"), f"data:image/jpeg;base64,{encoded}"
    alone, both = embed([Query.picture(picture), Query.composed(picture, "a heron")], encoder)
    words = {"type": "text", "text": "a heron"}
    shapes: list[tuple[dict[str, Any], Any]] = [
        ({"input": [{"image": encoded}]}, alone),  # Jina
        ({"input": [{"image": data}]}, alone),
        ({"inputs": [{"content": [{"type": "image_base64", "image_base64": data}, words]}]}, both),  # Voyage
        ({"inputs": [{"content": [{"type": "image_url", "image_url": {"url": data}}, words]}]}, both),  # Cohere
        ({"images": [data], "input_type": "image"}, alone),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": data}}]}]},
            alone,
        ),  # vLLM
    ]
    for body, wanted in shapes:
        answer = client.post("/v1/embeddings", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["usage"]["uncounted"] == 1
        np.testing.assert_allclose(answer.json()["data"][0]["embedding"], wanted, atol=1e-6, err_msg=str(body)[:90])


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({}, 422, "nothing to embed"),
        ({"input": " "}, 422, "empty"),
        ({"input": [[1, 2]]}, 422, "neither"),
        ({"input": [{"image": "https://example.org/a.jpg"}]}, 422, "no address is fetched"),
        ({"inputs": [{"content": [{"image_url": "file:///etc/passwd"}]}]}, 422, "no address is fetched"),
        ({"input": [{"image": "bm8gcGljdHVyZQ=="}]}, 422, "not a picture"),
        ({"input": [{"image": "no base64!"}]}, 422, "not a picture"),
        ({"input": ["a"] * 2049}, 413, "2,048"),
        ({"input": [{"image": "AA=="}] * 129}, 413, "128 pictures"),
    ],
)
def test_what_cannot_be_embedded_is_refused(client: TestClient, body: Any, status: int, word: str) -> None:
    answer = client.post("/v1/embeddings", json=body)
    assert (answer.status_code, word in answer.json()["detail"]) == (status, True), answer.text


def test_documents_are_ranked_as_jina_and_cohere_have_it(client: TestClient, encoded: str) -> None:
    """Texts and pictures by their cosine to the query; `top_n` of the best, named by their places."""
    documents = ["a boat at night", {"image": encoded}, {"text": "a grey heron"}, "a heron"]
    answer = client.post("/v1/rerank", json={"model": "starter", "query": "a heron", "documents": documents}).json()
    scores = {one["index"]: one["relevance_score"] for one in answer["results"]}
    vectors = eyespot.load_encoder("starter").encode_texts(["a heron", "a boat at night", "a grey heron"])
    wanted = dict(zip((3, 0, 2), (vectors @ vectors[0]).tolist(), strict=True))

    assert [*scores] == sorted(scores, key=lambda at: -scores[at]) and set(scores) == {0, 1, 2, 3} and answer["usage"]
    assert all(abs(scores[at] - value) < 1e-5 for at, value in wanted.items()) and next(iter(scores)) == 3
    best = client.post("/v1/rerank", json={"query": {"image": encoded}, "documents": documents, "top_n": 2}).json()
    assert best["results"][0]["index"] == 1 and len(best["results"]) == 2
    faults: list[dict[str, Any]] = [{"documents": []}, {"documents": ["a", 5]}, {"top_n": 0}, {"query": ""}]
    for wrong in faults:
        body = {"query": "a heron", "documents": documents} | wrong
        assert client.post("/v1/rerank", json=body).status_code == 422


def test_a_picture_bomb_is_refused_unopened(client: TestClient, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("EYESPOT_MAX_PIXELS", "1000000")
    Image.new("1", (20_000, 20_000)).save(tmp_path / "bomb.png")
    bomb = base64.b64encode((tmp_path / "bomb.png").read_bytes()).decode()
    answer = client.post("/v1/embeddings", json={"input": [{"image": bomb}]})
    assert answer.status_code == 422 and "megapixel" in answer.json()["detail"]


def test_many_queries_find_what_each_finds_alone(client: TestClient, search: Ask, picture: Path) -> None:
    digest = client.post("/v1/pictures", files={"picture": picture.read_bytes()}).json()["picture"]
    queries: list[Any] = ["a disc", "2:stripes - a disc", "heron", {"picture": digest}]
    for more in ({}, {"by": "look"}, {"by": "words", "label": ["kind=heron"]}, {"where": "title like 'photo 1%'"}):
        answer = client.post("/v1/search", json={"queries": queries, "limit": 7, **more}).json()
        for query, result in zip(queries, answer["results"], strict=True):
            given = {"q": query} if isinstance(query, str) else query
            alone = client.get("/v1/search", params={**given, **more, "limit": 7})
            wanted = alone.json().get("items", [])
            assert result["query"] == query
            assert [(hit["id"], hit["rank"]) for hit in result["hits"]] == [(hit["id"], hit["rank"]) for hit in wanted]
            np.testing.assert_allclose(
                [hit["score"] for hit in result["hits"]], [hit["score"] for hit in wanted], atol=2e-6
            )


def test_a_query_that_cannot_be_searched_fails_alone(client: TestClient) -> None:
    wrong = ["heron - heron", "./photo.jpg", " ", "\0", "x" * 1001, {"picture": "0" * 32}, {"picture": "x"}, {"k": "3"}]
    queries = ["a disc", *wrong]
    answer = client.post("/v1/search", json={"queries": queries, "limit": 2}).json()
    first, *others = answer["results"]
    assert len(first["hits"]) == 2 and "error" not in first
    assert [(one["hits"], "error" in one) for one in others] == [([], True)] * 8
    assert others[4]["error"] == "q: longer than 1,000 characters; shorten it"


@pytest.mark.parametrize(
    "body",
    [
        {"queries": []},
        {"queries": ["a"], "limit": 101},
        {"queries": ["a"], "where": "no column"},
        {"queries": "a"},
        {"queries": ["a"], "k": 3},
        {"queries": ["a"], "where": "\0"},
    ],
)
def test_a_batch_that_makes_no_sense_is_refused(client: TestClient, body: Any) -> None:
    assert client.post("/v1/search", json=body).status_code == 422


def test_what_creates_links_to_what_is_created(here: TestClient, picture: Path) -> None:
    """Each link is followed by its fields, as a program does that was made of the description."""
    described = here.get("/openapi.json").json()["paths"]
    item = here.get("/v1/search", params={"q": "a disc", "limit": 1}).json()["items"][0]["id"]
    made = {
        ("/v1/search", "get", "200"): here.get("/v1/search", params={"q": "a disc"}),
        ("/v1/pictures", "post", "201"): here.post("/v1/pictures", files={"picture": picture.read_bytes()}),
        ("/v1/lists", "post", "201"): here.post("/v1/lists", json={"name": "links", "items": [item]}),
        ("/v1/judgements", "post", "201"): here.post("/v1/judgements", json={"q": "x", "item": item, "verdict": "yes"}),
    }
    for (path, method, status), answer in made.items():
        link = described[path][method]["responses"][status]["links"]["created"]
        target = link["operationRef"].removeprefix("#/paths/").removesuffix("/get").replace("~1", "/")
        names = {one["name"]: one["in"] for one in described[target]["get"]["parameters"]}
        values = {name: answer.json()[value.rpartition("/")[2]] for name, value in link["parameters"].items()}
        assert set(values) <= set(names)
        places = {name: value for name, value in values.items() if names[name] == "path"}
        given = {name: value for name, value in values.items() if name not in places}
        assert here.get(target.format(**places), params=given).status_code == 200, path
