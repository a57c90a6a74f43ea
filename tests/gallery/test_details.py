"""Pages, screens and skies are copies only if they are the same to the letter."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from eyespot import sample
from eyespot.gallery.groups.details import prepared, same_details
from eyespot.gallery.groups.hashes import HASHES, write_hashes
from eyespot.photos.hashes import COLUMNS, PLAIN, STROKES, picture_kind
from tests.gallery.test_groups import grouped
from tests.worlds import index_gallery

WORDS = (
    "heron",
    "pool",
    "river",
    "stone",
    "light",
    "paper",
    "tower",
    "garden",
    "window",
    "bridge",
    "morning",
    "letter",
)


def page(seed: int, size: tuple[int, int] = (620, 877), paper: str = "white", ink: str = "black") -> Image.Image:
    rng, picture = random.Random(seed), Image.new("RGB", size, paper)
    draw = ImageDraw.Draw(picture)
    for y in range(60, size[1] - 60, 22):
        draw.text((50, y), " ".join(rng.choices(WORDS, k=9)), ink, ImageFont.load_default(15))
    return picture


def form(total: int) -> Image.Image:
    """A form of which one number alone differs."""
    picture = page(0)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((40, 780, 580, 830), fill="white", outline="gray")
    draw.text((60, 790), f"Total {total}", "black", ImageFont.load_default(24))
    return picture


def jpeg(picture: Image.Image, quality: int = 85) -> Image.Image:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


def alike(first: Image.Image, second: Image.Image, strict: bool = True) -> bool:
    return same_details(prepared(first), prepared(second), strict)


COPIES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "poor": lambda picture: jpeg(picture, 30),
    "half": lambda picture: picture.resize((picture.width // 2, picture.height // 2)),
    "lighter": lambda picture: picture.point([min(255, level * 5 // 4) for level in range(256)] * 3),
    "gamma": lambda picture: picture.point([round(255 * (level / 255) ** 1.6) for level in range(256)] * 3),
    "turned": lambda picture: picture.transpose(Image.Transpose.ROTATE_90),
    "mirrored": lambda picture: picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
}


@pytest.mark.parametrize("kind", COPIES)
def test_a_copy_of_a_page_is_one(kind: str) -> None:
    assert alike(jpeg(form(1234), 92), COPIES[kind](form(1234)))


@pytest.mark.parametrize("quality", [92, 40])
def test_one_other_number_makes_another_page(quality: int) -> None:
    assert not alike(jpeg(form(1234), quality), jpeg(form(1734), quality))
    assert not alike(page(1), page(2)) and not alike(page(1), page(1).resize((150, 212)))


def test_a_cropped_bird_in_the_sky_is_a_copy_and_another_bird_is_not() -> None:
    def sky(x: int, size: int) -> Image.Image:
        level = np.linspace(180, 230, 240)[:, None, None] + np.zeros((240, 320, 3))
        picture = Image.fromarray((level * [0.8, 0.9, 1.0]).astype(np.uint8))
        ImageDraw.Draw(picture).ellipse((x, 90, x + size, 130), fill=(60, 50, 40))
        return picture

    bird = sky(120, 60)
    assert alike(bird, bird.crop((9, 5, 310, 232)), strict=False)
    assert alike(bird, bird.resize((80, 60)), strict=False)
    assert not alike(bird, sky(60, 60), strict=False) and not alike(bird, sky(120, 30), strict=False)


def test_pages_and_screens_have_strokes_and_photos_seldom() -> None:
    for made in (page(1), page(2, paper="#202124", ink="#e8eaed"), jpeg(form(1), 40), page(3, (320, 640))):
        assert picture_kind(made) == PLAIN | STROKES
    kinds = [picture_kind(Image.open(place).convert("RGB")) for place in sorted(sample.photos().glob("*.jpg"))[::20]]
    assert np.mean([kind & STROKES > 0 for kind in kinds]) < 0.1


def test_documents_are_copies_of_themselves_alone(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for at in range(4):
        page(at).save(folder / f"page{at}.jpg")
        form(1000 + 111 * at).save(folder / f"form{at}.png")
    form(1000).save(folder / "form0 again.jpg", quality=60)
    page(3).transpose(Image.Transpose.ROTATE_180).save(folder / "page3 turned.png")
    index_gallery(tmp_path / "gallery", folder, shard_rows=4)
    assert grouped(tmp_path / "gallery") == [["form0 again.jpg", "form0.png"], ["page3 turned.png", "page3.jpg"]]


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (3000, 1), (8, 8)])
@pytest.mark.parametrize("strict", [True, False])
def test_tiny_and_thin_pictures_are_compared(size: tuple[int, int], strict: bool) -> None:
    """Blocks of eight pixels say nothing of a smaller one."""
    tiny, large = (Image.new("RGB", some, "white") for some in (size, (40, 30)))
    assert alike(tiny, tiny, strict) == (size == (8, 8))
    assert isinstance(alike(tiny, large, strict) and alike(large, tiny, strict), bool)


def test_a_copy_of_a_page_that_is_gone_is_alone(tmp_path: Path) -> None:
    folder, gallery = tmp_path / "photos", tmp_path / "gallery"
    folder.mkdir()
    for at in range(3):
        page(at).save(folder / f"page{at}.jpg")
    index_gallery(gallery, folder, shard_rows=4)
    (folder / "page0.jpg").unlink()
    index_gallery(gallery, folder, forget=True)
    for at in range(2):
        page(at).save(folder / f"page{at} again.png")
    index_gallery(gallery, folder)
    assert grouped(gallery) == [["page1 again.png", "page1.jpg"]]


def test_pages_of_a_gallery_whose_hashes_say_no_kind_are_compared_with_new_ones(tmp_path: Path) -> None:
    folder, gallery = tmp_path / "photos", tmp_path / "gallery"
    folder.mkdir()
    form(1000).save(folder / "form.png")
    index_gallery(gallery, folder)
    (place,) = gallery.glob(f"shards/*/{HASHES}")
    numbers = np.fromfile(place, "<u8").reshape(-1, COLUMNS)
    numbers[:, :2] &= np.uint64((1 << 63) - 1)
    write_hashes(place.parent, numbers.tolist())
    form(1000).save(folder / "form again.jpg", quality=60)
    form(1734).save(folder / "other.png")
    index_gallery(gallery, folder)
    assert grouped(gallery) == [["form again.jpg", "form.png"]]
