"""Embedding models behind an address: what is asked, what comes back, and servers that do badly or not at all."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from eyespot import rooms
from eyespot.gallery import disk
from eyespot.search.collection import Collection
from eyespot.search.embedding import embed
from eyespot.types import EyespotError, Query, Term, UsageError
from tests.wording import check_wording, raises
from tests.worlds import embedding_server as served, index_gallery, make_gallery
from tests.worlds.servers import Act, Double, Response, Seen, error

RED, GREEN = (255, 0, 0), (0, 255, 0)
QUICK = {"first_rest": 0.001, "timeout": 5.0}


@pytest.fixture
def server() -> Iterator[Double]:
    with served.serving() as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EYESPOT_EMBEDDINGS_URL", "EYESPOT_EMBEDDINGS_SETTINGS", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def load(server: Double, name: str = "tiny", **options: Any) -> Any:
    return rooms.load("encoders", f"served:{name}", url=server.url, **{**QUICK, **options})


def picture(colour: tuple[int, int, int] = RED, size: tuple[int, int] = (48, 32)) -> Image.Image:
    return Image.new("RGB", size, colour)


def pixels(encoder: Any, *pictures: Image.Image) -> Any:
    return np.stack([encoder.read(one) for one in pictures])


def last(server: Double) -> Seen:
    return server.asked(served.EMBEDDINGS)[-1]


def test_the_vector_is_the_servers_own_of_unit_length(server: Double) -> None:
    encoder = load(server)
    rows = encoder.encode_pixels(pixels(encoder, picture(RED), picture(GREEN)))

    own = np.array([served.vector(seen) for seen in server.asked(served.EMBEDDINGS)[-2:]])  # (2, 8), in either order
    own = own[np.argsort(-own[:, 0])]
    np.testing.assert_allclose(rows, own / np.linalg.norm(own, axis=1, keepdims=True), atol=1e-6)


def test_a_large_picture_is_shrunk_to_a_megapixel_and_a_small_one_is_not(server: Double) -> None:
    encoder, sizes = load(server), []
    for size in ((3000, 2000), (60, 40)):
        encoder.encode_pixels(pixels(encoder, picture(size=size)))
        shown = served.picture_of(last(server))
        sizes.append(shown.size if shown else None)

    (width, height), small = sizes
    assert 900_000 < width * height <= 1280 * 28 * 28 and abs(width / height - 1.5) < 0.01
    assert small == (60, 40)


def test_png_brings_every_pixel(server: Double) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8))
    matches = []
    for form in ("png", "jpeg"):
        encoder = load(server, pictures=form)
        encoder.encode_pixels(pixels(encoder, noise))
        matches.append(np.array_equal(np.asarray(served.picture_of(last(server))), np.asarray(noise)))

    assert matches == [True, False]


SETTINGS = 'system = "Find birds."\nworkers = 2\n[instructions]\ntext = "Seek {}."\n[request]\ndimensions = 8\n'
ASKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "by its name": {"name": "TIGER-Lab/VLM2Vec-Full"},
    "chat": {"family": "chat", "instructions": {"picture": "Look.", "text": "Seek {}."}, "system": "Find birds."},
    "fields": {"request": {"add_generation_prompt": True, "dimensions": 8}},
    "empty words": {"words": ""},
}


@pytest.mark.parametrize("name", ASKED)
def test_requests_are_word_for_word_those_of_the_snapshot(name: str, server: Double) -> None:
    """Of words, of a picture, and of both, the picture first."""
    words = ASKED[name].get("words", "a {} heron")
    encoder = load(server, **{option: value for option, value in ASKED[name].items() if option != "words"})
    shown = pixels(encoder, picture())

    encoder.encode_texts([words])
    encoder.encode_pixels(shown)
    encoder.encode_composed(shown, [words])

    for seen in server.asked(served.EMBEDDINGS)[-3:]:
        check_wording(re.sub(r"/9j/[\w+/=]+", "PICTURE", json.dumps(seen.body, sort_keys=True)))


def test_a_file_says_the_same_and_options_go_before_it(
    server: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words.toml").write_text(SETTINGS)
    monkeypatch.setenv("EYESPOT_EMBEDDINGS_SETTINGS", str(tmp_path / "words.toml"))
    encoder = load(server, system="Find moths.")
    encoder.encode_texts(["a heron"])

    system, user = last(server).body["messages"]
    assert (system["content"], user["content"][0]["text"]) == ("Find moths.", "Seek a heron.")
    assert last(server).body["dimensions"] == 8 and encoder.batch == 4
    assert load(server).space != encoder.space


def test_address_and_key_are_taken_from_the_environment_the_own_name_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with served.serving() as own, served.serving() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        rooms.load("encoders", "served:tiny")
        monkeypatch.setenv("EYESPOT_EMBEDDINGS_URL", own.url.removesuffix("/v1"))
        rooms.load("encoders", "served:tiny")

        counts = [len(one.asked(served.EMBEDDINGS)) for one in (other, own)]
    assert counts == [1, 1]
    assert {seen.headers["authorization"] for seen in own.seen} == {"Bearer secret"}


@pytest.mark.parametrize("url", [None, "", "localhost:8000", "ftp://localhost"])
def test_without_an_address_nothing_leaves_even_with_a_key(url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Photos must not go to the vendor whose key happens to be set."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")

    with pytest.raises(UsageError, match="EYESPOT_EMBEDDINGS_URL"):
        rooms.load("encoders", "served:tiny", url=url)


def test_a_server_that_is_away_is_told_in_one_sentence() -> None:
    with served.serving() as server:
        encoder = load(server)
    for attempt in (lambda: load(server), lambda: encoder.encode_texts(["a heron"] * 20)):
        with pytest.raises(EyespotError, match=f"^[^\n]*{server.url}[^\n]*$"):
            attempt()


def test_one_request_tells_how_long_vectors_are(server: Double) -> None:
    """A server without a list of its models serves too."""
    encoder = load(server)

    assert (encoder.space.encoder, encoder.space.dim, encoder.space.revision) == ("served:tiny", 8, "served")
    assert [seen.path for seen in server.seen] == [served.MODELS, served.EMBEDDINGS]
    with Double(then=served.embedded) as unlisted:
        assert load(unlisted).space == encoder.space


@pytest.mark.parametrize(
    ("card", "revision"),
    [
        ({"revision": "abc123", "root": "org/large"}, "abc123"),
        ({"root": "org/large"}, "org/large"),
        ({"root": "/models/snapshots/abc123"}, "abc123"),
        ({"root": "tiny", "owned_by": "vllm"}, "served"),
    ],
)
def test_the_revision_is_what_the_list_of_models_tells(card: dict[str, Any], revision: str) -> None:
    with served.serving(created=1, **card) as first, served.serving(created=2, **card) as later:
        spaces = [load(server).space for server in (first, later)]

    assert spaces[0].revision == revision and spaces[0] == spaces[1]  # when it was asked is no part of it


def test_a_revision_that_is_said_is_kept_and_not_sent(server: Double) -> None:
    encoder = load(server, "@cf/tiny@2026-10")

    assert (encoder.space.encoder, encoder.space.revision) == ("served:@cf/tiny@2026-10", "2026-10")
    assert last(server).body["model"] == "@cf/tiny"
    assert load(server, "@main").space.encoder == "served:@main"


def test_other_words_are_another_space(server: Double) -> None:
    """And so is all else that decides what the model is told and shown; not where it is, nor how fast it is asked."""
    options: list[dict[str, Any]] = [
        {},
        {"family": "chat"},
        {"instructions": {"text": "Seek {}."}},
        {"system": "Find birds."},
        {"request": {"add_generation_prompt": True}},
        {"pictures": "png"},
    ]
    spaces = [load(server, **one).space for one in options]

    assert len({space.digest for space in spaces}) == 6
    with served.serving() as elsewhere:
        assert load(elsewhere, workers=2, batch=3, timeout=9.0, attempts=2, key="k").space == spaces[0]


def test_rows_stand_in_order_and_as_many_requests_are_under_way_as_workers() -> None:
    together = threading.Barrier(4)
    waits = iter([0.04, 0.03, 0.02, 0.01] * 2)

    def late(seen: Seen) -> Response:
        if "colour" in served.words_of(seen):
            together.wait(60)  # broken, and so no answer, unless four are under way at once
            time.sleep(next(waits))
        return served.embedded(seen)

    texts = [f"colour {number}" for number in range(8)]
    with served.serving(then=late) as server:
        rows = load(server, workers=4).encode_texts(texts)
        quick = load(server, workers=4, instructions={"text": "{}"})
        waits = iter([0.0] * 8)
        again = quick.encode_texts(texts)

    assert np.array_equal(rows, again)
    assert len({row.tobytes() for row in rows}) == 8


def test_a_busy_server_is_asked_again(server: Double) -> None:
    encoder = load(server)
    server.script = [error(429, "later", retry_after_ms="1"), error(503), Response(data=b"{"), Response(cut=True)]
    encoder.encode_texts(["a heron"])

    assert len(server.asked(served.EMBEDDINGS)) == 1 + 5


BAD = {
    "two": served.answer([1.0] * 8, [1.0] * 8),
    "none": served.answer(),
    "error": Response(data={"error": "no room"}),
    "several": served.answer([[1.0] * 8] * 3),
    "text": served.answer("AACAPwAAgD8="),
    "no numbers": served.answer([1.0, "x"]),
    "not finite": Response(data=b'{"data": [{"embedding": [1, NaN, 1, 1, 1, 1, 1, 1]}]}'),
    "nought": served.answer([0.0] * 8),
    "key": error(401, "no"),
}
LATER = {"other length": served.answer([1.0] * 5), "too long": error(400, "too long")}


@pytest.mark.parametrize("name", [*BAD, *LATER])
def test_an_answer_that_is_none_is_told_in_one_sentence(name: str, server: Double) -> None:
    encoder = load(server)
    server.script = [(BAD | LATER)[name]]

    with pytest.raises(EyespotError) as later:
        encoder.encode_texts(["a heron"])
    check_wording(str(later.value))
    if name in BAD:
        server.then = BAD[name]
        with pytest.raises(EyespotError) as first:
            load(server)
        check_wording(str(first.value))


LEAVES = st.floats() | st.integers() | st.booleans() | st.none() | st.text(max_size=3)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner))


@pytest.mark.long
@given(st.builds(lambda inner: {"data": [{"embedding": inner}]}, JSON) | st.builds(lambda inner: {"data": inner}, JSON))
def test_any_answer_is_a_unit_vector_or_a_bad_answer(found: Any) -> None:
    from eyespot.encoders._served_inputs import vector_of
    from eyespot.llms import BadAnswer

    try:
        vector = vector_of(found)
    except BadAnswer:
        return
    assert vector.ndim == 1 and math.isclose(np.linalg.norm(vector.astype(float)), 1, abs_tol=1e-5)


def test_a_composer_reads_both_at_once_and_vectors_of_two_halves_are_added(server: Double, tmp_path: Path) -> None:
    """CLIP behind vLLM takes a picture or words, never both."""
    picture(RED).save(tmp_path / "red.png")
    asked = [Query.composed(tmp_path / "red.png", "next: green")]
    weighted = Query("w", (Term(2.0, image=tmp_path / "red.png"), Term(1.0, text="next: green")))
    with served.serving(then=served.refusing("both")) as halved:
        encoder = load(halved)
        (both,) = embed(asked, encoder)
        halves = embed([Query.picture(tmp_path / "red.png"), Query.words("next: green")], encoder)

    assert not hasattr(encoder, "encode_composed")
    np.testing.assert_allclose(both, halves.sum(0) / np.linalg.norm(halves.sum(0)), atol=1e-5)
    together, added = embed([*asked, weighted], load(server))
    assert np.argmax(together) == 1  # green: the server's own answer for red and "next"
    np.testing.assert_allclose(added, [2, 1] @ halves / np.linalg.norm([2, 1] @ halves), atol=1e-5)


def no_model(_: Seen) -> Response:
    return error(404, "no such model")


@pytest.mark.parametrize(
    ("served_as", "then", "name"),
    [
        ("tiny", served.refusing("picture"), "tiny"),
        ("tiny", served.refusing("messages"), "tiny"),
        ("VLM2Vec-Full", no_model, "tiny"),
        ("tiny", no_model, "tiny"),
        ("tiny", served.embedded, "tiny@def456"),
    ],
    ids=["pictures", "messages", "other model", "to chat", "other revision"],
)
def test_a_server_that_cannot_embed_is_told_at_once_with_the_way_out(served_as: str, then: Act, name: str) -> None:
    with served.serving(served_as, then, revision="abc123") as server, raises(UsageError):
        load(server, name)


def picky(seen: Seen) -> Response:
    shown = served.picture_of(seen)
    if shown is not None and shown.getpixel((0, 0))[1] > 200:  # type: ignore[index,operator]
        return error(400, "too many tokens")
    return served.embedded(seen)


def test_a_refused_picture_is_left_out_told_and_tried_again(tmp_path: Path) -> None:
    photos, gallery = tmp_path / "photos", tmp_path / "gallery"
    photos.mkdir()
    for name, colour in {"red": RED, "green": GREEN, "dark": (9, 9, 9)}.items():
        picture(colour).save(photos / f"{name}.png")
    with served.serving(then=picky) as server:
        summary = index_gallery(gallery, photos, encoders=[load(server)])
        missing = disk.read_note(disk.shard_path(gallery, 0), disk.stem_of(load(server).space))
        server.then = served.embedded
        again = index_gallery(gallery, encoders=[load(server)])

    (note,) = summary.notes
    assert "vector: 1;" in note and "too many tokens" in note
    assert missing is not None and len(missing.missing) == 1
    assert (again.embedded, again.notes) == (1, [])


def test_a_query_with_a_refused_picture_says_so(tmp_path: Path) -> None:
    picture(GREEN).save(tmp_path / "green.png")
    with served.serving(then=picky) as server:
        encoder = load(server)
        for query in (Query.picture(tmp_path / "green.png"), Query.composed(tmp_path / "green.png", "next")):
            with pytest.raises(EyespotError) as refused:
                embed([query], encoder)
            check_wording(str(refused.value))


def test_refusals_of_nearly_all_stop_the_run() -> None:
    with served.serving(then=picky) as server:
        encoder = load(server)
        greens = [picture((0, 230, 0), (side, 8)) for side in range(1, 17)]
        encoder.encode_pixels(pixels(encoder, *greens[:14], picture(RED), *greens[:14]))
        with pytest.raises(EyespotError, match=r"16 .*tokens"):
            encoder.encode_pixels(pixels(encoder, *greens[14:]))


@pytest.mark.parametrize(
    "options",
    [
        {"wrokers": 2},
        {"workers": 0},
        {"workers": 1.5},
        {"timeout": True},
        {"family": "ume-r1"},
        {"instructions": {"text": "no place"}},
        {"instructions": {"txt": "{}"}},
        {"instructions": "{}"},
        {"request": {"model": "other"}},
        {"pictures": "bmp"},
        {"system": 7},
        {"name": ""},
        {"name": "  "},
        {"name": "@"},
    ],
    ids=range(14),
)
def test_senseless_options_are_refused_before_anything_is_asked(options: dict[str, Any], server: Double) -> None:
    with pytest.raises(UsageError) as refused:
        load(server, **options)
    check_wording(str(refused.value))
    assert server.seen == []


def test_a_key_in_a_file_is_refused(server: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.toml").write_text('key = "secret"')
    monkeypatch.setenv("EYESPOT_EMBEDDINGS_SETTINGS", str(tmp_path / "words.toml"))

    with raises(UsageError):
        load(server)


def test_a_gallery_that_was_made_with_other_words_is_not_searched(
    server: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYESPOT_EMBEDDINGS_URL", server.url)
    gallery = make_gallery(tmp_path, 1, encoders=["served:tiny"])
    found = Collection(gallery).search("red")
    (tmp_path / "words.toml").write_text('system = "Find birds."')
    monkeypatch.setenv("EYESPOT_EMBEDDINGS_SETTINGS", str(tmp_path / "words.toml"))

    assert len(found) == 1
    with raises(EyespotError):
        Collection(gallery).search("red")
