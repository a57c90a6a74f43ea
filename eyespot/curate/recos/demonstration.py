"""A writer for demonstrations: it makes captions by rules from known labels, and sees no picture.

It takes the place of a vision–language model, so that the whole pipeline runs on real photos without one. It makes
mistakes as often as its options say, so that the card shows every kind of loss. Its output is not a useful test set.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from eyespot.curate.recos.captioning import DEMONSTRATION
from eyespot.curate.recos.confusing import changed
from eyespot.pipelines import CallMeter, NoAnswer, Prompt
from eyespot.pipelines.data_card.wording import words
from eyespot.storage.toml import toml_of
from eyespot.types import UsageError

NAME = DEMONSTRATION
ABSTAINED = "the demonstration was told to abstain at times"
FAULTS = ("abstains", "silent", "slips")
"""Shares of its answers, from 0 to 1: pictures it calls unsuitable, questions without an answer, and captions with a
grammar error."""
_TEMPLATES = (
    "{title} in a photo.",
    "A picture that shows {title}.",
    "This is {title}.",
    "{title}, seen from the front.",
    "What can be seen is {title}.",
)
_QUOTING = (  # of writing in the picture
    'The words "{line}" can be read.',
    'A photo of something with "{line}" written on it.',
    'Something bears the text "{line}".',
    '"{line}" is written in the picture.',
    'The writing says "{line}".',
)
LONGEST_PLACE = 5  # words
_SMALL = set(
    words("a an the in of on at to and or with by for from as is are it")
)  # words that say nothing about a picture
_ENDINGS = (  # true of any picture
    ", seen from nearby",
    ", in the middle of the picture",
    ", against its background",
)


def writer(prompt: Prompt, _meter: CallMeter) -> Mapping[str, Any]:
    """A client for models whose `use` is `demonstration`; it spends nothing."""
    fields = {"use", "words", "form", "pictures", "known", *FAULTS}
    unknown = next((name for name in prompt if name not in fields and not name.startswith("_")), None)
    if unknown is not None:
        raise UsageError(f"the demonstration has no option {unknown!r}; its options are: {', '.join(FAULTS)}")
    known = prompt["known"]
    if _fails(prompt, "silent"):
        raise NoAnswer("the demonstration was told to be silent at times")
    return {"caption": _captions, "rewrite": _rewritten, "confuse": _swapped}[known["task"]](prompt, known)


# -- captions ---------------------------------------------------------------------------------------------------


def _captions(prompt: Prompt, known: Mapping[str, Any]) -> Mapping[str, Any]:
    if _fails(prompt, "abstains"):
        return {"captions": [], "unsuitable": ABSTAINED}
    texts, title = _captions_by_people(known["facts"]), _title(known["facts"])
    if lines := known.get("writing", "").splitlines():
        texts = [template.format(line=max(lines, key=len).replace('"', "")) for template in _QUOTING]
    if not texts and title:
        texts = [_sentence(template.format(title=title)) for template in _TEMPLATES]
    for number, text in enumerate(texts):
        if _fails(prompt, "slips", text):  # its second word is written twice
            first, second, rest = [*text.split(" ", 2), "", ""][:3]
            texts[number] = f"{first} {second} {second} {rest}".strip()
    return {"captions": texts, "unsuitable": "" if texts else "no label says what it shows"}


def _captions_by_people(facts: Mapping[str, Any]) -> list[str]:
    """Captions of the picture that are among its labels."""
    names = sorted(name for name in facts if re.fullmatch(r"caption_\d+", name))
    return [_sentence(str(facts[name])) for name in names]


def _title(facts: Mapping[str, Any]) -> str:
    """The title without numbers, brackets and what follows a comma or a dash: those describe the file."""
    bare = re.sub(r"\(.*?\)|\d+|_", " ", re.split(r" - |, ", str(facts.get("title", "")))[0])
    return " ".join(bare.strip(" -.,").split())


def _sentence(text: str) -> str:
    plain = " ".join(text.split()).rstrip(" .")
    return re.sub(r"\s+([,;])", r"\1", f"{plain[:1].upper()}{plain[1:]}.")


# -- rewriting --------------------------------------------------------------------------------------------------


def _rewritten(_prompt: Prompt, known: Mapping[str, Any]) -> Mapping[str, str]:
    text, wish = str(known["caption"]), known["wish"]
    if wish != "less":
        return {"caption": _with_more(text, known["facts"])}
    # Without its last clause, or its last word but one
    cuts = list(re.finditer(r",| (?=(?:in|on|with|at|by|near|while|through|over|from|of|that) )", text))
    return {"caption": _sentence(text[: cuts[-1].start()]) if cuts and cuts[-1].start() > 12 else ""}


def _with_more(text: str, facts: Mapping[str, Any]) -> str:
    """With a clause from another label, or with one that says little."""
    bare = text.rstrip(" .")
    verbs = {"is", "are", *_kinds()["action"], *_kinds()["posture"]}
    for caption in _captions_by_people(facts):
        # Where the caption ends: " on the wall"; not if that is more than a place
        match = re.search(r".*( (?:in|on|at|near|through|over) [^,.;]+)\.$", caption)
        place = match[1].split() if match else []
        if match and len(place) <= LONGEST_PLACE and verbs.isdisjoint(place) and match[1].strip() not in bare:
            return _sentence(f"{bare}{match[1]}")
    group = str(facts.get("category", "")).rpartition("/")[2].replace("_", " ").casefold()
    if group and group not in bare:
        return _sentence(f"{bare}, a picture of {group}")
    ending = next((clause for clause in _ENDINGS if clause not in bare), "")
    return _sentence(bare + ending) if ending and len(bare) < 160 else ""


# -- confusing captions -----------------------------------------------------------------------------------------


def _swapped(prompt: Prompt, known: Mapping[str, Any]) -> Mapping[str, Any]:
    if _fails(prompt, "abstains"):
        return {"captions": [], "unsuitable": ABSTAINED}
    lines = (line.partition(". ") for line in known["captions"].splitlines())
    captions = {int(number): text for number, _, text in lines}
    swaps = [swap for number, text in captions.items() if (swap := _swap(number, text, known))]
    swaps = swaps or list(_nearest(captions, known))
    return {"captions": swaps, "unsuitable": "" if swaps else "no caption of the first is nearly true of the other"}


def _swap(number: int, text: str, known: Mapping[str, Any]) -> dict[str, Any] | None:
    """The caption with a title or a word of it swapped, if the labels of the new picture confirm it."""

    def with_article(match: re.Match[str]) -> str:
        article = "an" if match[2][0].lower() in "aeiou" else "a"
        return f"{article.capitalize() if match[1][0].isupper() else article} {match[2]}"

    for attribute, before, after in _changes(text, known):
        if attribute in known["attributes"]:
            swapped = re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", after, text, count=1, flags=re.IGNORECASE)
            fitting = re.sub(r"\b([Aa]n?) (\w+)", with_article, swapped)
            return {"number": number, "text": _sentence(fitting), "attribute": attribute}
    return None


def _changes(text: str, known: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Possible swaps: a title for a title, or a word for another of its kind if the labels contain all the rest."""
    before, after = _title(known["before"]), _title(known["facts"])
    if before and after and before.casefold() != after.casefold() and before.casefold() in text.casefold():
        yield from ((name, before, after) for name in ("object", "name", "scene"))
    quoted, lines = re.search('"(.+)"', text), known.get("writing", "").replace('"', "").splitlines()
    if quoted and lines and quoted[1] not in lines:
        yield "words", quoted[1], max(lines, key=len)
    labels = " ".join(map(str, known["facts"].values()))
    for attribute, kind in _kinds().items():
        old = next((word for word in kind if _contains(text, word)), None)
        new = next((w for w in kind if w != old and _contains(labels, w) and not _contains(text, w)), None)
        if old and new and set(words(text.casefold())) <= {*words(labels.casefold()), *words(old), *_SMALL}:
            yield attribute, old, new


def _nearest(captions: Mapping[int, str], known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The new picture's own captions by people that differ from the first picture's in the fewest words."""
    theirs = _captions_by_people(known["facts"])
    pairs = sorted((changed(text, own), number, own) for number, text in captions.items() for own in theirs)
    used: set[int | str] = set()
    for _, number, own in pairs:
        for attribute in known["attributes"]:
            # Both contain words of its kind, and not the same
            kind = _kinds().get(attribute, [])
            first, second = ({word for word in kind if _contains(text, word)} for text in (captions[number], own))
            if first and second and first != second:
                break
        else:
            continue
        if used.isdisjoint((number, own)):
            used.update((number, own))
            yield {"number": number, "text": own, "attribute": attribute}


def _contains(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


@cache
def _kinds() -> dict[str, list[str]]:
    """Words by the attribute that they are a value of."""
    table = toml_of(Path(__file__).with_name("demonstration_words.toml"))
    return {name.replace("_", " "): values for name, values in table.items()}


# -- its mistakes -----------------------------------------------------------------------------------------------


def _fails(prompt: Prompt, fault: str, text: str | None = None) -> bool:
    """Whether it makes this mistake; the same mistake for the same question and text."""
    share = prompt.get(fault, 0)
    if not isinstance(share, int | float):
        raise UsageError(f"the demonstration's {fault} is {share!r}; give a share from 0 to 1")
    parts = (fault if text is None else text, prompt["known"]["task"], *prompt["pictures"])
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48 < share
