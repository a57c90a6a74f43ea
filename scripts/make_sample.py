"""Makes the sample photographs of the package from a folder of GCompris pictures with their metadata.

    python scripts/make_sample.py FOLDER [--out eyespot/sample]

FOLDER holds `metadata.csv` (file, title, text, scientific_name, category, author, source, licence) and the pictures it
names, as taken from Debian's gcompris-qt-data 3.1-2. Only public domain and CC0 pictures are kept, byte for byte. The
same folder always gives the same files.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from PIL import Image

Row: TypeAlias = dict[str, str]

OUT = Path(__file__).resolve().parent.parent / "eyespot" / "sample"
COLUMNS = ("file_name", "title", "category", "scientific_name", "text", "author", "source", "licence")
LICENCES = {"public domain": "Public Domain", "cc0-1.0": "CC0-1.0"}  # as written there, lower-cased → as written here
GPS = 0x8825  # the EXIF directory of the position

PREFACE = """# The sample photographs

{count} photographs, {domain} in the public domain and {zero} under
[CC0 1.0](https://creativecommons.org/publicdomain/zero/1.0/). They were collected by [GCompris](https://gcompris.net)
and taken unchanged from Debian's package `gcompris-qt-data` 3.1-2, whose README files state author, source and licence
of each. Neither asks for credit; the authors are named all the same.

This page is written by `scripts/make_sample.py`; the same facts are in `photos/metadata.csv`.

| Picture | Title | Author | Source | Licence |
|---|---|---|---|---|
"""


def kept_rows(folder: Path) -> list[Row]:
    """The rows whose licence asks for nothing, as they will stand in the new `metadata.csv`, by file name."""
    with (folder / "metadata.csv").open(encoding="utf-8", newline="") as file:
        rows = [_tidied(row) for row in csv.DictReader(file) if row["licence"].lower() in LICENCES]
    return sorted(rows, key=lambda row: row["file_name"])


def _tidied(row: Row) -> Row:
    return {
        **{column: row[column] for column in COLUMNS if column in row},
        "file_name": Path(row["file"]).name,
        # "sentence | title of the source": the sentences are GCompris's own, under the GPL, and stay there.
        "text": row["text"].rpartition(" | ")[2],
        "licence": LICENCES[row["licence"].lower()],
    }


def copy_pictures(source: Path, photos: Path, names: Sequence[str]) -> None:
    """The named pictures and no others in `photos`, each checked to be a whole JPEG without a position."""
    shutil.rmtree(photos, ignore_errors=True)
    photos.mkdir(parents=True)
    for name in names:
        _check(source / name)
        shutil.copyfile(source / name, photos / name)


def _check(picture: Path) -> None:
    with Image.open(picture, formats=["JPEG"]) as image:
        image.load()
        if image.getexif().get_ifd(GPS):
            raise SystemExit(f"{picture} carries a position; take it out first")


def write_metadata(place: Path, rows: Sequence[Row]) -> None:
    """The labels, in the layout that `eyespot index` and HF imagefolder read."""
    with place.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def attribution(rows: Sequence[Row]) -> str:
    """The page that names everyone, in Markdown."""
    domain = sum(row["licence"] == "Public Domain" for row in rows)
    preface = PREFACE.format(count=len(rows), domain=domain, zero=len(rows) - domain)
    return preface + "".join(f"| {' | '.join(_cells(row))} |\n" for row in rows)


def _cells(row: Row) -> Iterator[str]:
    name = row["file_name"]
    yield f"[{_plain(name)}](photos/{name})"
    yield _plain(row["title"])
    yield _plain(row["author"])
    yield f"<{row['source']}>" if row["source"] else "no page given by GCompris"
    yield row["licence"]


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#&" else char for char in text)


def main() -> None:
    """Writes `photos/`, `photos/metadata.csv` and `ATTRIBUTION.md`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the GCompris pictures with their metadata.csv")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write")
    arguments = parser.parse_args()
    rows = kept_rows(arguments.folder)
    copy_pictures(arguments.folder / "images", arguments.out / "photos", [row["file_name"] for row in rows])
    write_metadata(arguments.out / "photos" / "metadata.csv", rows)
    (arguments.out / "ATTRIBUTION.md").write_text(attribution(rows), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
