"""`eyespot encoders list` and `adapters list`: what turns pictures and words into vectors here, and published views."""

from __future__ import annotations

from eyespot.cli.console import print_result
from eyespot.cli.settings import group, json_option

app = group("Encoders turn pictures and words into vectors.")
adapters = group("Adapters give a query its own view of an encoder's space.")


@app.command("list")
def listing(json: bool = json_option()) -> None:
    """List encoder families, how to name one, and whether they work offline."""
    rows = known()
    print_result(rows, (f"{row['name']:<12} {row['spelling']:<46} {row['needs']}" for row in rows), json)


def known() -> list[dict[str, str]]:
    """Every encoder module with its spelling and needs, as its constants say; nothing heavy is imported."""
    from eyespot import rooms

    modules = {name: rooms.module("encoders", name) for name in rooms.names("encoders")}
    words = {name: (getattr(one, "SPELLING", name), getattr(one, "NEEDS", "")) for name, one in modules.items()}
    return [{"name": name, "spelling": spelling, "needs": needs} for name, (spelling, needs) in words.items()]


@adapters.command("list")
def adapter_list(json: bool = json_option()) -> None:
    """List the published QuARI checkpoints for --adapt, and the encoders they fit; eyespot train makes others."""
    from eyespot.adapters.quari.released import RELEASED

    rows = [{"name": one, "encoders": list(encoders)} for one, encoders in RELEASED.items()]
    print_result(rows, (f"{one:<56} {', '.join(encoders)}" for one, encoders in RELEASED.items()), json)
