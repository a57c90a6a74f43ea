"""Real vision–language models in miniature, with random weights and their own processors, saved in folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SIZE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
SQUARE = {"height": 32, "width": 32}
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}{% if c['type'] == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
VICUNA = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ m['content'][0]['text'] }} {% else %}USER: "
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<image>\n{% else %}{{ c['text'] }}{% endif %}{% endfor %} "
    "{% endif %}{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
WITHOUT_SYSTEM = VICUNA.replace("{{ m['content'][0]['text'] }} ", "{{ raise_exception('no system role here') }}")
RERANKER = (  # jinja drops a line's end after a block, hence those in quotes
    "<|im_start|>system\nAnswer yes or no.<|im_end|>\n<|im_start|>user\n{% for m in messages %}<{{ m['role'] }}>: "
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}"
    "{{ c['text'] }}{% endif %}{% endfor %}{{ '\\n' }}{% endfor %}<|im_end|>\n<|im_start|>assistant{{ '\\n' }}"
)


def tokenizer(special: list[str], bos: str | None = None, words: tuple[str, ...] = ("Yes", "No", "yes", "no")) -> Any:
    """A byte-level tokenizer with the given control tokens and answers."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    pieces = ["<pad>", "</s>", "<unk>", *([bos] if bos else []), *sorted(pre_tokenizers.ByteLevel.alphabet())]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    fast = Tokenizer(models.BPE(vocab=numbers, merges=[], unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    if bos:
        fast.post_processor = processors.TemplateProcessing(f"{bos} $A", special_tokens=[(bos, numbers[bos])])
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=fast,
        bos_token=bos,
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        additional_special_tokens=special,
        padding_side="right",  # as published checkpoints have it: whoever asks must pad on the left himself
    )
    made.add_tokens(list(words))
    return made


def text_of(words: Any, **more: Any) -> dict[str, Any]:
    """The settings of a small language model over these words."""
    special = {f"{kind}_token_id": getattr(words, f"{kind}_token_id") for kind in ("bos", "eos", "pad")}
    return {
        **SIZE,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "vocab_size": len(words),
        **special,
        **more,
    }


def saved(folder: Path, model: Any, config: Any, processor: Any) -> Path:
    """A model with random weights, and its processor.

    Weights are drawn wide, or a random model would find every answer equally likely.
    """
    import torch

    torch.manual_seed(0)
    network = model(config).eval()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.ndim > 1 and "norm" not in name:
                weight.mul_(4)
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


# -- models that converse -----------------------------------------------------------------------------------


def qwen25_vl(folder: Path) -> Path:
    import transformers as t

    words = tokenizer(SPECIAL)
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
    sight = {**_eyes(14), "window_size": 56, "fullatt_block_indexes": [1]}
    config = t.Qwen2_5_VLConfig(
        text_config=text_of(words, rope_parameters=rope), vision_config=sight, **numbers_of(words)
    )
    image = t.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=28 * 28 * 16)
    processor = t.Qwen2_5_VLProcessor(image, words, t.Qwen2VLVideoProcessor(), chat_template=CHATML)
    return saved(folder, t.Qwen2_5_VLForConditionalGeneration, config, processor)


def qwen3_vl(folder: Path, template: str = CHATML) -> Path:
    import transformers as t

    words = tokenizer(SPECIAL)
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1], "mrope_interleaved": True}
    sight = {**_eyes(16), "num_position_embeddings": 64, "deepstack_visual_indexes": [0]}
    text = text_of(words, head_dim=8, rope_parameters=rope)
    config = t.Qwen3VLConfig(text_config=text, vision_config=sight, **numbers_of(words))
    image = t.Qwen2VLImageProcessor(patch_size=16, size={"shortest_edge": 32 * 32, "longest_edge": 32 * 32 * 16})
    processor = t.Qwen3VLProcessor(image, words, t.Qwen3VLVideoProcessor(), chat_template=template)
    return saved(folder, t.Qwen3VLForConditionalGeneration, config, processor)


def llava(folder: Path, template: str | None = VICUNA, words: tuple[str, ...] = ("Yes", "No", "yes", "no")) -> Path:
    import transformers as t

    tokens = tokenizer(["<image>"], bos="<s>", words=words)
    config = t.LlavaConfig(**_llava_halves(tokens))
    image = t.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=SQUARE)
    processor = t.LlavaProcessor(image, tokens, chat_template=template, **_llava_patches())
    return saved(folder, t.LlavaForConditionalGeneration, config, processor)


def llava_next(folder: Path) -> Path:
    import transformers as t

    words = tokenizer(["<image>"], bos="<s>")
    grids = [[32, 64], [64, 32], [64, 64]]
    config = t.LlavaNextConfig(**_llava_halves(words), image_grid_pinpoints=grids)
    image = t.LlavaNextImageProcessor(size={"shortest_edge": 32}, crop_size=SQUARE, image_grid_pinpoints=grids)
    processor = t.LlavaNextProcessor(image, words, chat_template=VICUNA, **_llava_patches())
    return saved(folder, t.LlavaNextForConditionalGeneration, config, processor)


def _eyes(patch: int) -> dict[str, Any]:
    sizes = {"depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "out_hidden_size": 32}
    return {**sizes, "patch_size": patch, "spatial_merge_size": 2}


def numbers_of(words: Any) -> dict[str, int]:
    names = {"image": "<|image_pad|>", "video": "<|video_pad|>"}
    names |= {"vision_start": "<|vision_start|>", "vision_end": "<|vision_end|>"}
    return {f"{name}_token_id": words.convert_tokens_to_ids(token) for name, token in names.items()}


def _llava_halves(words: Any) -> dict[str, Any]:
    sight = {**SIZE, "model_type": "clip_vision_model", "image_size": 32, "patch_size": 8, "projection_dim": 16}
    image = words.convert_tokens_to_ids("<image>")
    return {"text_config": text_of(words, model_type="llama"), "vision_config": sight, "image_token_index": image}


def _llava_patches() -> dict[str, Any]:
    return {"patch_size": 8, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}


# -- models that finish a line ------------------------------------------------------------------------------


def paligemma(folder: Path) -> Path:
    import transformers as t

    words = tokenizer(["<image>"], bos="<bos>")
    sight = {**SIZE, "model_type": "siglip_vision_model", "image_size": 32, "patch_size": 8, "vision_use_head": False}
    text = text_of(words, model_type="gemma", head_dim=8)
    image = words.convert_tokens_to_ids("<image>")
    processor = t.PaliGemmaProcessor(_square(t.SiglipImageProcessor, image_seq_length=16), words)
    text["vocab_size"] = len(words)  # the processor adds tokens for places
    config = t.PaliGemmaConfig(
        text_config=text, vision_config=sight, image_token_index=image, projection_dim=32, hidden_size=32
    )
    return saved(folder, t.PaliGemmaForConditionalGeneration, config, processor)


def blip2(folder: Path) -> Path:
    words = tokenizer(["<image>"], bos="<s>")
    sizes = {"hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    more = {"max_position_embeddings": 512, "word_embed_proj_dim": 32, "pad_token_id": words.pad_token_id}
    return _blip2(folder, words, {"model_type": "opt", **sizes, **more, "vocab_size": len(words)})


def blip2_t5(folder: Path) -> Path:
    """BLIP-2 over FLAN-T5: an encoder reads, a decoder answers."""
    words = tokenizer(["<image>"])
    return _blip2(folder, words, _t5(words))


def _t5(words: Any) -> dict[str, Any]:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": len(words)}
    special = {"decoder_start_token_id": words.pad_token_id, "pad_token_id": words.pad_token_id, "eos_token_id": 1}
    return {"model_type": "t5", **sizes, **special}


def _blip2(folder: Path, words: Any, text: dict[str, Any]) -> Path:
    import transformers as t

    image = words.convert_tokens_to_ids("<image>")
    config = t.Blip2Config(**_blip_sight(64), text_config=text, image_token_index=image)
    processor = t.Blip2Processor(_square(t.BlipImageProcessor), words, num_query_tokens=4)
    return saved(folder, t.Blip2ForConditionalGeneration, config, processor)


def instructblip(folder: Path) -> Path:
    """InstructBLIP over Vicuna; the question is read twice, by the Q-Former too."""
    words = tokenizer(["<image>"], bos="<s>")
    return _instructblip(folder, words, text_of(words, model_type="llama"))


def instructblip_t5(folder: Path) -> Path:
    words = tokenizer(["<image>"])
    return _instructblip(folder, words, _t5(words))


def _instructblip(folder: Path, words: Any, text: dict[str, Any]) -> Path:
    import transformers as t

    theirs, image = tokenizer([]), words.convert_tokens_to_ids("<image>")
    config = t.InstructBlipConfig(**_blip_sight(len(theirs)), text_config=text, image_token_index=image)
    processor = t.InstructBlipProcessor(_square(t.BlipImageProcessor), words, theirs, num_query_tokens=4)
    return saved(folder, t.InstructBlipForConditionalGeneration, config, processor)


def _blip_sight(qformer_words: int) -> dict[str, Any]:
    qformer = {**SIZE, "vocab_size": qformer_words, "encoder_hidden_size": 32, "cross_attention_frequency": 1}
    sight = {**SIZE, "image_size": 32, "patch_size": 8}
    return {"vision_config": sight, "qformer_config": {**qformer, "pad_token_id": 0}, "num_query_tokens": 4}


def _square(kind: Any, **facts: Any) -> Any:
    made = kind(size=SQUARE)
    for name, value in facts.items():
        setattr(made, name, value)
    return made


# -- matching heads -----------------------------------------------------------------------------------------


def blip_itm(folder: Path) -> Path:
    import transformers as t

    words = tokenizer([], bos="[CLS]")
    numbers = {"bos_token_id": words.bos_token_id, "pad_token_id": words.pad_token_id, "sep_token_id": 1}
    text = {**SIZE, "vocab_size": len(words), "encoder_hidden_size": 32, "max_position_embeddings": 64, **numbers}
    sight = {**SIZE, "image_size": 32, "patch_size": 8}
    config = t.BlipConfig(text_config=text, vision_config=sight, projection_dim=16, image_text_hidden_size=16)
    processor = t.BlipProcessor(_square(t.BlipImageProcessor), words)
    return saved(folder, t.BlipForImageTextRetrieval, config, processor)


def blip2_itm(folder: Path, *, image_token: bool = False) -> Path:
    """BLIP-2 with a matching head; newer checkpoints have a token for the picture."""
    import transformers as t

    words = tokenizer(["<image>"] if image_token else [])
    sight = _blip_sight(len(words))
    sight["qformer_config"] |= {"use_qformer_text_input": True, "max_position_embeddings": 64}
    more = {"image_token_index": words.convert_tokens_to_ids("<image>")} if image_token else {}
    config = t.Blip2Config(**sight, image_text_hidden_size=16, **more)
    tokens = {"num_query_tokens": 4} if image_token else {}
    processor = t.Blip2Processor(_square(t.BlipImageProcessor), words, **tokens)
    return saved(folder, t.Blip2ForImageTextRetrieval, config, processor)


# -- cross-encoders -----------------------------------------------------------------------------------------


def reranker(folder: Path) -> Path:
    """A cross-encoder as Qwen3-VL-Reranker is one: Qwen3-VL, a template for pairs, and the logits of yes less no."""
    from sentence_transformers import CrossEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.cross_encoder.modules import LogitScore

    backbone = Transformer(str(qwen3_vl(folder / "backbone", RERANKER)), transformer_task="any-to-any")
    yes, no = (backbone.tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    CrossEncoder(modules=[backbone, LogitScore(yes, no)]).save(str(folder / "reranker"))
    return folder / "reranker"
