"""Files of names, read one row at a time: Darwin Core as iNaturalist and GBIF write it, and tables of one's own.

taxa          a column scientificName with taxonID (or id), parentNameUsageID, acceptedNameUsageID
vernaculars   a column vernacularName with taxonID (or id), language
one's own     each row holds names of one thing. Without a header every field is a name. With one, the columns that are
              called a language, "name", "… name" or "synonyms" hold names, "parent" and the ranks (family, genus, …)
              what it belongs to.
"""

from __future__ import annotations

import csv
import io
import lzma
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from eyespot.storage.text_files import lines_of
from eyespot.types import UsageError

LONGEST = 5  # words of a name that is looked up
# "Herons, Egrets, and Bitterns" are three names; "and allies" names nothing
_AND = re.compile(r"\s+(?:and|y|e|et|und|en|i|&)\s+", re.I)
_ALLIES = re.compile(
    r"(?:and|y|e|et|und|en|&)?\s*(?:their |sus )?"
    r"(?:allies|relatives|kin|afines|parientes|aliados|apparentés|verwandte)",
    re.I,
)
MAX_FIELD = 1 << 20
LONGEST_NAME = 200  # characters
SUFFIXES = (".csv", ".tsv", ".txt")
SCIENTIFIC, ENGLISH, OTHER, PART = range(4)  # in which order a taxon's names are shown
RANKS = ("kingdom", "phylum", "class", "order", "superfamily", "family", "subfamily", "tribe", "genus", "subgenus")
_ABOVE = (*RANKS, "parent")
LANGUAGES = frozenset(
    """latin english spanish french german italian portuguese dutch catalan danish swedish norwegian finnish polish
    czech russian ukrainian turkish greek arabic hebrew chinese japanese korean hindi en es fr de it pt nl ca da sv no
    fi pl cs ru uk tr el ar he zh ja ko hi scientific common vernacular species synonym synonyms""".split()  # noqa: SIM905
)
_FILES = frozenset({"file name", "image name", "dir name", "folder name", "image dir name", "path name"})


class TaxonRow(NamedTuple):
    """A taxon by its key in this file; `accepted` is the key of the taxon that it is a synonym of."""

    key: str
    parent: str = ""
    accepted: str = ""


class NameRow(NamedTuple):
    """A name of the taxon with this key; `place` is where it stands among the taxon's names."""

    key: str
    name: str
    place: int


class NameFailure(NamedTuple):
    """A row that cannot be used; line 0 is the file as a whole."""

    file: str
    line: int
    reason: str


Found = TaxonRow | NameRow | NameFailure
Row = tuple[int, list[str]]


def read_names(place: Path) -> Iterator[Found]:
    """What the rows of a file, of a folder of such files or of a .zip of them say, and which are malformed.

    Raises `UsageError` where there is no table at all.
    """
    readers = 0
    try:
        for name, file in _opened(place):
            with file:
                readers += 1
                yield from _read(name, file)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        raise UsageError(f"{place} is damaged ({str(error) or 'it ends too early'}); fetch it again") from None
    except RuntimeError as error:  # a password, or a compression that Python has not
        raise UsageError(f"{place} cannot be read ({error}); unpack it, and give the folder") from None
    except OSError as error:
        raise UsageError(f"{place} cannot be read ({(error.strerror or str(error)).lower()})") from None
    if not readers:
        raise UsageError(f"{place} holds no table of names; give a .csv or .tsv, or a folder or .zip of them")


def _opened(place: Path) -> Iterator[tuple[str, IO[str]]]:
    if place.is_dir():
        for path in sorted(path for path in place.iterdir() if _is_table(path.name)):
            yield path.name, path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    elif zipfile.is_zipfile(place):
        with ExitStack() as opened:
            archive = opened.enter_context(zipfile.ZipFile(place))
            for name in sorted(filter(_is_table, archive.namelist())):
                yield name, io.TextIOWrapper(archive.open(name), "utf-8-sig", "surrogateescape", newline="")
    else:
        yield place.name, place.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _is_table(name: str) -> bool:
    """Whether a file of a folder may hold names; archives have tables of distributions and descriptions besides."""
    stem = Path(name).stem.casefold()
    other = stem.startswith(("distribution", "description", "multimedia", "reference", "typesandspecimen", "."))
    return Path(name).suffix.casefold() in SUFFIXES and not other


# -- rows -----------------------------------------------------------------------------------------------------


def _read(file_name: str, file: IO[str]) -> Iterator[Found]:
    csv.field_size_limit(MAX_FIELD)
    lines = lines_of(file)
    try:
        first = next(lines, "")
        delimiter = max(",;\t", key=first.count)
        head: list[str] = next(_csv_reader([first], delimiter), [])
    except csv.Error as error:  # without its columns nothing can be read
        yield NameFailure(file_name, 1, str(error))
        return
    titles = [folded(title.rpartition(":")[2]) for title in head]
    rows = _rows(lines, delimiter)
    if (reader := _reader_of(titles)) is not None:
        yield from _checked(file_name, rows, len(head), lambda row: reader(dict(zip(titles, row[1], strict=True))))
    elif _names_of(titles):
        yield from _checked(file_name, rows, len(head), lambda row: _own_columns(titles, row[1]))
    else:  # no header: the first row holds names, too
        rows = chain([(1, head)], rows)
        yield from _checked(
            file_name, rows, None, lambda row: _equal([(n, OTHER) for f in row[1] for n in _split(f)], "")
        )


def _csv_reader(lines: Iterable[str], delimiter: str) -> Any:
    # GBIF's tables are tab-delimited without quoting: a quote in them is a character of a name
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL)


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[Row | NameFailure]:
    """The rows below the first line; what the csv module refuses is a failure, and reading goes on behind it."""
    reader = _csv_reader(lines, delimiter)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield NameFailure("", reader.line_num + 1, str(error))
            continue
        if any(field.strip() for field in row):
            yield reader.line_num + 1, row


def _checked(
    file: str, rows: Iterator[Row | NameFailure], width: int | None, read: Callable[[Row], Iterator[Found]]
) -> Iterator[Found]:
    """What `read` makes of the rows that have as many fields as the header, in UTF-8."""
    for row in rows:
        if isinstance(row, NameFailure):
            yield row._replace(file=file)
            continue
        line, fields = row
        if width is not None and len(fields) != width:
            yield NameFailure(file, line, f"has {len(fields)} fields where the header has {width}")
        elif any("\udc80" <= sign <= "\udcff" for field in fields for sign in field):
            yield NameFailure(file, line, "is not valid UTF-8")
        else:
            for found in read(row):
                yield found._replace(file=file, line=line) if isinstance(found, NameFailure) else found


# -- Darwin Core ----------------------------------------------------------------------------------------------


def _reader_of(titles: Sequence[str]) -> Callable[[dict[str, str]], Iterator[Found]] | None:
    """What reads a table of Darwin Core with these columns; None for a table of one's own."""
    there = set(titles)
    if not there & {"taxonid", "id"}:
        return None
    if "vernacularname" in there:
        return _vernacular
    return _taxon if there & {"scientificname", "canonicalname"} else None


def _key(row: Mapping[str, str], *names: str) -> str:
    """A key by the first of these columns that says anything; of an address the last part, as iNaturalist has both."""
    value = next((value for name in names if (value := row.get(name, "").strip())), "")
    return value.rstrip("/").rpartition("/")[2]


def _taxon(row: dict[str, str]) -> Iterator[Found]:
    key = _key(row, "taxonid", "id")
    name = row.get("canonicalname", "").strip() or row.get("scientificname", "").strip()
    author = row.get("scientificnameauthorship", "").strip()
    if author and name.endswith(author):
        name = name[: -len(author)].strip()
    if not key or not name:
        yield NameFailure("", 0, "has no key" if not key else "has no name")
        return
    accepted = _key(row, "acceptednameusageid")
    yield TaxonRow(key, _key(row, "parentnameusageid"), "" if accepted == key else accepted)
    yield from _name_rows(key, name, OTHER if accepted not in ("", key) else SCIENTIFIC)


def _vernacular(row: dict[str, str]) -> Iterator[Found]:
    key, name = _key(row, "taxonid", "id"), row["vernacularname"]
    if not key or not name.strip():
        yield NameFailure("", 0, "has no key" if not key else "has no name")
        return
    english = row.get("language", "").strip().casefold() in ("en", "eng", "english")
    yield from _name_rows(key, name, ENGLISH if english else OTHER)


def _name_rows(key: str, name: str, place: int) -> Iterator[Found]:
    whole, *parts = single_names(name)
    if len(whole) > LONGEST_NAME:
        yield NameFailure("", 0, f"has a name of more than {LONGEST_NAME} characters")
        return
    if not folded(whole):
        yield NameFailure("", 0, "has a name without letters")
        return
    yield NameRow(key, whole, place)
    yield from (NameRow(key, part, place + PART) for part in parts if folded(part))


# -- one's own ------------------------------------------------------------------------------------------------


def _names_of(titles: Sequence[str]) -> list[int]:
    """The columns that hold names, where this is a header; empty where it is a row like any other."""
    wanted = [
        at
        for at, title in enumerate(titles)
        if title not in _FILES and (title in LANGUAGES or title.split()[-1:] in (["name"], ["names"]))
    ]
    return wanted if len(titles) > 1 else []


def _own_columns(titles: Sequence[str], fields: Sequence[str]) -> Iterator[Found]:
    parent = ""
    above = [
        (_ABOVE.index(title), title, field) for title, field in zip(titles, fields, strict=True) if title in _ABOVE
    ]
    for _, rank, field in sorted(above):
        if field.strip():
            yield TaxonRow(key := f"{rank}:{folded(field)}", parent)
            yield from _name_rows(key, field, SCIENTIFIC)
            parent = key
    names = []
    for at in _names_of(titles):
        place = ENGLISH if "english" in titles[at].split() or titles[at] in ("en", "common name") else OTHER
        if titles[at] in ("latin name", "scientific name", "latin", "scientific", "species"):
            place = SCIENTIFIC
        names += [(name, place) for name in _split(fields[at])]
    yield from _equal(names, parent)


def _split(field: str) -> list[str]:
    """Names in one field stand between | or ;."""
    return [name for part in field.split("|") for name in part.split(";") if name.strip()]


def _equal(names: Sequence[tuple[str, int]], parent: str) -> Iterator[Found]:
    """One taxon of these names; the same row twice is one."""
    if not names:
        yield NameFailure("", 0, "has no name")
        return
    yield TaxonRow(key := "row:" + "|".join(sorted({folded(name) for name, _ in names})), parent)
    for name, place in names:
        yield from _name_rows(key, name, place)


# -- how names are compared: without case, accents and signs, in singular or plural ------------------------------


def name_words(text: str) -> list[str]:
    """The words of a name in order, in lower case without accents: letters and digits, as in the table of words."""
    letters = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if unicodedata.category(c)[0] != "M")
    return "".join(c if unicodedata.category(c)[0] in "LN" else " " for c in letters).split()


def folded(text: str) -> str:
    """A name as it is compared."""
    return " ".join(name_words(text))


def forms(words: Sequence[str]) -> list[str]:
    """A name of these words, and the same with its last word in the plural or the singular of English and Spanish."""
    *first, last = words
    lasts = [last]
    if len(last) > 2 and last.isalpha():
        lasts += [f"{last}s", f"{last}es"]
    if len(last) > 3 and last.endswith("s") and not last.endswith("ss"):
        lasts += [last[:-1], *([last[:-2]] if last.endswith("es") else [])]
    return [" ".join([*first, form]) for form in lasts]


def single_names(name: str) -> list[str]:
    """The name itself, and each part of it where it lists several, as names of families do."""
    name = " ".join(name.split())
    if "," not in name:
        return [name]
    head, _, tail = name.rpartition(",")
    listed = f"{head},{_AND.sub(',', f' {tail} ')}"
    parts = (_ALLIES.sub("", part).strip() for part in listed.split(","))
    return list(dict.fromkeys([name, *filter(None, parts)]))
