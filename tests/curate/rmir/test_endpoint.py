"""RMIR against a local server of OpenAI's protocol, with a model that abstains, contradicts itself and breaks form."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.rmir import panel, questions
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.curate.rmir.questions import DOMAINS, EVERYDAY
from eyespot.pipelines import drops, read_recipe
from eyespot.pipelines.work_db import WorkDB
from eyespot.types import Tokens, UsageError
from tests.command import run_eyespot
from tests.wording import raises
from tests.worlds.batches import BatchServer, run_until_killed
from tests.worlds.rmir import Rates, Scripted, behind, files, ran, recipe
from tests.worlds.servers import Double, Response, Seen

pytestmark = pytest.mark.long  # whole pipelines

BAD = Rates(abstains=0.1, contradicts=0.15, breaks=0.06, refuses=0.06, doubts=0.05)


def reasons(found: FinishedSteps, step: str) -> Counter[str]:
    return Counter(one.reason for one in drops(found.of(step).folder))


@pytest.fixture(scope="module")
def misbehaved(tmp_path_factory: pytest.TempPathFactory, gallery: Path) -> tuple[FinishedSteps, Scripted, Double]:
    """A set made with such a model, what it did, and the server."""
    out, model = tmp_path_factory.mktemp("misbehaved"), Scripted(BAD)
    with Double(then=model) as server:
        found = ran(recipe(out, gallery, behind(server.url), inputs="count = 7"), out)
    return found, model, server


def test_questions_without_a_good_answer_are_counted(misbehaved: tuple[FinishedSteps, Scripted, Double]) -> None:
    found, model, _ = misbehaved
    asked, checked = model.counts("Questions"), model.counts("Checked")
    lost, failing = reasons(found, "questions"), reasons(found, "checked")

    assert found.of("questions").counts.failed == asked["broken"] and lost[questions.DECLINED] == asked["refused"]
    left_out = sum(int(what.split()[-1]) * count for what, count in asked.items() if what.startswith("left out"))
    assert sum(count for reason, count in lost.items() if reason.startswith("no fitting question")) == left_out
    assert failing[questions.AT_ODDS] == checked["at odds"] > 0
    assert failing[questions.DECLINED] == checked["refused"]
    assert found.of("checked").counts.failed == checked["broken"]
    assert not any(failing[questions.FAILS.format(constraint=name)] for name in EVERYDAY["checked"]["rules"])


def test_a_vote_without_form_is_never_guessed(misbehaved: tuple[FinishedSteps, Scripted, Double]) -> None:
    found, model, _ = misbehaved
    judged = [*found.triplets, *found.controls]
    votes = Counter((vote["judge"], vote["verdict"]) for one in judged for vote in one["votes"])
    silent = list(drops(found.of("judged").folder))
    broken = {name: model.counts("Vote", name)["broken"] for name in ("first", "second")}

    for seat, name in (("first", "first"), ("second/1", "second"), ("second/2", "second")):
        did = model.counts("Vote", name)
        assert votes[seat, "true"] == did["true"] and votes[seat, "false"] == did["false"]
        assert votes[seat, "abstain"] == did["abstain"] + did["refused"]
    assert {one.reason for one in silent} == {panel.UNANSWERED}
    assert sum(3 - len(one.record["votes"]) for one in silent) == broken["first"] + 2 * broken["second"]


def test_most_of_what_a_judge_reads_is_a_prefix_that_it_read_before(tmp_path: Path, gallery: Path) -> None:
    """Rules, question and input come before the candidate. Providers store prefixes of 1,024 tokens or more."""
    with Double(then=Scripted(Rates())) as server:
        place = recipe(tmp_path, gallery, behind(server.url), inputs="count = 3", judged="workers = 1")
        place.write_text(place.read_text().replace("images = 6", "images = 16"))
        ran(place, tmp_path)

    sizes: Counter[str] = Counter()
    earlier: list[list[object]] = []
    for seen in (one for one in server.seen if one.body["model"] == "first"):
        parts = [json.dumps(seen.body["response_format"]), *seen.body["messages"][0]["content"]]
        tokens = [Tokens().picture if "data:image" in str(part) else len(str(part)) // 4 for part in parts]
        common = max((sum(tokens[: same(parts, other)]) for other in earlier), default=0)
        sizes.update(read=sum(tokens), prefix=common if common >= 1024 else 0)
        earlier.append(parts)
    assert sizes["prefix"] / sizes["read"] > 0.6, sizes


def same(one: list[object], other: list[object]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_calls_and_tokens_are_those_that_the_server_saw(misbehaved: tuple[FinishedSteps, Scripted, Double]) -> None:
    found, _, server = misbehaved
    spent = [one.cost.spent for one in found.done]
    parts = [part for seen in server.seen for part in seen.body["messages"][0]["content"]]
    shown = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]

    assert sum(one.calls for one in spent) == len(server.seen)
    assert sum(one.tokens_in for one in spent) == 100 * len(server.seen)
    assert shown and all(url.startswith("data:image/jpeg;base64,") for url in shown)


@pytest.mark.parametrize("domain", [path.stem for path in DOMAINS.glob("*.toml")])
def test_a_domain_of_the_package_runs_to_the_end(domain: str, tmp_path: Path, gallery: Path) -> None:
    """By the command line; kinds, rules and prompts are those of the file, and what is missing of `want` is named."""
    text, place = (DOMAINS / f"{domain}.toml").read_text(encoding="utf-8"), tmp_path / "mine.toml"
    questions, checked = (read_recipe(DOMAINS / f"{domain}.toml").steps[at].settings for at in (2, 3))
    with Double(then=Scripted(Rates(abstains=0.1))) as server:
        models = [f'{name} = {{ use = "openai:{name}", url = "{server.url}" }}' for name in MODELS]
        place.write_text(
            re.sub(r"(?s)\[models\].*?\n\n", "\n".join(["[models]", *models, "\n"]), text), encoding="utf-8"
        )
        line = ("build", "rmir", place, "-g", gallery, "--out", tmp_path / "out", "--limit", 2, "--json")
        done = run_eyespot(*line)

    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert [list(kinds) for kinds in made["queries"].values()] == [list(questions["kinds"])] * 2
    gaps = {(one["split"], one["kind"]): (one["wanted"], one["there"]) for one in made["missing"]}
    assert gaps == {("test", kind): (100, made["queries"]["test"][kind]) for kind in questions["kinds"]}
    bodies = [str(seen.body) for seen in server.seen]
    requests = {form: body for body in bodies for form in ("Questions", "Checked") if f"'{form}'" in body}
    card = (tmp_path / "out" / "set" / "README.md").read_text(encoding="utf-8")
    assert all(f"- {kind}: " in requests["Questions"] for kind in questions["kinds"])
    assert all(f"- {rule}: " in requests["Checked"] for rule in checked["rules"])
    assert all(f"\n| {kind} |" in card for kind in questions["kinds"]) and "{kinds}" not in card


MODELS = ("writer", "checker", "strong", "small")


@pytest.mark.parametrize("name", ["", "all", "Two words", "fits"])
def test_a_kind_whose_name_no_answer_can_have_is_refused(name: str, tmp_path: Path, gallery: Path) -> None:
    kinds = f'[steps.kinds]\n"{name}" = "what is it?"' if name else "kinds = {}"
    pipe = RmirPipeline(read_recipe(recipe(tmp_path, gallery, questions=kinds)), tmp_path)
    with raises(UsageError):
        assert pipe.steps


# -- in batches: each request is paid for once, also by a run that is killed -----------------------------------------


MIXED = Rates(abstains=0.1, breaks=0.03, refuses=0.05)


def anthropic(seen: Seen) -> Response:
    """The same script behind Anthropic's messages, which have the form in words alone."""
    contents = [one["content"] for one in seen.body["messages"] if isinstance(one["content"], list)]
    for part in (part for parts in contents for part in parts):
        part.pop("cache_control", None)  # which a batch does without; the script answers by what is sent
    words = "\n".join(part["text"] for parts in contents for part in parts if part["type"] == "text")
    found = re.search(r"of this JSON schema: ({.*})", words)
    assert found
    form = json.loads(found[1])
    body = {**seen.body, "response_format": {"json_schema": {"name": form["title"], "schema": form}}}
    text = Scripted(MIXED)(Seen("", {}, body)).data["choices"][0]["message"]["content"]
    content = [{"type": "text", "text": text or "I'm sorry, but I can't."}]
    usage = {"input_tokens": 100, "output_tokens": 2}
    return Response(data={"content": content, "stop_reason": "end_turn", "usage": usage})


def openai(seen: Seen) -> Response:
    """The script, which gives as many choices as a request says."""
    response = Scripted(MIXED)(seen)
    return response._replace(data={**response.data, "choices": response.data["choices"] * seen.body.get("n", 1)})


@pytest.mark.parametrize("kills", [4, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("vendor", "script"), [("openai", openai), ("anthropic", anthropic)])
def test_a_run_that_is_killed_makes_the_same_set_and_pays_once(
    vendor: str, script: Any, kills: int, tmp_path: Path, gallery: Path
) -> None:
    sent = {}
    with Double(then=script) as server:
        url = server.url if vendor == "openai" else server.url.removesuffix("/v1")
        models = behind(url).replace("openai:", f"{vendor}:")
        for name, times in (("calm", 0), ("killed", kills)):
            out, batches = tmp_path / name, BatchServer(script)
            server.offers = batches
            line = "build", "rmir", recipe(out, gallery, models, inputs="count = 3"), "--out", out, "--batch"
            turns = [run_until_killed(batches, 1 + turn % 4, turn % 3 != 1, *line) for turn in range(times)]
            assert all(turns), turns
            assert not run_until_killed(batches, 0, False, *line)
            with WorkDB(out / "work") as memory:
                assert memory.cost().spent.calls == batches.sent.total() > 3
                assert memory.cost().spent.tokens_in == 100 * batches.sent.total()
            sent[name] = batches.sent

        plain = tmp_path / "plain"
        run_until_killed(
            batches, 0, False, *line[:2], recipe(plain, gallery, models, inputs="count = 3"), "--out", plain
        )

    assert sent["killed"] == sent["calm"]
    assert files(tmp_path / "killed") == files(tmp_path / "calm") == files(plain)
