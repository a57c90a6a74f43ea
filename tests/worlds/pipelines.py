"""A made-up pipeline: numbers, of which some go, a model asked about the rest, and of what is alike the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eyespot.pipelines import (
    Added,
    BatchStep,
    CallMeter,
    Context,
    Drop,
    Keep,
    MapStep,
    NoAnswer,
    Outcome,
    Record,
    Records,
    Spent,
    Step,
)

PRICE = 0.25  # dollars a call


def source(count: int) -> Step:
    """Records `n0`, `n1`, … that hold their number."""

    def numbers(_records: Records, _context: Context) -> Iterator[Outcome]:
        return (Added({"id": f"n{at}", "number": at, "share": at / 3}) for at in range(count))

    return Step("numbers", BatchStep(numbers), settings={"count": count}, about="Counts.")


def odd_ones_go(version: int = 1) -> Step:
    def even(record: Record, _context: Context) -> Outcome:
        return Drop(record, "odd") if record["number"] % 2 else Keep(record)

    return Step("even", MapStep(even), version)


def ask_step(workers: int = 4, question: str = "How is {number}?") -> Step:
    """Two records of each that has an answer: what is `good` is kept, what is `bad` dropped with the model's words."""

    def words(record: Record, context: Context) -> Iterator[Outcome]:
        answer = context.ask({"model": "m", "words": question.format(number=record["number"]), "_path": "anywhere"})
        for part in ("a", "b"):
            made = {**record, "id": f"{record['id']}/{part}", "said": answer[part]}
            yield Keep(made) if answer[part] != "bad" else Drop(made, "bad", detail=answer["why"])

    prompts = {"question": question}
    return Step(
        "asked", MapStep(words, workers), prompts=prompts, models={"m": {"use": "m"}}, expects=Spent(1, 0, 0, PRICE)
    )


def no_two_alike() -> Step:
    """Of records with one answer the first is kept."""

    def first(records: Records, context: Context) -> Iterator[Outcome]:
        seen: set[str] = set()
        for record in records:
            alike, drawn = record["said"] in seen, context.rng(record["id"]).random()
            seen.add(record["said"])
            yield Drop(record, "alike") if alike else Keep({**record, "drawn": drawn})

    return Step("alike", BatchStep(first))


def client(log: Path | None = None) -> Callable[[Any, CallMeter], dict[str, Any]]:
    """Answers at once, always the same, and writes down each request; 8 has no answer."""

    def answer(prompt: Any, till: CallMeter) -> dict[str, Any]:
        till.take()
        if log is not None:
            with log.open("a") as file:
                file.write(prompt["words"] + "\n")
        till.pay(10, 2, PRICE)
        number = int("".join(filter(str.isdigit, prompt["words"])))
        if number == 8:
            raise NoAnswer("the model says nothing")
        return {
            "a": f"good {number % 20}",
            "b": "bad" if number % 3 else "fine",
            "why": f"{number} is no multiple of 3",
        }

    return answer


def pipeline(count: int = 12) -> list[Step]:
    return [source(count), odd_ones_go(), ask_step(), no_two_alike()]


def files(work: Path) -> dict[str, bytes]:
    return {str(path.relative_to(work)): path.read_bytes() for path in sorted((work / "steps").rglob("*.*"))}
