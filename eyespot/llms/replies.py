"""One reader of replies: whether there is an answer, and of text, tokens and JSON only what belongs to it.

Models that think first put their thoughts into fields or blocks of their own, between tags (Qwen, DeepSeek, Mistral,
Kimi, Gemma) or into channels (gpt-oss's harmony). The shapes that today's servers send are in tests/judges/shapes.toml.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from eyespot.llms.errors import BadAnswer
from eyespot.types import Token

# Why a reply ended, in the words of any vendor
DECLINED = re.compile(
    r"safety|refus|filter|prohibit|block|recitation|spii|guardrail|moderat|flagged|sensitive|toxic|policy",
    re.IGNORECASE,
)
TOOL = re.compile(r"tool|function", re.IGNORECASE)

TAGS = r"(?:[\w-]+:)?(?:think(?:ing)?|thoughts?|reasoning|reflection)"
OPENED = re.compile(rf"\s*(?:[<\[◁]{TAGS}[>\]▷]|<\|channel>thought)", re.IGNORECASE)
CLOSED = re.compile(rf"(?:[<\[◁]/{TAGS}[>\]▷]|<channel\|>)", re.IGNORECASE)
FINAL = re.compile(r"<\|channel\|>final\b[^<]*(?:<\|[^>]*\|>[^<]*)??<\|message\|>(.*)", re.DOTALL)
SPECIAL = re.compile(r"<\|(?:end|return|im_end|eot_id|endoftext|start|call)\|>.*|<end_of_turn>.*|</s>\s*$", re.DOTALL)


def without_thoughts(text: str) -> tuple[str, bool]:
    """The text without thoughts and marks of turns, "" where it ends among thoughts; and whether there were any."""
    if "<|channel|>" in text:
        final = FINAL.search(text)
        return (SPECIAL.sub("", final[1]) if final else ""), True
    thought = OPENED.match(text)
    *_, end = [None, *CLOSED.finditer(text)]
    if end is None:
        return ("" if thought else SPECIAL.sub("", text)), thought is not None
    if not thought and "{" in text[: end.start()] and "{" not in text[end.end() :]:
        return text, False  # a string of an object that holds such a tag
    return SPECIAL.sub("", text[end.end() :]), True


def text_of(content: Any) -> tuple[str, bool]:
    """The answer's own text in the content of a message, text or a list of parts, and whether it came with thoughts."""
    if not isinstance(content, list):
        return without_thoughts(str(content or ""))
    parts = [part for part in content if isinstance(part, Mapping)]
    own = [part for part in parts if not re.search("think|reason|thought", str(part.get("type") or ""))]
    text, thought = without_thoughts("".join(str(part.get("text") or "") for part in own if not part.get("thought")))
    return text, thought or len(own) < len(parts)


def first_token(logprobs: Any, text: str, thought: bool) -> tuple[Token, ...] | None:
    """The alternatives of the answer's first token that is not white space or mark; None if the server gives none.

    `logprobs` are of a choice, with all tokens of a reply, `text` is the answer's own. Where the tokens do not spell
    it, they count from the first on, or, if the model has thought, not at all: they may be of the thoughts.
    """
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    tokens = [token for token in content if isinstance(token, Mapping)] if isinstance(content, list) else []
    words = [re.sub("[▁Ġ]", " ", str(token.get("token") or "")).replace("Ċ", "\n") for token in tokens]
    opening = text.strip(" \t\r\n▁Ġ*_\"'`.")
    place = "".join(words).rfind(opening)
    if place < 0 and not thought:
        place = len("".join(words)) - len("".join(words).lstrip())
    chosen = next((token for token, end in zip(tokens, accumulate(map(len, words)), strict=True) if end > place), None)
    if chosen is None or place < 0 or not opening:
        return None
    return tuple(
        (str(token.get("token")), float(value))
        for token in chosen.get("top_logprobs") or [chosen]  # without a list at least the one it chose
        if isinstance(token, Mapping) and isinstance(value := token.get("logprob"), int | float)
        if not math.isnan(value) and value < 0.01  # 1 may come out rounded up
    )


# -- JSON -----------------------------------------------------------------------------------------------------

PARTS = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*")|“(?P<curly>[^”]*)”|'(?P<single>(?:[^'\\]|\\.)*)'"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/|\#[^\n]*)|(?P<brace>[{}])|\b(?P<constant>True|False|None)\b""",
    re.DOTALL,
)
CONSTANTS = {"True": "true", "False": "false", "None": "null"}


def objects_in(text: str) -> list[dict[str, Any]]:
    """The JSON objects in a text, fenced or among words, each once; one that lacks its end is none.

    Comments, commas before a closing bracket, other quotes, line breaks in strings and Python's constants are mended.
    `BadAnswer` for a key that an object has twice.
    """
    found: list[dict[str, Any]] = []
    for candidate in _balanced(text):
        try:
            value = json.loads(candidate, object_pairs_hook=_unlike, strict=False)
        except ValueError:
            mended = re.sub(r",(\s*[}\]])", r"\1", PARTS.sub(_mended, candidate))
            try:
                value = json.loads(mended, object_pairs_hook=_unlike, strict=False)
            except ValueError:
                continue
        found += [value] if value not in found else []
    return found


def _balanced(text: str) -> Iterator[str]:
    """The outermost pieces between braces, which do not count within strings and comments."""
    start = text.find("{")
    while start >= 0:
        depth, end = 0, -1
        for part in PARTS.finditer(text, start):
            depth += {"{": 1, "}": -1}.get(part["brace"] or "", 0)
            if not depth:
                end = part.end()
                break
        if end < 0:
            return
        yield text[start:end]
        start = text.find("{", end)


def _mended(part: re.Match[str]) -> str:
    if part["comment"] is not None:
        return ""
    if part["constant"] is not None:
        return CONSTANTS[part["constant"]]
    inner = part["curly"] if part["curly"] is not None else part["single"]
    return part[0] if inner is None else '"' + re.sub(r'(?<!\\)"', r"\\\"", inner.replace("\\'", "'")) + '"'


def _unlike(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadAnswer(f"{twice}: the key stands twice")
    return dict(pairs)
