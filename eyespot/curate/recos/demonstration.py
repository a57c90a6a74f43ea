"""A writer for demonstrations: it makes captions by rules out of labels that are known, and sees no picture.

It stands where a vision–language model would, so that the whole pipeline runs on real photos without one, and makes the
mistakes it is told to make, so that every kind of loss is seen. What it makes is no test of anything.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from eyespot.curate.recos.captioning import DEMONSTRATION
from eyespot.curate.recos.confusing import changed
from eyespot.pipelines import CallMeter, NoAnswer, Prompt
from eyespot.pipelines.data_card.wording import words
from eyespot.types import UsageError

NAME = DEMONSTRATION
FAULTS = ("abstains", "silent", "slips")
"""Shares of its answers, from 0 to 1: pictures it calls unsuitable, questions it gives no answer to, and captions in
which it makes a mistake of grammar."""
_TEMPLATES = (
    "{title} in a photo.",
    "A picture that shows {title}.",
    "This is {title}.",
    "{title}, seen from the front.",
    "What can be seen is {title}.",
)
LONGEST_PLACE = 5  # words
_SMALL = set(words("a an the in of on at to and or with by for from as is are it"))  # what says nothing of a picture
_ENDINGS = (  # true of any picture
    ", seen from nearby",
    ", in the middle of the picture",
    ", against its background",
)


def writer(prompt: Prompt, _till: CallMeter) -> Mapping[str, Any]:
    """A client for models whose `use` is `demonstration`; it spends nothing."""
    told = {"use", "words", "form", "pictures", "known", *FAULTS}
    strange = next((name for name in prompt if name not in told and not name.startswith("_")), None)
    if strange is not None:
        raise UsageError(f"the demonstration knows no {strange!r}; it can be told: {', '.join(FAULTS)}")
    known = prompt["known"]
    if _chance(prompt, "silent") < _share(prompt, "silent"):
        raise NoAnswer("the demonstration was told to be silent at times")
    return {"caption": _captions, "rewrite": _rewritten, "confuse": _swapped}[known["task"]](prompt, known)


# -- captions ---------------------------------------------------------------------------------------------------


def _captions(prompt: Prompt, known: Mapping[str, Any]) -> Mapping[str, Any]:
    if _chance(prompt, "abstains") < _share(prompt, "abstains"):
        return {"captions": [], "unsuitable": "the demonstration was told to abstain at times"}
    found = _by_people(known["facts"]) or _by_title(known["facts"])
    slipping = [_slipped(text) if _chance(prompt, text) < _share(prompt, "slips") else text for text in found]
    return {"captions": slipping, "unsuitable": "" if found else "no label says what it shows"}


def _by_people(facts: Mapping[str, Any]) -> list[str]:
    """What people said of the picture, where that is among its labels."""
    names = sorted(name for name in facts if re.fullmatch(r"caption_\d+", name))
    return [_sentence(str(facts[name])) for name in names]


def _by_title(facts: Mapping[str, Any]) -> list[str]:
    title = _title(facts)
    return [_sentence(template.format(title=title)) for template in _TEMPLATES] if title else []


def _title(facts: Mapping[str, Any]) -> str:
    """The title without numbers, brackets and what follows a comma or a dash: those tell of files, not of pictures."""
    bare = re.sub(r"\(.*?\)|\d+|_", " ", re.split(r" - |, ", str(facts.get("title", "")))[0])
    return " ".join(bare.strip(" -.,").split())


def _sentence(text: str) -> str:
    plain = " ".join(text.split()).rstrip(" .")
    return re.sub(r"\s+([,;])", r"\1", f"{plain[:1].upper()}{plain[1:]}.")


def _slipped(text: str) -> str:
    """The same with a word said twice."""
    first, _, rest = text.partition(" ")
    second, _, rest = rest.partition(" ")
    return f"{first} {second} {second} {rest}".strip()


# -- written again ----------------------------------------------------------------------------------------------


def _rewritten(_prompt: Prompt, known: Mapping[str, Any]) -> Mapping[str, str]:
    text = str(known["caption"])
    if known["wish"] == "less":
        # Without its last clause, or its last word but one
        cut = list(re.finditer(r",| (?=(?:in|on|with|at|by|near|while|through|over|from|of|that) )", text))
        less = _sentence(text[: cut[-1].start()]) if cut and cut[-1].start() > 12 else ""
    else:
        less = _more(text, known["facts"])
    return {"caption": less}


def _more(text: str, facts: Mapping[str, Any]) -> str:
    """With a clause out of another label, or one that says little."""
    bare = text.rstrip(" .")
    for clause in map(_last_place, _by_people(facts)):
        if clause and clause.strip() not in bare:
            return _sentence(f"{bare}{clause}")
    group = str(facts.get("category", "")).rpartition("/")[2].replace("_", " ").casefold()
    if group and group not in bare:
        return _sentence(f"{bare}, a picture of {group}")
    ending = next((one for one in _ENDINGS if one not in bare), "")
    return _sentence(bare + ending) if ending and len(bare) < 160 else ""


def _last_place(text: str) -> str:
    """Where a caption ends: " on the wall"; "" where more than a place is said there."""
    found = re.search(r".*( (?:in|on|at|near|through|over) [^,.;]+)\.$", text)
    clause = found[1] if found else ""
    verbs = {"is", "are", *_kinds()["action"], *_kinds()["posture"]}
    return clause if len(clause.split()) <= LONGEST_PLACE and verbs.isdisjoint(clause.split()) else ""


# -- confusing captions -----------------------------------------------------------------------------------------


def _swapped(prompt: Prompt, known: Mapping[str, Any]) -> Mapping[str, Any]:
    if _chance(prompt, "abstains") < _share(prompt, "abstains"):
        return {"captions": [], "unsuitable": "the demonstration was told to abstain at times"}
    captions = [line.partition(". ")[::2] for line in known["captions"].splitlines()]
    swaps = [swap for number, text in captions if (swap := _swap(int(number), text, known))]
    swaps = swaps or list(_nearest({int(number): text for number, text in captions}, known))
    return {"captions": swaps, "unsuitable": "" if swaps else "no caption of the first is nearly true of the other"}


def _swap(number: int, text: str, known: Mapping[str, Any]) -> dict[str, Any] | None:
    """The caption with a title or one word of it swapped, if the labels of the new picture bear it out."""
    told = " ".join(map(str, known["facts"].values()))
    for attribute, before, after in _changes(text, told, known):
        if attribute in known["attributes"]:
            swapped = re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", after, text, count=1, flags=re.IGNORECASE)
            return {"number": number, "text": _sentence(_article(swapped)), "attribute": attribute}
    return None


def _changes(text: str, told: str, known: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What might be swapped: a title for a title, or a word for another of its kind if the labels hold all the rest."""
    before, after = _title(known["before"]), _title(known["facts"])
    if before and after and before.casefold() != after.casefold() and before.casefold() in text.casefold():
        yield from ((name, before, after) for name in ("object", "name", "scene"))
    for attribute, kind in _kinds().items():
        said = next((word for word in kind if _holds(text, word)), None)
        instead = next((word for word in kind if word != said and _holds(told, word) and not _holds(text, word)), None)
        if said and instead and _borne_out(text, said, told):
            yield attribute, said, instead


def _borne_out(text: str, but: str, told: str) -> bool:
    """Whether labels hold every word of a caption but one, and but those that say nothing."""
    return set(words(text.casefold())) <= {*words(told.casefold()), *words(but), *_SMALL}


def _nearest(captions: Mapping[int, str], known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What people said of the new picture itself: the captions that differ from the first's in the fewest words."""
    theirs = _by_people(known["facts"])
    pairs = sorted((changed(text, own), number, own) for number, text in captions.items() for own in theirs)
    used: set[int | str] = set()
    for _, number, own in pairs:
        attribute = next((name for name in known["attributes"] if _differ(name, captions[number], own)), None)
        if attribute is not None and used.isdisjoint((number, own)):
            used.update((number, own))
            yield {"number": number, "text": own, "attribute": attribute}


def _differ(attribute: str, one: str, other: str) -> bool:
    """Whether two captions hold different words of a kind, and each has some."""
    first, second = ({word for word in _kinds().get(attribute, []) if _holds(text, word)} for text in (one, other))
    return bool(first and second and first != second)


def _article(text: str) -> str:
    def fitting(found: re.Match[str]) -> str:
        article = "an" if found[2][0].lower() in "aeiou" else "a"
        return f"{article.capitalize() if found[1][0].isupper() else article} {found[2]}"

    return re.sub(r"\b([Aa]n?) (\w+)", fitting, text)


def _holds(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


@cache
def _kinds() -> dict[str, list[str]]:
    """Words by the attribute that they are one of."""
    told = tomllib.loads((files(__package__) / "demonstration_words.toml").read_text(encoding="utf-8"))
    return {str(name).replace("_", " "): list(words) for name, words in told.items()}


# -- its mistakes -----------------------------------------------------------------------------------------------


def _share(prompt: Prompt, fault: str) -> float:
    share = prompt.get(fault, 0)
    if not isinstance(share, int | float):
        raise UsageError(f"the demonstration's {fault} is {share!r}; give a share from 0 to 1")
    return float(share)


def _chance(prompt: Prompt, what: str) -> float:
    """A number from 0 to 1 that hangs on what is asked: the same mistake whenever it is asked."""
    told = (what, prompt["known"]["task"], *prompt["pictures"])
    return int.from_bytes(hashlib.sha256("\x1f".join(told).encode("utf-8", "replace")).digest()[:6], "big") / 2**48
