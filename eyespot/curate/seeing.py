"""Captions by a vision-language model: a picture and the name of its species become one sentence to search with.

Captions stay in the ledger, so an interrupted run goes on where it was and a second one is free.
(QuARI, appendix A: captions for BioTrove, whose pictures come with taxonomic labels only.)
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.llms import Declined, JpegEncoder, NoReply, image_message, text_message
from eyespot.photos.pictures import BadPicture
from eyespot.storage import sqlite
from eyespot.storage.digests import text_digest
from eyespot.types import LanguageModel

if TYPE_CHECKING:
    from PIL.Image import Image

SCHEMA = """CREATE TABLE IF NOT EXISTS captions(model TEXT, prompt TEXT, image TEXT, named TEXT, said TEXT, at REAL,
    PRIMARY KEY(model, prompt, image, named)) WITHOUT ROWID;"""
SYSTEM = "You write search queries for a collection of nature photographs."
ASKED = """The photograph shows {named}. Write one short sentence that somebody could type to find just this photograph.
Name the species as given, then what can be seen: what it does, its colours or stage of life, where it is, the light.
Say nothing that cannot be seen. Answer with the sentence alone, at most {words} words."""
UNNAMED = "something that its label does not name"
WORDS, TOKENS = 25, 1000  # models that think need some of the tokens for that


@dataclass(frozen=True)
class Seeing:
    """A captioner that asks a vision-language model; the values of `columns` name what the picture shows.

    The ledger keeps captions under `name`.
    """

    name: str
    model: LanguageModel
    ledger: Path
    columns: tuple[str, ...]
    words: int = WORDS

    @property
    def settings(self) -> Mapping[str, Any]:
        """The prompt's digest and the columns whose values it holds."""
        return {"prompt": self.prompt, "columns": list(self.columns), "words": self.words}

    @property
    def prompt(self) -> str:
        """A digest of how the model is asked: sixteen hex digits."""
        return text_digest(SYSTEM, ASKED, str(self.words))

    def caption(self, facts: Mapping[str, Any], picture: Callable[[], Image]) -> str | None:
        """One sentence, from the ledger if it has one; None where the model declines.

        Raises `BadPicture` for a picture that cannot be read or got no answer, and `BudgetSpent`.
        """
        values = (facts.get(column) for column in self.columns)
        named = ", ".join(dict.fromkeys(str(value) for value in values if value)) or UNNAMED
        key = (self.name, self.prompt, str(facts["id"]), named)
        with closing(sqlite.connect(self.ledger, SCHEMA, settles=False)) as sql:
            where = "model = ? AND prompt = ? AND image = ? AND named = ?"
            row = sql.execute(f"SELECT said FROM captions WHERE {where}", key).fetchone()
            if row is None:
                caption = self._ask(named, picture())
                sql.execute("INSERT OR REPLACE INTO captions VALUES (?, ?, ?, ?, ?, ?)", (*key, caption, time.time()))
                return caption
        return str(row[0]) or None

    def _ask(self, named: str, picture: Image) -> str:
        """The model's sentence; empty where it declines."""
        data = JpegEncoder(read=lambda _: picture)(Path())
        question = ASKED.format(named=json.dumps(named, ensure_ascii=False), words=self.words)
        messages = [text_message("system", SYSTEM), image_message([data], question)]
        try:
            return sentence_of(self.model.chat(messages, max_tokens=TOKENS).text)
        except Declined:
            return ""
        except NoReply as why:
            raise BadPicture(f"{self.name} gave no caption: {why}") from None


def sentence_of(reply: str) -> str:
    """The first line of a reply that is not empty, without quotes around it."""
    lines = (line.strip().strip("\"'“”*").strip() for line in reply.splitlines())
    return next((line for line in lines if line), "")
