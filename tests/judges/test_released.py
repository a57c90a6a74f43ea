"""INQUIRE's prompts are read from a clone of its code, which is never run; the sentences here are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyespot.judges import wording
from eyespot.judges.transformers import answer_tokens
from eyespot.types import Answer, UsageError
from tests.wording import raises
from tests.worlds.judging import draw_colours, judge_of, only_answer
from tests.worlds.servers import Double, chat, error

CODE = """
import sys
raise SystemExit("this must never run")

class ModelWrapper:
    def load_model(self, model_name, device):
        print("loading")
        if model_name.startswith("turns/") or model_name == "old":
            self.yes_token = self.processor.tokenizer(" Ja").input_ids[1]
            self.no_token = self.processor.tokenizer(" Nein").input_ids[1]
        elif model_name.startswith("small/"):
            self.model = None
            self.yes_token = self.processor.tokenizer("ja").input_ids[-1]
            self.no_token = self.processor.tokenizer("nein").input_ids[-1]

def get_lmm_prompt(query, model_name):
    if model_name.startswith("turns/") or model_name == "old":
        prompt = (f"USER: <image>\\nIs {query} there? "
                  "Say it.\\nASSISTANT:")
    elif model_name.startswith("small/"):
        prompt = f"Q: {query}?\\nA: "
    elif model_name.startswith("openai-gpt"):
        prompt = f'Can "{query}" be seen?'
    else:
        raise ValueError("no")
    return prompt
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lmm_utils.py").write_text(CODE)
    return tmp_path


@pytest.mark.parametrize(
    ("judge", "question", "turns", "answers"),
    [
        (
            *("transformers:turns/big@main", "Is {query} there? Say it."),
            *("USER: <image>\nIs {query} there? Say it.\nASSISTANT:", (" Ja", " Nein", 1)),
        ),
        ("transformers:small/one", "Q: {query}?\nA:", "Q: {query}?\nA: ", ("ja", "nein", -1)),
        ("openai:gpt-4o", 'Can "{query}" be seen?', 'Can "{query}" be seen?', ("Yes", "No", None)),
    ],
)
def test_each_family_has_its_prompt_and_its_answers(
    clone: Path, judge: str, question: str, turns: str, answers: tuple[Any, ...]
) -> None:
    found = wording(f"inquire:{clone}", judge)

    assert (found.question, found.turns, found.system) == (question, turns, "")
    assert (found.yes, found.no, found.token) == answers and found.exact
    assert found.digest != wording("plain").digest


@pytest.mark.parametrize(
    ("named", "judge"),
    [("inquire", "openai:gpt-4o"), ("inquire:{}", "openai:llama/x"), ("inquire:{}/elsewhere", "openai:gpt-4o")],
)
def test_what_cannot_be_read_says_the_way_out(clone: Path, named: str, judge: str) -> None:
    with raises(UsageError):
        wording(named.format(clone), judge)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('model_name == "old"', "model_name.lower()"),
        ('f"Q: {query}?\\nA: "', 'open("/etc/passwd").read()'),
        ('f"Q: {query}?\\nA: "', 'f"Q: {query.upper()}"'),
        ('tokenizer("ja").input_ids[-1]', "first()"),
        ("get_lmm_prompt", "another"),
        ("prompt = f'Can", "prompt = (f'Can"),
    ],
)
def test_code_that_is_not_as_released_is_a_sentence(clone: Path, old: str, new: str) -> None:
    assert old in CODE
    (clone / "src/lmm_utils.py").write_text(CODE.replace(old, new))

    with pytest.raises(UsageError, match=r"lmm_utils\.py"):
        wording(f"inquire:{clone}", "transformers:small/one")


class Words:
    """A tokenizer that begins with a token of its own and knows each word by its length."""

    def __call__(self, word: str) -> Any:
        return type("Encoded", (), {"input_ids": [0, len(word)]})


def test_a_local_model_is_read_by_the_token_that_the_code_names(clone: Path) -> None:
    assert answer_tokens(Words(), wording(f"inquire:{clone}", "transformers:turns/x")) == ([3], [5])
    assert answer_tokens(Words(), wording(f"inquire:{clone}", "transformers:small/x")) == ([2], [4])


def judged(clone: Path, server: Double) -> Answer:
    words = wording(f"inquire:{clone}", "openai:gpt-4o")
    judge = judge_of(server, model="gpt-4o", key="k", wording=words)
    return only_answer(judge, draw_colours(clone / "photos", 1))


@pytest.mark.parametrize(
    ("top", "score"),
    [
        ({"Yes": 0.3, "No": 0.1, " Yes": 0.6}, 0.75),
        ({"yes": 0.9, "No": 0.1}, 0.0),
        ({"Yes": 0.2, "no": 0.8}, 1.0),
        ({"The": 1.0}, 0.0),
    ],
)
def test_only_the_exact_tokens_count(clone: Path, top: dict[str, float], score: float) -> None:
    with Double(then=chat("Yes", top)) as server:
        answer = judged(clone, server)

    assert answer.verdict is not None and answer.verdict.probability == pytest.approx(score)
    (message,) = server.seen[0].body["messages"]
    assert message["content"][-1]["text"] == 'Can "a heron" be seen?'


def test_status_400_is_0_and_counted_as_refused(clone: Path) -> None:
    with Double(then=error(400, "not this picture")) as server:
        answer = judged(clone, server)

    assert answer.verdict is not None and answer.verdict.probability == 0 and answer.refused
    assert "not this picture" in answer.verdict.reason and len(server.seen) == 1
