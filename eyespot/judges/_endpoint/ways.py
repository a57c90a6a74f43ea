"""Verdicts from what a model says: a word, a grade from 0 to 10, several votes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from eyespot.judges._endpoint.judging import VerdictWithFallback, VisionPrompt
from eyespot.judges._prompt import JudgePrompt
from eyespot.llms.client import Endpoint
from eyespot.llms.errors import SORRY, BadAnswer, Declined
from eyespot.types import Reply, Verdict

CUT_OFF = ("length", "max_tokens")  # how an answer ends that had no more tokens
CUT = " …"  # at the end of such an answer: its last number may be half of one
MOST = 80  # characters of an answer that a reason quotes

GRADES = JudgePrompt(
    name="grades",
    system="You check photographs against a description. Judge only by what can be seen.",
    question=(
        'Description: "{query}"\nHow well does the photograph fit this, from 0 (not at all) to 10 (without any doubt)? '
        "Reply with the number and nothing else."
    ),
    yes="10",
    no="0",
)

_NUMBER = r"(?<![\w.,/-])(\d{1,2}(?:[.,]\d{1,2})?)(?![\w%]|[.,]\d)"
_END = r"[\s.!)\]]*$"
RANGE = re.compile(r"\d\s*(?:[-–—~]|to|or|and)\s*\d")
OUT_OF_TEN = re.compile(rf"{_NUMBER}\s*(?:/\s*10(?![.,/]?\d)|out of (?:10|ten)(?=\s*(?:$|[.,;:!?)\n–—-])))", re.I)
LABELLED = re.compile(rf"\b(?:score|grade|rating|answer)\s*(?:[:=]|is)\s*{_NUMBER}(?!\s*/)", re.IGNORECASE)
LAST = re.compile(rf"^\D*{_NUMBER}{_END}")
FIRST = re.compile(rf"^{_NUMBER}(?:\s*\n|[,;:]\s)\D*$")
CONCLUDED = re.compile(rf"\b(?:so|thus|hence|therefore)\b[^\d.]*{_NUMBER}{_END}", re.IGNORECASE)
READINGS = (OUT_OF_TEN, LABELLED, LAST, FIRST, CONCLUDED)


def word_of(text: str, wording: JudgePrompt) -> bool:
    """Whether an answer in words is the yes; `BadAnswer` if it is neither, `Declined` if it is an excuse."""
    words = [bare(word) for word in text.split()]
    known = {bare(wording.yes): True, bare(wording.no): False}
    found = next((known[word] for word in words[:1] if word in known), None)
    if found is not None:
        return found
    raise _other(text, f"neither {wording.yes} nor {wording.no}")


def grade_of(text: str) -> float:
    """The grade of an answer that has one reading; `BadAnswer` for any other, `Declined` if it is an excuse.

    That is, in this order: the one number out of ten ("9/10"), the one number after a label ("Score: 9"), the only
    number if it begins or ends the answer ("9", "I give it a 9"), the last one after "so" ("2 herons, so 9").
    """
    plain = re.sub(r"[*_`\"]", "", text).strip()
    forms = () if RANGE.search(plain) or SORRY.match(plain) else READINGS
    found = next((numbers for form in forms if (numbers := set(form.findall(plain)))), set())
    grades = {float(number.replace(",", ".")) for number in found}
    if len(grades) != 1 or max(grades) > 10:
        raise _other(text, "no grade from 0 to 10 that has one reading")
    return grades.pop()


def _other(text: str, what: str) -> Exception:
    quoted = f"{text.strip()[:MOST]!r}" if text.strip() else "nothing"
    return Declined(quoted) if SORRY.match(text) else BadAnswer(f"the model answered {quoted}, which is {what}")


def bare(word: str) -> str:
    """A token as a word: tokenizers mark a space as " ", "▁" or "Ġ", models add quotes, stars and full stops."""
    return word.strip("▁Ġ \t\r\n\"'`*.,:;!()[]").casefold()


# -- words, grades, votes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Words:
    """The answer's words alone: yes is 1, no is 0, and nothing lies between."""

    wording: JudgePrompt
    tokens: int  # the most that an answer may have
    fallbacks: ClassVar[Mapping[str, str]] = {}
    special: ClassVar[str] = "words"
    sentence: ClassVar[str] = "its words are taken instead: a verdict is 1 or 0, nothing between"

    def __call__(self, endpoint: Endpoint, sight: VisionPrompt) -> VerdictWithFallback:
        return VerdictWithFallback(
            in_words(endpoint.chat(sight.messages, max_tokens=self.tokens, temperature=0), self.wording)
        )

    def notes(self, name: str) -> list[str]:
        return [f"{name} is not asked for probabilities; {self.sentence}"]


@dataclass(frozen=True)
class Grades:
    """A grade from 0 to 10 as the model writes it; a tenth of it is the probability."""

    tokens: int
    special: ClassVar[str] = "grades"
    fallbacks: ClassVar[Mapping[str, str]] = {}

    def __call__(self, endpoint: Endpoint, sight: VisionPrompt) -> VerdictWithFallback:
        reply = endpoint.chat(sight.messages, max_tokens=self.tokens, temperature=0)
        grade = grade_of(reply_text(reply) + CUT * (reply.finish in CUT_OFF))
        return VerdictWithFallback(Verdict(probability=grade / 10, reason=f"{grade:g} of 10"))

    def notes(self, name: str) -> list[str]:
        return [f"{name} writes grades from 0 to 10: scores are coarse and not calibrated"]


@dataclass(frozen=True)
class Votes:
    """The same question several times, and the share of yes among the answers that are one of the two."""

    wording: JudgePrompt
    votes: int
    tokens: int
    fallbacks: ClassVar[Mapping[str, str]] = {}

    @property
    def special(self) -> str:
        return f"votes={self.votes}"

    def __call__(self, endpoint: Endpoint, sight: VisionPrompt) -> VerdictWithFallback:
        votes = []
        for _ in range(self.votes):
            with suppress(BadAnswer):
                reply = endpoint.chat(sight.messages, max_tokens=self.tokens, temperature=1)
                votes.append(word_of(reply_text(reply), self.wording))
        if not votes:
            raise BadAnswer(f"none of {self.votes} answers is {self.wording.yes} or {self.wording.no}")
        return VerdictWithFallback(
            Verdict(probability=sum(votes) / len(votes), reason=f"{sum(votes)} of {len(votes)} votes")
        )

    def notes(self, name: str) -> list[str]:
        return [f"{name} votes {self.votes} times for each picture: scores are steps of 1/{self.votes}"]


def in_words(reply: Reply, wording: JudgePrompt) -> Verdict:
    """1 or 0 by the words of a reply; raises what `word_of` raises."""
    text = reply_text(reply)
    return Verdict(probability=float(word_of(text, wording)), reason=f"said {text.strip()[:MOST]!r}")


def reply_text(reply: Reply) -> str:
    """What was said; a model that thinks first may have used up its tokens before it came to that."""
    if not reply.text.strip() and reply.finish in CUT_OFF:
        raise BadAnswer("the model ended before its answer began; let it have more tokens (option answer_tokens)")
    return reply.text
