"""The video of a frame, in parts, for those who may come in; and no other file."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from eyespot import sample
from eyespot.photos.videos.addresses import frame_of, reads_video, title_of
from eyespot.web import Access, Role, ServerSettings
from tests.web.conftest import TOKENS, at_this_machine, from_afar
from tests.worlds import index_gallery
from tests.worlds.clips import clip

pytestmark = pytest.mark.skipif(not reads_video(), reason="needs the extra [video]")


def make_films(folder: Path) -> Path:
    places = sorted(sample.photos().glob("*.jpg"))[::60]
    pictures = [Image.open(place).convert("RGB") for place in places[:3]]
    clip(folder / "films" / "tour.mp4", pictures[:2], 3)
    pictures[2].save(folder / "films" / "still.jpg")
    index_gallery(folder / "gallery", folder / "films")
    return folder / "films"


def server_of(films: Path) -> ServerSettings:
    access = (Access.by(TOKENS[Role.READER], "reader", Role.READER),)
    return ServerSettings(films.parent / "gallery", access=access, hosts=None, cache=films.parent / "cache")


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_films(tmp_path_factory.mktemp("videos"))


@pytest.fixture(scope="module")
def served(films: Path) -> ServerSettings:
    return server_of(films)


def test_a_hit_of_a_video_opens_at_its_time_and_comes_in_parts(films: Path, served: ServerSettings) -> None:
    client, data = at_this_machine(served), (films / "tour.mp4").read_bytes()
    items = client.get("/v1/search", params={"q": "a photo", "grouped": "false"}).json()["items"]
    frames = [item for item in items if frame_of(item["path"])]
    address, _, time = max(frames, key=lambda item: item["video_time"])["video"].partition("#t=")
    whole, part = client.get(address), client.get(address, headers={"Range": "bytes=100-199"})
    beyond = client.get(address, headers={"Range": f"bytes={len(data)}-"})

    assert len(frames) == 2 and 3 <= float(time) < 6 and ["video" in item for item in items].count(True) == 2
    assert (whole.status_code, whole.content, whole.headers["content-type"]) == (200, data, "video/mp4")
    assert (part.status_code, part.content) == (206, data[100:200])
    assert part.headers["content-range"] == f"bytes 100-199/{len(data)}" and beyond.status_code == 416
    assert "media-src 'self'" in whole.headers["content-security-policy"]
    assert whole.headers["x-content-type-options"] == "nosniff"


def test_the_page_of_a_hit_has_a_player_and_a_picture_has_none(served: ServerSettings) -> None:
    client = at_this_machine(served)
    items = client.get("/v1/search", params={"q": "a photo", "grouped": "false"}).json()["items"]
    pages = {item["path"]: client.get(f"/photo/{item['id']}").text for item in items}

    assert sum("<video" in page for page in pages.values()) == 2
    for item in items:
        assert ("<video" in pages[item["path"]]) == ("video" in item)
        assert item.get("video", "") in pages[item["path"]]
    assert "tour 00:00:0" in "".join(pages.values())
    reader = from_afar(served, TOKENS[Role.READER])
    page = reader.get(f"/photo/{next(item['id'] for item in items if 'video' in item)}")
    assert "<video" not in page.text and "/v1/videos/" not in page.text and "<img" in page.text
    tiles = client.get("/v1/search", params={"q": "a photo"}).json()["items"]
    assert sorted(item["others"] for item in tiles) == [0, 1]


def test_the_originals_of_frames_are_pictures_by_name(served: ServerSettings) -> None:
    client = at_this_machine(served)
    payload = client.get("/v1/search", params={"q": "a photo", "grouped": "false"}).json()
    for kind in ("originals", "zip"):
        answer = client.get(f"/v1/runs/{payload['run']}", params={"format": kind})
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            names = {name for name in archive.namelist() if name.startswith("photos/")}
        clear = {title_of(one["path"]).replace(":", "_") for one in payload["items"]}
        assert names == {f"photos/{name}.jpg" for name in clear} and "photos/tour 00_00_00.jpg" in names, kind
    frame = min((one for one in payload["items"] if "video" in one), key=lambda one: one["video_time"])
    original = client.get(f"/v1/originals/{frame['id']}")

    assert original.headers["content-type"] == "image/jpeg"
    assert 'filename="tour 00_00_00.jpg"' in original.headers["content-disposition"]


def test_only_who_may_come_in_gets_it_and_only_what_was_indexed(tmp_path: Path) -> None:
    films = make_films(tmp_path)
    served = server_of(films)
    client = at_this_machine(served)
    items = client.get("/v1/search", params={"q": "a photo", "grouped": "false"}).json()["items"]
    frame = next(item for item in items if "video" in item)
    still = next(item for item in items if "video" not in item)
    address = frame["video"].partition("#")[0]

    assert from_afar(served).get(address).status_code == 401
    assert from_afar(served, TOKENS[Role.READER]).get(address).status_code == 403
    assert from_afar(replace(served, originals=Role.READER), TOKENS[Role.READER]).get(address).status_code == 200
    for other in (still["id"], "0" * 32, "..%2F..%2Fetc%2Fpasswd", "x" * 200):
        assert client.get(f"/v1/videos/{other}").status_code in (404, 422)
    (films / "tour.mp4").write_bytes((films / "tour.mp4").read_bytes() + b"another film")
    assert client.get(address).status_code == 404
    (films / "tour.mp4").unlink()
    assert client.get(address).status_code == 404
