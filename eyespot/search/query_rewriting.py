"""What an expert's term looks like: further wordings of a query, by a language model or from a table of one's own.

A text encoder has seldom read "axanthism"; it knows a blue frog. A model is asked once for each text; its answers stay
in the ledger. The wordings are searched together with the original query, by their mean vector.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from eyespot import llms
from eyespot.llms import Declined, NoReply, text_message
from eyespot.llms.fences import DATA, filled, one_line
from eyespot.storage import sqlite
from eyespot.storage.text_files import json_of, refuse
from eyespot.types import EyespotError, Query, Term, UsageError

Tell: TypeAlias = Callable[[str], list[str]]  # words to further wordings of them; none where there are no better ones
Chat: TypeAlias = Callable[[str], str]  # a prompt to a language model's reply

SCHEMA = """CREATE TABLE IF NOT EXISTS wordings(model TEXT, prompt TEXT, words TEXT, told TEXT, at REAL,
    PRIMARY KEY(model, prompt, words)) WITHOUT ROWID;"""
ANSWER = 1000  # tokens at most; models that think need some of them for that
COUNT, LONGEST = 4, 200  # wordings that are asked for; characters of one, beyond which it is talk and no wording
PROMPT = """Photographs are searched with this query: {words}
Write {count} other ways to say what such a photograph shows, for a search engine that knows everyday words only.
Say what the eye sees in place of technical terms: colours, shapes, parts of the body, actions, surroundings.
Keep every condition that the query sets and add none. One short phrase on each line, and nothing else."""
_MARK = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.):])\s+")


# -- from a language model --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RewritingModel:
    """A language model that is asked once for `count` wordings of each text.

    `chat` sends it a prompt and gives its reply; the wordings are kept in the ledger at `path`, under its name.
    """

    name: str
    chat: Chat
    path: Path
    count: int = COUNT

    def __call__(self, words: str) -> list[str]:
        """Each wording once and none that is the query itself; an answer is on the disk before it is used."""
        # With a digest of how it is asked
        prompt = hashlib.sha256(f"{DATA}{PROMPT}\x1f{self.count}".encode()).hexdigest()[:16]
        key = (self.name, prompt, words)
        with closing(sqlite.connect(self.path, SCHEMA, settles=False)) as sql:
            row = sql.execute("SELECT told FROM wordings WHERE model = ? AND prompt = ? AND words = ?", key).fetchone()
            if row is None:
                reply = self.chat(filled(PROMPT, {"words": words}, count=self.count))
                wordings = phrases(reply, words)[: self.count]
                values = (*key, json.dumps(wordings), time.time())
                sql.execute("INSERT OR REPLACE INTO wordings VALUES (?, ?, ?, ?, ?)", values)
                return wordings
        return list(json.loads(row[0]))


def phrases(reply: str, words: str = "") -> list[str]:
    """The lines of a reply that are wordings: without bullets, numbers and quotes, and without what is too long."""
    lines = (_MARK.sub("", one_line(line)).strip("\"'“”*").strip() for line in reply.splitlines())
    wordings = {line.casefold(): line for line in lines if 0 < len(line) <= LONGEST and not line.endswith(":")}
    wordings.pop(words.strip().casefold(), None)
    return list(wordings.values())


def chat_with(spec: str) -> Chat:
    """A chat with the language model of this name (`openai:MODEL`).

    Raises `UsageError` for any other name. The chat raises `EyespotError` where there is no answer; it is empty where
    the model declines.
    """
    if not llms.is_language_model(spec):
        raise UsageError(f"{spec!r} is neither a file of terms nor a model that answers; name one, as in openai:MODEL")
    model = llms.load(spec)

    def chat(prompt: str) -> str:
        try:
            return model.chat([text_message("user", prompt)], max_tokens=ANSWER).text
        except Declined:
            return ""
        except NoReply as why:
            raise EyespotError(
                f"{spec} gave no wordings ({why}); run the same line again, or leave out --expand"
            ) from None

    return chat


# -- from a table -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Glossary:
    """Terms with what they look like; a term that stands in a query as a whole word is replaced by each of these."""

    terms: Mapping[str, Sequence[str]]

    def __call__(self, words: str) -> list[str]:
        """The text with its longest known term in each wording; nothing if it holds none."""
        for term in sorted(self.terms, key=len, reverse=True):
            pattern = re.compile(rf"(?<!\w){re.escape(term)}(?!\w)", re.IGNORECASE)
            if pattern.search(words):
                # Between the parts, so that a backslash in a wording means nothing
                return [wording.join(pattern.split(words)) for wording in self.terms[term]]
        return []


def read_glossary(path: Path) -> Glossary:
    """A JSON file of the form {"axanthism": ["a blue frog", …]}; `UsageError` for any other."""
    terms = json_of(path)
    lists: list[Any] = list(terms.values()) if isinstance(terms, dict) else [None]
    sound = all(isinstance(wordings, list) and wordings for wordings in lists)
    if not sound or "" in terms or not all(isinstance(text, str) and text.strip() for texts in lists for text in texts):
        refuse(path, "", 'is not a table of terms; write {"axanthism": ["a blue frog", "a frog without yellow"]}')
    return Glossary(terms)


# -- searching with them ----------------------------------------------------------------------------------------


def in_one(query: Query, tell: Tell) -> Query:
    """The query with all wordings as further terms: its vector is their mean.

    Each text shares its weight with its wordings, so that pictures in the query count as much as before.
    """
    terms: list[Term] = []
    for term in query.terms:
        texts = [] if term.text is None else [term.text, *tell(term.text)]
        terms += [Term(term.weight / len(texts), text=text) for text in texts] or [term]
    return replace(query, terms=tuple(terms))


@dataclass
class Reworded:
    """Queries in all their wordings at once; `queries` counts them, `worded` those that have further wordings."""

    tell: Tell
    queries: int = 0
    worded: int = 0

    def __call__(self, query: Query) -> Query:
        """The query as `in_one` makes it."""
        made = in_one(query, self.tell)
        self.queries, self.worded = self.queries + 1, self.worded + (made != query)
        return made
