"""Any exported pair of towers, without torch: `onnx:FOLDER` in a layout of the hub, or with an eyespot.toml of its own.

The settings file says how a picture and a text become the towers' inputs; docs/how/encoders.md explains each line.
"""

from __future__ import annotations

import math
import os
import string
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, ValidationError

from eyespot import rooms
from eyespot.encoders._graphs import UnreadableGraph, read_graph
from eyespot.encoders._layouts import described, padding_of
from eyespot.encoders._pictures import PictureEncoder, in_batches, text_list, try_last_word
from eyespot.encoders._text_caveats import cut_by, joined, mostly_unknown, of_contrastive
from eyespot.models import hub
from eyespot.models.installed import is_inside, moved_to
from eyespot.settings.fields import Settings
from eyespot.storage.text_files import toml_of
from eyespot.types import Encoder, EyespotError, Pixels, Space, UsageError, Vectors

if TYPE_CHECKING:
    from PIL.Image import Image, Resampling

SPELLING = "onnx:FOLDER or onnx:hub:ORG/NAME"
NEEDS = "nothing more; an exported model in a folder"
SETTINGS = "eyespot.toml"


def load(spec: str, *, batch: int | None = None) -> Encoder:
    """A folder as an encoder; the towers open when they are first used.

    Raises: UsageError for a missing file or a wrong line in the settings.
    """
    if spec.startswith("hub:"):
        found: Encoder = rooms.load("encoders", f"model:{spec.removeprefix('hub:')}", batch=batch)
        return found
    named = Path(spec).expanduser()
    folder = moved_to(named)
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {folder}; if it moved, name where it is now: eyespot index -e onnx:FOLDER"
        )
    stated = toml_of(folder / SETTINGS) if (folder / SETTINGS).exists() else described(folder)
    settings = checked(stated, folder)
    for name in (settings.image.file, settings.text.file, settings.text.tokenizer):
        if not (folder / name).is_file():
            raise UsageError(f"{folder} has no {name}; put it there or name another file in {SETTINGS}")
    return OnnxEncoder(folder, settings, f"onnx:{named.resolve()}", batch)


# -- the settings file --------------------------------------------------------------------------------------


def _inside(name: str) -> str:
    """A file of the folder itself: settings from elsewhere must not make eyespot read other files."""
    if not is_inside(name):
        raise ValueError("must be the name of a file in the same folder, or below it")
    return name


PlainName = Annotated[str, AfterValidator(_inside)]
Side = Annotated[int, Field(gt=0, le=8192)]
Three = tuple[float, float, float]


class ImageSettings(Settings):
    """The image tower and how a picture becomes its input, (n, 3, height, width), or (n, height, width, 3) bytes."""

    file: PlainName = "image.onnx"
    input: str = "pixel_values"
    output: str = "image_embeds"
    size: Side | tuple[Side, Side]  # one side of a square, or height and width
    resize: Literal["shortest", "squash", "longest"] = "shortest"
    interpolation: Literal["bicubic", "bilinear", "lanczos", "nearest"] = "bicubic"
    mean: Three = (0.0, 0.0, 0.0)
    std: Three = (1.0, 1.0, 1.0)
    pixels: Literal["normalised", "bytes"] = "normalised"  # bytes: the graph normalises by itself
    crop: Literal["round", "floor"] = "round"  # where half a pixel stands over: to even, or to the left and top

    @property
    def height_width(self) -> tuple[int, int]:
        """The input's height and width in pixels."""
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input."""
        return (*self.height_width, 3) if self.pixels == "bytes" else (3, *self.height_width)


class TextSettings(Settings):
    """The text tower and how a text becomes its input, (n, length) integers."""

    file: PlainName = "text.onnx"
    tokenizer: PlainName = "tokenizer.json"
    input: str = "input_ids"
    mask: str | None = None  # the name of the attention mask's input, if the tower has one
    output: str = "text_embeds"
    length: Annotated[int, Field(gt=0, le=8192)]
    pad_token: str = "<pad>"
    padding_side: Literal["right", "left"] = "right"
    lower_case: bool = False
    strip_punctuation: bool = False
    prefix: str = ""
    full_mask: bool = False  # every token counts, as in a model that was trained without a mask

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input."""
        return (self.length,)


class OnnxSettings(Settings):
    """All of eyespot.toml."""

    dim: Annotated[int, Field(gt=0)]
    licence: str
    revision: str = ""
    batch: Annotated[int, Field(gt=0)] = 32
    match_floor: float | None = None
    image: ImageSettings
    text: TextSettings


def checked(values: Mapping[str, Any], folder: Path) -> OnnxSettings:
    """Settings of a folder, with the padding that its tokenizer states. Raises: UsageError that names a wrong line."""
    try:
        found = OnnxSettings.model_validate(values)
        if not (tokenizer := folder / found.text.tokenizer).is_file():
            return found
        stated = padding_of(tokenizer) | {name: getattr(found.text, name) for name in found.text.model_fields_set}
        return found.model_copy(update={"text": TextSettings.model_validate(stated)})
    except ValidationError as error:
        text = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise UsageError(f"{folder / SETTINGS}: {text}") from error


def weight_files(folder: Path, settings: OnnxSettings) -> list[Path]:
    """Both towers, each with the files of its weights: those that its graph names, and those with its name before."""
    found: dict[Path, None] = {}
    for name in (settings.image.file, settings.text.file):
        tower = folder / name
        named: list[Path] = []
        with suppress(UnreadableGraph):  # whoever opens the tower says so
            named = [tower.parent / other for other in read_graph(tower).external]
        for other in named:
            if not other.is_file():
                raise UsageError(f"{tower} keeps its weights in {other.name}, which is not there; put it beside it")
        found |= dict.fromkeys([*sorted(tower.parent.glob(f"{tower.name}*")), *named])
    return list(found)


# -- the encoder --------------------------------------------------------------------------------------------


class OnnxEncoder(PictureEncoder):
    """Two towers run by onnxruntime; `name` is the one that loads them again."""

    def __init__(self, folder: Path, settings: OnnxSettings, name: str, batch: int | None = None) -> None:
        self._folder, self._settings = folder, settings
        self.batch = 1 if settings.batch == 1 else batch or settings.batch
        self.licence = settings.licence
        words = hub.digest([folder / settings.text.tokenizer])
        image, text = (one.model_dump_json(exclude=_usual(one)) for one in (settings.image, settings.text))
        weights = hub.digest(weight_files(folder, settings))
        self.space = Space(name, settings.revision, weights, f"{image} {text} tokenizer {words}", settings.dim)

    def read(self, picture: Image) -> Pixels:
        """One picture, resized, cropped and normalised: (3, height, width) float32; or (height, width, 3) bytes."""
        settings = self._settings.image
        if settings.pixels == "bytes":
            return np.asarray(fitted(picture, settings), np.uint8)
        pixels = np.asarray(fitted(picture, settings), np.float32) / np.float32(255)  # (height, width, 3)
        scaled = (pixels - np.array(settings.mean, np.float32)) / np.array(settings.std, np.float32)
        return np.ascontiguousarray(scaled.transpose(2, 0, 1))

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """(n, 3, height, width) to unit rows (n, dim)."""
        if len(pixels) == 0:
            return np.zeros((0, self.space.dim), np.float32)
        return self._unit_rows(self._image_tower, self._settings.image, {self._settings.image.input: pixels})

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """n texts to unit rows (n, dim)."""
        return in_batches(self._encode, text_list(texts), self.batch, self.space.dim)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        settings = self._settings.text
        encoded = self._tokenizer.encode_batch([self._worded(text) for text in texts])
        inputs = {settings.input: np.array([text.ids for text in encoded], np.int64)}  # (n, length)
        if settings.mask is not None:
            mask = np.array([text.attention_mask for text in encoded], np.int64)
            inputs[settings.mask] = np.ones_like(mask) if settings.full_mask else mask
        return self._unit_rows(self._text_tower, settings, inputs)

    def check_texts(self) -> None:
        """Embed the last word of the tokenizer; `UsageError` where it and the text tower are not of one model."""
        settings = self._settings.text

        def encode(number: int) -> Vectors:
            inputs = {name: np.ones((1, settings.length), np.int64) for name in (settings.input, settings.mask) if name}
            inputs[settings.input] *= number
            tower = _session(self._folder / settings.file, settings)  # not to stay open
            return self._unit_rows(tower, settings, inputs)

        try_last_word(self.space.encoder, self._tokenizer.get_vocab(with_added_tokens=False), encode)

    def caveat(self, text: str) -> str | None:
        """One sentence if most of the text is unknown to the tokenizer, or it asks for what such models do not see."""
        found = self._tokenizer.encode(self._worded(text), add_special_tokens=False)
        ids = [number for number, real in zip(found.ids, found.attention_mask, strict=True) if real]
        tokenizer = self._tokenizer
        word = getattr(tokenizer.model, "unk_token", None)
        number: int | None = tokenizer.token_to_id(word) if word else getattr(tokenizer.model, "unk_id", None)
        name = self.space.encoder
        return joined(mostly_unknown(name, ids, number), of_contrastive(name, text), self.cut(text))

    def cut(self, text: str) -> str | None:
        """What is said of more tokens than `length`."""
        return cut_by(self.space.encoder, self._tokenizer, self._worded(text))

    def tokens_in(self, text: str) -> int:
        """How many tokens the text tower reads, without padding."""
        return int(sum(self._tokenizer.encode(self._worded(text)).attention_mask))

    def weakest_match(self, text: str) -> float | None:
        """`match_floor` of eyespot.toml, the same for every text."""
        return self._settings.match_floor

    def _worded(self, text: str) -> str:
        settings = self._settings.text
        if settings.strip_punctuation:
            text = " ".join(text.translate(_PUNCTUATION).split())
        return settings.prefix + (text.lower() if settings.lower_case else text)

    def _unit_rows(self, tower: Any, settings: ImageSettings | TextSettings, inputs: dict[str, Any]) -> Vectors:
        rows = len(next(iter(inputs.values())))
        if rows > 1 and (self._settings.batch == 1 or tower.get_inputs()[0].shape[:1] == [1]):
            singly = [{name: value[at : at + 1] for name, value in inputs.items()} for at in range(rows)]
            return np.concatenate([self._unit_rows(tower, settings, one) for one in singly])
        types = {one.name: _TYPES.get(one.type) for one in tower.get_inputs()}
        cast = {name: value.astype(types[name] or value.dtype, copy=False) for name, value in inputs.items()}
        try:
            made = np.asarray(tower.run([settings.output], cast)[0], np.float32)  # (n, dim)
        except Exception as error:  # onnxruntime's errors share no other base
            raise EyespotError(f"{self._folder / settings.file} failed: {_first_line(error)}") from error
        if made.shape[1:] != (self.space.dim,):
            shape = f"shape {made.shape[1:]}, not ({self.space.dim},)"
            raise UsageError(
                f"{self._folder / settings.file} gives vectors of {shape}; set dim or output in {SETTINGS}"
            )
        return np.asarray(made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), np.float32(1e-12)), np.float32)

    @cached_property
    def _image_tower(self) -> Any:
        return _session(self._folder / self._settings.image.file, self._settings.image)

    @cached_property
    def _text_tower(self) -> Any:
        return _session(self._folder / self._settings.text.file, self._settings.text)

    @cached_property
    def _tokenizer(self) -> Any:
        return _tokenizer(self._folder / self._settings.text.tokenizer, self._settings.text)


_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}
_LATER = ("pixels", "crop", "padding_side", "strip_punctuation", "prefix", "full_mask")


def _usual(settings: ImageSettings | TextSettings) -> set[str]:
    """Settings that came later and say nothing here: a space made before them stays the same."""
    fields = type(settings).model_fields
    return {name for name in _LATER if name in fields and getattr(settings, name) == fields[name].default}


def _providers(available: Sequence[str]) -> list[str]:
    """What runs a tower, the first choice first. Raises: UsageError if EYESPOT_PROVIDERS names what is not here."""
    here = {name.removesuffix("ExecutionProvider").lower(): name for name in available}
    # Never CoreML by itself: it cuts such towers into many parts, is slower, and has given wrong numbers
    named = os.environ.get("EYESPOT_PROVIDERS", "")
    wanted = [name.strip().removesuffix("ExecutionProvider") for name in named.split(",") if name.strip()]
    if lacking := [name for name in wanted if name.lower() not in here]:
        there = ", ".join(name.removesuffix("ExecutionProvider") for name in available)
        raise UsageError(f"EYESPOT_PROVIDERS names {lacking[0]}, which onnxruntime does not have here; it has: {there}")
    return list(dict.fromkeys(here[name.lower()] for name in wanted or ("CUDA", "CPU") if name.lower() in here))


def _session(file: Path, settings: ImageSettings | TextSettings) -> Any:
    """The tower, with the names and shapes that the settings promise. Raises: UsageError if it has others."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    providers = _providers(onnxruntime.get_available_providers())
    try:
        tower = onnxruntime.InferenceSession(str(file), options, providers=providers)
    except Exception as error:  # onnxruntime's errors share no other base
        is_newer = any(word in str(error).lower() for word in ("opset", "ir version"))
        way_out = "; this export needs a newer onnxruntime: pip install -U onnxruntime" if is_newer else ""
        raise UsageError(f"{file} is not a model that onnxruntime opens: {_first_line(error)}{way_out}") from error
    inputs, output = [settings.input, *filter(None, [getattr(settings, "mask", None)])], settings.output
    for kind, names, ports in (("input", inputs, tower.get_inputs()), ("output", [output], tower.get_outputs())):
        known = [one.name for one in ports]
        if lacking := [name for name in names if name not in known]:
            there = ", ".join(known)
            raise UsageError(f"{file} has no {kind} {lacking[0]!r}; there are: {there}; set it in {SETTINGS}")
    shape = next(one.shape[1:] for one in tower.get_inputs() if one.name == settings.input)
    if any(isinstance(side, int) and side != given for side, given in zip(shape, settings.shape, strict=False)):
        line = "[text] length" if isinstance(settings, TextSettings) else "[image] size"
        raise UsageError(
            f"{file} takes {settings.input} of {shape}, not {list(settings.shape)}; set {line} in {SETTINGS}"
        )
    return tower


def _tokenizer(file: Path, settings: TextSettings) -> Any:
    """The tokenizer with our length and padding: a tokenizer.json may carry others from its training."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises plain Exception
        raise UsageError(f"{file} is not a tokenizer: {_first_line(error)}") from error
    pad = tokenizer.token_to_id(settings.pad_token)
    if pad is None:
        raise UsageError(f"{file} has no token {settings.pad_token!r}; set pad_token in {SETTINGS}")
    side = (tokenizer.truncation or {}).get("direction", "right").lower()
    tokenizer.enable_truncation(settings.length, direction=side)
    filler = {"pad_id": pad, "pad_token": settings.pad_token}
    tokenizer.enable_padding(direction=settings.padding_side, length=settings.length, **filler)
    return tokenizer


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")


# -- pictures -----------------------------------------------------------------------------------------------


def fitted(picture: Image, settings: ImageSettings) -> Image:
    """A picture at the tower's size: shorter side to fit and the middle cut out ("shortest", offsets as torchvision
    or transformers has them), stretched ("squash"), or longer side to fit on black ("longest")."""
    height, width = settings.height_width
    if settings.resize == "squash":
        return picture.resize((width, height), _filter(settings))
    choose = max if settings.resize == "shortest" else min
    goal, side = choose((width, picture.width), (height, picture.height), key=lambda pair: pair[0] / pair[1])
    sides = (max(1, picture.width * goal // side), max(1, picture.height * goal // side))
    halved = round if settings.crop == "round" else math.floor
    left, top = halved((sides[0] - width) / 2), halved((sides[1] - height) / 2)
    return picture.resize(sides, _filter(settings)).crop((left, top, left + width, top + height))


def _filter(settings: ImageSettings) -> Resampling:
    from PIL.Image import Resampling

    return Resampling[settings.interpolation.upper()]
