"""Real model classes in miniature, with random weights, for tests of the encoders and judges that load them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

TOWER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}


def pictures() -> list[Image.Image]:
    """Three noisy pictures, of landscape, portrait and square shape."""
    shapes = ((40, 60), (64, 48), (32, 32))
    noise = np.random.default_rng(0)
    return [Image.fromarray(noise.integers(0, 256, (*shape, 3), np.uint8)) for shape in shapes]


def tokenizer(bos: str | None = None, eos: str = "</s>", pad: str = "<pad>") -> Any:
    """A byte-level tokenizer of transformers that knows every byte and no merge."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = [pad, eos, "<unk>", *([bos] if bos else []), *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {word: number for number, word in enumerate(words)}
    fast = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    around = f"{bos} $A {eos}" if bos else f"$A {eos}"
    special = [(word, vocabulary[word]) for word in (bos, eos) if word]
    fast.post_processor = processors.TemplateProcessing(single=around, special_tokens=special)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=fast, bos_token=bos, eos_token=eos, pad_token=pad, unk_token="<unk>", padding_side="right"
    )


def hf_clip(folder: Path, seed: int = 0, *, patch: int = 8) -> Path:
    """A CLIPModel with its processor, saved; large patches make large pictures cheap."""
    import transformers

    words = tokenizer("<|startoftext|>", "<|endoftext|>")
    text = {**TOWER, "vocab_size": len(words), "max_position_embeddings": 32, **_special(words)}
    vision = {**TOWER, "image_size": 32, "patch_size": patch}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    sizes: dict[str, Any] = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
    processor = transformers.CLIPProcessor(transformers.CLIPImageProcessor(**sizes), words)
    return _saved(folder, transformers.CLIPModel, config, processor, seed)


def hf_siglip(folder: Path, seed: int = 0, *, patch: int = 8) -> Path:
    import transformers

    words = tokenizer()
    text = {**TOWER, "vocab_size": len(words), "max_position_embeddings": 64, "projection_size": 32}
    vision = {**TOWER, "image_size": 32, "patch_size": patch}
    config = transformers.SiglipConfig(text_config=text, vision_config=vision)
    image = transformers.SiglipImageProcessor(size={"height": 32, "width": 32})
    return _saved(folder, transformers.SiglipModel, config, transformers.SiglipProcessor(image, words), seed)


def dinov2(folder: Path, family: str = "Dinov2", seed: int = 0) -> Path:
    """A DINOv2 with its processor, saved; `family` is transformers' name of the model."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = getattr(transformers, f"{family}Config")(
        **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 56, "patch_size": 14}
    )
    getattr(transformers, f"{family}Model")(config).eval().save_pretrained(folder)
    transformers.BitImageProcessor().save_pretrained(folder)
    return folder


def exported_clip(model: Path, folder: Path) -> Path:
    """The two towers and the tokenizer of a saved CLIPModel as ONNX files."""
    import torch
    import transformers

    clip = transformers.CLIPModel.from_pretrained(model, attn_implementation="eager").eval()
    (folder / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    ids = torch.tensor([[3, 20, 1]] * 2)
    export(tower(clip, "image"), {"pixel_values": torch.zeros(2, 3, 32, 32)}, folder / "image.onnx", "image_embeds")
    words = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    export(tower(clip, "text"), words, folder / "text.onnx", "text_embeds")
    return folder


def tower(clip: Any, half: str) -> Any:
    """One half of a CLIPModel or SiglipModel as a module; a SigLIP's has no mask."""
    import torch

    class Tower(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.clip = clip

        def forward(self, *inputs: Any) -> Any:
            if half == "image":
                return clip.get_image_features(pixel_values=inputs[0]).pooler_output
            mask = inputs[1] if len(inputs) > 1 else None
            return clip.get_text_features(input_ids=inputs[0], attention_mask=mask).pooler_output

    return Tower()


def export(tower: Any, inputs: dict[str, Any], file: Path, output: str, length: bool = True) -> None:
    """A module as an ONNX file with a free batch; a text's length is free, too, unless the model wants one."""
    import torch

    free = {name: {0: "batch", **({1: "length"} if "pixel" not in name and length else {})} for name in inputs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # this exporter is the old one, but it takes a second, not six
        torch.onnx.export(
            tower,
            tuple(inputs.values()),
            str(file),
            dynamo=False,
            opset_version=17,
            input_names=list(inputs),
            output_names=[output],
            dynamic_axes={**free, output: {0: "batch"}},
        )


def open_clip_configs(folder: Path) -> Path:
    """A folder of open_clip configurations: tiny-clip, and tiny-siglip with a tokenizer of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer().save_pretrained(folder / "words")
    _register_nano_siglip()
    (folder / "tiny-clip.json").write_text(json.dumps(clip_config()))
    (folder / "tiny-siglip.json").write_text(json.dumps(siglip_config(folder / "words")))
    return folder


def clip_config() -> dict[str, Any]:
    """An open_clip configuration with OpenAI's layout, activation and vocabulary."""
    vision = {"image_size": 32, "layers": 2, "width": 64, "head_width": 16, "patch_size": 8}
    text = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
    return {"embed_dim": 16, "quick_gelu": True, "vision_cfg": vision, "text_cfg": text}


def siglip_config(words: Path) -> dict[str, Any]:
    """An open_clip configuration laid out as its ViT-B-16-SigLIP."""
    vision = {"image_size": 32, "timm_model_name": "vit_nano_siglip", "timm_pool": "map", "timm_proj": "none"}
    text = {
        "context_length": 64,
        "vocab_size": 300,
        "hf_tokenizer_name": str(words),
        "tokenizer_kwargs": {"clean": "canonicalize"},
        "width": 32,
        "heads": 2,
        "layers": 2,
        "no_causal_mask": True,
        "proj_bias": True,
        "pool_type": "last",
    }
    return {"embed_dim": 32, "init_logit_bias": -10, "custom_text": True, "vision_cfg": vision, "text_cfg": text}


def open_clip_weights(file: Path, architecture: str, seed: int = 0) -> Path:
    """The random weights of a tiny architecture, as a state dict."""
    import open_clip
    import torch

    torch.manual_seed(seed)
    torch.save(open_clip.create_model(architecture).state_dict(), file)
    return file


def tiny_clip_weights(folder: Path) -> Path:
    """The same of tiny-clip, with open_clip told of it."""
    import open_clip

    open_clip.add_model_config(open_clip_configs(folder))
    return open_clip_weights(folder / "weights.pt", "tiny-clip")


def published(cache: Path, repo: str, folder: Path, *, main: bool = True) -> str:
    home = cache / f"models--{repo.replace('/', '--')}"
    blobs = {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.is_file()}
    commit = hashlib.sha1("".join(blobs.values()).encode()).hexdigest()
    for part in ("blobs", "refs", f"snapshots/{commit}"):
        (home / part).mkdir(parents=True, exist_ok=True)
    for file, name in blobs.items():
        shutil.copy(file, home / "blobs" / name)
        link = home / "snapshots" / commit / file.name
        link.unlink(missing_ok=True)  # of an earlier module of the same worker
        link.symlink_to(home / "blobs" / name)
    if main:
        (home / "refs" / "main").write_text(commit)
    return commit


class Bomb:
    """Unpickling it makes a folder."""

    def __init__(self, crater: Path) -> None:
        self.crater = crater

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.crater),)


def _register_nano_siglip() -> None:
    import timm

    if "vit_nano_siglip" in timm.list_models():
        return

    def vit_nano_siglip(pretrained: bool = False, **options: Any) -> Any:
        from timm.models.vision_transformer import VisionTransformer

        rest = {key: options[key] for key in options if not key.startswith("pretrained_cfg") and key != "cache_dir"}
        size = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2}
        return VisionTransformer(**{**rest, **size, "class_token": False, "global_pool": "map"})

    vit_nano_siglip.__module__ = "timm.models.vision_transformer"
    timm.models.register_model(vit_nano_siglip)


def _special(words: Any) -> dict[str, int]:
    return {f"{kind}_token_id": getattr(words, f"{kind}_token_id") for kind in ("bos", "eos", "pad")}


def _saved(folder: Path, kind: Any, config: Any, processor: Any, seed: int) -> Path:
    import torch

    torch.manual_seed(seed)
    kind(config).eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
