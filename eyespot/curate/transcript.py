"""What became of a record in a run, from its seed to the end: what was asked about it, what came, what was decided."""

from __future__ import annotations

import tomllib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from eyespot.html import render
from eyespot.llms.settings import unpriced
from eyespot.pipelines.data_card import wilson
from eyespot.pipelines.data_card.markdown import table
from eyespot.pipelines.outcomes import Drop, Failed, Keep, Record
from eyespot.pipelines.step_folder import MANIFEST, cached_result, drops
from eyespot.pipelines.work_db import FILE, StepKey, WorkDB
from eyespot.search.contact_sheet import thumbnail_of
from eyespot.types import NothingFound, UsageError

MOST = 6  # calls of a step that are printed; a page and JSON have all
OUTCOMES = {Keep: "kept", Drop: "dropped", Failed: "failed"}
Part: TypeAlias = Mapping[str, Any]
"""Of one step, as JSON: its name in `step`; `calls` of models with record, model, judge, words, pictures, answer (None:
none that could be used), replies word for word, and in `new` the lines that no call before has; `decisions` with
record, outcome, reason and the fields that the step gave the record."""


def transcript(run: Path, record: str) -> list[Part]:
    """A record's way through the finished steps of a run, with what it was made from and what was made from it.

    `NothingFound` where no step has the record.
    """
    family, images, known, parts = {record}, set[str](), dict[str, Record](), list[Part]()
    with WorkDB(_work(run)) as memory:
        for key, folder in _steps(run):
            decisions = []
            for one in _outcomes(folder):
                id, fields = str(one.record.get("id")), one.record
                made = id == record or id.startswith(f"{record}/") or one.of in family or fields.get("of") in images
                if made or record.startswith(f"{id}/"):
                    origin = max((it for it in known if f"{id}/".startswith(f"{it}/")), key=len, default="")
                    new = {name: it for name, it in fields.items() if it and known.get(origin, {}).get(name) != it}
                    why = "" if isinstance(one, Keep) else ": ".join(filter(None, (one.reason, one.detail)))
                    decisions.append({"record": id, "outcome": OUTCOMES[type(one)], "reason": why, "fields": new})
                    known[id] = fields
                    family |= {id} if made else set()
                    images |= {str(fields["image"])} if made and "image" in fields else set()
            calls = list(_calls(memory, [it for it in memory.prompts(key) if it[0] in known]))
            parts += [{"step": key.name, "calls": calls, "decisions": decisions}] if calls or decisions else []
    if not parts:
        raise NothingFound(f"no step of {run} has a record {record!r}; leave it out for the first of the last step")
    return parts


def first_record(run: Path) -> str:
    """The id of what the last step kept first, or dropped first where it kept nothing."""
    found = (str(one.record["id"]) for _, folder in reversed(_steps(run)) for one in _outcomes(folder))
    if (first := next(found, None)) is None:
        raise NothingFound(f"{run} has no finished step with a record; run eyespot build first")
    return first


def first_prompted(run: Path) -> list[str]:
    """The ids of the records about which models were asked in the first step that asks."""
    with WorkDB(_work(run)) as memory:
        prompted = ([id for id, *_ in memory.prompts(key)] for key, _ in _steps(run))
        return list(dict.fromkeys(next(filter(None, prompted), [])))


def as_lines(parts: Sequence[Part]) -> Iterator[str]:
    """A transcript for a terminal; of many calls of a step the first."""
    for part in parts:
        yield f"== {part['step']}"
        for call in part["calls"][:MOST]:
            yield f"{call['record']}  {call['model']} {call['judge']}".rstrip()
            yield from (f"  > {line}" for line in call["new"].splitlines())
            for reply in call["replies"] or [{"text": call["answer"]}]:
                counts = f"({reply['tokens_in']} tokens in, {reply['tokens_out']} out)" if "tokens_in" in reply else ""
                yield "  ".join(filter(None, ("  <", str(reply["text"]), counts)))
        yield from [f"… and {len(part['calls']) - MOST} more calls"] * (len(part["calls"]) > MOST)
        for made in part["decisions"]:
            fields = "; ".join(f"{name}: {value}" for name, value in made["fields"].items() if name != "id")
            yield "  ".join(filter(None, (made["record"], made["outcome"], made["reason"], fields)))


def as_page(title: str, records: Mapping[str, Sequence[Part]]) -> str:
    """Transcripts as a page, with the pictures that were sent."""
    every = [part for parts in records.values() for part in parts]
    places = {}
    for fields in (made["fields"] for part in every for made in part["decisions"]):
        for id, path in (("id", "path"), ("image", "path"), ("candidate", "candidate_path")):
            if id in fields and path in fields:
                places[fields[id]] = str(fields[path])
    sent = chain.from_iterable(call["pictures"] for part in every for call in part["calls"])
    jpegs = {id: thumbnail_of(places[id]) for id in dict.fromkeys(sent) if id in places}
    pictures = {id: b64encode(jpeg).decode() for id, jpeg in jpegs.items() if jpeg}  # each stands in the page once
    return render("transcript.html", title=title, records=records, pictures=pictures, footer="")


# -- two runs -----------------------------------------------------------------------------------------------------


def compared(runs: Sequence[Path]) -> dict[str, Part]:
    """Runs of the same photos in numbers, by their folders: what stays after each step, controls, cost.

    `accepted` are controls to which all judges say true, though none can answer; `money` is None where a price is
    unknown, and counts all that the folder ever spent. `UsageError` where the photos are not the same.
    """
    found, photos = dict[str, Part](), [sorted(first_prompted(run)) for run in runs]
    if any(one != photos[0] for one in photos) or (len(runs) > 1 and not photos[0]):
        raise UsageError("the runs are not of the same photos; use one gallery, one seed and one --limit for both")
    for run in runs:
        outcomes = {key.name: list(_outcomes(folder)) for key, folder in _steps(run)}
        steps = {name: sum(isinstance(one, Keep) for one in of) for name, of in outcomes.items()}
        dropped = [one.record for of in outcomes.values() for one in of if isinstance(one, Drop)]
        votes = [{vote["verdict"] for vote in one["votes"]} for one in dropped if "control" in one]
        counts = {"controls": len(votes), "accepted": votes.count({"true"})}
        models = [tomllib.loads((folder / MANIFEST).read_text("utf-8")).get("models", {}) for _, folder in _steps(run)]
        with WorkDB(_work(run)) as memory:
            spent = memory.cost().spent
        cost = {**spent._asdict(), "money": None if spent.tokens and any(map(unpriced, models)) else spent.money}
        found[str(run)] = {"photos": len(photos[0]), "kept": steps, **counts, "spent": cost}
    return found


def beside(runs: Mapping[str, Part]) -> list[str]:
    """Runs in numbers for a terminal, a column each; an interval is Wilson's, 95%."""
    every = runs.values()
    rows = [["photos", *(one["photos"] for one in every)]]
    for step in next(iter(every))["kept"]:
        pairs = [(one["kept"].get(step, 0), one["photos"]) for one in every]
        rows.append([step, *(f"{count:,} ({count / photos:.2f} a photo)" for count, photos in pairs)])
    text = "{} of {} ({:.0%} to {:.0%})"
    found = [(one["accepted"], one["controls"]) for one in every]
    shares = [text.format(*each, *wilson(*each)) if each[1] else "none" for each in found]
    rows.append(["controls accepted", *shares])
    spent = [one["spent"] for one in every]
    money = ["unknown" if one["money"] is None else f"${one['money']:.4f}" for one in spent]
    rows += [["calls", *(one["calls"] for one in spent)], ["cost", *money]]
    return table(["", *runs], rows).splitlines()


# -- reading ------------------------------------------------------------------------------------------------------


def _work(run: Path) -> Path:
    place = next((place for place in (run / "work", run) if (place / FILE).is_file()), None)
    if place is None:
        raise UsageError(f"{run} is not a run of a pipeline; name the folder that eyespot build wrote")
    return place


def _steps(run: Path) -> list[tuple[StepKey, Path]]:
    """Each finished step with its folder, in their order."""
    places = sorted((_work(run) / "steps").glob(f"[0-9]*-*/{MANIFEST}"))
    heads = [tomllib.loads(place.read_text(encoding="utf-8")) for place in places]
    return [(StepKey(head["step"], head.get("work", "")), at.parent) for head, at in zip(heads, places, strict=True)]


def _outcomes(folder: Path) -> Iterator[Keep | Drop | Failed]:
    done = cached_result(folder)
    return chain(map(Keep, done.records if done else ()), drops(folder))


def _calls(memory: WorkDB, prompts: Sequence[tuple[str, str, Part, Part | None]]) -> Iterator[Part]:
    before: set[str] = set()
    for record, prompt, sent, answer in prompts:
        exchanges, replies = memory.exchanges(prompt), []
        body = exchanges[0].body if exchanges else {}
        content = [part for one in body.get("messages", ()) for part in one["content"] if isinstance(part, Mapping)]
        words = str(sent.get("words") or "\n".join(part["text"] for part in content if "text" in part))
        for one in exchanges:
            usage = {} if one.reply is None else {**one.reply.usage.as_json(), "model": one.reply.model}
            replies.append({"text": one.reply.text if one.reply else one.trouble, **usage})
        new = "\n".join(line for line in words.splitlines() if line not in before)
        before.update(words.splitlines())
        who = {"model": sent.get("use") or body.get("model", ""), "judge": sent.get("judge", "")}
        came = {"answer": answer, "replies": replies}
        yield {"record": record, **who, "words": words, "new": new, "pictures": sent.get("pictures", ()), **came}
