"""`eyespot encoders list` and `adapters list`: what turns pictures and words into vectors here, and published views."""

from __future__ import annotations

from typing import Any

from eyespot.cli.console import print_result
from eyespot.cli.settings import group, json_option

app = group("Encoders turn pictures and words into vectors.")
adapters = group("Adapters give a query its own view of an encoder's space.")


@app.command("list")
def listing(json: bool = json_option()) -> None:
    """List encoder families, how to name one, and whether they work offline."""
    rows = known("encoders")
    print_result(rows, (f"{row['name']:<12} {row['spelling']:<46} {row['needs']}" for row in rows), json)


def known(room: str, **others: Any) -> list[dict[str, Any]]:
    """Every member of a room with its spelling and needs, as its constants say, and others with their defaults."""
    from eyespot import extras, rooms

    rows: list[dict[str, Any]] = []
    for name in rooms.names(room):
        words, module = {"spelling": name, **others, "needs": ""}, None
        try:
            module = rooms.module(room, name)
        except ImportError as error:  # it needs a package that is not there
            words["needs"] = extras.pip_line(str(error.name))
        rows.append({"name": name} | {word: getattr(module, word.upper(), value) for word, value in words.items()})
    return rows


@adapters.command("list")
def adapter_list(json: bool = json_option()) -> None:
    """List the published QuARI checkpoints for --adapt, and the encoders they fit; eyespot train makes others."""
    from eyespot.adapters.quari.released import RELEASED

    rows = [{"name": one, "encoders": list(encoders)} for one, encoders in RELEASED.items()]
    print_result(rows, (f"{one:<56} {', '.join(encoders)}" for one, encoders in RELEASED.items()), json)
