"""Keywords in XMP sidecars: small files beside photos, which photo programs read. The photos stay as they are.

A sidecar is `photo.jpg.xmp`, or `photo.xmp` where that is there already. Source: XMP Specification Part 1 (ISO 16684-1)
and Part 3, "Storage in files".
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree as ET

from eyespot.formats.albums import AlbumReport, Hit
from eyespot.formats.exporting import ExportFailure
from eyespot.photos.embedded_facts import MOST_BYTES, parse_xmp
from eyespot.photos.found import reason
from eyespot.photos.videos.addresses import file_of
from eyespot.storage.atomic import new_file

_DC, _RDF, _X = "http://purl.org/dc/elements/1.1/", "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "adobe:ns:meta/"
_SUBJECT, _BAG, _LI = f"{{{_DC}}}subject", f"{{{_RDF}}}Bag", f"{{{_RDF}}}li"
_DESCRIPTION = f"{{{_RDF}}}Description"
_EMPTY = f'<x:xmpmeta xmlns:x="{_X}"><rdf:RDF xmlns:rdf="{_RDF}"><rdf:Description rdf:about=""/></rdf:RDF></x:xmpmeta>'
_OPEN = b'<?xpacket begin="\xef\xbb\xbf" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
_CLOSE = b'\n<?xpacket end="w"?>\n'


def add_keyword(hits: Iterable[Hit], keyword: str, dry_run: bool = False) -> AlbumReport:
    """Add a keyword to the sidecar of each hit; one that has it already is left as it is, and with `dry_run` all are.

    A sidecar that is not XMP, and a photo in an archive, are among the failed. Raises OSError where a sidecar cannot be
    written.
    """
    report = AlbumReport()
    for hit in hits:
        path = hit["path"] and file_of(hit["path"])
        try:
            if path is None or not os.path.isfile(path):
                raise OSError("no file to put a sidecar beside")
            sidecar, before = sidecar_of(path), None
            with suppress(FileNotFoundError), sidecar.open("rb") as file:
                before = file.read(MOST_BYTES + 1)
            after = with_keyword(before, keyword)
        except OSError as error:
            report.failed.append(ExportFailure(hit["id"], path or "", reason(error)))
        except ValueError as error:
            report.failed.append(ExportFailure(hit["id"], path, f"{sidecar.name} {error}"))
        else:
            if sidecar in report.files:  # of another frame of the same video
                continue
            report.files.append(sidecar)
            report.known.extend([sidecar] * (after is None))
            if after is not None and not dry_run:
                with new_file(sidecar) as file:
                    file.write(after)
    return report


def sidecar_of(photo: str) -> Path:
    """Where a photo's sidecar lies, or will."""
    whole, by_stem = Path(f"{photo}.xmp"), Path(photo).with_suffix(".xmp")
    return by_stem if by_stem.is_file() and not whole.is_file() else whole


def with_keyword(xmp: bytes | None, keyword: str) -> bytes | None:
    """The sidecar with the keyword, None if it has it; `xmp` None: a new one. `ValueError` if it is not XMP."""
    root = _parsed(_EMPTY.encode() if xmp is None else xmp)
    descriptions = list(root.iter(_DESCRIPTION))
    if not descriptions:
        raise ValueError("is not an XMP sidecar; move it away")
    if keyword in [item.text for subject in root.iter(_SUBJECT) for item in subject.iter(_LI)]:
        return None
    subject = next(root.iter(_SUBJECT), None)
    if subject is None:
        subject = ET.SubElement(descriptions[0], _SUBJECT)
    items = next((child for child in subject if isinstance(child.tag, str)), None)  # and no comment
    if items is None:
        items = ET.SubElement(subject, _BAG)
    ET.SubElement(items, _LI).text = keyword  # some programs write a Seq; a second list is not read
    written: bytes = ET.tostring(root, "utf-8")
    return _OPEN + written + _CLOSE


def _parsed(xmp: bytes) -> ET.Element:
    """The tree, whose prefixes are those of the file when it is written again."""
    root, names = parse_xmp(xmp, with_comments=True), {"dc": _DC, "rdf": _RDF, "x": _X}
    names |= {str(prefix): str(uri) for _, (prefix, uri) in ET.iterparse(io.BytesIO(xmp), ["start-ns"])}
    for prefix, uri in names.items():
        if prefix and not prefix.startswith("ns"):  # the writer numbers its own so
            ET.register_namespace(prefix, uri)
    return root
