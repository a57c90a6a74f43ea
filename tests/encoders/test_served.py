"""Embedding models behind an address: what is asked, what comes back, and servers that do badly or not at all."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from eyespot import rooms
from eyespot.gallery import disk
from eyespot.gallery.indexing import index
from eyespot.search.collection import Collection
from eyespot.search.embedding import embed
from eyespot.types import EyespotError, Query, Space, UsageError
from tests.lazy_import import requires
from tests.worlds import embedding_server as served
from tests.worlds.servers import HANG, Double, Response, Seen, error

pytestmark = requires("openai", "tenacity")

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


def content(server: Double) -> list[dict[str, Any]]:
    (message,) = last(server).body["messages"]
    assert message["role"] == "user"
    found: list[dict[str, Any]] = message["content"]
    return found


# -- what is asked ------------------------------------------------------------------------------------------


def test_a_picture_with_words_is_one_message_picture_first(server: Double) -> None:
    encoder = load(server)
    encoder.encode_composed(pixels(encoder, picture()), ["What comes next?"])

    shown, words = content(server)
    assert (shown["type"], words) == ("image_url", {"type": "text", "text": "What comes next?"})
    assert {**last(server).body, "messages": []} == {"model": "tiny", "messages": [], "encoding_format": "float"}
    assert shown["image_url"]["url"].startswith("data:image/jpeg;base64,")


def test_the_vector_is_the_servers_own_of_unit_length(server: Double) -> None:
    encoder = load(server)
    rows = encoder.encode_pixels(pixels(encoder, picture(RED), picture(GREEN)))

    own = np.array([served.vector(seen) for seen in server.asked(served.EMBEDDINGS)[-2:]])  # (2, 8), in either order
    own = own[np.argsort(-own[:, 0])]
    np.testing.assert_allclose(rows, own / np.linalg.norm(own, axis=1, keepdims=True), atol=1e-6)


def test_words_alone_and_a_picture_alone_go_the_same_way(server: Double) -> None:
    encoder = load(server)

    encoder.encode_texts(["a heron"])
    assert content(server) == [{"type": "text", "text": "a heron"}]
    encoder.encode_texts([""])
    assert content(server) == [{"type": "text", "text": ""}]
    encoder.encode_pixels(pixels(encoder, picture()))
    assert [part["type"] for part in content(server)] == ["image_url"]  # without an instruction nothing is said


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


def test_vlm2vec_gets_instructions_by_its_name(server: Double) -> None:
    encoder = load(server, "TIGER-Lab/VLM2Vec-Full")
    texts = {}
    for name, ask in {
        "picture": lambda: encoder.encode_pixels(pixels(encoder, picture())),
        "text": lambda: encoder.encode_texts(["a {} heron"]),
        "both": lambda: encoder.encode_composed(pixels(encoder, picture()), ["a {} heron"]),
    }.items():
        ask()
        texts[name] = content(server)[-1]["text"]

    assert texts == {
        "picture": "Represent this picture.",
        "text": "Find a picture that fits these words: a {} heron",
        "both": "Represent this picture together with a question about it: a {} heron",
    }


def test_instructions_a_system_message_and_further_fields_are_sent(server: Double) -> None:
    more = {"add_generation_prompt": True, "dimensions": 8}
    words = {"picture": "Look.", "text": "Seek {}."}
    encoder = load(server, family="chat", instructions=words, system="Find birds.", request=more)
    encoder.encode_texts(["a heron"])

    body = last(server).body
    system, user = body["messages"]
    assert system == {"role": "system", "content": "Find birds."}
    assert user["content"] == [{"type": "text", "text": "Seek a heron."}]
    assert {name: body[name] for name in more} == more
    assert json.loads(encoder.space.preprocessing)["instructions"]["both"].startswith("{}\nName what")


SETTINGS = 'system = "Find birds."\nworkers = 2\n[instructions]\ntext = "Seek {}."\n[request]\ndimensions = 8\n'


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


# -- where it is asked --------------------------------------------------------------------------------------


def test_the_address_is_taken_from_the_environment_the_own_name_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with served.serving() as own, served.serving() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        rooms.load("encoders", "served:tiny")
        monkeypatch.setenv("EYESPOT_EMBEDDINGS_URL", own.url.removesuffix("/v1"))
        rooms.load("encoders", "served:tiny")

        counts = [len(one.asked(served.EMBEDDINGS)) for one in (other, own)]
    assert counts == [1, 1]


def test_a_key_is_sent_from_the_environment(server: Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    load(server)

    assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer secret"}


@pytest.mark.parametrize("url", [None, "", "localhost:8000", "ftp://localhost"])
def test_without_an_address_nothing_leaves_even_with_a_key(url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Photos must not go to the vendor whose key happens to be set."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")

    with pytest.raises(UsageError, match="set EYESPOT_EMBEDDINGS_URL as in http://localhost:8000/v1"):
        rooms.load("encoders", "served:tiny", url=url)


def test_a_server_that_is_away_is_told_in_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers, and nobody else can take it
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(EyespotError, match=r"cannot be reached .*; start the server or fix its address") as excinfo:
            rooms.load("encoders", "served:tiny", url=url, **QUICK)

    assert "\n" not in str(excinfo.value)


def test_a_server_that_goes_away_in_between_is_told_too() -> None:
    with served.serving() as server:
        encoder = load(server)
    with pytest.raises(EyespotError, match="cannot be reached"):
        encoder.encode_texts(["a heron"] * 20)


# -- which space --------------------------------------------------------------------------------------------


def test_one_request_tells_how_long_vectors_are(server: Double) -> None:
    encoder = load(server)

    assert (encoder.space.encoder, encoder.space.dim, encoder.space.revision) == ("served:tiny", 8, "served")
    assert [seen.path for seen in server.seen] == [served.MODELS, served.EMBEDDINGS]


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


def test_a_server_without_a_list_serves_too() -> None:
    with Double(then=served.embedded) as server:
        assert load(server).space.revision == "served"


def test_a_revision_that_is_said_is_kept_and_not_sent(server: Double) -> None:
    encoder = load(server, "@cf/tiny@2026-10")

    assert (encoder.space.encoder, encoder.space.revision) == ("served:@cf/tiny@2026-10", "2026-10")
    assert last(server).body["model"] == "@cf/tiny"


def test_a_revision_that_the_server_does_not_have_is_refused() -> None:
    with (
        served.serving(revision="abc123") as server,
        pytest.raises(UsageError, match="has revision abc123 of tiny, no"),
    ):
        load(server, "tiny@def456")


def spaces(server: Double, *options: dict[str, Any]) -> list[Space]:
    return [load(server, **one).space for one in options]


def test_other_words_are_another_space(server: Double) -> None:
    """And so is all else that decides what the model is told and shown."""
    made = spaces(
        server,
        {},
        {"family": "chat"},
        {"instructions": {"text": "Seek {}."}},
        {"system": "Find birds."},
        {"request": {"add_generation_prompt": True}},
        {"pictures": "png"},
    )

    assert len({space.digest for space in made}) == 6


def test_the_way_to_the_model_is_no_part_of_its_space(server: Double) -> None:
    """A server may move, and may be asked faster."""
    with served.serving() as elsewhere:
        one, other = load(server).space, load(elsewhere, workers=2, batch=3, timeout=9.0, attempts=2, key="k").space

    assert one == other


# -- what comes back ----------------------------------------------------------------------------------------


def test_rows_stand_in_order_and_as_many_requests_are_under_way_as_workers() -> None:
    together = threading.Barrier(4)
    waits = iter([0.2, 0.15, 0.1, 0.05] * 2)

    def late(seen: Seen) -> Response:
        if "colour" in served.words_of(seen):
            together.wait(10)  # broken, and so no answer, unless four are under way at once
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


def test_a_busy_server_is_asked_again_when_it_says(server: Double) -> None:
    encoder = load(server)
    server.script = [error(429, "later", retry_after_ms="300"), error(503), Response(data=b"{"), Response(cut=True)]
    before = time.monotonic()
    encoder.encode_texts(["a heron"])

    assert time.monotonic() - before >= 0.3
    assert len(server.asked(served.EMBEDDINGS)) == 1 + 5


def test_a_server_that_stays_busy_or_silent_is_told(server: Double) -> None:
    for trouble, cause in ((error(500, "out of memory"), "out of memory, 2 times"), (HANG, "no answer within 0.3 sec")):
        encoder = load(server, attempts=2, timeout=0.3)
        server.script = [trouble] * 2
        with pytest.raises(EyespotError, match=f"tiny at http://.*{cause}.*run the same line again"):
            encoder.encode_texts(["a heron"])


BAD = {
    "has 2 vectors for one input": served.answer([1.0] * 8, [1.0] * 8),
    "has 0 vectors for one input": served.answer(),
    "has no vectors .no room.": Response(data={"error": "no room"}),
    "gets 3 vectors; serve the model with one": served.answer([[1.0] * 8] * 3),
    "came as text": served.answer("AACAPwAAgD8="),
    "is not made of numbers": served.answer([1.0, "x"]),
    "gave vectors of 8 numbers and now of 5": served.answer([1.0] * 5),
    "not finite": Response(data=b'{"data": [{"embedding": [1, NaN, 1, 1, 1, 1, 1, 1]}]}'),
    "is nought": served.answer([0.0] * 8),
    "does not embed one .the server answers 400: too long": error(400, "too long"),
    "does not accept the key": error(401, "no"),
}


@pytest.mark.parametrize("message", BAD)
def test_an_answer_that_is_none_is_told_in_one_sentence(message: str, server: Double) -> None:
    encoder = load(server)
    server.script = [BAD[message]]

    with pytest.raises(EyespotError, match=message) as excinfo:
        encoder.encode_texts(["a heron"])
    assert "\n" not in str(excinfo.value)


@pytest.mark.parametrize("message", [key for key in BAD if "8 numbers" not in key and "embed one" not in key])
def test_so_it_is_when_that_is_the_first_answer(message: str) -> None:
    with served.serving(then=lambda _: BAD[message]) as server, pytest.raises(EyespotError, match=message):
        load(server)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9), min_size=1).filter(any))
def test_the_vector_has_the_direction_of_the_numbers_and_unit_length(numbers: list[float]) -> None:
    from eyespot.encoders._served.wording import vector_of

    vector = vector_of({"data": [{"embedding": numbers}]}).astype(float)

    scaled = np.array(numbers) / np.abs(np.array(numbers)).max()
    np.testing.assert_allclose(vector * np.linalg.norm(scaled), scaled, atol=1e-5)


LEAVES = st.floats() | st.integers() | st.booleans() | st.none() | st.text(max_size=3)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner))


@pytest.mark.long
@given(st.builds(lambda inner: {"data": [{"embedding": inner}]}, JSON) | st.builds(lambda inner: {"data": inner}, JSON))
def test_any_answer_is_a_unit_vector_or_a_bad_answer(found: Any) -> None:
    from eyespot.encoders._served.wording import vector_of
    from eyespot.llms import BadAnswer

    try:
        vector = vector_of(found)
    except BadAnswer:
        return
    assert vector.ndim == 1 and math.isclose(np.linalg.norm(vector.astype(float)), 1, abs_tol=1e-5)


# -- servers that cannot ------------------------------------------------------------------------------------


def test_a_model_of_two_halves_is_no_composer_and_its_vectors_are_added(tmp_path: Path) -> None:
    """CLIP behind vLLM takes a picture or words, never both."""
    picture(RED).save(tmp_path / "red.png")
    with served.serving(then=served.refusing("both")) as server:
        encoder = load(server)
        (both,) = embed([Query.composed(tmp_path / "red.png", "green")], encoder)
        halves = embed([Query.picture(tmp_path / "red.png"), Query.words("green")], encoder)

    assert not hasattr(encoder, "encode_composed")
    np.testing.assert_allclose(both, halves.sum(0) / np.linalg.norm(halves.sum(0)), atol=1e-5)


def test_a_composer_reads_both_at_once(server: Double, tmp_path: Path) -> None:
    picture(RED).save(tmp_path / "red.png")
    (both,) = embed([Query.composed(tmp_path / "red.png", "what comes next?")], load(server))

    assert np.argmax(both) == 1  # green: the server's own answer for red and "next"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("picture", "tiny at http://.* takes words but no pictures .*no picture here.*serve a model that embeds both"),
        ("messages", "takes no messages to embed .*no messages here.*vllm serve MODEL --runner pooling"),
    ],
)
def test_a_model_that_takes_no_pictures_is_refused_at_once(kind: str, message: str) -> None:
    with served.serving(then=served.refusing(kind)) as server, pytest.raises(UsageError, match=message):
        load(server)


def test_a_model_that_is_not_served_is_told_with_those_that_are() -> None:
    unknown = served.serving("VLM2Vec-Full", then=lambda _: error(404, "no such model"))
    with unknown as server, pytest.raises(UsageError, match="serves no tiny; there are: VLM2Vec-Full"):
        load(server)


def test_a_model_that_is_served_to_chat_is_told_with_the_way_out() -> None:
    chatting = served.serving(then=lambda _: error(404, "Not Found"))
    message = r"tiny at .* is not served for its vectors.*--runner pooling"
    with chatting as server, pytest.raises(UsageError, match=message):
        load(server)


# -- pictures that a server refuses --------------------------------------------------------------------------


def picky(seen: Seen) -> Response:
    """No green pictures."""
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
        summary = index(gallery, [str(photos)], [load(server)])
        missing = disk.read_note(disk.shard_path(gallery, 0), disk.stem_of(load(server).space))
        server.then = served.embedded
        again = index(gallery, [], [load(server)])

    (note,) = summary.notes
    assert note.startswith("pictures without a vector: 1;") and "too many tokens" in note
    assert missing is not None and len(missing.missing) == 1
    assert (again.embedded, again.notes) == (1, [])


def test_a_query_with_a_refused_picture_says_so(tmp_path: Path) -> None:
    picture(GREEN).save(tmp_path / "green.png")
    with served.serving(then=picky) as server:
        encoder = load(server)
        with pytest.raises(UsageError, match="a picture of query 'q' gets no vector"):
            embed([Query.picture(tmp_path / "green.png")], encoder)
        with pytest.raises(EyespotError, match=r"does not embed one .*too many tokens"):
            embed([Query.composed(tmp_path / "green.png", "next")], encoder)


def test_refusals_of_nearly_all_stop_the_run() -> None:
    with served.serving(then=picky) as server:
        encoder = load(server)
        greens = [picture((0, 230, 0), (side, 8)) for side in range(1, 17)]
        encoder.encode_pixels(pixels(encoder, *greens[:14], picture(RED), *greens[:14]))
        with pytest.raises(EyespotError, match=r"16 pictures got no vector and 1 did; .*too many tokens"):
            encoder.encode_pixels(pixels(encoder, *greens[14:]))


# -- options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrokers": 2}, "no option 'wrokers'; there are: .*workers"),
        ({"workers": 0}, "workers is 0; give a number above 0"),
        ({"workers": 1.5}, "workers is 1.5"),
        ({"timeout": True}, "timeout is True"),
        ({"family": "ume-r1"}, "no family 'ume-r1'; there are: plain, chat, vlm2vec"),
        ({"instructions": {"text": "no place"}}, "never says the words"),
        ({"instructions": {"txt": "{}"}}, "no instruction 'txt' in words; there are: picture, text, both"),
        ({"instructions": "{}"}, "give a table"),
        ({"request": {"model": "other"}}, "request says 'model'"),
        ({"pictures": "bmp"}, "sent as jpeg or png"),
        ({"system": 7}, "system is 7"),
    ],
)
def test_senseless_options_are_refused_before_anything_is_asked(
    options: dict[str, Any], message: str, server: Double
) -> None:
    with pytest.raises(UsageError, match=message):
        load(server, **options)
    assert server.seen == []


def test_a_key_in_a_file_is_refused(server: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.toml").write_text('key = "secret"')
    monkeypatch.setenv("EYESPOT_EMBEDDINGS_SETTINGS", str(tmp_path / "words.toml"))

    with pytest.raises(UsageError, match="leave keys to OPENAI_API_KEY"):
        load(server)


@pytest.mark.parametrize("name", ["", "  ", "@", "@main"])
def test_a_model_must_be_named(name: str, server: Double) -> None:
    if name == "@main":  # a name like those that begin with @
        assert load(server, name).space.encoder == "served:@main"
        return
    with pytest.raises(UsageError, match=r"name the model that is served, as in served:MODEL"):
        load(server, name)


def test_a_gallery_that_was_made_with_other_words_is_not_searched(
    server: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "photos").mkdir()
    picture().save(tmp_path / "photos" / "red.png")
    monkeypatch.setenv("EYESPOT_EMBEDDINGS_URL", server.url)
    index(tmp_path / "gallery", [str(tmp_path / "photos")], [rooms.load("encoders", "served:tiny")])
    found = Collection(tmp_path / "gallery").search("red")
    (tmp_path / "words.toml").write_text('system = "Find birds."')
    monkeypatch.setenv("EYESPOT_EMBEDDINGS_SETTINGS", str(tmp_path / "words.toml"))

    assert len(found["q"]) == 1
    with pytest.raises(EyespotError, match="bring it up to date"):
        Collection(tmp_path / "gallery").search("red")
