"""What somebody asks for, as an address says it: words, a picture, more like these, not these, and a filter."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

from eyespot.gallery import filters
from eyespot.gallery.filters import Condition
from eyespot.search import query_language
from eyespot.types import Query as Asking
from eyespot.types import Term, UsageError
from eyespot.web._problems import Problem
from eyespot.web._security import person_of
from eyespot.web._settings import Role
from eyespot.web.pictures.uploads import searched_with

PAGE = 60  # pictures


def _filled(value: Any) -> Any:
    """A form sends its empty boxes too."""
    return None if isinstance(value, str) and not value.strip() else value


class _OrBlank:
    """A parameter of a form, whose empty box the schema allows as the server does."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "string", "pattern": r"^\s*$"}]}


def _all_filled(value: Any) -> Any:
    return [one for one in value if _filled(one) is not None] if isinstance(value, list) else value


def is_text(value: str) -> str:
    """Halves of characters are no text, and no file's name or database takes a NUL."""
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("holds characters that are no text")
    return value


Words = Annotated[
    Annotated[str, Field(max_length=1000), AfterValidator(is_text)] | None, BeforeValidator(_filled), _OrBlank()
]
Name = Annotated[
    Annotated[str, Field(max_length=300), AfterValidator(is_text)] | None, BeforeValidator(_filled), _OrBlank()
]
Where = Annotated[
    Annotated[str, Field(max_length=2000), AfterValidator(is_text)] | None, BeforeValidator(_filled), _OrBlank()
]
Lasso = Annotated[
    Annotated[str, Field(max_length=6000), AfterValidator(is_text)] | None, BeforeValidator(_filled), _OrBlank()
]
Share = Annotated[Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None, BeforeValidator(_filled), _OrBlank()]
Neighbours = Annotated[Annotated[int, Field(ge=0, le=100)] | None, BeforeValidator(_filled), _OrBlank()]
Flag = Annotated[bool | None, BeforeValidator(_filled), _OrBlank()]
Tab = Annotated[Literal["yes", "no", "doubt", "unjudged"] | None, BeforeValidator(_filled), _OrBlank()]
Whose = Annotated[Literal["everybody"] | None, BeforeValidator(_filled), _OrBlank()]
First = Annotated[Literal["telling"] | None, BeforeValidator(_filled), _OrBlank()]
By = Annotated[Literal["look", "words", "both"] | None, BeforeValidator(_filled), _OrBlank()]
Digest = Annotated[Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None, BeforeValidator(_filled), _OrBlank()]
Names = Annotated[
    tuple[Annotated[str, Field(max_length=1000), AfterValidator(is_text)], ...],
    BeforeValidator(_all_filled),
    Field(max_length=50),
]


class SearchParams(BaseModel):
    """A search; every part may be left out, but not words, picture and `like` together."""

    model_config = ConfigDict(frozen=True)

    q: Words = Field(default=None, description='Words, with weights and minus: "2:heron + water - people".')
    picture: Digest = Field(default=None, description="A picture to search with, by what /v1/pictures gave for it.")
    like: Names = Field(default=(), description="More like these: ids of items; may be repeated.")
    unlike: Names = Field(default=(), description="Not these, and less like them: ids of items; may be repeated.")
    encoder: Name = Field(default=None, description="The encoder whose space is searched.")
    adapter: Name = Field(default=None, description="The adapter that gives the query its own view, by its name here.")
    neighbours: Neighbours = Field(
        default=None, description="Search again with this many nearest pictures added (query expansion)."
    )
    by: By = Field(default=None, description="By look, by words (labels, titles, names), or both, which is usual.")
    teach: bool = Field(default=True, description="Whether both also goes by what photos with these words look like.")
    after: Name = Field(default=None, description="Taken at or after: 2021, 2021-05, 2021-05-31.")
    before: Name = Field(default=None, description="Taken before.")
    box: Name = Field(default=None, description="Taken within SOUTH,WEST,NORTH,EAST in degrees.")
    label: Names = Field(default=(), description="COLUMN=VALUE; those of one column are alternatives; repeatable.")
    where: Where = Field(default=None, description="A SQL condition over the gallery's columns.")
    region: Lasso = Field(default=None, description="Only photos in a region of the map, as its lasso gives it.")
    ungrouped: Flag = Field(default=None, description="All copies and burst frames, not the best of each group alone.")
    rerank: Name = Field(default=None, description="The judge in whose order hits stand, by its name here.")
    list: Name = Field(default=None, description="Only the photos of this list, by its id or name.")
    verdict: Tab = Field(default=None, description="Only the photos with this verdict of yours, or with none.")
    whose: Whose = Field(default=None, description="By everybody's verdicts, and not by yours alone.")
    feedback: Name = Field(
        default=None,
        description="Moved by what is recorded for the query: mine, everybody, or the name of a person or judge.",
    )
    first: First = Field(default=None, description="Which photos stand first: the best, or the most telling ones.")
    likely: Share = Field(default=None, description="Only hits down to this expected precision, where it is known.")

    @property
    def something(self) -> bool:
        """Whether there is anything to search for."""
        return bool(self.q or self.picture or self.like)

    @property
    def plain(self) -> SearchParams:
        """The search itself, in its own order and whole."""
        if self.rerank is None and self.likely is None and self.first is None and self.whole is self:
            return self
        return self.whole.model_copy(update={"rerank": None, "likely": None, "first": None})

    @property
    def unmoved(self) -> SearchParams:
        """The search in its own order, whole, and not moved by what is recorded for it."""
        return self.plain if self.feedback is None else self.plain.model_copy(update={"feedback": None})

    @property
    def whole(self) -> SearchParams:
        """The search with photos of all verdicts, and without."""
        if self.verdict is None and self.whose is None:
            return self
        return self.model_copy(update={"verdict": None, "whose": None})

    def address(self, **others: Any) -> str:
        """The parameters that reproduce this search, in a fixed order; with others, or with some of them changed."""
        given = {name: value for name, value in {**self.model_dump(), **others}.items() if value is not None}
        if given.pop("teach", True) is False:
            given["teach"] = "false"
        return urlencode(given, doseq=True)


def search_params(request: Request, given: Annotated[SearchParams, Query()]) -> SearchParams:
    """A search, out of the parameters of an address; as a dependency others may stand beside it.

    `Problem` for a search within a list by whoever may not see lists.
    """
    if given.list is not None and person_of(request).role < Role.ANNOTATOR:
        raise Problem(403, "searching within a list needs a token of the role annotator; leave out `list`")
    return given


Given = Annotated[SearchParams, Depends(search_params)]


# -- words and picture ----------------------------------------------------------------------------------------


def query_of(params: SearchParams, pictures: Path) -> Asking | None:
    """The words and the picture as a query; None for a search by items alone.

    Raises `UsageError` for words that cannot be read, or that name a file: files of this machine are nobody's business.
    """
    terms = query_language.parse(params.q, find=_no_file).terms if params.q else ()
    picture = (Term(1.0, image=searched_with(pictures, params.picture)),) if params.picture else ()
    return Asking("q", (*picture, *terms)) if picture or terms else None


def _no_file(place: str, _: str) -> Path:
    raise UsageError(
        f"{place!r} looks like the name of a picture file; drop the picture into the page, or put the words in 'single"
        " quotes'"
    )


def refuse(text: str | None, refused: Sequence[str]) -> None:
    """`Problem` for a query that holds a word or phrase that the owner does not want asked."""
    words = f" {_words(text or '')} "
    for word in refused:
        if (plain := _words(word)) and f" {plain} " in words:
            raise Problem(422, f"the owner of this gallery answers no query with {word!r}; ask for something else")


def _words(text: str) -> str:
    """Words alone, however they are spelled: without case, accents, signs and what cannot be seen."""
    letters = unicodedata.normalize("NFKD", text).casefold()
    seen = "".join(letter for letter in letters if unicodedata.category(letter) not in ("Mn", "Cf"))
    return " ".join(re.findall(r"\w+", seen.replace("_", " ")))


# -- filters --------------------------------------------------------------------------------------------------


def condition_of(
    params: SearchParams, columns: Sequence[str], units: Mapping[str, str] | None = None
) -> Condition | None:
    """The filter; None if there is none. Raises `UsageError` for one that cannot be read.

    Labels of one column are alternatives, and so are those of columns that have the same name in `units`.
    """
    given = [filters.after(params.after)] if params.after else []
    given += [filters.before(params.before)] if params.before else []
    given += [_within(params.box, columns)] if params.box else []
    by_column: dict[str, list[Condition]] = {}
    for one in params.label:
        column, sign, value = one.partition("=")
        if not sign or not column:
            raise UsageError(f"a label is COLUMN=VALUE, such as category=fishes, not {one!r}")
        by_column.setdefault((units or {}).get(column, column), []).append(filters.label(column, value))
    for alternatives in by_column.values():
        names = dict.fromkeys(name for one in alternatives for name in one.columns)
        given.append(Condition(" OR ".join(f"({one.sql})" for one in alternatives), tuple(names)))
    given += [filters.checked(params.where, columns)] if params.where else []
    return filters.all_of(*given) if given else None


def _within(box: str, columns: Sequence[str]) -> Condition:
    try:
        south, west, north, east = (float(part) for part in box.split(","))
    except ValueError:
        south = math.nan
    if not (-90 <= south <= 90):
        raise UsageError(f"a box is SOUTH,WEST,NORTH,EAST in degrees, such as 45.8,5.9,47.9,10.5, not {box!r}")
    if not (south <= north <= 90 and abs(west) <= 180 and abs(east) <= 180):
        raise UsageError(f"{box!r} is no box on Earth; write SOUTH,WEST,NORTH,EAST with SOUTH below NORTH")
    joined = "AND" if west <= east else "OR"  # a box may lie across the date line
    return filters.checked(
        f"latitude BETWEEN {south!r} AND {north!r} AND (longitude >= {west!r} {joined} longitude <= {east!r})", columns
    )
