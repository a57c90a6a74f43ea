"""What a search finds, by what it ranks, and what moves it; and how a gallery is served to those who search it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, model_validator

from eyespot.settings import DEPTH, EVERYBODY, FEW, SettingsConflict
from eyespot.settings.fields import ENCODER, GALLERY, JUDGES, RESEARCH, Settings, Texts, setting
from eyespot.settings.gallery import ClusterSettings
from eyespot.settings.judge import BudgetSettings, JudgeSettings, PricesSetting, RerankSetting

ADAPT = "a QuARI checkpoint (its folder, or hub:OWNER/NAME), or linear:FILE, a static adapter (TA)"
Way = Literal["look", "words", "both"]
SYNONYMS = {**dict.fromkeys(("limit", "top_k", "topk", "n", "count", "size", "max"), "k"), "filter": "where"}


class IndexSetting(Settings):
    """How vectors are searched."""

    index: str = setting(
        "exact, or an index that eyespot tune built: approximate, and faster over millions.",
        default="exact",
        env="EYESPOT_INDEX",
        panel=RESEARCH,
    )


class BackendSettings(ClusterSettings, IndexSetting):
    """What searches vectors."""


class FilterSettings(Settings):
    """Which pictures count; all of these hold together."""

    where: str | None = setting("A SQL condition over the gallery's columns.")
    after: str | None = setting("Taken at or after this date (2024, 2024-05, 2024-05-01).")
    before: str | None = setting("Taken before this date.")
    undated: bool | None = setting("Only pictures of which nothing says when they were taken.", spelled=("--undated",))
    near: str | None = setting("Taken within KM of a place, or in SOUTH,WEST,NORTH,EAST.", metavar="LAT,LON,KM")
    label: Texts = setting("Photos of this label; of a column any; repeatable.", default=(), metavar="COLUMN=VALUE")

    @property
    def filters(self) -> bool:
        """Whether anything is filtered."""
        return any((self.where is not None, self.after, self.before, self.undated, self.near, self.label))


class RankingSettings(Settings):
    """By what pictures are ranked."""

    by: Way | None = setting(
        "By look, by words (labels, titles, names) or both.",
        metavar="WAY",
        usual="both; look with an adapter, neighbours or rerank-local",
    )
    teach: bool = setting("Go by what photos with these words look like, too.", default=True)
    adapt: Annotated[
        str | None, BeforeValidator(lambda value: str(value) if isinstance(value, PurePath) else value)
    ] = setting(
        f"Search with an adapter: {ADAPT}; on a page, an adapter by its name there.", metavar="CKPT", panel=RESEARCH
    )
    adapt_depth: int | None = setting(
        "Let the adapter re-rank the first N hits of the plain search, in place of searching with it.",
        ge=1,
        metavar="N",
        panel=RESEARCH,
    )
    neighbours: int | None = setting(
        "Search again with the N nearest pictures added (query expansion, QE-N).",
        ge=0,
        le=1000,
        metavar="N",
        panel=RESEARCH,
    )
    alpha: float | None = setting(
        "With --neighbours: a picture weighs its cosine to the power of A (α-QE, often 3); 0: all weigh the same.",
        ge=0,
        allow_inf_nan=False,
        metavar="A",
        usual="1",
        panel=RESEARCH,
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

    def refuse_conflicts(self) -> None:
        """`SettingsConflict` for an option that says how a stage works, without that stage; and for words of looks."""
        if self.adapt_depth is not None and self.adapt is None:
            raise SettingsConflict("{adapt_depth} says how many hits an adapter re-ranks; name it with {adapt}")
        if self.alpha is not None and self.neighbours is None:
            raise SettingsConflict("{alpha} weighs the pictures of query expansion; say how many with {neighbours} N")
        if self.by in ("words", "both") and not self.reads_words:
            raise SettingsConflict(
                f"adapters, query expansion and local descriptors compare looks; leave out {{by}} {self.by}"
            )


class StageSettings(RankingSettings):
    """The same, with what takes too long for a page."""

    rerank_local: str | None = setting(
        "Re-rank by local descriptors: chamfer, spatial, or onnx:FILE, a learned re-ranker (AMES).",
        metavar="METHOD",
        panel=RESEARCH,
        web="it compares photos for seconds, which many at once cannot wait for",
    )

    @property
    def local(self) -> str | None:
        """The method that compares local descriptors of the first hits."""
        return self.rerank_local


class ExpandSetting(Settings):
    """What rewrites a query."""

    expand: str | None = setting(
        "Also search with rewritten queries: openai:MODEL, or a JSON file of terms.",
        metavar="MODEL|FILE",
        panel=RESEARCH,
        web="each query would cost the owner a request to a model",
    )


class SharedSearchSettings(FilterSettings, RankingSettings, RerankSetting):
    """The settings of every way to search: command line, page, API and Python."""

    synonyms: ClassVar[Mapping[str, str]] = SYNONYMS

    encoder: str | None = setting(
        "Search this encoder's space.", python="a collection is opened with it: eyespot.open", **ENCODER
    )
    grouped: bool | None = setting(
        "Show the best of each group of copies or burst frames with the number of others, or all of them.",
        spelled=("--grouped/--ungrouped",),
        usual="grouped; all of them with --calibrate, and in Python",
    )
    # True is everybody, False nobody
    feedback: Annotated[str | None, BeforeValidator(lambda one: EVERYBODY if one is True else one or None)] = setting(
        "Let what was recorded for this query move the search: by everybody, or by the person or judge that is named; "
        "on a page also mine.",
        metavar="WHO",
    )
    likely: float | None = setting(
        "Show only hits down to an expected precision of P: with --calibrate, or where people judged a spread on the "
        "page.",
        gt=0,
        le=1,
        allow_inf_nan=False,
        metavar="P",
        panel=JUDGES,
        python="Calibration.likely cuts a run",
    )


class SearchSettings(SharedSearchSettings, ExpandSetting, StageSettings, JudgeSettings):
    """One search."""

    k: int | None = setting(
        "The number of pictures to show.", ge=1, spelled=("-k",), usual=str(FEW), web="pages have `limit` and `cursor`"
    )
    yes: Texts = setting(
        "A photo that is what you look for: a rank of the last search, a path, a file name or an id; repeatable.",
        default=(),
        metavar="PHOTO",
        web="`like`, which also searches without words",
    )
    no: Texts = setting(
        "A photo that is not what you look for, named in the same way; repeatable.",
        default=(),
        metavar="PHOTO",
        web="`unlike`, which also takes the photo out",
    )

    @property
    def moves(self) -> bool:
        """Whether verdicts, clicks or photos are to move the search."""
        return bool(self.feedback or self.yes or self.no)

    @model_validator(mode="after")
    def _moved_or_measured(self) -> Self:
        """What cannot be moved, or would be measured by what moved it, is refused; and stages without their means."""
        self.refuse_conflicts()
        if self.feedback is not None and (not self.feedback.strip() or self.feedback.startswith("-")):
            raise SettingsConflict("{feedback} names nobody; give a person or a judge, or: {feedback} everybody")
        if self.moves and self.calibrate is not None:
            raise SettingsConflict(
                "verdicts that move a ranking cannot measure it; leave out {calibrate}, or {feedback}, {yes} and {no}"
            )
        if self.calibrate is None and self.likely is not None:
            raise SettingsConflict("{likely} is about a calibration; ask for one, as in {calibrate} 30")
        return self


class McpSettings(Settings):
    """One gallery for assistants."""

    gallery: Path | None = setting("The gallery to serve.", **GALLERY)
    encoder: str | None = setting("Search this encoder's space.", **ENCODER)
    allow: Literal["judge", "positions", "judge,positions"] | None = setting(
        "Let assistants do more than read: judge (store verdicts), positions (and owners), or both."
    )


class ServeSettings(McpSettings, BackendSettings, PricesSetting, BudgetSettings):
    """One server: what it serves, who may come in, and what visitors may use."""

    host: str = setting("The address to listen on; any address except this machine needs tokens.", default="127.0.0.1")
    port: int = setting("The port to listen on; 0 takes a free one.", default=8000, ge=0, le=65535)
    tokens: Path | None = setting("A file with lines ROLE NAME TOKEN (reader, annotator, owner).")
    always_token: bool = setting("Require tokens on this machine too: behind a proxy.", default=False)
    allow_host: Texts = setting("A host name of the server; repeatable.", default=())
    refuse: Path | None = setting("A file of words that queries must not contain, one per line.")
    adapt: Texts = setting("An adapter to choose: a QuARI checkpoint or linear:FILE.", default=(), metavar="NAME=CKPT")
    rerank: Texts = setting("A judge that people can use for re-ranking; repeatable.", default=(), metavar="NAME=JUDGE")
    depth: int = setting("How many of the first hits a judge looks at.", default=DEPTH, ge=1, le=1000)
    review: tuple[Path, ...] = setting("A review queue, a .jsonl file; repeatable.", default=())
    cache: Path | None = setting("The folder for thumbnails and uploads.", usual="GALLERY/web")
    max_upload: int = setting("The largest upload in MiB.", default=20, ge=1, le=500)
    originals: str = setting("From which role on people may open original files.", default="owner", metavar="ROLE")
    timeout: float = setting("Seconds after which a request times out.", default=30.0, ge=1)
