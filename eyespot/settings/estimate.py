"""How an answer by group is made: of which photos, by whose verdicts, and how it is claimed."""

from __future__ import annotations

import re

from eyespot.settings.fields import ENCODER, JUDGES, Texts, setting
from eyespot.settings.judge import BatchSettings, JudgeOptions, LedgerSetting, PricesSetting
from eyespot.settings.search import FilterSettings

_OPTION = re.compile(r"\w+=")  # how an option of a judge begins, and a judge does not


class EstimateSettings(LedgerSetting, PricesSetting, BatchSettings, FilterSettings):
    """An estimate of how many photos of each group are relevant."""

    by: str | None = setting(
        "The groups: month, season, year, week, cell (or cell:DEGREES), or a column of labels.",
        metavar="COLUMN",
        usual="all photos are one group",
    )
    looks: int = setting("How many photos are judged, in rounds of 60, 120, 240, …", default=120, ge=1)
    judge: Texts = setting(
        "Who judges: person:ada, or a model with --accuracy; repeated, options of the judge as KEY=VALUE.",
        default=(),
        metavar="JUDGE|KEY=VALUE",
        usual="you",
        panel=JUDGES,
    )
    wording: str | None = setting("The prompt of the judge: a name or a TOML file.", metavar="NAME|FILE", panel=JUDGES)
    accuracy: str | None = setting(
        "How often the judge is right on relevant and on other pictures, measured on N and M.",
        metavar="SENS,SPEC[,N,M]",
        usual="a person: always",
        panel=JUDGES,
    )
    recheck: int = setting("Judge so many of the photos once more, blind, and state the agreement.", default=0, ge=0)
    of: str | None = setting("Shares are also of photos that fit this.", metavar="SQL", usual="the filter alone")
    compare: str | None = setting("Two groups that get all looks, as in 7,1 or winter,summer.", metavar="A,B")
    depth: int | None = setting("Judge only the first D of each group; below, anything may be relevant.", ge=1)
    unit: str | None = setting("Count each value of this column once.", metavar="COLUMN", usual="copies and bursts")
    borrow: bool = setting("Where a group has few looks, assume that the ranking works alike in all.", default=False)
    strict: bool = setting(
        "Call pairs of groups different by Holm's rule, and not where separate and shared curves agree.", default=False
    )
    together: bool = setting("Draw bands that hold for all groups at once.", default=False)
    seed: int = setting("The seed of the draw.", default=0, ge=0)
    fresh: bool = setting("Rank the gallery as it is now, in place of the design that is stored.", default=False)
    encoder: str | None = setting("Rank in this encoder's space.", **ENCODER)

    @property
    def judging(self) -> JudgeOptions:
        """The judge with its options, as a search takes it."""
        named = [one for one in self.judge if not _OPTION.match(one)]
        options = tuple(one for one in self.judge if _OPTION.match(one))
        names = ("ledger", "prices", "budget_calls", "budget_money", "batch", "wording")
        given = {name: getattr(self, name) for name in names}
        return JudgeOptions(rerank=named[-1] if named else "person:", judge=options, **given)

    @property
    def frame(self) -> dict[str, object]:
        """What decides which photos are ranked, and into which groups."""
        names = ("by", "unit", "of", *FilterSettings.model_fields)
        return {name: one for name in names if (one := getattr(self, name)) or name not in ("of", "undated")}

    @property
    def named_groups(self) -> tuple[str, ...]:
        """The two groups of `compare`."""
        return tuple(part.strip() for part in self.compare.split(",")) if self.compare else ()
