"""Language models load by themselves, by their names, and cost what their budget allows."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from eyespot import llms
from eyespot.types import LanguageModel, UsageError
from tests.lazy_import import requires
from tests.wording import raises
from tests.worlds.servers import Double, chat

pytestmark = requires("openai")


def test_a_model_answers_and_its_budget_counts() -> None:
    budget = llms.Budget(calls=1)
    with Double(then=chat("a blue frog")) as server:
        model: LanguageModel = llms.load("openai:tiny", url=server.url, budget=budget)
        reply = model.chat([llms.text_message("user", "?")], max_tokens=9)
        with pytest.raises(llms.BudgetSpent):
            model.chat([llms.text_message("user", "?")])

    assert (reply.text, budget.spent, len(server.seen)) == ("a blue frog", (1, 100, 1, 0.0), 1)
    assert (model.name, model.free, model.price) == ("openai:tiny@localhost", True, None)


class Frog(BaseModel):
    colour: str


def test_half_a_character_in_an_answer_is_sent_back_as_a_question_mark() -> None:
    """Models cut pairs of surrogates in two; UTF-8, and so a request, cannot hold the half."""
    with Double([chat('{"colour": "blue \ud83d"}')], then=chat('{"colour": "blue"}')) as server:
        model = llms.load("openai:tiny", url=server.url)
        answer = model.answer([llms.text_message("user", "?")], Frog)

    assert answer.colour == "blue" and "blue ?" in server.seen[1].body["messages"][-2]["content"]


def test_a_model_of_a_vendor_has_its_price() -> None:
    model = llms.load("openai:gpt-4o-mini", key="k")

    assert model.name == "openai:gpt-4o-mini" and not model.free and model.price is not None


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("encoder:starter", {}),
        ("openai", {"key": "k"}),
        ("openai:m", {}),
    ],
    ids=range(3),
)
def test_what_cannot_be_loaded_says_the_way_out(
    spec: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)

    with raises(UsageError):
        llms.load(spec, **options)
