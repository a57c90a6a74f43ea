"""What people reported of photo libraries, rebuilt (`../shared/cases`), each case with its right value."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eyespot.gallery.groups.listing import file_groups
from eyespot.gallery.view import Gallery
from eyespot.photos.pictures import open_picture
from eyespot.photos.places import read_again
from eyespot.photos.videos.addresses import reads_video
from eyespot.search.collection import Collection
from tests.worlds import index_gallery

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not here")


def built(script: str, folder: Path) -> Path:
    subprocess.run([sys.executable, CASES / "photos" / script, folder], check=True, capture_output=True)
    return folder


def indexed(folder: Path, gallery: Path) -> dict[str, dict[str, object]]:
    index_gallery(gallery, folder)
    opened = Gallery(gallery)
    view = opened.view(opened.stem())
    return {Path(facts["path"]).name: facts for facts in view.facts(range(int(view.starts[-1])))}


DATES = {  # day, time, source
    "d01 d16 d18": "camera",
    "d02 d03 d04 d05": "digitised",
    "d06 d07 d10 d11 d12 d13 d14 d15 d17 d19": "camera",
    "d08": "camera (day)",
    "d09": "camera (minute)",
    "d20 d21 d23": "XMP",
    "d22": "PNG",
    "IMG_ PXL_ Screenshot": "file name",
    "IMG-": "file name (day)",
}
WHEN = {
    "d08": "2001-05-06T00:00:00",
    "d09": "2001-05-06T07:08:00",
    "d10": "2001-05-07T00:00:00",
    "d11": "2001-05-06T07:09:00",
    "d12": "1958-01-01T12:00:00",
    "d13": "1826-01-01T12:00:00",
    **dict.fromkeys(("d14", "d15", "d16"), "2001-05-06T23:30:00"),
    "d17": "2001-05-06T19:08:09",
    "IMG-": "2001-05-06T00:00:00",
}
PLACES = {
    "p01": (48.858333, 2.294444),
    **dict.fromkeys(("p02", "p09"), (-33.45, -70.666667)),
    **dict.fromkeys(("p03", "p04", "p05", "p06", "p08"), (None, None)),
    "p07": (48.858333, 2.295),
    "p10": (0.0, -78.45),
    "p11": (51.477778, 0.0),
    "p12": (-16.0, 179.983333),
    "p13": (-16.0, -179.983333),
    "d20": (48.858333, 2.295),
}


def test_dates_and_positions_of_cameras_and_programs(tmp_path: Path) -> None:
    rows = indexed(built("build_photos.py", tmp_path / "photos"), tmp_path / "gallery")
    sources = {start: source for starts, source in DATES.items() for start in starts.split()}
    for start, source in sources.items():
        (row,) = (facts for name, facts in rows.items() if name.startswith(start))
        when = WHEN.get(start, "2001-05-06T07:08:09")
        assert (row["taken"].isoformat(), row["taken_from"]) == (when, source), start  # type: ignore[attr-defined]
    for start, place in PLACES.items():
        (row,) = (facts for name, facts in rows.items() if name.startswith(start))
        for found, degrees in zip((row["latitude"], row["longitude"]), place, strict=True):
            assert found == (None if degrees is None else pytest.approx(degrees, abs=1e-5)), start
    collection = Collection(tmp_path / "gallery")
    assert len(collection.search(near="-16,180,10")) == 2  # on both sides of the date line
    assert "d02" not in str(collection.search(after="1990", before="2021", k=50).notes)


LIKE_SRGB = "adobe alpha bt2020 cmyk lab linear p3 prophoto spun trns ycc"


def test_colours_are_those_of_a_managed_screen(tmp_path: Path) -> None:
    folder = built("build_colours.py", tmp_path / "colours")
    scene = np.asarray(Image.open(folder / "srgb.jpg").convert("RGB")).astype(int)
    grey = np.asarray(Image.open(folder / "srgb.jpg").convert("L")).astype(int)[..., None]
    for place in sorted(folder.iterdir()):
        seen = np.asarray(open_picture(place.read_bytes()).image).astype(int)[:, 45:]
        if place.stem in LIKE_SRGB.split():
            assert np.abs(seen - scene[:, 45:]).mean() < 3, place.name
        elif place.stem.startswith(("grey1", "srgb")):
            assert np.abs(seen - (scene if place.stem == "srgb" else grey)[:, 45:]).mean() < 1, place.name


@pytest.mark.skipif(not reads_video(), reason="needs the extra [video]")
def test_videos_are_upright_and_have_square_pixels(tmp_path: Path) -> None:
    folder, seen = built("build_videos.py", tmp_path / "videos"), {}
    for place in sorted(folder.glob("*.mp4")):
        image = open_picture(read_again(f"{place}#t=00:00:00.000")).image
        at = ((image.width // 8, image.height // 8), (image.width * 7 // 8, image.height * 7 // 8))
        seen[place.stem] = (image.size, [int(np.argmax(image.getpixel(one))) for one in at])
    upright = ((240, 320), [0, 1])
    assert seen == {
        "anamorphic": ((320, 240), [0, 1]),
        **dict.fromkeys(("half180", "left90", "right90", "upright"), upright),
        "utc": ((240, 320), [2, 2]),
        "y1970": ((120, 200), [0, 1]),
    }
    rows = indexed(folder, tmp_path / "gallery")
    dates = {name.partition(".")[0]: str(facts["taken"]) for name, facts in rows.items()}
    assert dates["utc"].startswith("2023-12-31 23:30") and dates["y1970"] == "None"


def test_a_newcomers_documents_are_no_copies_and_the_originals_stay(tmp_path: Path) -> None:
    for kind in ("shots", "pages", "copies"):
        indexed(CASES / "newcomer" / kind, tmp_path / kind)
    groups = {}
    for kind in ("shots", "pages", "copies"):
        gallery = Gallery(tmp_path / kind)
        found = file_groups(gallery.view(gallery.stem()))
        groups[kind] = sorted([Path(file.path).name for file in group.files] for group in found)
    assert (groups["shots"], groups["pages"]) == ([], [])
    assert {names[0] for names in groups["copies"]} == {"IMG_1007.JPG", "IMG_1010.JPG", "IMG_1012.JPG"}


def test_a_newcomers_sidecars_are_found(tmp_path: Path) -> None:
    rows = indexed(CASES / "newcomer" / "sidecars", tmp_path / "gallery")
    assert str(rows["IMG_2022_0.jpg"]["taken"]) == "2022-07-01 10:40:00"
    assert (rows["IMG_2022_0.jpg"]["latitude"], rows["IMG_2022_0.jpg"]["longitude"]) == (47.07, 15.44)
    collection = Collection(tmp_path / "gallery")
    for words, name in (("zauberwort", "LR_1.jpg"), ("oma erna", "LR_1.jpg"), ("Sommerfest", "IMG_2022_0.jpg")):
        assert [hit.path.name for hit in collection.search(words, by="words") if hit.path] == [name]
    dated = collection.search(after="2022-06", before="2022-08")
    assert [hit.path.name for hit in dated if hit.path] == ["IMG_2022_0.jpg"]
