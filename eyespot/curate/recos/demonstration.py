"""A writer for demonstrations: it makes captions by rules from known labels, and sees no picture.

It takes the place of a vision–language model, so that the whole pipeline runs on real photos without one. Its output is
not a useful test set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eyespot.curate.recos.confusing import changed
from eyespot.curate.recos.subtasks import CAPTIONS, TABLE
from eyespot.pipelines import CallMeter, Prompt
from eyespot.storage.text_files import toml_of

PHRASES: Mapping[str, Mapping[str, str]] = toml_of(Path(__file__).with_suffix(".toml"))  # by attribute and title
_TEMPLATES, _QUOTING = CAPTIONS["titled"]["usual"], CAPTIONS["quoting"]["usual"]
_DEPENDS_ON = {row["attributes"][0] for row in TABLE.values()}  # what captions of our sub-tasks must say
_ENDINGS = (", as the photo shows", ", in the middle of the picture", ", against its background")  # true of any picture


def writer(prompt: Prompt, _meter: CallMeter) -> Mapping[str, Any]:
    """A client for models whose `use` is `demonstration`; it spends nothing."""
    return {"caption": _captions, "rewrite": _rewritten, "confuse": _swaps}[prompt["known"]["task"]](prompt["known"])


def _captions(known: Mapping[str, Any]) -> Mapping[str, Any]:
    texts, (names, title) = _captions_by_people(known["facts"]), _title(known["facts"])
    if lines := known["writing"].splitlines():
        texts = [template.format(line=max(lines, key=len).replace('"', "")) for template in _QUOTING]
    first = known["attributes"][0]
    if not texts and title and (first in names or first not in _DEPENDS_ON):
        texts = [_sentence(template.format(title=title)) for template in _TEMPLATES]
    return {"captions": texts, "unsuitable": "" if texts else "no label says of it what the sub-task depends on"}


def _rewritten(known: Mapping[str, Any]) -> Mapping[str, str]:
    """With a clause more that is true of any picture, or without its last clause."""
    text = str(known["caption"])
    if known["wish"] == "less":
        cuts = list(re.finditer(r",| (?=(?:in|on|with|at|by|near|while|through|over|from|of|that) )", text))
        return {"caption": _sentence(text[: cuts[-1].start()]) if cuts and cuts[-1].start() > 12 else ""}
    bare = text.rstrip(" .")
    ending = next((clause for clause in _ENDINGS if clause not in bare), "")
    return {"caption": _sentence(bare + ending) if ending and len(bare) < 160 else ""}


def _swaps(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Captions with the title or the quoted text of the new picture; else what people said of the new picture."""
    captions = dict(known["captions"])
    swaps = []
    for number, text in captions.items():
        for attributes, before, after in _changes(text, known):
            for attribute in [name for name in known["attributes"] if name in attributes][:1]:
                pattern = re.compile(rf"(?<!\w){re.escape(before)}(?!\w)", re.IGNORECASE)
                swapped = pattern.sub(after.replace("\\", r"\\"), text, count=1)
                swaps.append({"number": number, "text": _sentence(swapped), "attribute": attribute})
    swaps = swaps or list(_nearest(captions, known))
    return {"captions": swaps, "unsuitable": "" if swaps else "no caption of the first is nearly true of the other"}


def _changes(text: str, known: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Attributes, a text in the caption, and that of the new picture."""
    (names, before), (others, after) = _title(known["before"]), _title(known["facts"])
    differ = names == others and before and after and before.casefold() != after.casefold()
    if differ and before.casefold() in text.casefold():
        yield names, before, after
    quoted, lines = re.search('"(.+)"', text), known["writing"].replace('"', "").splitlines()
    if quoted and lines and quoted[1] not in lines:
        yield ("words",), quoted[1], max(lines, key=len)


def _nearest(captions: Mapping[int, str], known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The new picture's captions by people that differ from the first picture's in the fewest words."""
    others = _captions_by_people(known["facts"])
    pairs = sorted((changed(text, other), number, other) for number, text in captions.items() for other in others)
    used: set[int | str] = set()
    for edits, number, other in pairs:
        if edits and used.isdisjoint((number, other)):
            used.update((number, other))
            yield {"number": number, "text": other, "attribute": known["attributes"][0]}


def _captions_by_people(facts: Mapping[str, Any]) -> list[str]:
    """Captions of the picture that are among its labels."""
    return [_sentence(str(facts[name])) for name in sorted(facts) if re.fullmatch(r"caption_\d+", name)]


def _title(facts: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """What the picture shows, and the attributes that another text in its place changes.

    That is the phrase for the title; else the title without numbers, brackets and what follows a comma or a dash.
    """
    title = str(facts.get("title", "")).strip()
    for attribute, phrases in PHRASES.items():
        if title in phrases:
            return (attribute,), phrases[title]
    bare = re.sub(r"\(.*?\)|[\d-]*\d[\d-]*|_", " ", re.split(r" - |, ", title)[0])
    return ("name",), " ".join(bare.strip(" -.,").split())


def _sentence(text: str) -> str:
    plain = " ".join(text.split()).rstrip(" .")
    return re.sub(r"\s+([,;])", r"\1", f"{plain[:1].upper()}{plain[1:]}.")
