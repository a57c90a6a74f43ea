"""Which judge looks at the first hits of a search, at what cost, and what is made of its verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from eyespot.settings.fields import JUDGES, Display, Settings, SettingsConflict, Texts

DEPTH = 100  # hits that a judge looks at
_OWNER = "the owner of a server chooses it for each judge of the page"
_HERE = "eyespot.search.calibrated.Calibrated makes a curve beside the run"


class RerankSetting(Settings):
    """The judge; on a page its name there."""

    rerank: Annotated[str | None, Display(metavar="JUDGE", panel=JUDGES)] = Field(
        default=None,
        description="Let a judge re-rank: encoder:starter, person:ada, openai:…; on a page, a judge by its name there.",
    )


class JudgeSettings(RerankSetting):
    """A judge that re-ranks, or whose verdicts calibrate a search."""

    depth: Annotated[int | None, Display(default=str(DEPTH), panel=JUDGES, web=_OWNER)] = Field(
        default=None, ge=1, description="How many hits of the first stage the judge looks at."
    )
    blend: Annotated[float | None, Display(default="1", panel=JUDGES, web=_OWNER)] = Field(
        default=None, ge=0, le=1, description="The weight of the judge next to the first stage, 0 to 1."
    )
    calibrate: Annotated[
        int | None,
        Display(metavar="N", panel=JUDGES, python=_HERE, web="people judge a spread on the page itself"),
    ] = Field(
        default=None,
        ge=1,
        description="Judge N of the first --depth hits, and estimate how probable it is that each is relevant.",
    )
    accuracy: Annotated[
        str | None,
        Display(
            metavar="SENS,SPEC[,N,M]",
            default="a person: always; a model: not known",
            panel=JUDGES,
            python=_HERE,
            web=_OWNER,
        ),
    ] = Field(
        default=None,
        description="With --calibrate: how often the judge is right on relevant and on other pictures, measured on N "
        "and M.",
    )
    judge: Annotated[Texts, Display(metavar="KEY=VALUE", panel=JUDGES, web=_OWNER)] = Field(
        default=(),
        description="An option of the judge: url=…, answer=grades, requests_per_minute=60, batch=8, extra=JSON, …; "
        "repeatable.",
    )
    budget_calls: Annotated[int | None, Display(panel=JUDGES, web=_OWNER)] = Field(
        default=None, ge=0, description="Stop after this many requests to the judge, including retries."
    )
    budget_money: Annotated[float | None, Display(panel=JUDGES, web=_OWNER)] = Field(
        default=None, ge=0, description="Stop when the judge has cost this much, in US dollars."
    )
    wording: Annotated[str | None, Display(metavar="NAME|FILE", default="its own", panel=JUDGES, web=_OWNER)] = Field(
        default=None, description="The prompt of the judge: a name or a TOML file."
    )
    prices: Annotated[Path | None, Display(metavar="FILE", env="EYESPOT_PRICES", panel=JUDGES, web=_OWNER)] = Field(
        default=None, description="Your own table of model prices."
    )
    ledger: Annotated[
        Path | None, Display(metavar="FILE", default="the gallery's", panel=JUDGES, web="the gallery's is served")
    ] = Field(default=None, description="The file that stores verdicts.")
    dry_run: Annotated[
        bool,
        Display(
            ("--dry-run",), panel=JUDGES, python="JudgeRerank.plan counts them", web="the page says what a look costs"
        ),
    ] = Field(default=False, description="Only print how many requests the judge would get, and their cost.")

    @model_validator(mode="after")
    def _needs_a_judge(self) -> Self:
        """What says how a judge works needs one; `prices` and `ledger` may be settings that other verbs need."""
        names = ("calibrate", "depth", "blend", "judge", "budget_calls", "budget_money", "wording", "dry_run")
        # 0 is a value: a budget of no calls
        given = (name for name in names if (value := getattr(self, name)) is not None and value is not False)
        alone = next((name for name in given if getattr(self, name) != ()), None)
        if self.rerank is None and alone is not None:
            raise SettingsConflict(
                "{" + alone + "} is about a judge; name one with {rerank}, as in {rerank} encoder:starter"
            )
        if self.calibrate is None and self.accuracy is not None:
            raise SettingsConflict("{accuracy} is about a calibration; ask for one, as in {calibrate} 30")
        if self.calibrate is not None and self.blend is not None:
            raise SettingsConflict("{calibrate} leaves the order as it is; leave out {blend}")
        return self
