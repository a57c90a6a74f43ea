"""Judges: a query and a picture in, a verdict out. A file here is a judge; its `load` makes it.

A judge's module says what it is in four constants: `SPELLING` (how to name one), `KIND` (endpoint, local model, …),
`OFFLINE` (True, False, or in words when) and `NEEDS`; `OPTIONS`, where it has any, maps the name of what a user may say
of it on the command line to its type. `load(rest, **options)` reaches for no network. `ask` puts
pairs to a judge and writes each answer to the ledger; judges know nothing of the ledger.
"""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.judges._prompt import PLAIN as PLAIN, JudgePrompt as JudgePrompt
    from eyespot.judges._rounds import (
        JudgeStats as JudgeStats,
        JudgingRound as JudgingRound,
        ask as ask,
        known as known,
        on_one_scale as on_one_scale,
        prompts_of as prompts_of,
        scale_of as scale_of,
        served_by as served_by,
        unknown as unknown,
    )
    from eyespot.judges._wordings import wording as wording
else:  # so that type checkers refuse a name that is not there
    __getattr__, __all__ = lazy(
        __name__,
        {
            "_prompt": "PLAIN JudgePrompt",
            "_rounds": "JudgeStats JudgingRound ask known on_one_scale prompts_of scale_of served_by unknown",
            "_wordings": "wording",
        },
    )
