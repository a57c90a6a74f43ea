"""What users can set, each setting once: its name, default, bounds and help.

    SearchSettings.read(by="look", neighbours=5)

The command line makes options of these models, the page and the API take them as parameters, `eyespot.toml` and
`EYESPOT_*` fill them, Python takes them as keyword arguments, and the table of `docs/settings.md` is printed from
them.
"""

from __future__ import annotations

from typing import Any

from eyespot.types import UsageError

FEW, DEPTH = 20, 100  # pictures that a search shows; hits that a judge looks at
EVERYBODY = "everybody"


class SettingsConflict(UsageError):
    """Settings that do not go together; `{name}` in the sentence stands for the name of a setting."""

    def __init__(self, sentence: str, **values: object) -> None:
        self._sentence, self._values = sentence, values
        super().__init__(self.spelled("{}".format))

    def spelled(self, spell: Any) -> str:
        """The sentence with each name as `spell` writes it."""

        class Names(dict[str, object]):
            def __missing__(self, name: str) -> str:
                return str(spell(name))

        return self._sentence.format_map(Names(self._values))

    def on_line(self) -> str:
        """The sentence with names as options of the command line."""
        return self.spelled(option)


def option(name: str) -> str:
    """The option of a setting on the command line."""
    return f"--{name.replace('_', '-')}"
