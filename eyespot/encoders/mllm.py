"""Multimodal language models: `mllm:ORG/NAME[@REVISION]` or `mllm:FOLDER`; Qwen-VL, VLM2Vec, UME-R1, Phi-4-multimodal.

A model trained to reason first (UME-R1) writes its thoughts on a query down and embeds them with it, while pictures are
embedded at once. Adapters (LoRA) are merged into the model that they name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.encoders import _lora as lora
from eyespot.encoders._mllm_inputs import MOST_PIXELS, MOST_RATIO, Family, ModelInput, family, packed, settled, unpacked
from eyespot.encoders._pictures import PictureEncoder, in_batches, text_list, try_last_word
from eyespot.encoders._torch import Device, vocabulary_of
from eyespot.encoders.hf import WEIGHTS, licence_of
from eyespot.models import hub
from eyespot.models.torch_models import half, model_of, on_device, processor_of
from eyespot.types import Pixels, Space, UsageError, Vectors

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

SPELLING = "mllm:ORG/NAME[@REVISION] or mllm:FOLDER"
NEEDS = "the extra [torch]; weights from the model hub or a folder; better a GPU"
THOUGHTS = 2048  # tokens that a query may be reasoned over
PROCESSOR = ("preprocessor_config.json", "processor_config.json")


def load(spec: str, *, device: str = "auto", batch: int | None = None, thoughts: int = THOUGHTS) -> MultimodalEncoder:
    """A multimodal language model as an encoder; code that a repository brings is not run.

    `thoughts` is how many tokens a model that reasons may write on a query. Raises: UsageError if the model is of
    another family, EyespotError if it cannot be had or its files are not whole.
    """
    with hub.loading(f"mllm:{spec}"):
        where = Device(device)
        checkpoint, name = hub.checkpoint_of("mllm", spec, (*WEIGHTS, lora.WEIGHTS))
        network, processor, weights = _opened(checkpoint, name, where)
        vocabulary = processor.tokenizer.get_vocab()
        chosen = settled(family(name, network.config.model_type, vocabulary), checkpoint.folder)
        # All that decides what the model is told and shown, as JSON
        image = processor.image_processor
        settings = {key: value for key, value in sorted(image.to_dict().items()) if not key.startswith("_")}
        limits = {"pixels": MOST_PIXELS, "ratio": MOST_RATIO, "thoughts": thoughts if chosen.thought else 0}
        prompt = {"family": chosen.model_dump(), "template": processor.chat_template, **limits}
        prompt = {"processor": type(image).__name__, "image": settings, **prompt}
        dim = int(network.config.get_text_config().hidden_size)
        space = Space(name, checkpoint.revision, weights, json.dumps(prompt, sort_keys=True, default=str), dim)
        few = 4 if where.torch.type == "cpu" else 16
        return MultimodalEncoder(network, processor, chosen, thoughts, space, licence_of(spec), batch or few)


@dataclass(repr=False)
class MultimodalEncoder(PictureEncoder):
    """A loaded model as an `eyespot.types.Encoder` that also composes (`eyespot.types.Composer`)."""

    network: Any
    processor: Any
    family: Family
    thoughts: int
    space: Space
    licence: str
    batch: int
    min_side: int | None = None

    def read(self, picture: Image) -> Pixels:
        """One upright RGB picture as bytes, with its shape in front."""
        return packed(picture)

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """Pictures (n, ...) as `read` gave them, as what is found: without reasoning, (n, dim)."""
        return self._rows(self.embedded, [ModelInput(row, None) for row in pixels])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Words that ask, under the family's instruction and after reasoning where it has that, (n, dim)."""
        return self._rows(self.query_vectors, [ModelInput(None, text) for text in text_list(texts)])

    def encode_composed(self, pixels: Pixels, texts: Sequence[str]) -> Vectors:
        """Pictures (n, ...) with words about each, read together, (n, dim)."""
        return self._rows(self.query_vectors, [ModelInput(row, text) for row, text in zip(pixels, texts, strict=True)])

    def _rows(self, embed: Callable[[Sequence[ModelInput]], torch.Tensor], shown: Sequence[ModelInput]) -> Vectors:
        import torch

        def encode(some: Sequence[ModelInput]) -> Vectors:
            return np.asarray(torch.nn.functional.normalize(embed(some).float(), dim=1).cpu())

        with torch.inference_mode(), hub.quiet():
            return in_batches(encode, shown, self.batch, self.space.dim)

    def query_vectors(self, shown: Sequence[ModelInput]) -> torch.Tensor:
        """The vectors of queries, (n, dim): after reasoning where the family reasons."""
        return self.reasoned(shown) if self.family.thought else self.embedded(shown)

    def check_texts(self) -> None:
        """Embed the last word of the tokenizer, without reasoning; `UsageError` where the network does not know it."""
        import torch

        inputs = self._prompted([ModelInput(None, "a photo")])
        with torch.inference_mode():
            try_last_word(
                self.space.encoder,
                vocabulary_of(self.processor.tokenizer),
                lambda number: self._last(inputs | {"input_ids": inputs["input_ids"].clone().fill_(number)}),
            )

    def embedded(self, shown: Sequence[ModelInput]) -> torch.Tensor:
        """The hidden states at the last token, (n, dim)."""
        return self._last(self._prompted(shown))

    def _prompted(self, shown: Sequence[ModelInput]) -> dict[str, torch.Tensor]:
        marker = self.family.marker
        prompts = [self._laid_out(one, self._instructed(one) + (f"\n{marker}" if marker else "")) for one in shown]
        if marker:  # what is said up to the token at which the vector is read: what follows does not reach it
            prompts = [prompt[: prompt.rindex(marker) + len(marker)] for prompt in prompts]
        return self._inputs(prompts, shown, "right")

    def reasoned(self, shown: Sequence[ModelInput]) -> torch.Tensor:
        """The hidden states at the token that ends the model's own reasoning, (n, dim).

        Reasoning that was cut off, or ended without that token, gets it at its end.
        """
        said = self.family.marker, self.family.instructions.reasoning  # before the model reasons
        questions = [self._laid_out(one, "\n".join(filter(None, (self._instructed(one), *said)))) for one in shown]
        inputs = self._inputs(questions, shown, "left")
        end = self.processor.tokenizer.convert_tokens_to_ids(self.family.thought)
        ways = {
            "do_sample": False,
            "max_new_tokens": self.thoughts,
            "eos_token_id": [end, *self._ends],
            "pad_token_id": self.processor.tokenizer.pad_token_id,
        }
        answers = self.network.generate(**inputs, **ways)[:, inputs["input_ids"].shape[1] :].tolist()
        silent = {*self._ends, self.processor.tokenizer.pad_token_id}  # tokens that end an answer and say nothing
        return self._last(_continued(inputs, [thought(row, end, silent) for row in answers]))

    @property
    def _ends(self) -> list[int]:
        known = self.network.generation_config.eos_token_id
        return [] if known is None else [known] if isinstance(known, int) else list(known)

    def _last(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        import torch

        mask = inputs["attention_mask"]
        if self.family.positions == "row":
            row = (mask.cumsum(1) - 1).clamp(min=0)  # (n, length)
            inputs = {**inputs, "position_ids": row.expand(3, -1, -1)}
        hidden = self.network.model(**inputs, use_cache=False).last_hidden_state  # (n, length, dim)
        last = mask.shape[1] - 1 - mask.flip(1).argmax(1)  # (n,)
        picked: torch.Tensor = hidden[torch.arange(len(last), device=last.device), last]
        return picked

    def _inputs(self, prompts: list[str], shown: Sequence[ModelInput], side: str) -> dict[str, torch.Tensor]:
        pictures = [unpacked(one.picture) for one in shown if one.picture is not None]
        more = {"images": pictures} if pictures else {}
        padded = {"padding": True, "padding_side": side, "return_tensors": "pt"}
        return on_device(self.processor(text=prompts, **more, **padded), self.network)

    def _instructed(self, one: ModelInput) -> str:
        words = one.words
        if words is not None:
            own = (self.family.marker, self.family.thought, self.processor.image_token)
            # Words that spell one of the model's control tokens must not act as one
            for token in (*self.processor.tokenizer.all_special_tokens, *filter(None, own)):
                words = words.replace(token, " ")
        return self.family.instructions.around(words, beside_picture=one.picture is not None)

    def _laid_out(self, one: ModelInput, words: str) -> str:
        picture = "" if one.picture is None else self.processor.image_token
        if self.family.template:
            return self.family.template.replace("{picture}", picture).replace("{text}", words).strip()
        if self.processor.chat_template is None:
            raise UsageError("this checkpoint brings no chat template; put its chat_template.jinja into the folder")
        content = [*([{"type": "image"}] if picture else []), {"type": "text", "text": words}]
        messages = [{"role": "user", "content": content}]
        laid: str = self.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return laid


def thought(tokens: list[int], end: int, silent: set[int]) -> list[int]:
    """What was generated up to the token that ends the reasoning."""
    reasoning = tokens[: tokens.index(end)] if end in tokens else [token for token in tokens if token not in silent]
    return [*reasoning, end]


def _continued(inputs: dict[str, torch.Tensor], suffixes: Sequence[list[int]]) -> dict[str, torch.Tensor]:
    """Inputs (n, length), padded in front, with what was said after each, padded behind: (n, length + longest)."""
    import torch

    longest = max(map(len, suffixes))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in suffixes], device=inputs["input_ids"].device)
    there = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in suffixes], device=ids.device)
    more = {"input_ids": ids, "attention_mask": there, "mm_token_type_ids": torch.zeros_like(ids)}
    return {
        name: torch.cat([value, more[name].to(value.dtype)], 1) if name in more else value
        for name, value in inputs.items()
    }


# -- the model ----------------------------------------------------------------------------------------------


def _opened(checkpoint: hub.Checkpoint, name: str, where: Device) -> tuple[Any, Any, str]:
    """The network in its place, its processor, and a digest of the weights."""
    import torch
    from transformers import AutoModelForMultimodalLM

    adapter = lora.settings_of(checkpoint.folder)
    base = checkpoint if adapter is None else hub.checkpoint_of("mllm", adapter["base_model_name_or_path"], WEIGHTS)[0]
    # `UsageError` for a kind that cannot embed, before the library tries to load it
    found = (
        json.loads((base.folder / "config.json").read_text("utf-8")) if (base.folder / "config.json").is_file() else {}
    )
    family(name, str(found.get("model_type")), ())
    exact = torch.float32 if where.torch.type == "cpu" else half(where.torch)
    network = model_of(AutoModelForMultimodalLM, base.folder, exact, name)
    # Phi-4's picture tower looks both ways where some patch is padding, and else, in version 5 of the library,
    # only back: a picture's vector would hang on its neighbours in the batch
    for module in network.modules():
        if type(module).__name__ == "Phi4MultimodalVisionAttention":
            module.is_causal = False
    network = network.to(where.torch).eval()
    if adapter is not None:
        lora.merge(network, checkpoint.folder, adapter)
    own = any((checkpoint.folder / file).is_file() for file in PROCESSOR)
    files = checkpoint.weights if adapter is None else [*base.weights, *checkpoint.weights]
    folder = checkpoint.folder if own else base.folder
    return network, processor_of(folder), hub.digest(files)
