"""What files are: by their endings, and where an ending says nothing by their first bytes; a count of those skipped.

Only files with an unknown ending or none are opened for their first bytes: a folder may hold millions of others.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eyespot.gallery.photos.found import Skipped
from eyespot.gallery.photos.signatures import is_picture

HIDDEN, UNKNOWN, NO_ENDING, NO_FILE = "hidden", "with an unknown ending", "without an ending", "pipes and devices"
_EXAMPLES, _ENDINGS, _SHOWN = 3, 200, 4  # of a kind: names, endings that are counted apart, endings in a sentence


_KINDS = (  # files that are no pictures to eyespot: a name, their endings, and what their owner may do about it
    (
        "video",
        ".3g2 .3gp .asf .avi .flv .insv .lrv .m2ts .m4v .mkv .mov .mp4 .mpeg .mpg .mts .mxf .ogv .vob .webm .wmv",
        "save stills of them as pictures",
    ),
    (
        "RAW",
        ".3fr .arw .cr2 .cr3 .crw .dcr .dng .erf .fff .gpr .iiq .k25 .kdc .mef .mos .mrw .nef .nrw .orf .pef .raf .raw"
        " .rw2 .rwl .sr2 .srf .srw .x3f",
        "export them as JPEG",
    ),
    (
        "layered or vector",
        ".afdesign .afphoto .ai .cdr .eps .indd .kra .pdn .procreate .ps .psb .psd .svg .svgz .xcf",
        "export them as PNG",
    ),
    (
        "other picture formats",
        ".cur .dcm .dds .djvu .dpx .emf .exr .fits .hdr .icns .ico .j2c .j2k .jp2 .jpf .jpx .jxl .jxr .pbm .pcx .pgm"
        " .pnm .ppm .qoi .tga .wmf",
        "convert them to PNG",
    ),
    ("archives", ".7z .bz2 .dmg .gz .iso .rar .tar .tgz .xz .zip .zst", "unpack them, or name each .tar"),
    (
        "documents",
        ".doc .docx .epub .htm .html .key .log .md .odp .ods .odt .pages .pdf .ppt .pptx .rtf .rst .tex .txt .url"
        " .webloc .xls .xlsx",
        "",
    ),
    (
        "sidecars and data",
        ".aae .cfg .cos .csv .db .dop .geojson .gpx .h5 .hdf5 .ini .json .jsonl .kml .lrcat .md5 .nfo .nksc .npy .npz"
        " .parquet .plist .pp3 .sha256 .sqlite .sqlite3 .srt .thm .toml .tsv .vtt .xml .xmp .yaml .yml",
        "",
    ),
    ("sound", ".aac .aif .aiff .amr .flac .m4a .mid .mp3 .oga .ogg .opus .wav .wma", ""),
    (
        "programs",
        ".bat .c .class .cmd .cpp .css .dll .exe .go .h .ipynb .jar .java .js .py .pyc .rs .sh .so .ts .whl",
        "",
    ),
)
KIND_OF: Mapping[str, str] = {ending: name for name, endings, _ in _KINDS for ending in endings.split()}
_WAYS_OUT: Mapping[str, str] = {name: way_out for name, _, way_out in _KINDS}

"""What files with an ending (`.mp4`, in lower case) are; without the endings that do not say."""


def ending_of(name: str) -> str:
    """What kinds go by: the ending of a file name in lower case, with its dot; empty if it has none."""
    return os.path.splitext(name)[1].lower()


def skipped_by_head(path: str, head: bytes | None) -> Skipped | None:
    """Why a file whose ending is not a picture's is skipped; None if its first bytes are those of a picture.

    head: the first bytes, or None for what is no file.
    """
    ending = ending_of(path)
    if head is None:
        return Skipped(path, NO_FILE, "")
    if is_picture(head):
        return None
    if re.fullmatch(r"\.(?=.*[a-z])\w{1,10}", ending):
        return Skipped(path, UNKNOWN, ending)
    return Skipped(path, NO_ENDING, "")  # dates and numbers behind a dot are no endings


@dataclass
class SkippedFiles:
    """How many files of which kinds and endings were left alone, with the names of some."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, file: Skipped, place: str) -> None:
        """Count a file that lies at `place`."""
        key = (file.kind, file.ending)
        self.counts[key if key in self.counts or len(self.counts) < _ENDINGS else (file.kind, "")] += 1
        names = self.examples.setdefault(file.kind, [])
        if len(names) < _EXAMPLES:
            names.append(place)

    @property
    def files(self) -> int:
        """All of them but the hidden ones."""
        return self.counts.total() - self.hidden

    @property
    def hidden(self) -> int:
        """Hidden files, and hidden folders, each of which counts once."""
        return self.counts[HIDDEN, ""]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each kind but the hidden, the most frequent first, with endings, examples and a way out."""
        kinds: Counter[str] = Counter()
        for (kind, _), count in self.counts.items():
            kinds[kind] += count
        del kinds[HIDDEN]
        rows = []
        for kind, files in sorted(kinds.items(), key=lambda count: (-count[1], count[0])):
            endings = {ending: n for (of, ending), n in self.counts.most_common() if of == kind and ending}
            row = {"kind": kind, "files": files, "endings": endings, "examples": self.examples[kind]}
            rows.append(row | {"way_out": _WAYS_OUT.get(kind) or None})
        return rows

    def __str__(self) -> str:
        """`52 skipped (40 video: .mp4 .mov, save stills of them as pictures; 12 documents: .pdf)`; empty if none."""
        parts = []
        for row in self.rows():
            if row["endings"]:
                names = list(row["endings"])
                ending_list = " ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])
                endings = f": {ending_list}"
            else:
                endings = ""
            way_out = f", {row['way_out']}" if row["way_out"] else ""
            part = f"{row['files']:,} {row['kind']}{endings}{way_out}"
            parts.append(part)
        return f"{self.files:,} skipped ({'; '.join(parts)})" if parts else ""
