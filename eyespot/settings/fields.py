"""What a setting says beside its name, type, default and bounds; and the errors for values that do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from eyespot.settings import SettingsConflict
from eyespot.types import UsageError

EVERYDAY, JUDGES, RESEARCH = "Everyday", "Judges", "Research"


# A single text is one of them
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]


@dataclass(frozen=True)
class Display:
    """How a setting is shown.

    spelled: its spellings on the command line, `--name` without any. argument: whether it is given by its place there.
    metavar: what stands for its value. env: the variable that sets it. usual: the default in words. panel: its part
    of the help. web, python: why the page and API, or Python's keyword arguments, have no setting of this name.
    """

    spelled: tuple[str, ...] = ()
    argument: bool = False
    metavar: str | None = None
    env: str | None = None
    usual: str | None = None
    panel: str = EVERYDAY
    web: str = ""
    python: str = ""


GALLERY: dict[str, Any] = {"spelled": ("-g", "--gallery"), "env": "EYESPOT_GALLERY", "usual": "nearest .eyespot"}
ENCODER: dict[str, Any] = {"spelled": ("-e", "--encoder"), "env": "EYESPOT_ENCODER"}


def setting(help: str, *, default: Any = None, **more: Any) -> Any:
    """A field of a model: its default, help, bounds (ge, gt, le, allow_inf_nan), and how it is shown (`Display`)."""
    shown = {name: more.pop(name) for name in Display.__dataclass_fields__ if name in more}
    field: Any = Field(default=default, description=help, **more)
    field.metadata.append(Display(**shown))
    return field


class Settings(BaseModel):
    """Settings that are read and checked together; they never change."""

    # Validators are built by the first value, so that help and other verbs do not wait for them
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    synonyms: ClassVar[Mapping[str, str]] = {}  # a name that other programs have, and ours

    @classmethod
    def read(cls, **given: Any) -> Self:
        """The settings of these values, defaults for the others; `UsageError` for a name or value that is none."""
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"][:1])
        if first["type"] == "extra_forbidden":
            near = cls.synonyms.get(name) or next(iter(get_close_matches(name, cls.model_fields)), "")
            write = f" (write {near})" if near else ""
            raise UsageError(f"no setting {name!r}{write}; there are: {', '.join(sorted(cls.model_fields))}")
        reason = first["msg"][:1].lower() + first["msg"][1:]
        sentence = "{" + name + "} cannot be {given!r}: {reason}"
        raise SettingsConflict(sentence, given=first["input"], reason=reason)

    @classmethod
    def display(cls, name: str) -> Display:
        """How a setting is shown."""
        return next((more for more in cls.model_fields[name].metadata if isinstance(more, Display)), Display())
