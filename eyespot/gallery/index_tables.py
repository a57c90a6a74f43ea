"""The tables of a gallery's index of pictures, and how ids, paths and facts stand in them.

Names stand once: a path is the number of its folder and a name; pictures and cameras are numbers. Those of a shard are
numbers in a row, so one line of `spans` says where its vectors are. The view `files` shows paths and ids in full.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from eyespot.photos import provenance
from eyespot.photos.found import is_utf8
from eyespot.photos.videos.addresses import VIDEO, VIDEO_COLUMNS

# paths.item: the number of the file's picture; the packed id of a video, which has no row; NULL for what failed. It has
# no type, so a column of numbers is compared with it as `+number`: else SQLite does not use the index.
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS roots(number INTEGER PRIMARY KEY, path TEXT UNIQUE, kind TEXT);
CREATE TABLE IF NOT EXISTS folders(number INTEGER PRIMARY KEY, root INTEGER, path TEXT, UNIQUE(root, path));
CREATE TABLE IF NOT EXISTS paths(folder INTEGER, name TEXT, size INTEGER, mtime INTEGER, place INTEGER, item,
    failed TEXT, PRIMARY KEY(folder, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS paths_item ON paths(item);
CREATE INDEX IF NOT EXISTS paths_failed ON paths(folder) WHERE failed IS NOT NULL;
CREATE INDEX IF NOT EXISTS paths_frames ON paths(folder) WHERE place < {VIDEO};
CREATE INDEX IF NOT EXISTS paths_videos ON paths(folder) WHERE place = {VIDEO};
CREATE TABLE IF NOT EXISTS pictures(number INTEGER PRIMARY KEY, id UNIQUE, width INTEGER, height INTEGER, taken,
    latitude REAL, longitude REAL, camera INTEGER, format INTEGER, more TEXT);
CREATE TABLE IF NOT EXISTS spans(first INTEGER PRIMARY KEY, rows INTEGER, shard INTEGER, row INTEGER);
CREATE INDEX IF NOT EXISTS spans_shard ON spans(shard, row);
CREATE TABLE IF NOT EXISTS words(number INTEGER PRIMARY KEY, word TEXT UNIQUE);
CREATE TABLE IF NOT EXISTS picture_texts(item INTEGER PRIMARY KEY, facts TEXT, failed TEXT);
CREATE TABLE IF NOT EXISTS labels(root INTEGER, path TEXT, facts TEXT, PRIMARY KEY(root, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS columns(name TEXT PRIMARY KEY, kind TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS problems(root INTEGER, path TEXT, reason TEXT);
CREATE INDEX IF NOT EXISTS problems_path ON problems(root, path);
CREATE TABLE IF NOT EXISTS plan(shard INTEGER, position INTEGER, root INTEGER, path TEXT, size INTEGER, mtime INTEGER,
    place INTEGER, PRIMARY KEY(shard, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stale(shard INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS visits(root INTEGER PRIMARY KEY, began INTEGER);
CREATE TABLE IF NOT EXISTS tallies(roots TEXT PRIMARY KEY, pictures INTEGER, paths INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS imported(shard INTEGER PRIMARY KEY, root INTEGER, rows INTEGER, format TEXT, space TEXT,
    source TEXT UNIQUE);
"""
_WHOLE_ID = "ifnull((SELECT id FROM pictures WHERE number = item), item)"
SHOWN_ID = "iif(typeof({0}) = 'blob', lower(hex({0})), {0})"
VIEW = f"""CREATE VIEW IF NOT EXISTS files AS SELECT folders.root AS root, folders.path || name AS path, size, mtime,
    place, {SHOWN_ID.format(_WHOLE_ID)} AS id, failed
    FROM paths JOIN folders ON folders.number = paths.folder;"""
HAS_ROW = "paths.item < ''"  # numbers sort before texts, and texts before packed ids
SHARD_OF = "(SELECT shard FROM spans WHERE first <= {} ORDER BY first DESC LIMIT 1)"
FOLDER_OF = "rtrim({0}, replace({0}, '/', ''))"  # of a path, as `split` gives it
NAME_OF = f"substr({{0}}, length({FOLDER_OF}) + 1)"
STALE = f"INSERT OR IGNORE INTO stale SELECT DISTINCT {SHARD_OF.format('paths.item')} FROM paths"
STALE_ALL = "INSERT OR IGNORE INTO stale SELECT DISTINCT shard FROM spans"

_EPOCH, _SECOND = datetime(1970, 1, 1), timedelta(seconds=1)
_PLAIN, _WORDS = ("width", "height", "latitude", "longitude"), ("camera", "format")
_COLUMNS = {*_PLAIN, *_WORDS, "taken"}
FACTS = "width, height, taken, latitude, longitude, camera, format, more"
_TEXTS = {**dict.fromkeys(provenance.EMBEDDED, "text"), **provenance.COLUMNS}
OPTIONAL: Mapping[str, str] = {**_TEXTS, **VIDEO_COLUMNS, "pages": "int", provenance.RATING: "int"}
"""Facts, with their kinds, that are columns only of shards whose pictures have some."""


def packed(id: str) -> bytes | str:
    """An id as the index holds it: its 16 bytes where it is 32 hex digits."""
    with suppress(ValueError):
        if len(id) == 32 and (data := bytes.fromhex(id)).hex() == id:
            return data
    return id


def unpacked(id: bytes | str) -> str:
    """The id that was packed."""
    return id.hex() if isinstance(id, bytes) else id


def split(path: str) -> tuple[str, str]:
    """The folder of a path, with its slash, and the name in it; joined they are the path."""
    at = path.rfind("/") + 1
    return path[:at], path[at:]


class WordNumbers:
    """Texts that many pictures share, by their numbers."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self._numbers: dict[str, int] = {}
        self._words: dict[int, str] = {}

    def number(self, word: str) -> int:
        """The number of a word, a new one if it has none."""
        if (number := self._numbers.get(word)) is None:
            self._sql.execute("INSERT OR IGNORE INTO words(word) VALUES (?)", (word,))
            (number,) = self._sql.execute("SELECT number FROM words WHERE word = ?", (word,)).fetchone()
            self._remember(number, word)
        return number

    def word(self, number: int) -> str:
        """The word of a number."""
        if number not in self._words:
            self._remember(*self._sql.execute("SELECT number, word FROM words WHERE number = ?", (number,)).fetchone())
        return self._words[number]

    def _remember(self, number: int, word: str) -> None:
        if len(self._words) > 100_000:
            self._numbers, self._words = {}, {}
        self._numbers[word], self._words[number] = number, word


def fact_values(measured: Mapping[str, Any], words: WordNumbers) -> tuple[Any, ...]:
    """What was measured of a picture, in the order of `FACTS`."""
    rest = {name: value for name, value in measured.items() if name not in _COLUMNS}
    shared: list[int | None] = []
    for name in _WORDS:
        word = measured.get(name)
        if word is not None and not is_utf8(word):  # which JSON escapes
            rest[name], word = word, None
        shared.append(None if word is None else words.number(word))
    taken = measured.get("taken")
    with suppress(ValueError, TypeError):  # a text that says anything else, as parts of a second, stays
        moment = datetime.fromisoformat(taken or "")
        if moment.isoformat() == taken and not moment.microsecond:
            taken = (moment - _EPOCH) // _SECOND  # seconds since 1970 on the camera's clock
    width, height, latitude, longitude = map(measured.get, _PLAIN)
    camera, kind = shared
    return width, height, taken, latitude, longitude, camera, kind, json.dumps(rest) if rest else None


def measured_of(values: Sequence[Any], words: WordNumbers) -> dict[str, Any]:
    """What `fact_values` made values of."""
    width, height, taken, latitude, longitude, camera, kind, more = values
    known = {
        "width": width,
        "height": height,
        "taken": (_EPOCH + taken * _SECOND).isoformat() if isinstance(taken, int) else taken,
        "latitude": latitude,
        "longitude": longitude,
        "camera": None if camera is None else words.word(camera),
        "format": None if kind is None else words.word(kind),
    }
    rest: dict[str, Any] = json.loads(more) if more else {}
    return {name: value for name, value in known.items() if value is not None} | rest
