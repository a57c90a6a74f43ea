"""The step runner: what is finished stays, what changed is done again, and every record is accounted for."""

from __future__ import annotations

import hashlib
import json
import threading
import tomllib
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, strategies as st

from eyespot.pipelines import (
    Added,
    BatchStep,
    BudgetSpent,
    Context,
    CostLimits,
    Drop,
    Failed,
    Keep,
    MapStep,
    Outcome,
    Record,
    Records,
    RunOptions,
    Spent,
    SqlStep,
    Step,
    Unaccounted,
    drops,
    plan,
    run,
)
from eyespot.pipelines.outcomes import line_of, packed, unpacked
from eyespot.pipelines.work_db import WorkDB
from eyespot.types import EyespotError, UsageError
from tests.wording import raises
from tests.worlds.pipelines import PRICE, ask_step, client, files, no_two_alike, odd_ones_go, pipeline, source


def ids(done: Any) -> list[str]:
    return [record["id"] for record in done.records]


def ran(done: list[Any]) -> list[str]:
    return [one.step.name for one in done if one.ran]


def test_a_pipeline_by_hand(tmp_path: Path) -> None:
    """Of 0 to 11 the odd go; 8 has no answer; of the others half `b` is fine where 3 divides, `fine` only once."""
    numbers, even, answers, alike = run(pipeline(), tmp_path, RunOptions(client=client()))

    assert numbers.counts == (0, 12, 12, {}, 0)
    assert even.counts == (12, 0, 6, {"odd": 6}, 0)
    assert answers.counts == (6, 5, 7, {"bad": 3, "no answer": 1}, 1)
    assert alike.counts == (7, 0, 6, {"alike": 1}, 0)
    assert ids(alike) == ["n0/a", "n0/b", "n2/a", "n4/a", "n6/a", "n10/a"]
    assert answers.cost.spent == Spent(6, 60, 12, 6 * PRICE)


def test_what_is_dropped_is_kept_with_its_reason(tmp_path: Path) -> None:
    result = run(pipeline(), tmp_path, RunOptions(client=client()))[2]

    dropped = list(drops(result.folder))

    assert [(type(one).__name__, one.record["id"], one.reason, one.detail, one.of) for one in dropped] == [
        ("Drop", "n2/b", "bad", "2 is no multiple of 3", "n2"),
        ("Drop", "n4/b", "bad", "4 is no multiple of 3", "n4"),
        ("Failed", "n8", "no answer", "the model says nothing", "n8"),
        ("Drop", "n10/b", "bad", "10 is no multiple of 3", "n10"),
    ]


def test_records_are_worked_on_at_once_and_stay_in_order(tmp_path: Path) -> None:
    """The first record is done only when another has been: alone it would wait for ever."""
    other = threading.Event()

    def work(record: Record, _context: Context) -> Outcome:
        other.wait(20) if record["number"] == 0 else other.set()
        return Keep(record)

    done = run([source(5), Step("slow", MapStep(work, workers=2))], tmp_path)

    assert other.is_set() and ids(done[-1]) == ["n0", "n1", "n2", "n3", "n4"]


texts = st.text(st.characters(codec="utf-8"), max_size=5)
values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), texts
)


@given(
    st.lists(st.builds(Keep, st.dictionaries(texts, values, max_size=3)) | st.builds(Drop, st.just({}), texts, texts)),
    st.binary(min_size=1) | st.just(bytes(100_000)),
)
def test_outcomes_survive_the_disk(outcomes: list[Outcome], line: bytes) -> None:
    assert unpacked(packed(outcomes, line), line) == outcomes


def test_an_outcome_takes_as_much_as_differs_from_its_record() -> None:
    """Those of earlier versions, deflated alone or text, are read as well."""
    record = {"id": "n", "captions": [hashlib.sha256(bytes([n])).hexdigest() for n in range(40)]}
    line, outcomes = line_of(record), [Keep({**record, "fits": True})]
    earlier = line_of([["Kept", outcomes[0].record]])

    assert len(packed(outcomes, line)) < 100 and len(line) > 2000
    assert unpacked(zlib.compress(earlier, 1), line) == unpacked(earlier.decode(), line) == outcomes


def test_a_file_name_that_is_no_utf8_survives(tmp_path: Path) -> None:
    name = b"caf\xe9.jpg".decode("utf-8", "surrogateescape")

    done = run(
        [Step("photos", BatchStep(lambda _r, _c: [Added({"id": name})])), Step("look", MapStep(lambda r, _c: Keep(r)))],
        tmp_path,
    )

    assert ids(done[-1]) == [name]


def table_step(kept: str, dropped: str) -> Step:
    """A step that leaves these files, whatever came."""

    def leave(_records: Records, folder: Path, _context: Context) -> int:
        (folder / "kept.jsonl").write_text(kept)
        (folder / "dropped.jsonl").write_text(dropped)
        return 0

    return Step("table", SqlStep(leave))


def test_a_step_of_tables(tmp_path: Path) -> None:
    """DuckDB takes the file of the step before, and the next step reads rows of what it left; none need be dropped."""

    def halved(records: Records, folder: Path, _context: Context) -> int:
        rows = f"SELECT id, number, DATE '2024-02-29' AS day FROM read_ndjson_auto('{records.path}')"
        for name, where in (("kept", "number < 6"), ("dropped", "number >= 6")):
            reason = ", 'high' AS reason" if name == "dropped" else ""
            query = f"SELECT *{reason} FROM ({rows}) WHERE {where} ORDER BY number"
            duckdb.connect().sql(query).write_parquet(str(folder / f"{name}.parquet"))
        return 0

    steps = [source(10), Step("halved", SqlStep(halved)), Step("kept", MapStep(lambda record, _context: Keep(record)))]
    _, tables, last = run(steps, tmp_path)
    whole = run([source(1), table_step('{"id": "n0"}', "")], tmp_path / "whole")[-1]

    assert tables.counts == (10, 0, 6, {"high": 4}, 0)
    assert next(iter(last.records)) == {"id": "n0", "number": 0, "day": "2024-02-29"}
    assert [one.record["id"] for one in drops(tables.folder)] == ["n6", "n7", "n8", "n9"]
    assert whole.counts == (1, 0, 1, {}, 0) and list(drops(whole.folder)) == []


def pool() -> Step:
    """What is left, and behind it all else that the source gave."""

    def beside(records: Records, context: Context) -> Iterator[Outcome]:
        left = list(records)
        yield from (Keep(record) for record in left)
        taken = {record["id"] for record in left}
        yield from (Added(record) for record in context.earlier["numbers"] if record["id"] not in taken)

    return Step("pool", BatchStep(beside), needs=("numbers",))


def test_a_step_reads_what_an_earlier_one_kept_and_hangs_on_it(tmp_path: Path) -> None:
    """The even numbers stay the same, but the source gives another odd one."""
    first = run([source(5), odd_ones_go(), pool()], tmp_path)[-1]
    assert ids(first) == ["n0", "n2", "n4", "n1", "n3"] and first.counts == (3, 2, 5, {}, 0)

    again = run([source(6), odd_ones_go(), pool()], tmp_path)

    assert ran(again) == ["numbers", "even", "pool"] and ids(again[-1])[-1] == "n5"
    assert [one.finished for one in plan([source(6), odd_ones_go(), pool()], tmp_path)] == [True, True, True]
    assert [one.finished for one in plan([source(7), odd_ones_go(), pool()], tmp_path)] == [False, False, False]


def test_single_records_hang_on_what_their_step_needs(tmp_path: Path) -> None:
    def counted(record: Record, context: Context) -> Outcome:
        return Keep({**record, "of": len(context.earlier["numbers"])})

    steps = [odd_ones_go(), Step("count", MapStep(counted), needs=("numbers",))]
    run([source(3), *steps], tmp_path)

    again = run([source(4), *steps], tmp_path)

    assert [record["of"] for record in again[-1].records] == [4, 4]


def test_a_changed_step_and_those_behind_it_run_again_and_no_answer_is_paid_twice(tmp_path: Path) -> None:
    log = tmp_path / "log"
    how = RunOptions(client=client(log))
    trial = run(pipeline(), tmp_path / "work", replace(how, limit=3))
    run(pipeline(), tmp_path / "work", how)

    # 12 and 14 come to it; what was asked about the others is known, but for 8, which had no answer
    again = run([source(16), *pipeline()[1:]], tmp_path / "work", how)
    reworded = run([source(16), odd_ones_go(), ask_step(question="What of {number}?")], tmp_path / "work", how)

    assert [one.counts.kept for one in trial] == [3, 2, 3, 3]
    assert ran(again) == ["numbers", "even", "asked", "alike"] and ran(reworded) == ["asked"]
    lines = log.read_text().splitlines()
    assert sorted(lines[6:8]) == ["How is 12?", "How is 14?"] and [line[:7] for line in lines[8:]] == ["What of"] * 8
    with WorkDB(tmp_path / "work") as memory, memory.reading() as sql:  # of the first wording, what had no answer
        assert [
            *sql.execute(
                "SELECT failed, count(*) FROM outcomes WHERE step IN (SELECT step FROM costs WHERE "
                "name = 'asked') GROUP BY step, failed ORDER BY 2"
            )
        ] == [(1, 1), (1, 1), (0, 7)]
    run([source(16), *pipeline()[1:]], tmp_path / "work", how)
    assert log.read_text().splitlines() == lines


@pytest.mark.parametrize(
    "change",
    [{"settings": {"a": 1}}, {"prompts": {"p": "x"}}, {"models": {"m": 1}}, {"inputs": {"i": "0"}}, {"version": 2}],
)
def test_all_that_results_hang_on_is_in_the_digest(change: dict[str, Any]) -> None:
    step = odd_ones_go()
    assert replace(step, **change).digest() != step.digest()
    assert replace(step, about="told").digest() == step.digest() != step.digest(seed=1)


def test_a_step_that_moves_takes_its_folder_along(tmp_path: Path) -> None:
    run([source(4), odd_ones_go()], tmp_path)
    before = Step("all", MapStep(lambda record, _context: Keep(record)))
    again = run([source(4), before, odd_ones_go()], tmp_path)
    assert ran(again) == ["all"]  # it keeps every record as it is
    assert sorted(path.name for path in (tmp_path / "steps").iterdir()) == ["01-numbers", "02-all", "03-even"]


def test_failures_are_tried_again_when_asked_for(tmp_path: Path) -> None:
    run(pipeline(), tmp_path, RunOptions(client=client()))

    def mended(_prompt: Any, _till: Any) -> dict[str, Any]:
        return {"a": "new", "b": "newer", "why": ""}

    again = run(pipeline(), tmp_path, RunOptions(client=mended, retry_failed=True))

    assert again[2].counts == (6, 6, 9, {"bad": 3}, 0)


@pytest.mark.parametrize("limits", [CostLimits(calls=3), CostLimits(tokens=36), CostLimits(money=3 * PRICE)])
def test_a_spent_budget_stops_and_more_money_goes_on(tmp_path: Path, limits: CostLimits) -> None:
    log, steps = tmp_path / "log", [source(12), odd_ones_go(), ask_step(workers=1), no_two_alike()]
    with raises(BudgetSpent) as stopped:
        run(steps, tmp_path / "work", RunOptions(limits=limits, client=client(log)))
    assert stopped.value.exit_code == 3 and log.read_text().count("\n") == 3

    done = run(steps, tmp_path / "work", RunOptions(limits=CostLimits(calls=6), client=client(log)))

    assert log.read_text().count("\n") == 6
    assert done[2].cost.spent == Spent(6, 60, 12, 6 * PRICE)
    calm = run(steps, tmp_path / "calm", RunOptions(client=client()))
    assert files(tmp_path / "work") == files(tmp_path / "calm") and len(calm) == 4


def test_a_dry_run_says_what_it_would_cost_at_most(tmp_path: Path) -> None:
    steps = [source(12), odd_ones_go(), ask_step(workers=1), no_two_alike()]
    nothing = plan(steps, tmp_path / "work", RunOptions(limit=100))
    assert nothing[2].spent.calls == 100 and not (tmp_path / "work").exists()
    with pytest.raises(BudgetSpent):
        run(steps[:3], tmp_path / "work", RunOptions(limits=CostLimits(calls=2), client=client()))

    planned = plan(steps, tmp_path / "work")

    assert [(one.name, one.finished, one.records, one.known) for one in planned] == [
        ("numbers", True, 12, 0),
        ("even", True, 6, 12),
        ("asked", False, 6, 2),
        ("alike", False, 6, 0),
    ]
    assert planned[2].spent == Spent(4, 0, 0, 4 * PRICE)


def whole(*outcomes: Outcome) -> Step:
    return Step("bad", BatchStep(lambda _records, _context: iter(outcomes)))


def each(outcome: Callable[[Record], Any]) -> Step:
    return Step("bad", MapStep(lambda record, _context: outcome(record)))


BAD = {
    "nothing of all": whole(),
    "of none that came": whole(Keep({"id": "z"})),
    "an id twice": whole(Keep({"id": "n0"}), Keep({"id": "n0"}), Keep({"id": "n1"})),
    "no id": each(lambda record: Keep({"id": 7})),
    "nothing of one": each(lambda record: []),
    "no number": each(lambda record: Keep({**record, "x": float("nan")})),
    "no JSON": each(lambda record: Keep({**record, "odd": object()})),
    "a row less": table_step('{"id": "n0"}', ""),
    "no reason": table_step('{"id": "n0"}', '{"id": "n1", "why": "high"}'),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_step_that_loses_count_fails_loudly_and_leaves_nothing(tmp_path: Path, bad: str) -> None:
    with pytest.raises(EyespotError) as refused:
        run([source(2), BAD[bad]], tmp_path)
    assert isinstance(refused.value, Unaccounted) == (bad not in ("no number", "no JSON", "no reason"))
    assert [path.name for path in (tmp_path / "steps").iterdir()] == ["01-numbers"]


@pytest.mark.parametrize(
    "steps", [[], [odd_ones_go()], [source(1), source(1)], [source(1), Step("x", MapStep(Keep), needs=("y",))]]
)
def test_a_pipeline_that_cannot_run_is_refused(tmp_path: Path, steps: list[Step]) -> None:
    with raises(UsageError):
        run(steps, tmp_path)


def test_neither_does_one_run_without_a_model_nor_without_a_record(tmp_path: Path) -> None:
    with raises(EyespotError):
        run(pipeline(), tmp_path)
    with raises(UsageError):
        RunOptions(limit=0)


def test_a_file_that_was_cut_fails_loudly(tmp_path: Path) -> None:
    run([source(3)], tmp_path)
    path = tmp_path / "steps" / "01-numbers" / "kept.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    with raises(Unaccounted):
        run([source(3), odd_ones_go()], tmp_path)


def test_a_bug_in_a_step_loses_nothing_that_was_done(tmp_path: Path) -> None:
    """An error ends the run; the records before it are not worked on again."""
    worked: list[str] = []

    def work(record: Record, _context: Context) -> Iterator[Outcome]:
        if record["number"] == 3 and len(worked) < 4:
            worked.append("!")
            raise ZeroDivisionError
        worked.append(record["id"])
        yield Failed(record, "odd") if record["number"] % 2 else Keep(record)

    steps = [source(5), Step("fragile", MapStep(work))]
    with pytest.raises(ZeroDivisionError):
        run(steps, tmp_path)

    done = run(steps, tmp_path)

    assert worked == ["n0", "n1", "n2", "!", "n3", "n4"] and done[-1].counts == (5, 0, 3, {"odd": 2}, 2)


def test_the_note_of_a_step_tells_all_its_results_hang_on(tmp_path: Path) -> None:
    odd = {"text": 'a "b"\n\x7f😀', "list": [1, 2.5, None, {"x y": True}], "none": None, "deep": {"a": {"b": []}}}
    run([replace(source(2), settings=odd, prompts={"ask": "one\ntwo"})], tmp_path)

    note = tomllib.loads((tmp_path / "steps" / "01-numbers" / "step.toml").read_text(encoding="utf-8"))

    assert note["settings"] == {"text": odd["text"], "list": [1, 2.5, {"x y": True}], "deep": {"a": {"b": []}}}
    assert note["prompts"] == {"ask": "one\ntwo"} and note["counts"]["kept"] == 2
    assert json.loads((tmp_path / "steps" / "01-numbers" / "kept.jsonl").read_text().splitlines()[1])["id"] == "n1"


def test_the_note_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Its lists and tables stood on one line."""
    steps = [replace(source(2), settings={"deep": {"a": [1, 2]}})]
    run(steps, tmp_path)
    place = tmp_path / "steps" / "01-numbers" / "step.toml"
    note = tomllib.loads(place.read_text(encoding="utf-8"))
    head = f'step = "numbers"\nversion = 1\nabout = ""\ndigest = "{note["digest"]}"\n\n'
    counts = f'[counts]\nfile = "kept.jsonl"\nsha256 = "{note["counts"]["sha256"]}"\ncame = 0\nadded = 2\nkept = 2\n'
    place.write_text(f"{head}{counts}failed = 0\n\n[settings]\ndeep = {{a = [1, 2]}}\n", encoding="utf-8")

    (done,) = run(steps, tmp_path)

    assert (done.ran, done.counts) == (False, (0, 2, 2, {}, 0))


def test_a_step_that_runs_every_time_leaves_the_others_alone(tmp_path: Path) -> None:
    steps = [source(2), Step("look", BatchStep(lambda records, _: (Keep(one) for one in records)), always=True)]
    run(steps, tmp_path)
    assert [one.ran for one in run(steps, tmp_path)] == [False, True]
    assert [one.finished for one in plan(steps, tmp_path)] == [True, False]


@pytest.mark.parametrize(("numbers", "fits"), [("(1), (2)", True), ("(1), (1)", False), ("(1), (NULL)", False)])
def test_rows_of_a_table_may_be_told_apart_by_a_number(tmp_path: Path, numbers: str, fits: bool) -> None:
    def work(_records: Records, folder: Path, _context: Context) -> int:
        duckdb.execute(f"COPY (SELECT * FROM (VALUES {numbers}) t(row)) TO '{folder}/kept.parquet'")
        duckdb.execute(f"COPY (SELECT 0 AS row, '' AS reason LIMIT 0) TO '{folder}/dropped.parquet'")
        return 2

    with nullcontext() if fits else raises(Unaccounted):
        assert run([Step("read", SqlStep(work, key="row"))], tmp_path)[0].counts.kept == 2


@pytest.mark.parametrize(
    ("models", "money"),
    [
        ([{"use": "openai:gpt-4.1"}], 1.5),
        ([{"use": "openai:gpt-4.1"}, {"use": "openai:nobody-knows"}], None),
        ([{"use": "openai:llava", "url": "http://127.0.0.1:11434/v1"}], None),
        ([{"use": "demonstration:teacher"}], 1.5),
    ],
)
def test_a_cost_of_models_of_which_one_has_no_price_is_not_known(models: list[Any], money: float | None) -> None:
    step = Step(
        "asked", MapStep(lambda record, _: Keep(record)), models={str(at): one for at, one in enumerate(models)}
    )
    assert step.cost(Spent(2, 10, 10, 1.5))["money"] == money
