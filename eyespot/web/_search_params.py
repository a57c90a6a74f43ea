"""What somebody asks for, as an address says it: words, a picture, more like these, not these, and a filter."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

from eyespot.search import query_language
from eyespot.settings.search import FilterSettings, SharedSearchSettings
from eyespot.types import Query as Asking, Term, UsageError
from eyespot.web._problems import Problem
from eyespot.web._security import person_of
from eyespot.web._settings import Role
from eyespot.web.pictures import searched_with

PAGE = 60  # pictures


def _filled(value: Any) -> Any:
    """A form sends its empty boxes too."""
    return None if isinstance(value, str) and not value.strip() else value


class _OrBlank:
    """A parameter of a form, whose empty box the schema allows as the server does."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "string", "pattern": r"^\s*$"}]}


def is_text(value: str) -> str:
    """Halves of characters are not text, and no file's name or database takes a NUL."""
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("holds characters that are not text")
    return value


Words = Annotated[
    Annotated[str, Field(max_length=1000), AfterValidator(is_text)] | None, BeforeValidator(_filled), _OrBlank()
]
Name = Annotated[
    Annotated[str, Field(max_length=300), AfterValidator(is_text)] | None, BeforeValidator(_filled), _OrBlank()
]
Tab = Annotated[Literal["yes", "no", "doubt", "unjudged"] | None, BeforeValidator(_filled), _OrBlank()]
Digest = Annotated[Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None, BeforeValidator(_filled), _OrBlank()]
Names = Annotated[
    tuple[Annotated[str, Field(max_length=1000), AfterValidator(is_text)], ...],
    BeforeValidator(lambda value: [*filter(_filled, value)] if isinstance(value, list) else value),
    Field(max_length=50),
]


LONGEST = {"where": 2000, "region": 6000}  # characters; of all other texts 300
FILTERS = ("after", "before", "undated", "near", "where", "region")  # beside labels
FIRST_IN_ADDRESS = ("q", "picture", "like", "unlike")  # at the beginning of an address
Model = TypeVar("Model", bound=BaseModel)


def from_form(model: type[Model]) -> type[Model]:
    """The same, as a form sends it: an empty box is nothing, and a text is short and without halves of characters."""
    for name, field in model.model_fields.items():
        kinds = get_args(field.annotation)
        if type(None) not in kinds or any(isinstance(more, _OrBlank) for more in field.metadata):
            continue
        if str in kinds:
            short = Annotated[str, Field(max_length=LONGEST.get(name, 300)), AfterValidator(is_text)]
            field.annotation = short | None
        field.metadata += [BeforeValidator(_filled), _OrBlank()]
    model.model_rebuild(force=True)
    return model


@from_form
class Filters(FilterSettings):
    """Which photos, and of which space."""

    # An address has a cursor and more beside it; FastAPI wants the validator of a query when it builds its own
    model_config = ConfigDict(extra="ignore", defer_build=False)

    label: Names = Field(default=(), description=FilterSettings.model_fields["label"].description)
    region: str | None = Field(default=None, description="Only photos in a region of the map, as its lasso gives it.")
    list: Name = Field(default=None, description="Only the photos of this list, by its id or name.")
    encoder: str | None = Field(default=None, description=SharedSearchSettings.model_fields["encoder"].description)


@from_form
class SearchParams(Filters, SharedSearchSettings):
    """A search; every part may be left out, but not words, picture and `like` together."""

    model_config = Filters.model_config

    q: Words = Field(default=None, description='Words, with weights and minus: "2:heron + water - people".')
    picture: Digest = Field(default=None, description="A picture to search with, by what /v1/pictures gave for it.")
    like: Names = Field(default=(), description="More like these: ids of items; may be repeated.")
    unlike: Names = Field(default=(), description="Not these, and less like them: ids of items; may be repeated.")
    verdict: Tab = Field(default=None, description="Only the photos with this verdict of yours, or with none.")
    whose: Literal["everybody"] | None = Field(default=None, description="By everybody's verdicts, not by yours alone.")

    @property
    def something(self) -> bool:
        """Whether there is anything to search for."""
        return bool(self.q or self.picture or self.like)

    def without(self, *names: str) -> SearchParams:
        """The same with these parameters as they are unasked."""
        return self.model_copy(update={name: type(self).model_fields[name].default for name in names})

    @property
    def whole(self) -> SearchParams:
        """The search with photos of all verdicts, and without."""
        return self.without("verdict", "whose")

    @property
    def plain(self) -> SearchParams:
        """The search itself, in its own order and whole."""
        return self.whole.without("rerank", "likely")

    @property
    def unmoved(self) -> SearchParams:
        """The search in its own order, whole, and not moved by what is recorded for it."""
        return self.plain.without("feedback")

    @property
    def unfiltered(self) -> SearchParams:
        """The same without any filter."""
        return self.without(*FILTERS, "label")

    def address(self, **others: Any) -> str:
        """The parameters that reproduce this search, in a fixed order; with others, or with some of them changed."""
        every = self.model_dump()
        given = {**{name: every[name] for name in FIRST_IN_ADDRESS}, **every, **others}
        fields, words = type(self).model_fields, {False: "false", True: "true"}
        parameters = {
            name: words[value] if isinstance(value, bool) else value
            for name, value in given.items()
            if value is not None and not (isinstance(value, bool) and name in fields and value == fields[name].default)
        }
        return urlencode(parameters, doseq=True)

    def pairs(self, *without: str) -> Sequence[tuple[str, str]]:
        """The parameters of the address as a form sends them, but for those that it has controls for."""
        return [pair for pair in parse_qsl(self.address()) if pair[0] not in without]


def allowed(request: Request, given: Annotated[SearchParams, Query()]) -> SearchParams:
    """A search, out of the parameters of an address; `Problem` within a list for whoever may not see lists."""
    if given.list is not None and person_of(request).role < Role.ANNOTATOR:
        raise Problem(403, "searching within a list needs a token of the role annotator; leave out `list`")
    return given


Given = Annotated[SearchParams, Depends(allowed)]


MAILERS = re.compile("utm_.+|mtm_.+|mc_[ce]id|[a-z]+clid")  # what mailers and social networks add to a link


def refuse_unknown(request: Request) -> None:
    """`Problem` for a parameter that this route does not have: a filter under another name would filter nothing."""
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    there = set(parameters_of(route.dependant))
    wrong = [name for name in request.query_params if name not in there and not MAILERS.fullmatch(name)]
    if wrong:
        known = f"there are: {', '.join(sorted(there))}" if there else "it takes none"
        rest = urlencode([pair for pair in request.query_params.multi_items() if pair[0] not in wrong])
        instead = f"{request.url.path}?{rest}".removesuffix("?") if request.method == "GET" else ""
        raise Problem(422, f"no parameter {wrong[0]!r} here; {known}", instead=instead)


def parameters_of(dependant: Dependant) -> Iterator[str]:
    """The names of the query's parameters that a route and what it depends on take."""
    for inner in dependant.dependencies:
        yield from parameters_of(inner)
    for field in dependant.query_params:
        fields = getattr(field.field_info.annotation, "model_fields", None)
        yield from [field.alias] if fields is None else (one.alias or name for name, one in fields.items())


# -- words and picture ----------------------------------------------------------------------------------------


def query_of(params: SearchParams, pictures: Path) -> Asking | None:
    """The words and the picture as a query; None for a search by items alone.

    Raises `UsageError` for words that cannot be read, or that name a file: files of this machine are nobody's business.
    """

    def no_file(place: str, _: str) -> Path:
        sentence = f"{place!r} looks like the name of a picture file; drop the picture into the page"
        raise UsageError(f"{sentence}, or put the words in 'single quotes'")

    terms = query_language.parse(params.q, find=no_file).terms if params.q else ()
    picture = (Term(1.0, image=searched_with(pictures, params.picture)),) if params.picture else ()
    return Asking("q", (*picture, *terms)) if picture or terms else None


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
