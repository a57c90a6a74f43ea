"""What a search finds, by what it ranks, and what moves it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from eyespot.settings.fields import RESEARCH, Display, Settings, SettingsConflict, Texts
from eyespot.settings.judge import JudgeSettings, RerankSetting

FEW = 20  # pictures that a search shows
EVERYBODY = "everybody"
ADAPT = "a QuARI checkpoint (its folder, or hub:OWNER/NAME), or linear:FILE, a static adapter (TA)"
Way = Literal["look", "words", "both"]
RENAMED = {
    "adapter": "{adapt}",
    "ungrouped": "grouped=false",
    "box": "{near}, which takes SOUTH,WEST,NORTH,EAST as well",
    "feedback_from": "{feedback}, which takes the name",
}


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, PurePath) else value


def _whose(value: Any) -> Any:
    """True is everybody, and False nobody, as in `feedback=True`."""
    return (EVERYBODY if value else None) if isinstance(value, bool) else value


class FilterSettings(Settings):
    """Which pictures count; all of these hold together."""

    where: Annotated[str | None, Display()] = Field(
        default=None, description="A SQL condition over the gallery's columns."
    )
    after: Annotated[str | None, Display()] = Field(
        default=None, description="Taken at or after this date (2024, 2024-05, 2024-05-01)."
    )
    before: Annotated[str | None, Display()] = Field(default=None, description="Taken before this date.")
    undated: Annotated[bool | None, Display(("--undated",))] = Field(
        default=None, description="Only pictures of which nothing says when they were taken."
    )
    near: Annotated[str | None, Display(metavar="LAT,LON,KM")] = Field(
        default=None, description="Taken within KM of a place, or within SOUTH,WEST,NORTH,EAST in degrees."
    )
    label: Annotated[Texts, Display(metavar="COLUMN=VALUE")] = Field(
        default=(), description="Only pictures with this label; those of one column are alternatives; repeatable."
    )

    @property
    def filters(self) -> bool:
        """Whether anything is filtered."""
        return any((self.where is not None, self.after, self.before, self.undated, self.near, self.label))


class RankingSettings(Settings):
    """By what pictures are ranked."""

    by: Annotated[
        Way | None, Display(metavar="WAY", default="both; look with an adapter, neighbours or rerank-local")
    ] = Field(default=None, description="By look, by words (labels, titles, names) or both.")
    teach: Annotated[bool, Display()] = Field(
        default=True, description="Go by what photos with these words look like, too."
    )
    adapt: Annotated[str | None, BeforeValidator(_text), Display(metavar="CKPT", panel=RESEARCH)] = Field(
        default=None, description=f"Search with an adapter: {ADAPT}; on a page, an adapter by its name there."
    )
    adapt_depth: Annotated[int | None, Display(metavar="N", panel=RESEARCH)] = Field(
        default=None,
        ge=1,
        description="Let the adapter re-rank the first N hits of the plain search, in place of searching with it.",
    )
    neighbours: Annotated[int | None, Display(metavar="N", panel=RESEARCH)] = Field(
        default=None,
        ge=0,
        le=1000,
        description="Search again with the N nearest pictures added (query expansion, QE-N).",
    )
    alpha: Annotated[float | None, Display(metavar="A", default="1", panel=RESEARCH)] = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="With --neighbours: a picture weighs its cosine to the power of A (α-QE, often 3); 0: all weigh "
        "the same.",
    )

    @property
    def local(self) -> str | None:
        """The method that compares local descriptors of the first hits."""
        return None

    @property
    def reads_words(self) -> bool:
        """Whether such a search can also read the words beside the photos."""
        return self.adapt is None and self.neighbours is None and self.local is None

    @property
    def way(self) -> Way:
        """By what people search unless they say otherwise: both where words can be read."""
        return self.by or ("both" if self.reads_words else "look")

    @property
    def adapts_later(self) -> bool:
        """Whether the adapter re-ranks the hits of the plain search."""
        return self.adapt is not None and self.adapt_depth is not None

    def refuse_conflicts(self) -> None:
        """`SettingsConflict` for an option that says how a stage works, without that stage; and for words of looks."""
        if self.adapt_depth is not None and self.adapt is None:
            raise SettingsConflict(
                "{adapt_depth} says how many hits an adapter re-ranks; name the adapter with {adapt}"
            )
        if self.alpha is not None and self.neighbours is None:
            raise SettingsConflict("{alpha} weighs the pictures of query expansion; say how many with {neighbours} N")
        if self.by in ("words", "both") and not self.reads_words:
            raise SettingsConflict(
                "an adapter, query expansion and local descriptors compare looks, and words have none; leave out {by}"
                f" {self.by}, or search {{by}} look"
            )


class StageSettings(RankingSettings):
    """The same, with what takes too long for a page."""

    rerank_local: Annotated[
        str | None,
        Display(
            metavar="METHOD", panel=RESEARCH, web="it compares photos for seconds, which many at once cannot wait for"
        ),
    ] = Field(
        default=None,
        description="Re-rank by local descriptors: chamfer, spatial, or onnx:FILE, a learned re-ranker (AMES).",
    )

    @property
    def local(self) -> str | None:
        """The method that compares local descriptors of the first hits."""
        return self.rerank_local

    @model_validator(mode="after")
    def _without_conflicts(self) -> Self:
        self.refuse_conflicts()
        return self


class SharedSearchSettings(FilterSettings, RankingSettings, RerankSetting):
    """The settings of every way to search: command line, page, API and Python."""

    renamed: ClassVar[Mapping[str, str]] = RENAMED

    encoder: Annotated[
        str | None,
        Display(("-e", "--encoder"), env="EYESPOT_ENCODER", python="a collection is opened with it: eyespot.open"),
    ] = Field(default=None, description="Search this encoder's space.")
    grouped: Annotated[
        bool | None,
        Display(("--grouped/--ungrouped",), default="grouped; all of them with --calibrate, and in Python"),
    ] = Field(
        default=None,
        description="Show the best of each group of copies or burst frames with the number of others, or all of them.",
    )
    feedback: Annotated[str | None, BeforeValidator(_whose), Display(metavar="WHO")] = Field(
        default=None,
        description="Let what was recorded for this query move the search: by everybody, or by the person or judge that"
        " is named; on a page also mine.",
    )
    likely: Annotated[float | None, Display(metavar="P", panel="Judges", python="Calibration.likely cuts a run")] = (
        Field(
            default=None,
            gt=0,
            le=1,
            allow_inf_nan=False,
            description="Show only hits down to an expected precision of P: with --calibrate, or where people judged a "
            "spread on the page.",
        )
    )


class SearchSettings(SharedSearchSettings, StageSettings, JudgeSettings):
    """One search."""

    k: Annotated[int | None, Display(("-k",), default=str(FEW), web="pages have `limit` and `cursor`")] = Field(
        default=None, ge=1, description="The number of pictures to show."
    )
    yes: Annotated[Texts, Display(metavar="ID", web="`like`, which also searches without words")] = Field(
        default=(), description="A photo that is what you look for; repeatable."
    )
    no: Annotated[Texts, Display(metavar="ID", web="`unlike`, which also takes the photo out")] = Field(
        default=(), description="A photo that is not what you look for; repeatable."
    )
    expand: Annotated[
        str | None,
        Display(metavar="MODEL|FILE", panel=RESEARCH, web="each query would cost the owner a request to a model"),
    ] = Field(default=None, description="Also search with rewritten queries: openai:MODEL, or a JSON file of terms.")

    @property
    def moves(self) -> bool:
        """Whether verdicts, clicks or photos are to move the search."""
        return bool(self.feedback or self.yes or self.no)

    @model_validator(mode="after")
    def _moved_or_measured(self) -> Self:
        """What cannot be moved, or would be measured by what moved it, is refused."""
        if self.feedback is not None and (not self.feedback.strip() or self.feedback.startswith("-")):
            raise SettingsConflict("{feedback} names nobody; give a person or a judge, or: {feedback} everybody")
        if self.moves and self.calibrate is not None:
            raise SettingsConflict(
                "verdicts that move a ranking cannot measure it; leave out {calibrate}, or {feedback}, {yes} and {no}"
            )
        if self.calibrate is None and self.likely is not None:
            raise SettingsConflict("{likely} is about a calibration; ask for one, as in {calibrate} 30")
        return self
