"""Judges: a query and a picture in, a verdict out. A file here is a judge; its `load` makes it.

A judge's module says what it is in four constants: `SPELLING` (how to name one), `KIND` (endpoint, local model, …),
`OFFLINE` (True, False, or in words when) and `NEEDS`; `OPTIONS`, where it has any, maps the name of what a user may say
of it on the command line to its type. `load(rest, **options)` reaches for no network. `ask` puts
pairs to a judge and writes each answer to the ledger; judges know nothing of the ledger.
"""

# ruff: noqa: F403 - a type checker reads all names of these modules, a program those that are listed

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.judges._prompt import *
    from eyespot.judges._rounds import *
    from eyespot.judges._wordings import *
else:
    __getattr__, __all__ = lazy(
        __name__,
        {
            "_prompt": "PLAIN JudgePrompt",
            "_rounds": "JudgeStats JudgingRound ask known on_one_scale prompts_of scale_of served_by unknown",
            "_wordings": "wording",
        },
    )
