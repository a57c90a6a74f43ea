"""Exports of camera-trap systems: tables in a folder, or in the zip that was downloaded."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from eyespot.photos.labels import read_delimited
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

TableRow = tuple[int, dict[str, str] | str]
"""A line, and its fields by the names of columns in lower case, or what is wrong with it."""


class ExportPackage:
    """The files of an export; a name is the last part of a path, and the one nearest to the top counts."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._zip = None if place.is_dir() else _zip(place)
        paths = self._zip.namelist() if self._zip else [path.name for path in place.iterdir() if path.is_file()]
        inside = [path for path in paths if not path.endswith("/") and "__MACOSX" not in path]
        by_depth = sorted(inside, key=lambda path: (-path.count("/"), path))
        self.files = {PurePosixPath(path).name: path for path in by_depth}

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A file of the export, unpacked; `UsageError` if it cannot be read."""
        try:
            path = self.files[name]
            with self._zip.open(path) if self._zip else (self.place / path).open("rb") as file:
                packed = name.lower().endswith(".gz")
                yield gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[misc]
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError) as error:
            # RuntimeError: the zip has a password
            raise UsageError(f"{self.place / name} cannot be read ({error}); fetch the export again") from None

    def rows(self, name: str) -> Iterator[TableRow]:
        """The rows of a table, with empty cells left out; `UsageError` for a file that is not UTF-8."""
        with self.open(name) as file:
            text = io.TextIOWrapper(file, "utf-8-sig", newline="")
            try:
                _, rows = read_delimited(text)
                for line, row in rows:
                    if not isinstance(row, str):  # R writes NA where nothing is known
                        cells = ((name.lower(), cell.strip()) for name, cell in row.items())
                        row = {name: text for name, text in cells if text not in ("", "NA")}
                    yield line, row
            except UnicodeDecodeError:
                refuse(self.place / name, "", "is not UTF-8; save it as UTF-8 and run again")
            except csv.Error as error:
                refuse(self.place / name, "", f"is not CSV ({error})")


def _zip(place: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(place)
    except FileNotFoundError:
        raise UsageError(f"there is no {place}; name the folder or zip of an export") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"{place} is neither a folder nor a zip ({error}); name the export as it was saved") from None
