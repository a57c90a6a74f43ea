"""Which judge looks at the first hits of a search, at what cost, and what is made of its verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import model_validator

from eyespot.settings import DEPTH, SettingsConflict
from eyespot.settings.fields import JUDGES, Settings, Texts, setting

_OWNER = "the owner of a server chooses it for each judge of the page"
_HERE = "eyespot.search.calibrated.Calibrated makes a curve beside the run"
_JUDGE = {"panel": JUDGES, "web": _OWNER}


class RerankSetting(Settings):
    """The judge; on a page its name there."""

    rerank: str | None = setting(
        "Let a judge re-rank: encoder:starter, person:ada, openai:…; on a page, a judge by its name there.",
        metavar="JUDGE",
        panel=JUDGES,
    )


class BudgetSettings(Settings):
    """What requests to models may cost."""

    budget_calls: int | None = setting("Stop after this many requests to the judge, including retries.", ge=0, **_JUDGE)
    budget_money: float | None = setting("Stop when the judge has cost this much, in US dollars.", ge=0, **_JUDGE)


class BatchSettings(BudgetSettings):
    """How requests to models are paid for, and their limits."""

    batch: bool = setting("Ask OpenAI and Anthropic in batches: half the price, in a day.", default=False, **_JUDGE)


class PricesSetting(Settings):
    """What models cost."""

    prices: Path | None = setting("Your own table of model prices.", metavar="FILE", env="EYESPOT_PRICES", **_JUDGE)


class LedgerSetting(Settings):
    """Where verdicts are stored."""

    ledger: Path | None = setting(
        "The file that stores verdicts.",
        metavar="FILE",
        usual="the gallery's",
        panel=JUDGES,
        web="the gallery's is served",
    )


class JudgeOptions(LedgerSetting, PricesSetting, BatchSettings, RerankSetting):
    """A judge, its question, and its cost."""

    depth: int | None = setting("How many hits of the first stage the judge sees.", ge=1, usual=str(DEPTH), **_JUDGE)
    blend: float | None = setting("The judge's weight beside the first stage, 0 to 1.", ge=0, le=1, usual="1", **_JUDGE)
    judge: Texts = setting(
        "An option of the judge: url=…, answer=grades, requests_per_minute=60, batch=8, extra=JSON, …; repeatable.",
        default=(),
        metavar="KEY=VALUE",
        **_JUDGE,
    )
    wording: str | None = setting("The prompt: a name or a TOML file.", metavar="NAME|FILE", usual="its own", **_JUDGE)
    dry_run: bool = setting(
        "Only say what the judge would be sent, and its cost; in a search without one, what would be written.",
        default=False,
        panel=JUDGES,
        python="JudgeRerank.plan counts them",
        web="the page says what the judge costs",
    )

    def refuse_alone(self, *names: str) -> None:
        """`SettingsConflict` for the first of these settings that is given, where no judge is."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value is not False and value != ():  # 0 is a value: a budget of no calls
                way_out = "name one with {rerank}, as in {rerank} encoder:starter"
                raise SettingsConflict("{" + name + "} is about a judge; " + way_out)


OF_A_JUDGE = ("blend", "judge", "batch", "budget_calls", "budget_money", "wording")


class JudgeSettings(JudgeOptions):
    """A judge that re-ranks, or whose verdicts calibrate a search."""

    calibrate: int | None = setting(
        "Judge N of the first --depth hits, and estimate how probable it is that each is relevant.",
        ge=1,
        metavar="N",
        panel=JUDGES,
        python=_HERE,
        web="people judge a spread on the page itself",
    )
    accuracy: str | None = setting(
        "With --calibrate: how often the judge is right on relevant and on other pictures, measured on N and M.",
        metavar="SENS,SPEC[,N,M]",
        usual="a person: always; a model: not known",
        python=_HERE,
        **_JUDGE,
    )

    @model_validator(mode="after")
    def _needs_a_judge(self) -> Self:
        """What says how a judge works needs one; `prices` and `ledger` may be settings that other verbs need."""
        if self.rerank is None:
            self.refuse_alone("calibrate", "depth", *OF_A_JUDGE)
        if self.calibrate is None and self.accuracy is not None:
            raise SettingsConflict("{accuracy} is about a calibration; ask for one, as in {calibrate} 30")
        if self.calibrate is not None and self.blend is not None:
            raise SettingsConflict("{calibrate} leaves the order as it is; leave out {blend}")
        return self
