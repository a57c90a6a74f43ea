"""Which photos and documents are joined as copies: 300 drawn documents beside the photos of the shared data.

Documents are pages, tables, forms and screens of one template each, no two with the same text. Each photo has copies:
saved again, scaled, turned, mirrored, lighter, sharpened, cropped, and in ProPhoto's colours. Quality, not time: shares
of wrongly joined documents, wrongly joined photos, and missed copies of each kind.

    python bench/groups.py [--quick] [--json]
"""

from __future__ import annotations

import random
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from PIL import Image, ImageDraw, ImageEnhance, ImageFont

from bench.harness import Command, Measurement, say, shared
from eyespot.gallery.groups.stored import Groups
from eyespot.gallery.view import Gallery
from tests.photos.test_colours import stored_in
from tests.worlds import index_gallery

SETS = ("chilean_birds", "flickr8k_100", "open_wildlife", "commons_gcompris")
WORDS = ("heron", "pool", "river", "stone", "light", "paper", "tower", "garden", "window", "bridge", "letter", "winter")
PAGE, SCREEN = (827, 1169), (720, 1280)


def document(number: int) -> Image.Image:
    """A page, a table, a form, a dark screen or a receipt; of each kind all have one layout."""
    rng, kind = random.Random(number), number % 5
    size = (PAGE, PAGE, PAGE, SCREEN, (480, 960))[kind]
    paper, ink = (*[("white", "black")] * 3, ("#202124", "#e8eaed"), ("#f0eee6", "black"))[kind]
    picture = Image.new("RGB", size, paper)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(18)
    draw.text((40, 40), ("Report", "Table", "Invoice", "Messages", "Market")[kind], ink, ImageFont.load_default(36))
    for line, y in enumerate(range(120, size[1] - 110, 32)):
        text = (
            " ".join(rng.choices(WORDS, k=10)),
            "   ".join(f"{rng.random() * 1000:07.2f}" for _ in range(7)),
            f"Item {line}      {100 + line}",
            " ".join(rng.choices(WORDS, k=5)) if line % 2 else "",
            f"{rng.choice(WORDS):<14} {rng.random() * 20:.2f}",
        )[kind]
        draw.text((40, y), text, ink, font)
    if kind == 2:  # two numbers alone differ
        draw.text((40, size[1] - 70), f"Number {1000 + number}, total {rng.randint(1000, 9999)}", ink, font)
    return picture


def copies(photo: Image.Image) -> Iterator[tuple[str, Image.Image, dict[str, Any]]]:
    """Made-up copies of a photo: a name, the picture, and how it is saved."""
    width, height = photo.size
    yield "re-encoded", photo, {"quality": 30}
    yield "half size", photo.resize((width // 2, height // 2)), {}
    yield "turned", photo.transpose(Image.Transpose.ROTATE_90), {}
    yield "mirrored", photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT), {}
    yield "lighter", photo.point([min(255, level * 5 // 4) for level in range(256)] * 3), {}
    yield "sharpened", ImageEnhance.Sharpness(photo).enhance(2), {}
    yield "cropped by 4 %", photo.crop((width // 25, height // 25, width - width // 25, height - height // 25)), {}
    wide, profile = stored_in("ProPhoto", photo)
    yield "ProPhoto", wide, {"icc_profile": profile}


def draw_all(folder: Path, places: list[Path], documents: int) -> None:
    """Write the documents, and the photos with their copies: `photo 7.jpg`, `photo 7 turned.jpg`."""
    folder.mkdir()
    for number in range(documents):
        document(number).save(folder / f"document {number}.{'png' if number % 2 else 'jpg'}")
    for at, place in enumerate(places):
        photo = Image.open(place).convert("RGB")
        photo.thumbnail((800, 800))
        photo.save(folder / f"photo {at}.jpg", quality=92)
        for name, copy, how in copies(photo):
            copy.save(folder / f"photo {at} {name}.jpg", **({"quality": 90} | how))


def measurements(options: Namespace) -> Iterator[Measurement]:
    """What is joined wrongly, and what is missed."""
    places = [place for name in SETS for place in sorted(shared(f"data/{name}/images").glob("*.jp*g"))]
    places, documents = places[:: 40 if options.quick else 6], 60 if options.quick else 300
    draw_all(options.folder / "photos", places, documents)
    say(f"indexing {documents} documents and {len(places)} photos with their copies")
    index_gallery(options.folder / "gallery", options.folder / "photos")
    gallery = Gallery(options.folder / "gallery")
    view = gallery.view(gallery.stem())
    names = [Path(facts["path"]).stem.split(" ", 2) for facts in view.facts(range(int(view.starts[-1])))]
    numbers = Groups(view).numbers.tolist()
    members: dict[int, set[str]] = {}
    for name, number in zip(names, numbers, strict=True):
        members.setdefault(number, set()).add(" ".join(name[:2]))
    group_of = {" ".join(name): number for name, number in zip(names, numbers, strict=True)}
    for kind, goal in (("document", 0.0), ("photo", 0.001)):
        wrong = [n >= 0 and len(members[n]) > 1 for name, n in group_of.items() if name.startswith(kind)]
        yield Measurement.from_mean(f"{kind}s joined wrongly", wrong, "none", goal)
    for kind, *_ in copies(Image.new("RGB", (64, 64))):
        pairs = [(group_of[f"photo {at}"], group_of.get(f"photo {at} {kind}")) for at in range(len(places))]
        missed = [one < 0 or one != other for one, other in pairs]
        yield Measurement.from_mean(f"copies missed, {kind}", missed, "none", 0.05 if "cropped" in kind else 0.01)


if __name__ == "__main__":
    Command(__doc__).run(measurements)
