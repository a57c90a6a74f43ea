"""What files are: by their endings, and where an ending says nothing by their first bytes; what a walk leaves out.

Only files with an unknown ending or none are opened for their first bytes: a folder may hold millions of others.
"""

from __future__ import annotations

import os
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from eyespot.photos.found import Excluded, Skipped
from eyespot.photos.videos.addresses import VIDEO_SUFFIXES

HIDDEN, LINKED, PAIRED = "hidden", "linked folders", "beside their photo"
_THUMBNAILS, _FORKS, _PROGRAM, _DELETED = "thumbnails", "resource forks", "program files", "deleted files"
HEAD = 64  # bytes that show what a file is
_SIGNS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_BRANDS = {b"avif", b"avis", b"heic", b"heim", b"heis", b"heix", b"hevc", b"hevm", b"hevs", b"hevx", b"mif1", b"msf1"}
_BMP_HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)  # bytes
UNKNOWN, NO_ENDING, NO_FILE = "with an unknown ending", "without an ending", "pipes and devices"
_EXAMPLES, _ENDINGS, _SHOWN = 3, 200, 4  # of a kind: names, endings that are counted apart, endings in a sentence
_RAW = """.3fr .arw .cr2 .cr3 .crw .dcr .dng .erf .fff .iiq .k25 .kdc .mef .mos .mrw .nef .nrw .orf .pef .raf .rw2 .rwl
    .sr2 .srf .srw .x3f"""
RAW_SUFFIXES = frozenset(_RAW.split())


def reads_raw() -> bool:
    """Whether the reader of RAW photos is installed."""
    return find_spec("rawpy") is not None


SUFFIXES: frozenset[str] = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".webp", ".gif", ".bmp", ".tif", ".tiff"}
    | {".avif", ".avifs", ".heic", ".heics", ".heif", ".heifs", ".hif", ".jxl"}
    | (RAW_SUFFIXES if reads_raw() else frozenset())
)
"""Endings of file names worth opening, in lower case; what a file is, its bytes decide."""


_ENDINGS_OF = {  # files that are not pictures to eyespot, by their endings
    "video": f".insv .lrv {' '.join(sorted(VIDEO_SUFFIXES))}",
    "RAW": ".3fr .arw .cr2 .cr3 .crw .dcr .dng .erf .fff .gpr .iiq .k25 .kdc .mef .mos .mrw .nef .nrw .orf .pef .raf"
    " .raw .rw2 .rwl .sr2 .srf .srw .x3f",
    "layered or vector": ".afdesign .afphoto .ai .cdr .eps .indd .kra .pdn .procreate .ps .psb .psd .svg .svgz .xcf",
    "other picture formats": ".cur .dcm .dds .djvu .dpx .emf .exr .fits .hdr .icns .ico .j2c .j2k .jp2 .jpf .jpx .jxr"
    " .pbm .pcx .pgm .pnm .ppm .qoi .tga .wmf",
    "archives": ".7z .bz2 .dmg .gz .iso .rar .tar .tgz .xz .zip .zst",
    "documents": ".doc .docx .epub .htm .html .key .log .md .odp .ods .odt .pages .pdf .ppt .pptx .rtf .rst .tex .txt"
    " .url .webloc .xls .xlsx",
    "sidecars and data": ".aae .cfg .cos .csv .db .dop .geojson .gpx .h5 .hdf5 .ini .json .jsonl .kml .lrcat .md5"
    " .nfo .nksc .npy .npz .parquet .plist .pp3 .sha256 .sqlite .sqlite3 .srt .thm .toml .tsv"
    " .vtt .xml .xmp .yaml .yml",
    "sound": ".aac .aif .aiff .amr .flac .m4a .mid .mp3 .oga .ogg .opus .wav .wma",
    "programs": ".bat .c .class .cmd .cpp .css .dll .exe .go .h .ipynb .jar .java .js .py .pyc .rs .sh .so .ts .whl",
}
_WAYS_OUT = {  # what their owner may do about it
    "video": "index them outside of tars with the extra [video]",
    "RAW": "export them as JPEG, or add the extra [raw]",
    "layered or vector": "export them as PNG",
    "other picture formats": "convert them to PNG",
    "archives": "unpack them, or name each .tar",
}
KIND_OF: Mapping[str, str] = {ending: kind for kind, endings in _ENDINGS_OF.items() for ending in endings.split()}
"""What files with an ending (`.mp4`, in lower case) are; without the endings that do not say."""
PICTORIAL = ("video", "RAW", "layered or vector", "other picture formats")  # kinds that show something

# A walk leaves these out though they may hold pictures: thumbnails and caches of programs, second ways
_FOLDERS = (  # names of folders in lower case, a name above them ("" for any), and what they hold
    ("@eadir *.lrdata", "", _THUMBNAILS),  # Synology makes some for every folder; previews of Lightroom
    # Apple Photos; originals lie in `originals`, edits in `renders`
    ("derivatives thumbnails proxies", "*.photoslibrary", _THUMBNAILS),
    ("thumbnails", "*.*photolibrary", _THUMBNAILS),  # iPhoto; `migratedphotolibrary` once Photos took it over
    ("thumbnails previews", "*.*aplibrary", _THUMBNAILS),  # Aperture
    ("cache", "captureone", _THUMBNAILS),  # beside the photos of a Capture One session
    ("__macosx", "", _FORKS),  # macOS puts it in each zip that it packs
    ("node_modules site-packages __pycache__", "", _PROGRAM),
    ("$recycle.bin #recycle @recycle", "", _DELETED),  # Windows, Synology and QNAP
)


def why_left_out(name: str, above: Sequence[str]) -> str | None:
    """What a folder holds that is not looked through; None for one that is. `above`: names of those it lies in."""
    lowered = name.lower()
    for patterns, over, reason in _FOLDERS:
        is_below = not over or any(fnmatchcase(one.lower(), over) for one in above)
        if is_below and any(fnmatchcase(lowered, one) for one in patterns.split()):
            return reason
    return None


@lru_cache(maxsize=1024)
def why_left_out_below(folder: str) -> str | None:
    """The same for a relative path of folders, each of which may be the reason."""
    names = folder.split("/") if folder else []
    return next(filter(None, (why_left_out(name, names[:level]) for level, name in enumerate(names))), None)


def is_picture(head: bytes) -> bool:
    """Whether a file that begins so is a picture of a format that eyespot reads."""
    if head.startswith(_SIGNS) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return True
    if head[4:8] == b"ftyp":
        end = min(int.from_bytes(head[:4]), len(head))
        return not _BRANDS.isdisjoint(head[at : at + 4] for at in range(8, end, 4) if at != 12)
    return head[:2] == b"BM" and len(head) >= 18 and struct.unpack_from("<I", head, 14)[0] in _BMP_HEADERS


def ending_of(name: str) -> str:
    """What kinds go by: the ending of a file name in lower case, with its dot; empty if it has none."""
    return os.path.splitext(name)[1].lower()


def skipped_by_head(path: str, head: bytes | None) -> Skipped | None:
    """Why a file whose ending is not a picture's is skipped; None if its first bytes are those of a picture.

    head: the first bytes, or None for what is not a file.
    """
    ending = ending_of(path)
    if head is None:
        return Skipped(path, NO_FILE, "")
    if is_picture(head):
        return None
    if re.fullmatch(r"\.(?=.*[a-z])\w{1,10}", ending):
        return Skipped(path, UNKNOWN, ending)
    return Skipped(path, NO_ENDING, "")  # dates and numbers behind a dot are not endings


@dataclass
class SkippedFiles:
    """How many files of which kinds and endings were left alone, with the names of some.

    `left_out` counts what was not looked at at all; a hidden folder and a linked one count once.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, file: Skipped | Excluded, place: str) -> None:
        """Count a file or folder that lies at `place`."""
        if isinstance(file, Excluded):
            kind = file.reason
            self.left_out[kind] += 1 if kind == HIDDEN else file.files
        else:
            kind, key = file.kind, (file.kind, file.ending)
            self.counts[key if key in self.counts or len(self.counts) < _ENDINGS else (kind, "")] += 1
        shown = self.examples.setdefault(kind, [])
        shown += [place] * (len(shown) < _EXAMPLES)

    @property
    def files(self) -> int:
        """All files that are not pictures; what was left out does not count."""
        return self.counts.total()

    def files_of(self, kind: str) -> int:
        """How many files of one kind."""
        return sum(count for (of, _), count in self.counts.items() if of == kind)

    @property
    def hidden(self) -> int:
        """Hidden files, and hidden folders, each of which counts once."""
        return self.left_out[HIDDEN]

    def left_out_rows(self) -> list[dict[str, Any]]:
        """A row for each reason why something was left out, hidden files aside, with examples."""
        counts = sorted(self.left_out.items(), key=lambda count: (-count[1], count[0]))
        return [{"kind": k, "files": n, "examples": self.examples[k]} for k, n in counts if k != HIDDEN]

    def left_out_texts(self) -> list[str]:
        """`2 hidden left out`, `31 thumbnails left out`, …"""
        own = [(HIDDEN, self.hidden), *((row["kind"], row["files"]) for row in self.left_out_rows())]
        named = [(files, kind.removesuffix("s") if files == 1 else kind, kind) for kind, files in own if files]
        ends = {LINKED: " not entered again", PAIRED: ""}
        return [f"{files:,} {name}{ends.get(kind, ' left out')}" for files, name, kind in named]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each kind, the most frequent first, with endings, examples and a way out."""
        kinds = {kind: self.files_of(kind) for kind, _ in self.counts}
        rows = []
        for kind, files in sorted(kinds.items(), key=lambda count: (-count[1], count[0])):
            endings = {ending: n for (of, ending), n in self.counts.most_common() if of == kind and ending}
            row = {"kind": kind, "files": files, "endings": endings, "examples": self.examples[kind]}
            rows.append(row | {"way_out": _WAYS_OUT.get(kind)})
        return rows

    def __str__(self) -> str:
        """`52 skipped (39 .mp4 + 1 .mov video, save stills of them as pictures; 12 .pdf documents)`; empty if none."""
        parts = []
        for row in self.rows():
            counts = [f"{files:,} {ending}" for ending, files in row["endings"].items()]
            others = row["files"] - sum(list(row["endings"].values())[:_SHOWN])
            counts = counts[:_SHOWN] + ([f"{others:,}{' others' if counts else ''}"] if others else [])
            way_out = f", {row['way_out']}" if row["way_out"] else ""
            parts.append(f"{' + '.join(counts)} {row['kind']}{way_out}")
        return f"{self.files:,} skipped ({'; '.join(parts)})" if parts else ""
