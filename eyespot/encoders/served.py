"""Multimodal embedding models behind an address: `served:MODEL[@REVISION]`; vLLM, or who else speaks its protocol.

A picture, words, or both are one message each to /v1/embeddings, and one vector comes back. So a model can be used
whose code lies in its repository: the server has code of its own for it, and here nothing of the model runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.encoders._mllm_inputs import ModelInput, packed
from eyespot.encoders._pictures import PictureEncoder, text_list
from eyespot.encoders._served_inputs import PATH, NotFiniteVector, ServedPrompt, ServedSettings, vector_of
from eyespot.llms import Declined, Endpoint, Refused, Trouble, Underway, Unknown
from eyespot.types import EyespotError, Pixels, Space, UsageError, Vectors

if TYPE_CHECKING:
    from PIL.Image import Image

SPELLING = "served:MODEL[@REVISION]"
NEEDS = "a server of the model (EYESPOT_EMBEDDINGS_URL), its key (OPENAI_API_KEY) if it wants one"
UNTOLD = "not told by the server"
REVISIONS = ("revision", "sha", "digest")  # as servers call it; not `created`, at which vLLM gives the time of asking
COMMAND = "vllm serve MODEL --runner pooling"
AGAIN = "fix the server and run the same line again"
SIDE = 224  # pixels of the first picture that is sent
FEW = 3  # attempts of the first requests: who waits for a server that is away should soon know
MANY = 16  # pictures refused, and more than were taken: no accident any more


def load(spec: str, **options: Any) -> ServedEncoder:
    """The model that a server offers under this name; options as in `ServedSettings`.

    Raises: UsageError without an address, without a model, for one that is not served or takes no pictures, and for
    options that do not exist; EyespotError if nobody answers.
    """
    settings, (model, wanted) = ServedSettings.of(options), _model_and_revision(spec)
    asking = EmbeddingClient(settings.endpoint(model), settings.wording(model), settings.workers)
    retry = asking.endpoint.retry
    impatient = replace(asking.endpoint, retry=replace(retry, attempts=min(FEW, retry.attempts)))
    first = replace(asking, endpoint=impatient)
    # What the server tells of its models, by their names; nothing if it keeps no list
    try:
        payload = first.endpoint.get_if_supported("/models") or {}
    except Trouble as why:
        raise EyespotError(f"{first.endpoint.address}: {why}; {AGAIN}") from None
    found = payload.get("data")
    listed = {str(one.get("id")): one for one in found if isinstance(one, dict)} if isinstance(found, list) else {}
    dim, composes = _learned(first, listed)
    revision = _revision(listed.get(model, {}), wanted)
    space = Space(f"served:{spec}", revision, UNTOLD, asking.wording.preprocessing(composes), dim)
    kind = ComposingEncoder if composes else ServedEncoder
    return kind(asking, space, settings.batch or 2 * settings.workers)


@dataclass(repr=False)
class ServedEncoder(PictureEncoder):
    """A served model as an `eyespot.types.Encoder`."""

    asking: EmbeddingClient
    space: Space
    batch: int
    licence: str = f"that of the model; {UNTOLD}"
    min_side: int | None = None
    taken: int = 0  # pictures that got a vector
    refused: dict[str, str] = field(default_factory=dict)  # why pictures got none, by their digests

    def read(self, picture: Image) -> Pixels:
        """One upright RGB picture, at most a megapixel of it, as bytes with its shape in front."""
        return packed(picture)

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """Pictures (n, ...) as `read` gave them, (n, dim); NaN for one that the server refuses, as `notes` tell."""
        made = np.full((len(pixels), self.space.dim), np.nan, np.float32)
        for at, found in self.asking.all([ModelInput(row, None) for row in pixels], self.space.dim):
            if isinstance(found, NoVector):
                self.refused[hashlib.sha256(pixels[at].tobytes()).hexdigest()] = str(found)
                if len(self.refused) >= MANY and len(self.refused) > self.taken:
                    raise EyespotError(f"{len(self.refused)} pictures got no vector and {self.taken} did; {found}")
            else:
                self.taken += 1
                made[at] = found
        return made

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Words in the instruction for them, (n, dim)."""
        return self._rows([ModelInput(None, text) for text in text_list(texts)])

    @property
    def notes(self) -> list[str]:
        """What the user should know of the vectors so far, a sentence each."""
        if not self.refused:
            return []
        why = list(self.refused.values())[-1]
        return [f"pictures without a vector: {len(self.refused)}; {why}; eyespot index tries them again"]

    def _rows(self, shown: Sequence[ModelInput]) -> Vectors:
        made = np.zeros((len(shown), self.space.dim), np.float32)
        for at, found in self.asking.all(shown, self.space.dim):
            if isinstance(found, NoVector):
                raise found
            made[at] = found
        return made


class ComposingEncoder(ServedEncoder):
    """One that also composes (`eyespot.types.Composer`)."""

    def encode_composed(self, pixels: Pixels, texts: Sequence[str]) -> Vectors:
        """Pictures (n, ...) with words about each, read together, (n, dim)."""
        return self._rows([ModelInput(row, text) for row, text in zip(pixels, texts, strict=True)])


# -- requests -----------------------------------------------------------------------------------------------


class NoVector(EyespotError):
    """This one input gets no vector; others may."""


@dataclass(frozen=True)
class EmbeddingClient:
    """A model at an address, asked for vectors, `workers` at a time."""

    endpoint: Endpoint
    wording: ServedPrompt
    workers: int

    @property
    def who(self) -> str:
        """The model and where it is, for sentences."""
        return f"{self.endpoint.model} at {self.endpoint.address}"

    def all(self, shown: Sequence[ModelInput], dim: int) -> Iterator[tuple[int, NDArray[np.float32] | NoVector]]:
        """Each input's place with its vector (dim,), or why it has none, as they come.

        Raises `EyespotError` for what would be the same with every input, once what is under way is handed out.
        """
        self.endpoint.sleep.reset()
        work = Underway(
            enumerate(shown),
            lambda item: (item[0], self._vector(item[1], dim)),
            self.workers,
            self.endpoint.sleep.cancel,
            first=self.workers,
        )
        try:
            yield from work
        except BaseException:
            work.close()
            raise

    def one(self, shown: ModelInput) -> NDArray[np.float32]:
        """The vector of one input, (dim,); raises the troubles of `Endpoint.request`, and `BadAnswer`."""
        return vector_of(self.endpoint.request(PATH, self.wording.body(self.endpoint.model, shown)))

    def _vector(self, shown: ModelInput, dim: int) -> NDArray[np.float32] | NoVector:
        try:
            found = self.one(shown)
        except (Refused, Declined, NotFiniteVector) as why:
            return NoVector(f"{self.who} does not embed one ({why})")
        except Trouble as why:
            raise EyespotError(f"{self.who}: {why}; {AGAIN}") from None
        if len(found) != dim:
            raise EyespotError(
                f"{self.who} gave vectors of {dim} numbers and now of {len(found)}; serve one model only"
            )
        return found


# -- what a server is asked first ---------------------------------------------------------------------------


def _model_and_revision(spec: str) -> tuple[str, str]:
    """The model's name and the revision that is said; a name may begin with @."""
    model, _, revision = spec.rpartition("@")
    if not model:
        model, revision = spec, ""
    if not model.strip("@ "):
        raise UsageError(f"name the model that is served, as in {SPELLING}")
    return model, revision


def _learned(asking: EmbeddingClient, listed: Mapping[str, Any]) -> tuple[int, bool]:
    """How long vectors are, and whether a picture and words are one input.

    By a picture with words; a model that refuses that is asked for a picture alone, then for words alone.
    """
    # Large enough for every model's smallest patch, and not of one colour
    from PIL import Image

    y, x = np.mgrid[0:SIDE, 0:SIDE]
    image = Image.fromarray(np.stack([x, y, 255 - x], axis=-1).astype(np.uint8))  # (SIDE, SIDE, 3)
    picture, words, refused = packed(image), "a picture", ""
    for shown in (ModelInput(picture, words), ModelInput(picture, None), ModelInput(None, words)):
        try:
            dim = len(_first(asking, shown, listed))
        except (Refused, Declined) as why:
            refused = refused or str(why)
            continue
        if shown.picture is None:
            raise UsageError(f"{asking.who} takes words but no pictures ({refused}); serve a model that embeds both")
        return dim, shown.words is not None
    raise UsageError(f"{asking.who} takes no messages to embed ({refused}); serve it so: {COMMAND}")


def _first(asking: EmbeddingClient, shown: ModelInput, listed: Mapping[str, Any]) -> NDArray[np.float32]:
    try:
        return asking.one(shown)
    except (Refused, Declined):
        raise
    except Unknown as why:
        endpoint = asking.endpoint
        if endpoint.model in listed:
            raise UsageError(f"{asking.who} is not served for its vectors; serve it so: {COMMAND}") from None
        there = f"{endpoint.address} serves no {endpoint.model}; there are: {', '.join(sorted(listed))}"
        raise UsageError(there if listed else str(why)) from None
    except Trouble as why:
        raise EyespotError(f"{asking.who}: {why}; {AGAIN}") from None


def _revision(card: Mapping[str, Any], wanted: str) -> str:
    """What the server tells of the model, or what the user says of it; `UsageError` where the two differ."""
    revision = next((str(card[name]) for name in REVISIONS if card.get(name)), "")
    if wanted and revision and wanted != revision:
        raise UsageError(
            f"the server has revision {revision} of {card['id']}, not {wanted}; name that one, or serve the other"
        )
    root = str(card.get("root") or "")  # where a model comes from that is served under another name
    origin = "" if root == card.get("id") else PurePosixPath(root).name if root.startswith("/") else root
    return wanted or revision or origin or "served"
