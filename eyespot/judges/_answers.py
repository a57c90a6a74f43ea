"""Verdicts from what a model says: the probabilities of its first token, a word, a grade from 0 to 10."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar, TypeAlias

from eyespot.judges._prompt import JudgePrompt
from eyespot.llms.client import Endpoint
from eyespot.llms.errors import CUT_OFF, MORE_TOKENS, SORRY, BadAnswer, Declined, Refused
from eyespot.llms.replies import TOOL
from eyespot.types import Message, Reply, Token, Verdict

CUT = " …"  # at the end of an answer that had no more tokens: its last number may be half of one
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
_COUNTED = r"(?!\s+(?!because|since|as|points?\b)[^\W\d])"  # "3 herons" counts herons
LABELLED = re.compile(rf"\b(?:score|grade|rating|answer)\s*(?:[:=]|is)\s*{_NUMBER}(?!\s*/){_COUNTED}", re.IGNORECASE)
LAST = re.compile(rf"^\D*{_NUMBER}{_END}")
FIRST = re.compile(rf"^{_NUMBER}(?:\s*\n|[,;:]\s|\s*\(|\s+[-–—]\s)\D*$")
CONCLUDED = re.compile(rf"\b(?:so|thus|hence|therefore)\b[^\d.]*{_NUMBER}{_END}", re.IGNORECASE)
LETTERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
IN_LETTERS = re.compile(
    rf"^((?:score|grade|rating|answer)\s*[:=]\s*)?({'|'.join(LETTERS)})(?=\s*(?:$|[.!(/,]|out of|[-–—]\s))",
    re.IGNORECASE,
)
READINGS = (OUT_OF_TEN, LABELLED, LAST, FIRST, CONCLUDED)


def grade_of(text: str) -> float:
    """The grade of an answer that has one reading; `BadAnswer` for any other, `Declined` if it is an excuse.

    That is, in this order: the one number out of ten ("9/10"), the one number after a label ("Score: 9"), the only
    number if it begins or ends the answer ("9", "nine", "9 (clear)", "I give it a 9"), the last one after "so" ("2
    herons, so 9").
    """
    plain = re.sub(r"[*_`\"]", "", text).strip()
    plain = IN_LETTERS.sub(lambda found: (found[1] or "") + str(LETTERS.index(found[2].casefold())), plain)
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


VerdictAndFallback: TypeAlias = tuple[Verdict, str]
"""A verdict, and the fallback that it came by; "" where it came by the way itself."""


@dataclass(frozen=True)
class Words:
    """The answer's words alone: yes is 1, no is 0, and nothing lies between."""

    wording: JudgePrompt
    tokens: int  # the most that an answer may have
    fallbacks: ClassVar[Mapping[str, str]] = {}
    special: ClassVar[str] = "words"
    sentence: ClassVar[str] = "its words are taken instead: a verdict is 1 or 0, nothing between"

    def __call__(self, endpoint: Endpoint, messages: Sequence[Message]) -> VerdictAndFallback:
        return in_words(endpoint.chat(messages, max_tokens=self.tokens, temperature=0), self.wording), ""

    def notes(self, name: str) -> list[str]:
        return [f"{name} is not asked for probabilities; {self.sentence}"]


@dataclass(frozen=True)
class Grades:
    """A grade from 0 to 10 as the model writes it; a tenth of it is the probability."""

    tokens: int
    special: ClassVar[str] = "grades"
    fallbacks: ClassVar[Mapping[str, str]] = {}

    def __call__(self, endpoint: Endpoint, messages: Sequence[Message]) -> VerdictAndFallback:
        reply = endpoint.chat(messages, max_tokens=self.tokens, temperature=0)
        grade = grade_of(reply_text(reply) + CUT * reply.cut)
        return Verdict(probability=grade / 10, reason=f"{grade:g} of 10"), ""

    def notes(self, name: str) -> list[str]:
        return [f"{name} writes grades from 0 to 10: scores are coarse and not calibrated"]


def in_words(reply: Reply, wording: JudgePrompt) -> Verdict:
    """1 or 0 by the first word of a reply; `BadAnswer` if that is neither yes nor no, `Declined` if it is an excuse."""
    text = reply_text(reply)
    first, known = "".join(map(bare, text.split()[:1])), {bare(wording.yes): 1.0, bare(wording.no): 0.0}
    if first in known:
        return Verdict(probability=known[first], reason=f"said {text.strip()[:MOST]!r}")
    raise _other(text, f"neither {wording.yes} nor {wording.no}{MORE_TOKENS * reply.cut}")


def reply_text(reply: Reply) -> str:
    """What was said; a model that thinks first may have used up its tokens before it came to that."""
    if reply.text.strip():
        return reply.text
    if reply.unspoken or reply.thought:
        raise BadAnswer(f"the model ended before its answer began{MORE_TOKENS}")
    if TOOL.search(reply.finish):
        raise BadAnswer("the model called a tool instead of an answer; serve it without tools")
    return reply.text


# -- the first token -----------------------------------------------------------------------------------------

ALTERNATIVES = 20  # of the first token: the most that servers give
EXCUSES = {"i", "i'm", "i’m", "sorry", "unfortunately"}  # how a refusal begins whose second token nobody has seen
DOUBTFUL = 0.9  # yes and no together: below this the model would rather have said something else


def shares(tokens: Iterable[Token], wording: JudgePrompt) -> tuple[float, float]:
    """How probable yes and no are among a token's alternatives, all spellings (" Yes", "yes", "YES") summed.

    Of an exact wording whose code looks for the words, only the token that is the word counts.
    """
    spelled = str if wording.exact and wording.token is None else bare
    sums = {spelled(wording.yes): 0.0, spelled(wording.no): 0.0}
    for token, logprob in tokens:
        if (word := spelled(token)) in sums:
            sums[word] += math.exp(logprob)
    return sums[spelled(wording.yes)], sums[spelled(wording.no)]


@dataclass
class FirstToken:
    """p(yes) / (p(yes) + p(no)) from the first token; a reply without probabilities counts by its words.

    Every picture is asked for probabilities, whatever came with the others, so that its verdict depends on its own
    reply. One token is enough for a word; where it was not, all answers may be longer from then on.
    """

    wording: JudgePrompt
    tokens: int  # the most that an answer in words may have
    fallbacks: ClassVar[Mapping[str, str]] = {Words.special: Words.sentence}
    special: ClassVar[str] = ""
    seen: int = 0
    doubtful: int = 0
    _most: int = 1  # tokens of an answer
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __call__(self, endpoint: Endpoint, messages: Sequence[Message]) -> VerdictAndFallback:
        options = {"max_tokens": self._most, "temperature": 0, "logprobs": True, "top_logprobs": ALTERNATIVES}
        try:
            reply = endpoint.chat(messages, **options)
        except Refused as why:
            if self._most >= self.tokens or not CUT_OFF.search(str(why)):
                raise
            raise self._short(why) from None
        if SORRY.match(reply.text):
            raise Declined(repr(reply.text[:MOST]))
        if reply.logprobs and (verdict := self._probable(reply.logprobs, reply.text)):
            return verdict, ""
        try:
            return in_words(reply, self.wording), Words.special
        except BadAnswer as why:
            raise self._short(why) from None

    def _probable(self, tokens: Sequence[Token], text: str) -> Verdict | None:
        """yes / (yes + no), the score of INQUIRE; without a yes 0, without a no 1.

        None where it has neither, except for INQUIRE's own wordings, and where it contradicts the text: tokens that
        give a Yes no probability are not those of the answer Yes.
        """
        yes, no = shares(tokens, self.wording)
        reason = ""
        if not (yes or no):
            token, _ = max(tokens, key=lambda one: one[1])
            neither = f"neither {self.wording.yes} nor {self.wording.no} is among the first tokens"
            reason = f"{neither}; the likeliest is {token!r}"
            if bare(token) in EXCUSES:
                raise Declined(reason)
            if not self.wording.exact:
                return None
        first = bare(text.strip().partition(" ")[0])
        if not {bare(self.wording.yes): yes, bare(self.wording.no): no}.get(first, 1.0) and not self.wording.exact:
            return None
        with self._lock:
            self.seen += 1
            self.doubtful += yes + no < DOUBTFUL
        return Verdict(probability=min(1.0, yes / (yes + no)) if yes else 0.0, reason=reason)

    def notes(self, name: str) -> list[str]:
        """How many answers were in doubt."""
        if not self.doubtful:
            return []
        return [
            f"in {self.doubtful:,} of {self.seen:,} answers of {name} {self.wording.yes} and {self.wording.no} had "
            f"together less than {DOUBTFUL:g} of the probability: those scores mean little, try another wording"
        ]

    def _short(self, why: Exception) -> BadAnswer:
        """One token was perhaps too few for an answer: the next ones may be longer."""
        self._most = self.tokens
        return BadAnswer(str(why))


AnswerMode: TypeAlias = Words | Grades | FirstToken
"""How a model gives a verdict. `special` tells its verdicts from those by the first token; `fallbacks` maps that of
other ways by which a reply may be read, the finest first, to what is said of each."""
