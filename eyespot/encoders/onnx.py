"""Any exported pair of towers, without torch: `onnx:FOLDER` with image.onnx, text.onnx, tokenizer.json, eyespot.toml.

The settings file says how a picture and a text become the towers' inputs; docs/encoders.md explains every line of it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from eyespot.models import hub
from eyespot.models.text_caveats import cut_by, joined, mostly_unknown, of_contrastive
from eyespot.types import EyespotError, Pixels, Space, UsageError, Vectors

if TYPE_CHECKING:
    from PIL.Image import Image, Resampling

SPELLING = "onnx:FOLDER"
NEEDS = "nothing more; an exported model in a folder"
SETTINGS = "eyespot.toml"


def load(spec: str, *, batch: int | None = None, threads: int = 0) -> OnnxEncoder:
    """A folder as an encoder; the towers open when they are first used. `threads` 0 leaves the choice to the runtime.

    Raises: UsageError for a missing file or a wrong line in the settings.
    """
    folder = Path(spec).expanduser()
    settings = read_settings(folder)
    for name in (settings.image.file, settings.text.file, settings.text.tokenizer):
        if not (folder / name).is_file():
            raise UsageError(f"{folder} has no {name}; put it there or name another file in {SETTINGS}")
    return OnnxEncoder(folder, settings, batch or settings.batch, threads)


# -- the settings file --------------------------------------------------------------------------------------


def _inside(name: str) -> str:
    """A file of the folder itself: settings from elsewhere must not make eyespot read other files."""
    if not name or name in (".", "..") or any(mark in name for mark in "/\\:\0"):
        raise ValueError("must be the plain name of a file in the same folder")
    return name


PlainName = Annotated[str, AfterValidator(_inside)]
Side = Annotated[int, Field(gt=0, le=8192)]
Three = tuple[float, float, float]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ImageSettings(_Strict):
    """The image tower and how a picture becomes its input, (n, 3, height, width) float32."""

    file: PlainName = "image.onnx"
    input: str = "pixel_values"
    output: str = "image_embeds"
    size: Side | tuple[Side, Side]  # one side of a square, or height and width
    resize: Literal["shortest", "squash", "longest"] = "shortest"
    interpolation: Literal["bicubic", "bilinear", "lanczos"] = "bicubic"
    mean: Three = (0.0, 0.0, 0.0)
    std: Three = (1.0, 1.0, 1.0)

    @property
    def height_width(self) -> tuple[int, int]:
        """The input's height and width in pixels."""
        return (self.size, self.size) if isinstance(self.size, int) else self.size


class TextSettings(_Strict):
    """The text tower and how a text becomes its input, (n, length) int64."""

    file: PlainName = "text.onnx"
    tokenizer: PlainName = "tokenizer.json"
    input: str = "input_ids"
    mask: str | None = None  # the name of the attention mask's input, if the tower has one
    output: str = "text_embeds"
    length: Annotated[int, Field(gt=0, le=8192)]
    padding: Literal["length", "longest"] = "length"
    pad_token: str = "<pad>"
    lower_case: bool = False


class OnnxSettings(_Strict):
    """All of eyespot.toml."""

    dim: Annotated[int, Field(gt=0)]
    licence: str
    revision: str = ""
    batch: Annotated[int, Field(gt=0)] = 32
    match_floor: float | None = None
    image: ImageSettings
    text: TextSettings


def read_settings(folder: Path) -> OnnxSettings:
    """The folder's eyespot.toml, checked. Raises: UsageError that names the file and the line at fault."""
    file = folder / SETTINGS
    try:
        return OnnxSettings.model_validate(tomllib.loads(file.read_text("utf-8")))
    except OSError as error:
        raise UsageError(f"cannot read {file} ({error.strerror}); docs/encoders.md shows what it holds") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not TOML: {error}") from error
    except ValidationError as error:
        text = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise UsageError(f"{file}: {text}") from error


# -- the encoder --------------------------------------------------------------------------------------------


class OnnxEncoder:
    """Two towers run by onnxruntime."""

    min_side = None

    def __init__(self, folder: Path, settings: OnnxSettings, batch: int, threads: int) -> None:
        self._folder, self._settings, self._threads = folder, settings, threads
        self.batch = batch
        self.licence = settings.licence
        towers = [
            part for name in (settings.image.file, settings.text.file) for part in sorted(folder.glob(f"{name}*"))
        ]
        words = hub.digest([folder / settings.text.tokenizer])
        preprocessing = f"{settings.image.model_dump_json()} {settings.text.model_dump_json()} tokenizer {words}"
        self.space = Space(
            f"onnx:{folder.resolve()}", settings.revision, hub.digest(towers), preprocessing, settings.dim
        )

    def read(self, picture: Image) -> Pixels:
        """One picture, resized, cropped and normalised: (3, height, width) float32."""
        settings = self._settings.image
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
        settings = self._settings.text
        parts = [np.zeros((0, self.space.dim), np.float32)]
        for start in range(0, len(texts), self.batch):
            some = [self._worded(text) for text in texts[start : start + self.batch]]
            encoded = self._tokenizer.encode_batch(some)
            inputs = {settings.input: np.array([text.ids for text in encoded], np.int64)}  # (n, length)
            if settings.mask is not None:
                inputs[settings.mask] = np.array([text.attention_mask for text in encoded], np.int64)
            parts.append(self._unit_rows(self._text_tower, settings, inputs))
        return np.concatenate(parts)

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

    def weakest_match(self, text: str) -> float | None:
        """`match_floor` of eyespot.toml, the same for every text."""
        return self._settings.match_floor

    def _worded(self, text: str) -> str:
        return text.lower() if self._settings.text.lower_case else text

    def _unit_rows(self, tower: Any, settings: ImageSettings | TextSettings, inputs: dict[str, Any]) -> Vectors:
        try:
            rows = np.asarray(tower.run([settings.output], inputs)[0], np.float32)  # (n, dim)
        except Exception as error:  # onnxruntime's errors share no other base
            raise EyespotError(f"{self._folder / settings.file} failed: {_first_line(error)}") from error
        if rows.shape[1:] != (self.space.dim,):
            file = self._folder / settings.file
            shape = rows.shape[1:]
            text = f"{file} gives vectors of shape {shape}, not ({self.space.dim},); set dim or output in {SETTINGS}"
            raise UsageError(text)
        unit: Vectors = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))
        return unit

    @cached_property
    def _image_tower(self) -> Any:
        settings = self._settings.image
        return _session(self._folder / settings.file, [settings.input], settings.output, self._threads)

    @cached_property
    def _text_tower(self) -> Any:
        settings = self._settings.text
        inputs = [settings.input] if settings.mask is None else [settings.input, settings.mask]
        return _session(self._folder / settings.file, inputs, settings.output, self._threads)

    @cached_property
    def _tokenizer(self) -> Any:
        return _tokenizer(self._folder / self._settings.text.tokenizer, self._settings.text)


def _session(file: Path, inputs: list[str], output: str, threads: int) -> Any:
    """The tower, with the names that the settings promise. Raises: UsageError if it is no model or has others."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
    providers = [name for name in wanted if name in onnxruntime.get_available_providers()]
    try:
        tower = onnxruntime.InferenceSession(str(file), options, providers=providers)
    except Exception as error:  # onnxruntime's errors share no other base
        raise UsageError(f"{file} is no model that onnxruntime opens: {_first_line(error)}") from error
    _promised(file, "input", inputs, tower.get_inputs())
    _promised(file, "output", [output], tower.get_outputs())
    return tower


def _promised(file: Path, kind: str, names: list[str], present: list[Any]) -> None:
    known = [one.name for one in present]
    for name in names:
        if name not in known:
            raise UsageError(f"{file} has no {kind} {name!r}; there are: {', '.join(known)}; set it in {SETTINGS}")


def _tokenizer(file: Path, settings: TextSettings) -> Any:
    """The tokenizer with our length and padding: a tokenizer.json may carry others from its training."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises plain Exception
        raise UsageError(f"{file} is no tokenizer: {_first_line(error)}") from error
    pad = tokenizer.token_to_id(settings.pad_token)
    if pad is None:
        raise UsageError(f"{file} has no token {settings.pad_token!r}; set pad_token in {SETTINGS}")
    tokenizer.enable_truncation(settings.length)
    length = settings.length if settings.padding == "length" else None
    tokenizer.enable_padding(pad_id=pad, pad_token=settings.pad_token, length=length)
    return tokenizer


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")


# -- pictures -----------------------------------------------------------------------------------------------


def fitted(picture: Image, settings: ImageSettings) -> Image:
    """A picture at the tower's size: shorter side to fit and the middle cut out ("shortest", sides and offsets
    rounded as torchvision rounds them), stretched ("squash"), or longer side to fit on black ("longest")."""
    height, width = settings.height_width
    if settings.resize == "squash":
        return picture.resize((width, height), _filter(settings))
    choose = max if settings.resize == "shortest" else min
    goal, side = choose((width, picture.width), (height, picture.height), key=lambda pair: pair[0] / pair[1])
    sides = (max(1, picture.width * goal // side), max(1, picture.height * goal // side))
    left, top = round((sides[0] - width) / 2), round((sides[1] - height) / 2)
    return picture.resize(sides, _filter(settings)).crop((left, top, left + width, top + height))


def _filter(settings: ImageSettings) -> Resampling:
    from PIL.Image import Resampling

    return Resampling[settings.interpolation.upper()]
