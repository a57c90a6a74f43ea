"""What programs ask of `/v1`: frozen rankings, embeddings in several shapes, many searches at once."""

from __future__ import annotations

import base64
import csv
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings as trying, strategies as st
from PIL import Image

import eyespot
from eyespot.photos.pictures import id_of
from eyespot.search.embedding import embed
from eyespot.types import Query
from eyespot.web import ServerSettings
from eyespot.web.found.summary import summary_of
from tests.examples import examples
from tests.lazy_import import requires
from tests.web.conftest import PHOTOS, Ask, at_this_machine, copy_gallery, make_gallery, serving
from tests.worlds import draw, index_gallery


def pages(client: TestClient, sizes: list[int], **params: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    page: dict[str, Any] = {"next": None}
    while page["next"] or not items:
        size = sizes[len(items) % len(sizes)]
        page = client.get("/v1/search", params={**params, "limit": size, "cursor": page["next"] or ""}).json()
        items += page["items"]
    return items


@trying(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_pages_of_any_size_add_up_to_the_one_ranking(client: TestClient, sizes: list[int]) -> None:
    items = pages(client, sizes, q="a disc")
    assert [item["rank"] for item in items] == list(range(1, PHOTOS + 1))
    assert len({item["id"] for item in items}) == PHOTOS
    assert [item["score"] for item in items] == sorted((item["score"] for item in items), reverse=True)


@pytest.mark.long
def test_a_result_stays_as_it_is_while_the_gallery_grows(tmp_path: Path) -> None:
    gallery = make_gallery(tmp_path, photos=8)
    with at_this_machine(ServerSettings(gallery)) as client:
        first = client.get("/v1/search", params={"q": "stripes", "limit": 4}).json()
        for seed in range(200, 206):
            draw(tmp_path / "photos" / f"{seed}.jpg", seed)
        index_gallery(gallery)
        rest = client.get("/v1/search", params={"cursor": first["next"], "limit": 50}).json()
        anew = client.get("/v1/search", params={"q": "stripes", "limit": 50}).json()

    assert (len(first["items"]) + len(rest["items"]), len(anew["items"])) == (8, 14)


def test_more_like_a_photo_begins_with_it_and_not_this_leaves_it_out(search: Ask) -> None:
    first, second = (item["id"] for item in search(q="stripes", limit=2)["items"])
    (liked,) = search(like=second, limit=1)["items"]
    rest = search(q="stripes", unlike=first, limit=500)
    assert (liked["id"], round(liked["score"], 3)) == (second, 1.0)
    assert rest["total"] == PHOTOS - 1 and first not in [item["id"] for item in rest["items"]]


def test_a_photo_draws_a_query_as_the_formula_says(search: Ask, gallery: Path) -> None:
    """Worked by hand in numpy: half the words and the photo's own direction, each by the spread of its scores."""
    collection = eyespot.open(gallery)
    liked = search(q="stripes", limit=1)["items"][0]["id"]
    (row,) = collection.view.rows_of([liked])
    query, sample = collection.encoder.encode_texts(["a disc"])[0], collection.contrast.sample.astype(np.float64)
    apart = sample - sample.mean(axis=0)
    covariance = apart.T @ apart / len(sample)
    covariance += 10 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    look = np.linalg.solve(covariance, collection.view.vectors([row])[0] - sample.mean(axis=0))
    drawn = 0.5 * query / (sample @ query).std() + look / (sample @ look).std()

    (best,) = search(q="a disc", like=liked, limit=1)["items"]

    vectors = np.concatenate(collection.view.blocks)
    assert best["score"] == pytest.approx(float((vectors @ drawn).max() / np.linalg.norm(drawn)), abs=1e-5)


@pytest.mark.parametrize(
    ("params", "count"),
    [
        ({"label": "kind=heron"}, 24),
        ({"label": ["kind=heron", "kind=egret"]}, 72),
        ({"label": ["kind=heron", "author=Ada"]}, 24),
        ({"after": "2021", "before": "2022"}, 24),
        ({"near": "46,7,46.5,7.5"}, 26),
        ({"near": "-90,170,90,-170"}, 0),
        ({"where": "kind = 'heron' AND year(taken) = 2020"}, 24),
    ],
)
def test_filters_leave_just_what_fits(client: TestClient, params: dict[str, Any], count: int) -> None:
    response = client.get("/v1/search", params={"q": "stripes", **params, "limit": 500})
    assert len(response.json().get("items", [])) == count
    assert response.status_code == (200 if count else 404)


def test_a_picture_that_is_brought_finds_itself(client: TestClient, gallery: Path) -> None:
    photo = gallery.parent / "photos" / "007.jpg"
    brought = client.post("/v1/pictures", files={"picture": ("x.jpg", photo.read_bytes(), "image/jpeg")}).json()
    best = client.get("/v1/search", params={"picture": brought["picture"], "limit": 1}).json()["items"][0]
    assert best["id"] == id_of(photo.read_bytes()) == brought["picture"]
    assert client.get(brought["thumbnail"]).headers["content-type"] == "image/jpeg"


@pytest.mark.parametrize("path", ["/", "/?q=stripes", "/static/htmx.min.js", "/static/style.css", "/v1/items"])
def test_text_comes_compressed_and_says_so(client: TestClient, path: str) -> None:
    """A cache between keeps both forms apart."""
    ways = {"gzip": {"Accept-Encoding": "gzip"}, None: {"Accept-Encoding": "identity"}}
    answers = {way: client.get(path, headers={"Accept": "text/html", **headers}) for way, headers in ways.items()}
    assert {answer.headers.get("content-encoding") for answer in answers.values()} == {"gzip", None}
    assert all("accept-encoding" in answer.headers["vary"].lower() for answer in answers.values())
    assert int(answers["gzip"].headers["content-length"]) < len(answers[None].content) / 2
    assert len(answers["gzip"].content) == pytest.approx(len(answers[None].content), rel=0.01)


def test_pictures_are_not_compressed_again_and_asked_for_once(client: TestClient, search: Ask, run: str) -> None:
    thumbnail = client.get(search(q="stripes")["items"][0]["thumbnail"])
    archive = client.get(run, params={"format": "zip", "depth": 2})
    again = client.get(thumbnail.url, headers={"If-None-Match": thumbnail.headers["etag"]})
    assert [answer.headers.get("content-encoding") for answer in (thumbnail, archive, again)] == [None] * 3
    assert (again.status_code, again.content) == (304, b"") and "immutable" in thumbnail.headers["cache-control"]


def test_items_come_in_pages_and_one_by_one_and_tell_nothing_above_the_root(client: TestClient, gallery: Path) -> None:
    answer = client.get("/v1/items", params={"limit": 50})
    first = answer.json()
    rest = client.get("/v1/items", params={"limit": 50, "cursor": first["next"]}).json()
    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (50, 22, None)
    one = first["items"][0]
    assert client.get(f"/v1/items/{one['id']}").json() == one
    assert str(gallery.parent) not in answer.text and '"path":"photos/004.jpg"' in answer.text
    searched = ({"q": "stripes"}, {"verdict": "yes"}, {"feedback": "mine"}, {"likely": 0.5}, {"grouped": "true"})
    assert [client.get("/v1/items", params=one).status_code for one in searched] == [422] * 5


def test_columns_have_labels_with_counts_and_the_span_of_dates_and_places(client: TestClient) -> None:
    payload = client.get("/v1/columns").json()
    assert {one["column"]: one["values"] for one in payload["labels"]} == {"kind": {"egret": 48, "heron": 24}}
    assert (payload["first"], payload["last"]) == ("2020-01-05", "2022-12-05")
    assert payload["box"] == {"south": 46.0, "west": 7.0, "north": 46.7, "east": 7.7}


# -- what can be taken along -----------------------------------------------------------------------------------


@pytest.fixture
def run(search: Ask) -> str:
    found: str = search(q="stripes", limit=1)["run"]
    return f"/v1/runs/{found}"


def test_a_csv_has_neither_formulas_nor_unless_asked_positions_and_owners(client: TestClient, run: str) -> None:
    plain, whole = (
        list(csv.DictReader(io.StringIO(client.get(run, params={"format": "csv", "all_columns": whole}).text)))
        for whole in (False, True)
    )
    assert set(whole[0]) - set(plain[0]) == {"latitude", "longitude", "position_from", "author"}
    assert "'=1+1" in [row["title"] for row in whole]
    assert not [text for row in whole for text in row.values() if text.startswith(("=", "+", "-", "@"))]


def test_a_csv_names_the_reasons_of_a_hit_by_their_codes(client: TestClient, search: Ask) -> None:
    found = search(q="heron", limit=500)
    table = client.get(f"/v1/runs/{found['run']}", params={"format": "csv"}).text
    reasons = {row["id"]: row["why"] for row in csv.DictReader(io.StringIO(table))}
    assert reasons == {hit["id"]: ", ".join(one["code"] for one in hit.get("why", [])) for hit in found["items"]}
    assert any("," in one for one in reasons.values())


def test_a_summary_counts_the_first_hits(client: TestClient, run: str) -> None:
    page = client.get(run.replace("/v1/runs", "/summary"), headers={"Accept": "text/html"}).text
    text = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert "December 6" in text and "egret 48 heron 24" in text


def test_a_verdict_that_is_taken_back_counts_no_more_and_stays_as_history(tmp_path: Path) -> None:
    with at_this_machine(ServerSettings(copy_gallery(tmp_path, 6))) as client:
        found = client.get("/v1/search", params={"q": "stripes"}).json()
        about = {"q": "stripes", "item": found["items"][0]["id"]}
        client.post("/v1/judgements", json={**about, "verdict": "yes", "rank": 1})
        client.post("/v1/judgements", json={**about, "verdict": "no", "rank": 1, "by": "bob"})
        back = client.delete("/v1/judgements", params=about)
        hits = client.get(f"/v1/runs/{found['run']}").json()["items"]
        topic = client.get(f"/v1/runs/{found['run']}", params={"format": "trec"}).text.split()[0]
        page = client.get("/?q=stripes", headers={"Accept": "text/html"}).text
        judgements = client.get("/v1/judgements", params={"q": "stripes"}).json()["judgements"]
        of_others = client.get("/v1/judgements", params={"q": "spots"}).json()["judgements"]
        refused = client.get("/v1/judgements", params={"words": "stripes"})
        again = client.delete("/v1/judgements", params=about)

    assert (back.status_code, back.json()["failure"], back.json()["rank"]) == (200, "withdrawn", 1)
    assert hits[0]["verdict"] is None and "data-verdict=" not in page
    assert {one["query"] for one in judgements} == {topic}  # a run and its judgements are of the same topic
    assert [(one["by"], one["grade"], one["failure"]) for one in judgements] == [
        ("person:visitor", 1, ""),
        ("person:bob", 0, ""),
        ("person:visitor", None, "withdrawn"),
    ]
    assert (of_others, refused.status_code, "words" in refused.json()["detail"]) == ([], 422, True)
    assert (again.status_code, "no verdict" in again.json()["detail"]) == (404, True)


@pytest.mark.parametrize("words", ["Rhino HORN", "rhino-horn", "a rhíno  horn?", "2:rhino horn", "rhino\u200b horn"])
def test_refused_words_are_refused_however_they_are_spelled(settings: ServerSettings, words: str) -> None:
    with at_this_machine(replace(settings, refused=("rhino horn",))) as client:
        answer = client.get("/v1/search", params={"q": words})
        fine = client.get("/v1/search", params={"q": "a rhino"})
    assert (answer.status_code, fine.status_code) == (422, 200)
    assert "rhino horn" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({}, 422),
        ({"q": " "}, 422),
        ({"q": "stripes - stripes"}, 422),
        ({"q": "x" * 1001}, 422),
        ({"q": "./pool.jpg"}, 422),
        ({"q": "http://example.org/a.jpg"}, 422),
        ({"q": "a\0b"}, 422),
        ({"q": "a", "after": "yesterday"}, 422),
        ({"q": "a", "near": "1,2"}, 422),
        ({"q": "a", "near": "9,0,1,0"}, 422),
        ({"q": "a", "box": "1,2,3,4"}, 422),
        ({"q": "a", "ungrouped": "true"}, 422),
        ({"q": "a", "adapter": "birds"}, 422),
        ({"q": "a", "alpha": "3"}, 422),
        ({"q": "a", "near": "nan,0,1,0"}, 422),
        ({"q": "a", "label": "kind"}, 422),
        ({"q": "a", "label": "nothing=1"}, 422),
        ({"q": "a", "where": "1=1; DROP TABLE items"}, 422),
        ({"q": "a", "where": "read_text('/etc/passwd') = ''"}, 422),
        ({"q": "a", "encoder": "none"}, 422),
        ({"q": "a", "limit": 501}, 422),
        ({"q": "a", "cursor": "../../x.1"}, 422),
        ({"cursor": "0123abcd.60"}, 404),  # never the name of a result
        ({"cursor": "0123456789abcdef01234567.60"}, 410),
        ({"like": "unknown"}, 422),
        ({"picture": "0" * 32}, 404),
    ],
)
def test_bad_requests_cost_one_sentence(client: TestClient, params: dict[str, Any], status: int) -> None:
    answer = client.get("/v1/search", params=params)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["detail"] and answer.json()["status"] == status


BODIES = {
    "lists": {"name": "herons", "items": []},
    "judgements": {"q": "stripes", "item": "x", "verdict": "yes"},
    "judgements/several": {"q": "stripes", "marks": [{"item": "x", "verdict": "yes"}]},
    "clicks": {"q": "stripes", "item": "x", "like": True},
    "runs/x/rerank": {"judge": "quick", "most": 3},
    "search": {"queries": ["stripes"]},
}


@pytest.mark.parametrize("path", BODIES)
def test_a_body_with_an_unknown_field_is_refused(client: TestClient, path: str) -> None:
    """Under another name `most` would limit nothing, and `rank` or `items` would be lost."""
    answer = client.post(f"/v1/{path}", json={**BODIES[path], "other": 1})
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (422, "other")


def test_a_summary_counts_months_by_their_names_and_what_has_no_date_apart() -> None:
    days = ["2020-01-05T10:00:00", "2021-12-31", None, "2020-01-31"]
    found = summary_of([{"taken": day} for day in days], ())
    assert [(one["name"], one["counts"], one["without"]) for one in found] == [
        ("year", [("2020", 2), ("2021", 1)], 1),
        ("month", [("January", 2), ("December", 1)], 1),
    ]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/judgements", "GET, POST, DELETE"), ("/v1/runs/x/rerank", "GET, POST, DELETE"), ("/healthz", "GET")],
)
def test_a_wrong_method_is_told_all_that_would_do(client: TestClient, path: str, allowed: str) -> None:
    answer = client.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_very_heavy_and_very_light_weights_are_counted_without_warnings(search: Ask) -> None:
    ids = [[item["id"] for item in search(q=q)["items"]] for q in ("1" + "0" * 45 + ":discs", "discs")]
    assert ids[0] == ids[1]


# -- as its own OpenAPI describes it ------------------------------------------------------------------------------

# A condition in SQL, a label's column, bytes that are a picture: no schema can say which are good, so 422 is an answer;
# and 431 refuses an address that is too long before anybody reads it.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "304", "401", "403", "404", "409", "410", "422", "429", "431"]

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "410", "413", "415", "422", "429", "431", "5xx"]
"""


@pytest.mark.long
@pytest.mark.timeout(900)  # a minute where the machine is idle
@requires("schemathesis")
def test_its_own_program_finds_nothing_with_any_check(settings: ServerSettings, tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    gallery = copy_gallery(tmp_path / "made", photos=6)
    program = Path(sys.executable).with_name("schemathesis")
    with serving(replace(settings, gallery=gallery, cache=None)) as address:
        line = [program, "run", f"{address}/openapi.json", "--checks", "all", "--seed", "1", "--continue-on-failure"]
        line += ["-n", str(examples(20))]
        line += [] if examples(100) == 100 else ["--phases", "fuzzing,stateful"]  # `coverage` is two thirds of the time
        ran = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout
    assert "Tested: " in ran.stdout


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
