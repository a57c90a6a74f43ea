"""Prompts by their names: ours, those of a TOML file, and INQUIRE's released ones from a user's own clone.

The clone is parsed, never run. Its file src/lmm_utils.py has two chains of `if model_name.startswith(…)`: one assigns
`prompt`, the other the tokens of the two answers (a word, and which of its ids counts).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from eyespot.judges._prompt import PLAIN, QUERY, JudgePrompt
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError

KEYS = ("name", "system", "question", "yes", "no")
WORDINGS = {PLAIN.name: PLAIN}
RELEASED = "inquire"  # inquire:CLONE are the prompts of INQUIRE's released code
FILE = Path("src/lmm_utils.py")
PROMPTS, MODELS = "get_lmm_prompt", "load_model"
# What stands around a question in the turns of one family; a server with a chat template writes its own
TURNS = re.compile(
    r"<\|im_start\|>system\n.*?<\|im_end\|>|<\|im_(?:start|end)\|>(?:user\n|answer\n)?|<image>|^USER:|ASSISTANT:$"
    r"|\[/?INST\]",
    re.DOTALL,
)


def wording(named: str, judge: str = "") -> JudgePrompt:
    """One of ours by its name, or the one in a TOML file with the keys system, question, yes and no.

    `inquire:CLONE` is what INQUIRE's released code, in a clone of it, asks the model of this `judge`. Raises
    `UsageError` where it has no prompt for that model.

    Raises `UsageError` for a name that is none of ours and no file, and for keys that no wording has.
    """
    if named in WORDINGS:
        return WORDINGS[named]
    name, _, clone = named.partition(":")
    if name == RELEASED:
        if not clone:
            raise UsageError(
                f"write inquire:CLONE with a clone of inquire-benchmark/INQUIRE, or {PLAIN.name} for no clone"
            )
        return released_prompt(Path(clone), judge.partition(":")[2].partition("@")[0])
    path = Path(named)
    if not path.is_file():
        raise UsageError(f"no wording {named!r}; name a TOML file, inquire:CLONE or one of: {', '.join(WORDINGS)}")
    found = toml_of(path)
    for key, value in found.items():
        if key not in KEYS or not isinstance(value, str):
            raise UsageError(f"{path}: {key} is not a text of a wording; it has the keys {', '.join(KEYS)}")
    if "question" not in found:
        raise UsageError(f"{path} has no question; write one that holds {QUERY}")
    return JudgePrompt(**{"name": path.stem, "system": "", **found})


def released_prompt(clone: Path, model: str) -> JudgePrompt:
    """The prompt and answers that INQUIRE's code has for the model of this name; `UsageError` if it has none."""
    path = clone.expanduser() / FILE
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error}); name a clone of INQUIRE's code after inquire:") from None
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    if PROMPTS not in functions:
        raise UsageError(f"{path} has no {PROMPTS}; name a clone of inquire-benchmark/INQUIRE after inquire:")
    branches = list(_branches(functions[PROMPTS]))
    names = (model, f"openai-{model}")
    for name in names:
        for test, body in branches:
            if _fits(test, name):
                whole = _text(_assigned(body, "prompt"))
                yes, no, place = _answers(functions.get(MODELS), name)
                question = TURNS.sub("", whole).strip()
                return JudgePrompt("inquire", "", question, yes, no, whole, place)
    constants = (node.value for test, _ in branches for node in ast.walk(test) if isinstance(node, ast.Constant))
    known = sorted({text for text in constants if isinstance(text, str)})
    raise UsageError(f"INQUIRE's released code has no prompt for {model!r}; it has some for: {', '.join(known)}")


def _answers(function: ast.FunctionDef | None, model: str) -> tuple[str, str, int | None]:
    """The words of yes and no, and which of the ids of their tokens counts; None where the code looks for the words."""
    for test, body in _branches(function) if function else ():
        if _fits(test, model):
            yes, no = (_token(_assigned(body, name)) for name in ("yes_token", "no_token"))
            return yes[0], no[0], yes[1]
    return "Yes", "No", None


# -- reading the code -----------------------------------------------------------------------------------------


def _branches(function: ast.FunctionDef) -> Iterator[tuple[ast.expr, list[ast.stmt]]]:
    """The conditions of a chain of if and elif, each with what follows from it."""
    chain = next((node for node in function.body if isinstance(node, ast.If)), None)
    while chain is not None:
        yield chain.test, chain.body
        rest = chain.orelse
        chain = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None


def _fits(test: ast.expr, model: str) -> bool:
    """Whether a condition on `model_name` holds: startswith, ==, or."""
    match test:
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_fits(value, model) for value in values)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="model_name"), attr="startswith"), args=[ast.Constant(str(beginning))]
        ):
            return model.startswith(beginning)
        case ast.Compare(left=ast.Name(id="model_name"), ops=[ast.Eq()], comparators=[ast.Constant(str(name))]):
            return model == name
    raise _strange(test)


def _assigned(body: list[ast.stmt], name: str) -> ast.expr:
    """What is assigned to a variable or an attribute of this name."""
    for statement in body:
        if isinstance(statement, ast.Assign):
            (target,) = statement.targets
            if name in (getattr(target, "id", ""), getattr(target, "attr", "")):
                return statement.value
    raise UsageError(f"{FILE} assigns no {name} where it should; name a clone as it was released")


def _text(value: ast.expr) -> str:
    """A text with {query} where the code puts the query."""
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_text, parts))
        case ast.FormattedValue(value=ast.Name(id="query"), conversion=-1, format_spec=None):
            return QUERY
    raise _strange(value)


def _token(value: ast.expr) -> tuple[str, int]:
    """The word and the place in `tokenizer(word).input_ids[place]`."""
    match value:
        case ast.Subscript(
            value=ast.Attribute(value=ast.Call(args=[ast.Constant(str(word))]), attr="input_ids"), slice=place
        ):
            return word, int(ast.literal_eval(place))
    raise _strange(value)


def _strange(node: ast.expr) -> UsageError:
    return UsageError(f"{FILE}:{node.lineno} is not as it was released ({ast.unparse(node)[:80]}); name another clone")
