"""What the papers' tables need, in miniature under the real names: data in their official layouts, models of the true
architectures with random weights in the hub's cache."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eyespot import sample
from eyespot.reproduce.running import MARK, make_world
from eyespot.storage.tables import write_csv
from tests import tiny_models
from tests.encoders import tiny_multimodal
from tests.worlds import judge_models, tar
from tests.worlds.adapters import checkpoint
from tests.worlds.pairs import metadata

PROMPTS = """
def get_lmm_prompt(query, model_name):
    if model_name.startswith("openai-gpt"):
        prompt = f'Can "{query}" be seen?'
    elif model_name.startswith("google/") or model_name.startswith("Salesforce/"):
        prompt = f"Is {query} there? Answer: "
    elif model_name.startswith("llava-hf/") or model_name.startswith("Efficient-Large-Model/VILA"):
        prompt = f"USER: <image>\\nIs {query} there?\\nASSISTANT:"
    return prompt
"""
CLIPS = ("openai/clip-vit-base-patch32", "openai/clip-vit-base-patch16", "openai/clip-vit-large-patch14")
CLIPS += ("openai/clip-vit-large-patch14-336", "laion/CLIP-ViT-L-14-laion2B-s32B-b82K")
SIGLIPS = tuple(f"google/siglip{name}" for name in ("-base-patch16-512", "2-base-patch16-512", "-large-patch16-384"))
SIGLIPS += ("google/siglip2-large-patch16-512", "google/siglip-so400m-patch14-384")
QUARI = {"clip-vit-base-patch16": 16, "google-siglip2-base-patch16-512": 32, "google-siglip2-large-patch16-512": 32}


def terse(folder: Path) -> Path:
    """UME-R1 whose reasoning every fourth token ends: random weights would fill all that it may write."""
    made = tiny_multimodal.ume_r1(folder)
    words = json.loads((made / "config.json").read_text())["text_config"]["vocab_size"]
    (made / "generation_config.json").write_text(json.dumps({"eos_token_id": [*range(0, words, 4)]}))
    return made


MODELS: dict[Callable[[Path], Path], Sequence[str]] = {
    partial(tiny_models.hf_clip, patch=16): CLIPS,
    partial(tiny_models.hf_siglip, patch=16): SIGLIPS,  # 2,025 patches of a picture of 724 pixels
    judge_models.blip2_t5: ("Salesforce/blip2-flan-t5-xxl",),
    judge_models.instructblip_t5: ("Salesforce/instructblip-flan-t5-xxl",),
    judge_models.paligemma: ("google/paligemma-3b-mix-448",),
    judge_models.llava: ("llava-hf/llava-1.5-13b-hf",),
    judge_models.llava_next: ("llava-hf/llava-v1.6-mistral-7b-hf", "llava-hf/llava-v1.6-34b-hf"),
    judge_models.qwen25_vl: ("Qwen/Qwen2.5-VL-3B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"),
    judge_models.qwen3_vl: ("Qwen/Qwen3-VL-2B-Instruct", "Qwen/Qwen3-VL-4B-Instruct"),
    tiny_multimodal.vlm2vec: ("TIGER-Lab/VLM2Vec-Qwen2VL-2B", "TIGER-Lab/VLM2Vec-Qwen2VL-7B"),
    tiny_multimodal.qwen2_vl: ("VLM2Vec/VLM2Vec-V2.0",),
    tiny_multimodal.phi4: ("microsoft/Phi-4-multimodal-instruct",),
    judge_models.blip_itm: ("Salesforce/blip-itm-large-coco",),
    tiny_models.dinov2: ("facebook/dinov2-base",),
    terse: ("zhibinlan/UME-R1-2B", "zhibinlan/UME-R1-7B"),
}
ARCHITECTURES = {  # of open_clip, and where their weights lie on the hub
    "RN50": "timm/resnet50_clip.openai",
    "RN50x16": "timm/resnet50x16_clip.openai",
    "ViT-B-16": "apple/DFN2B-CLIP-ViT-B-16",
    "ViT-L-14-quickgelu": "apple/DFN2B-CLIP-ViT-L-14",
    "ViT-H-14-378-quickgelu": "apple/DFN5B-CLIP-ViT-H-14-378",
    "ViT-L-14-336": "timm/vit_large_patch14_clip_336.openai",
    "ViT-L-16-SigLIP-384": "timm/ViT-L-16-SigLIP-384",
    "ViT-SO400M-14-SigLIP-384": "timm/ViT-SO400M-14-SigLIP-384",
}


def models(cache: Path, home: Path) -> None:
    """Every model of the recipes in the hub's cache; open_clip's architectures become small ones of their names."""
    import open_clip

    for make, names in MODELS.items():
        for name in names:
            commit = tiny_models.published(cache, name, make(home / name.replace("/", "--")))
            requests = cache / f"models--{name.replace('/', '--')}" / "refs" / "refs" / "pr"
            requests.mkdir(parents=True, exist_ok=True)  # a worker may come to a module twice
            (requests / "70").write_text(commit)
    for name, dim in QUARI.items():
        tiny_models.published(cache, f"EricX003/QuARI-{name}", checkpoint(home / name, dim))
    configs = tiny_models.open_clip_configs(home / "open_clip")
    for name in (*ARCHITECTURES, "ViT-B-16-quickgelu"):
        config = tiny_models.siglip_config(configs / "words") if "SigLIP" in name else tiny_models.clip_config()
        if name.startswith("RN"):
            config["vision_cfg"] = {"image_size": 32, "layers": [1, 1, 1, 1], "width": 16}
        (configs / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(configs)
    for name, hub in ARCHITECTURES.items():
        (folder := home / name).mkdir()
        tiny_models.open_clip_weights(folder / "open_clip_pytorch_model.bin", name)
        tiny_models.published(cache, hub, folder)
    (folder := home / "bioclip").mkdir()
    config = {"model_cfg": tiny_models.clip_config(), "preprocess_cfg": {"mean": [0.5, 0.5, 0.5]}}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    tiny_models.open_clip_weights(folder / "open_clip_pytorch_model.bin", "ViT-B-16")
    tiny_models.published(cache, "imageomics/bioclip", folder)


# -- data -----------------------------------------------------------------------------------------------------


def packed(archive: Path, *folders: Path, mode: str = "w") -> None:
    with tarfile.open(archive, mode) as tar:
        for folder in folders:
            tar.add(folder, folder.name)


def inquire(data: Path) -> None:
    """iNat24's archives, INQUIRE's files, INQUIRE-Rerank with its pictures inside, a clone of its code, WildCLIP."""
    kinds = {"fish": "a fish", "windmill": "a windmill", "hammer": "a hammer"}
    names = [
        (kind, one.name) for kind in kinds for one in sorted(sample.photos().glob(f"categorization__{kind}*.jpg"))[:5]
    ]
    (data / "train" / "00001_Animalia").mkdir(parents=True)
    images, pairs = [], []
    queries = [(at, at, kinds[kind], "Context", "Things", "Birds") for at, kind in enumerate(list(kinds)[:2])]
    for number, (kind, name) in enumerate(names):
        place, bytes_ = f"train/00001_Animalia/{name}", (sample.photos() / name).read_bytes()
        (data / place).write_bytes(bytes_)
        images.append({"id": 1000 + number, "file_name": place, "width": 320, "height": 240, "license": 0})
        for at, *_, text, kind_of, category, group in (query[:1] + query[2:] for query in queries):
            pair = {"query": text, "relevant": int(kind == list(kinds)[at]), "clip_score": 1 - number / 100}
            pair |= {
                "inat24_image_id": 1000 + number,
                "inat24_file_name": place,
                "image": {"bytes": bytes_, "path": None},
            }
            pairs.append(pair | {"supercategory": kind_of, "category": category, "iconic_group": group})
    listed = {"images": images, "annotations": [], "categories": [], "licenses": [{"id": 0, "name": "CC0", "url": ""}]}
    (data / "train.json").write_text(json.dumps(listed))
    packed(data / "train.json.tar.gz", data / "train.json", mode="w:gz")
    packed(data / "train.tar.gz", data / "train", mode="w:gz")
    columns = ("", "query_id", "query_text", "supercategory", "category", "iconic_group")
    write_csv(data / "inquire_queries_test.csv", [columns, *queries])
    relevant = [
        (at, image["id"], image["file_name"])
        for at, kind in enumerate(list(kinds)[:2])
        for image, (of, _) in zip(images, names, strict=True)
        if of == kind
    ]
    write_csv(data / "inquire_annotations.csv", [("query_id", "image_id", "image_path"), *relevant])
    (data / "rerank" / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(pairs), data / "rerank" / "data" / "test-00000-of-00001.parquet")
    (data / "INQUIRE" / "src").mkdir(parents=True)
    (data / "INQUIRE" / "src" / "lmm_utils.py").write_text(PROMPTS)
    for gone in (data / "train.json", *sorted((data / "train").rglob("*"), reverse=True), data / "train"):
        gone.rmdir() if gone.is_dir() else gone.unlink()


def wildclip(data: Path) -> None:
    tiny_models.open_clip_weights(data / "wildclip_vitb16_t1.pth", "ViT-B-16-quickgelu")


def sample_data(world: str, data: Path) -> list[Path]:
    """The data of a miniature of eyespot's own beside what is there, and its photos."""
    make_world(world, data.parent / world)
    (data.parent / world / "data" / MARK).unlink()
    shutil.copytree(data.parent / world / "data", data, dirs_exist_ok=True)
    return sorted((data / "photos").glob("*.jpg"))


def ilias(data: Path) -> None:
    """ILIAS as its download script leaves it, and mini-ILIAS."""
    sample_data("ilias", data)
    packed(data / "ilias_core.tar", data / "ilias_core")
    shutil.rmtree(data / "ilias_core")
    (data / "yfcc100m").mkdir()
    with tarfile.open(data / "yfcc100m" / "yfcc100m_0001.tar", "w") as tar:
        for photo in sorted((data / "distractors").iterdir()):
            tar.add(photo, photo.name)
    (data / "distractors").rename(data / "mini_ilias")
    listed = data / "image_ids" / "distractor_ids.txt"
    (data / "image_ids" / "distractor_ids.txt.gz").write_bytes(gzip.compress(listed.read_bytes()))
    listed.unlink()


def labelled(data: Path) -> None:
    entries = []
    for number, kind in enumerate(sorted((data / "labelled").iterdir())):
        entries += [{"path": f"met/{kind.name}/{one.name}", "class_id": number} for one in sorted(kind.iterdir())]
    (data / "labelled").rename(data / "images")
    (data / "images" / "met").mkdir()
    for kind in [one for one in (data / "images").iterdir() if one.name != "met"]:
        kind.rename(data / "images" / "met" / kind.name)
    with zipfile.ZipFile(data / "info_files.zip", "w") as packed_lists:
        packed_lists.writestr("info_files/met/train.json", json.dumps(entries))


def captioned(data: Path) -> None:
    """COCO, CC12M and BioTrove, and the captions written for some of it."""
    photos = sorted((data / "photos").glob("*.jpg"))
    (data / "photos").rename(data / "train2017")
    images = [{"id": at, "file_name": one.name} for at, one in enumerate(photos)]
    written = [  # as many as fill the batch of a backbone
        {"image_id": at, "id": 3 * at + number, "caption": f"{said} {one.stem}"}
        for at, one in enumerate(photos)
        for number, said in enumerate(("a photo of", "a picture of", "here is"))
    ]
    (data / "captions_train2017.json").write_text(json.dumps({"images": images, "annotations": written}))
    taken = [(data / "train2017" / one.name).read_bytes() for one in photos]
    files = {f"{at:03}.jpg": one for at, one in enumerate(taken[:8])} | {f"{at:03}.txt": b"a thing" for at in range(8)}
    tar(data / "cc12m" / "00000.tar", dict(sorted(files.items())))  # each caption beside its picture
    (data / "biotrove").mkdir()
    (data / "biotrove_photos").mkdir()
    metadata(data / "biotrove" / "chunk_0.parquet", range(8))
    for at, one in enumerate(taken[8:16]):
        (data / "biotrove_photos" / f"{at}.jpg").write_bytes(one)
    pq.write_table(pa.table({"file_name": ["0.jpg"], "caption": ["a grey heron"]}), data / "written.parquet")


def rmir(data: Path) -> None:
    sample_data("rmir", data)
    (data / "photos").rename(data / "images")


def recos(data: Path) -> None:
    """The splits in their archive, and the pictures of each set in its folder."""
    photos = sample_data("recos", data)
    for name in ("val2014", "flickr30k_images"):
        (data / name).mkdir()
    for at, photo in enumerate(photos):
        shutil.copy(photo, data / ("val2014", "flickr30k_images")[at % 2] / photo.name)
    (data / "photos").rename(data / "recos_images")
    with zipfile.ZipFile(data / "caption_datasets.zip", "w") as splits:
        for name in ("dataset_coco.json", "dataset_flickr30k.json"):
            splits.write(data / name, name)
            (data / name).unlink()
