"""Copies and bursts found among 10,000 photos, 3,000 of them made-up copies and frames, against a look at all pairs.

Originals are real photos and mosaics of parts of them. Copies are re-encoded, scaled, turned, mirrored, cropped, and
lighter or darker; frames of bursts are shifted and noisy, with a camera and times in their EXIF, and the real bursts of
open_wildlife have their own times. Shares of what is missed are compared with 1, all of them. The time is that of
100,000 drawn hashes, against a look at all pairs in numpy. Seconds and memory of the rule are printed.

    python bench/groups.py [--quick] [--json]
"""

from __future__ import annotations

import random
import re
import resource
import sys
import time
from argparse import Namespace
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from PIL import ExifTags, Image, ImageEnhance, ImageOps

from bench.harness import Command, Measurement, metadata, say, shared
from eyespot import rooms
from eyespot.gallery.groups.near_duplicates import hash_pairs, likely_pairs
from eyespot.gallery.groups.rule import CLOSE_BITS, FAR_BITS, links_of
from eyespot.gallery.groups.stored import Groups, frames_of
from eyespot.gallery.indexing import index
from eyespot.gallery.view import Gallery
from eyespot.photos.hashes import Hashes

PHOTOS, COPIES, BURST = 10_000, 2_000, 10  # of all photos a fifth are copies, and a tenth frames of made-up bursts
SIDE = 480  # pixels
SETS = ("chilean_birds", "commons_gcompris", "flickr8k_100", "open_wildlife")
Change = Callable[[Image.Image], Image.Image]


def scaled(share: float) -> Change:
    return lambda photo: photo.resize((max(1, int(photo.width * share)), max(1, int(photo.height * share))))


def turned(how: Image.Transpose) -> Change:
    return lambda photo: photo.transpose(how)


def cropped(share: float) -> Change:
    """Without this share of each side, a little more at one end."""

    def crop(photo: Image.Image) -> Image.Image:
        x, y = photo.width * share, photo.height * share
        return photo.crop((int(x), int(y / 2), int(photo.width - x / 2), int(photo.height - y)))

    return crop


def lighter(factor: float) -> Change:
    return lambda photo: ImageEnhance.Brightness(photo).enhance(factor)


CHANGES: dict[str, tuple[Change, int, float]] = {  # a change, the quality of the JPEG, and the share that may be missed
    "re-encoded": (lambda photo: photo, 30, 0.01),
    "half size": (scaled(0.5), 80, 0.01),
    "a quarter of the size": (scaled(0.25), 80, 0.01),
    "turned left": (turned(Image.Transpose.ROTATE_90), 85, 0.01),
    "turned round": (turned(Image.Transpose.ROTATE_180), 85, 0.01),
    "turned right": (turned(Image.Transpose.ROTATE_270), 85, 0.01),
    "mirrored": (turned(Image.Transpose.FLIP_LEFT_RIGHT), 85, 0.01),
    "4 % cropped": (cropped(0.027), 85, 0.05),
    "10 % cropped": (cropped(0.067), 85, 0.6),
    "lighter": (lighter(1.25), 85, 0.05),
    "darker": (lighter(0.75), 85, 0.05),
}
TWINS = ("brandenburg", "colosseum", "greatpyramid")  # the same views stand twice in commons_gcompris


# -- the photos -------------------------------------------------------------------------------------------------


def real_photos() -> Iterator[tuple[str, Image.Image, datetime | None]]:
    """Each photo with its family, which it has with its copies alone, and for those of camera traps when it was."""
    for name in SETS:
        folder = shared("data") / name
        for row in metadata(folder):
            stem = Path(row["file"]).stem
            family = next((twin for twin in TWINS if twin in stem.lower()), stem)
            when, text = None, re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", row.get("text", ""))
            if text:
                family, when = "heron", datetime.fromisoformat(text[0])
            elif named := re.search(r"(20\d{12})-", stem):
                when = datetime.strptime(named[1], "%Y%m%d%H%M%S")
            with Image.open(folder / row["file"]) as photo:
                upright = ImageOps.exif_transpose(photo).convert("RGB")
            upright.thumbnail((SIDE, SIDE))
            yield family, upright, when


def mosaic(photos: list[Image.Image], chance: random.Random) -> Image.Image:
    """A picture of parts of four photos."""
    made = Image.new("RGB", (SIDE, SIDE * 3 // 4))
    across, down = chance.randint(SIDE // 4, 3 * SIDE // 4), chance.randint(SIDE // 5, SIDE // 2)
    for left, top, right, bottom in ((0, 0, across, down), (across, 0, SIDE, down), (0, down, across, made.height)):
        _paste(made, chance.choice(photos), (left, top, right, bottom), chance)
    _paste(made, chance.choice(photos), (across, down, SIDE, made.height), chance)
    return made


def _paste(onto: Image.Image, photo: Image.Image, box: tuple[int, int, int, int], chance: random.Random) -> None:
    share = chance.uniform(0.4, 0.8)
    x, y = chance.uniform(0, 1 - share) * photo.width, chance.uniform(0, 1 - share) * photo.height
    part = photo.crop((int(x), int(y), int(x + share * photo.width), int(y + share * photo.height)))
    onto.paste(part.resize((box[2] - box[0], box[3] - box[1])), box[:2])


def frames(photo: Image.Image, chance: random.Random) -> Iterator[Image.Image]:
    """A burst of a photo: each frame shifted by some pixels, with noise, and lighter or darker."""
    noise = np.random.default_rng(chance.randrange(1 << 30))
    for _ in range(BURST):
        x, y = (chance.randint(0, max(1, side // 40)) for side in photo.size)
        frame = photo.crop((x, y, photo.width - photo.width // 40 + x, photo.height - photo.height // 40 + y))
        pixels = np.asarray(lighter(chance.uniform(0.9, 1.1))(frame), np.float32)
        yield Image.fromarray(np.clip(pixels + noise.normal(0, 4, pixels.shape), 0, 255).astype(np.uint8))


def save(photo: Image.Image, place: Path, quality: int = 90, when: datetime | None = None) -> None:
    exif = Image.Exif()
    if when is not None:
        exif[ExifTags.Base.Model] = "Trap 1"
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = when.strftime("%Y:%m:%d %H:%M:%S")
    photo.convert("RGB").save(place, "JPEG", quality=quality, exif=exif)


def make_photos(folder: Path, count: int) -> None:
    """`FAMILY~KIND~NUMBER.jpg`: originals, then a fifth of copies and a tenth of frames."""
    chance, real = random.Random(1), list(real_photos())
    originals: list[tuple[str, Image.Image]] = []
    for number, (family, photo, when) in enumerate(real):
        save(photo, folder / f"{family}~{'frame' if family == 'heron' else 'original'}~{number:05d}.jpg", when=when)
        if when is None and family not in TWINS:
            originals.append((family, photo))
    copies, bursts = count // 5, count // 10 // BURST
    photos = [photo for _, photo in originals]
    for number in range(count - len(real) - copies - bursts * BURST):
        family, photo = f"mosaic{number}", mosaic(photos, chance)
        originals.append((family, photo))
        save(photo, folder / f"{family}~original~0.jpg")
    for number in range(copies):
        kind = list(CHANGES)[number % len(CHANGES)]
        change, quality, _ = CHANGES[kind]
        family, photo = chance.choice(originals)
        save(change(photo), folder / f"{family}~{kind}~{number}.jpg", quality)
    for number, (_, photo) in enumerate(chance.sample(originals, bursts)):
        begun = datetime(2024, 5, 1, 6) + timedelta(minutes=10 * number)
        for at, frame in enumerate(frames(photo, chance)):
            save(frame, folder / f"burst{number}~frame~{at}.jpg", when=begun + timedelta(seconds=at // 2))


# -- what is measured -------------------------------------------------------------------------------------------


def measurements(options: Namespace) -> Iterator[Measurement]:
    photos, gallery = options.folder / "photos", options.folder / "gallery"
    photos.mkdir()
    make_photos(photos, PHOTOS // 10 if options.quick else PHOTOS)
    begun = time.perf_counter()
    index(gallery, [str(photos)], [rooms.load("encoders", "starter")])
    say(f"{sum(1 for _ in photos.iterdir()):,} photos indexed in {time.perf_counter() - begun:.0f} s, groups included")
    view = Gallery(gallery).view(Gallery(gallery).stem())
    names = [Path(facts["path"]).stem.split("~") for facts in view.facts(range(len(view.live)))]
    numbers = Groups(view).numbers
    yield from missed(names, numbers.tolist())
    look = frames_of(view)
    before, begun = peak(), time.perf_counter()
    links_of(look, 0)
    ours = time.perf_counter() - begun
    say(f"the rule alone: {ours:.2f} s, {peak() - before:.0f} MB above the {before:.0f} MB that were in use")
    yield speed(10_000 if options.quick else 100_000)


def speed(rows: int) -> Measurement:
    """The search for close hashes among drawn ones against a look at all pairs, timed on a part of the rows."""
    hashes: Hashes = np.random.default_rng(0).integers(1, 2**63, (rows, 8), np.uint64)
    begun = time.perf_counter()
    for pairs in (hash_pairs(hashes, CLOSE_BITS), likely_pairs(hashes, FAR_BITS)):
        deque(pairs, maxlen=0)
    ours, begun, part = time.perf_counter() - begun, time.perf_counter(), range(0, rows, 50)
    all_pairs(hashes, part)
    theirs = 50 * (time.perf_counter() - begun)
    name = f"time, {rows:,} drawn hashes"
    return Measurement.from_mean(name, ours / theirs, f"all pairs in numpy, {theirs:.1f} s", 1.0)


def missed(names: list[list[str]], numbers: list[int]) -> Iterator[Measurement]:
    """The share of copies that are not with their original, of frames that are not with another, and wrong pairs."""
    original = {family: number for (family, kind, _), number in zip(names, numbers, strict=True) if kind == "original"}
    apart: Counter[str] = Counter()
    every = Counter(kind for _, kind, _ in names)
    groups: dict[int, list[int]] = {}
    for row, ((family, kind, _), number) in enumerate(zip(names, numbers, strict=True)):
        apart[kind] += kind in CHANGES and (number < 0 or number != original[family])
        if number >= 0:
            groups.setdefault(number, []).append(row)
    for kind, (_, _, goal) in CHANGES.items():
        yield Measurement.from_mean(f"missed: {kind}", apart[kind] / every[kind], f"{every[kind]} copies", goal)
    pairs = [(names[a], names[b]) for rows in groups.values() for a, b in combinations(rows, 2)]
    joined = sum(a[0] == b[0] and a[1] == b[1] == "frame" for a, b in pairs)
    sizes = Counter(family for family, kind, _ in names if kind == "frame")
    of_bursts = sum(size * (size - 1) // 2 for size in sizes.values())
    yield Measurement.from_mean("missed: pairs of frames", 1 - joined / of_bursts, f"{of_bursts} pairs", 0.05)
    wrong = [(a, b) for a, b in pairs if a[0] != b[0] and not {a[1], b[1]} & {"frame"}]
    for a, b in wrong[:20]:
        say(f"wrongly joined: {'~'.join(a)} and {'~'.join(b)}")
    photos = len({tuple(name) for pair in wrong for name in pair})
    yield Measurement.from_mean("photos with a wrong one", photos / len(names), f"{len(names)} photos", 0.002)


def all_pairs(hashes: Hashes, rows: Iterable[int]) -> int:
    """How many pairs of these rows with later ones are close, by a look at all of them, row by row."""
    upright, found = np.ascontiguousarray(hashes[:, 0]), 0
    for row in rows:
        bits = np.bitwise_count(hashes[row][:, None] ^ upright[None, row + 1 :]).min(axis=0)
        found += int(np.count_nonzero(bits <= CLOSE_BITS))
    return found


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    Command(__doc__, quick="1,000 photos").run(measurements)
