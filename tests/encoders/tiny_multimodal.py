"""Multimodal language models in miniature, with random weights and their own processors, saved in folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.worlds.judge_models import CHATML, SPECIAL, numbers_of, qwen3_vl, qwen25_vl, saved, text_of, tokenizer

ROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}


def qwen2_vl(folder: Path, special: tuple[str, ...] = ()) -> Path:
    """Qwen2-VL, which VLM2Vec and UME-R1 were made of; `special` are further tokens."""
    import transformers as t

    words = tokenizer([*SPECIAL, *special])
    sight = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "mlp_ratio": 2, "patch_size": 14}
    config = t.Qwen2VLConfig(text_config=text_of(words, rope_parameters=ROPE), vision_config=sight, **numbers_of(words))
    image = t.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=28 * 28 * 16)
    processor = t.Qwen2VLProcessor(image, words, t.Qwen2VLVideoProcessor(), chat_template=CHATML)
    return saved(folder, t.Qwen2VLForConditionalGeneration, config, processor)


def vlm2vec(folder: Path) -> Path:
    """VLM2Vec: known by its name."""
    return qwen2_vl(folder / "VLM2Vec-V2.0")


def ume_r1(folder: Path) -> Path:
    """UME-R1: known by its tokens."""
    return qwen2_vl(folder, ("<think>", "</think>", "<disc_emb>", "<gen_emb>"))


def phi4(folder: Path) -> Path:
    """Phi-4-multimodal; its processor counts on 32 patches a side."""
    import transformers as t

    spoken = tokenizer(["<|user|>", "<|assistant|>", "<|end|>"])
    words = t.PreTrainedTokenizerFast(
        tokenizer_object=spoken.backend_tokenizer,
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        extra_special_tokens={"image_token": "<|image|>", "audio_token": "<|audio|>"},
    )
    sight = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
    sight |= {"image_size": 64, "crop_size": 64, "patch_size": 2, "image_token_id": words.image_token_id}
    hearing = {"hidden_size": 16, "intermediate_size": 16, "num_blocks": 1, "num_attention_heads": 2}
    hearing |= {"ext_pw_out_channel": 16, "nemo_conv_channels": 16, "audio_token_id": words.audio_token_id}
    text = text_of(words) | {"max_position_embeddings": 4096, "original_max_position_embeddings": 4096}
    config = t.Phi4MultimodalConfig(**text, vision_config=sight, audio_config=hearing)
    image = t.Phi4MultimodalImageProcessor(size={"height": 64, "width": 64}, patch_size=2, dynamic_hd=4)
    processor = t.Phi4MultimodalProcessor(image, t.Phi4MultimodalFeatureExtractor(), words)
    return saved(folder, t.Phi4MultimodalForCausalLM, config, processor)


MODELS: dict[str, Callable[[Path], Path]] = {
    "qwen2_vl": qwen2_vl,
    "qwen2_5_vl": qwen25_vl,
    "qwen3_vl": qwen3_vl,
    "vlm2vec": vlm2vec,
    "ume_r1": ume_r1,
    "phi4": phi4,
}


def adapter(folder: Path, base: Path, network: Any, lengths: float = 0.0) -> dict[str, Any]:
    """An adapter of rank 2 over the queries' projections, as PEFT writes it under older names; gives what it adds.

    `lengths` other than 0 makes it a DoRA whose rows all have this length.
    """
    import json

    import torch
    from safetensors.torch import save_file

    draw = np.random.default_rng(5)
    wanted = {name: one for name, one in network.named_modules() if name.endswith("self_attn.q_proj")}
    parts, added = {}, {}
    for name, layer in wanted.items():
        old = "base_model.model." + name.replace("model.language_model.", "model.")
        a, b = (
            torch.from_numpy(draw.normal(size=size).astype(np.float32)) for size in ((2, 32), (len(layer.weight), 2))
        )
        parts |= {f"{old}.lora_A.weight": a, f"{old}.lora_B.weight": b}
        if lengths:
            parts[f"{old}.lora_magnitude_vector"] = torch.full((len(layer.weight),), lengths)
        added[name] = 2.0 * b @ a  # alpha / r = 4 / 2
    folder.mkdir(parents=True)
    save_file(parts, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "r": 2,
        "lora_alpha": 4,
        "use_dora": bool(lengths),
        "base_model_name_or_path": str(base),
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return added
