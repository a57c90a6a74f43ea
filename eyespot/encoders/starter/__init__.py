"""The built-in encoder: finds things and animals in photos by English words, offline and without torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eyespot.encoders._pictures import PictureEncoder, text_list
from eyespot.encoders._text_caveats import cut_by, joined
from eyespot.encoders.starter.networks import Floats, open_with_cells, session_of, slopes, threads
from eyespot.encoders.starter.text_network import TextNetwork, text_network
from eyespot.encoders.starter.words import CLASSES, Lexicon, caveat, framed, unframed, visible_nouns, weakest_match
from eyespot.types import Heat, Pixels, Space, UsageError, Vectors

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from PIL.Image import Image

SPELLING = "starter"
NEEDS = "nothing more; works offline"
DATA = Path(__file__).resolve().parent.parent / "starter_data"
SIDE = 260  # pixels; the side EfficientNet-Lite2 was trained at

# A change to any of these makes other vectors: raise REVISION with it.
REVISION = "1"
TOP_CLASSES = 10
TEMPERATURE = 2.0  # softens the classifier, which is too sure of its first guess to rank by the others
LOOK_WEIGHT = 2.0  # of how a picture looks against what its classes mean, when pictures are compared
CONCEPT_WEIGHT = 0.4  # of what a text's nouns look like against what its sentence means


class Starter(PictureEncoder):
    """A classifier for pictures and a sentence encoder for words, joined by the texts and kinships of 1000 classes.

    The first half of a vector is meaning: for a text its sentence vector, for a picture the texts of its likeliest
    classes (ConSE, Norouzi et al. 2013). The second half is looks: for a picture its features, for a text what
    pictures of its nouns would look like, from the classifier's weights of their next of kin in WordNet.
    """

    batch = 16
    min_side: int | None = SIDE  # measured: cosine 0.999 with a picture decoded whole
    licence = "Apache-2.0 (networks), WordNet-3.0 (words)"

    def __init__(self, data: Path = DATA) -> None:
        self.data = data
        made = json.loads((data / "manifest.json").read_text())
        self.space = Space("starter", REVISION, made["digest"], made["preprocessing"], made["dim"])

    def read(self, picture: Image) -> Pixels:
        """One upright RGB picture squashed to (260, 260, 3) uint8; squashing loses no corner of it."""
        from PIL.Image import Resampling

        return np.asarray(picture.resize((SIDE, SIDE), Resampling.BICUBIC, reducing_gap=2.0))

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """Pictures (n, 260, 260, 3) uint8 to unit vectors (n, dim)."""
        features, logits = self.images.run(None, {"pixels": np.ascontiguousarray(pixels)})  # (n, 1280), (n, 1000)
        meanings = _product(likeliest(logits), self.joint["class_texts"])  # (n, text dim)
        looks = _product(features, self.joint["look_basis"])  # (n, look dim)
        return unit(np.hstack([unit(meanings), LOOK_WEIGHT * unit(looks)]))

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """English texts to unit vectors (n, dim); "penguin" and "a picture of a penguin" are framed alike."""
        texts = text_list(texts)
        sentences = self.sentences([framed(text) for text in texts], threads() if len(texts) > 1 else 1)
        meanings = _product(sentences, self.joint["text_basis"])  # (n, text dim)
        # What pictures of the texts' nouns would look like, (n, look dim); zero where no noun is a visible thing
        looks = np.zeros((len(texts), self.joint["look_basis"].shape[1]), np.float32)
        for row, text in zip(looks, texts, strict=True):
            for noun in (nouns := visible_nouns(unframed(text), self.lexicon)):
                row += self.joint["concept_looks"][noun].sum(0) / len(nouns)
        return unit(np.hstack([meanings, CONCEPT_WEIGHT / LOOK_WEIGHT * looks]))

    def caveat(self, text: str) -> str | None:
        """One sentence if the text is probably not English, or asks for what no class of ImageNet shows."""
        return joined(caveat(text, self.lexicon, self._ideal_scores), self.cut(text))

    def cut(self, text: str) -> str | None:
        """What is said of more than 256 tokens."""
        return cut_by("starter", self.sentences.tokenizer, framed(text))

    def tokens_in(self, text: str) -> int:
        """Those of the framed text."""
        return len(self.sentences.tokenizer.encode(framed(text)).ids)

    def weakest_match(self, text: str) -> float:
        """A best score below this is probably no match; calibrated in docs/how/starter.md."""
        return weakest_match(self._ideal_scores(text))

    def _ideal_scores(self, text: str) -> Floats:
        """What a text scores with an ideal picture of each class, (n,)."""
        return np.asarray(self.ideal_pictures @ self.encode_texts([text])[0])

    def heat(self, picture: Image, query: Vectors) -> Heat:
        """What each of 9 × 9 parts of a picture adds to the score of a query (dim,): its class activation map."""
        pixels = np.ascontiguousarray(self.read(picture)[None])
        features, logits, cells, weights = self.located.run(None, {"pixels": pixels})
        by_feature = slopes(query, features[0], likeliest(logits)[0], self.joint, (weights, TEMPERATURE, LOOK_WEIGHT))
        values = np.tensordot(by_feature, cells[0], 1) / cells[0, 0].size  # (9, 9)
        return Heat(values.astype(np.float32))

    @cached_property
    def located(self) -> InferenceSession:
        """The picture network with the cells whose mean its features are; opened for whoever asks where."""
        return open_with_cells(self.data / "image.onnx")

    @cached_property
    def images(self) -> InferenceSession:
        """EfficientNet-Lite2, trained on the 1000 classes of ImageNet: pixels to features and logits."""
        return session_of(str(self.data / "image.onnx"))

    @property
    def sentences(self) -> TextNetwork:
        """What texts mean."""
        return text_network(self.data)

    @cached_property
    def lexicon(self) -> Lexicon:
        """The words it knows."""
        return Lexicon(self.data / "words.txt")

    @cached_property
    def joint(self) -> dict[str, Floats]:
        """What ties classes to words: class_texts, text_basis, look_basis, concept_looks."""
        with np.load(self.data / "joint.npz") as file:
            return {name: file[name].astype(np.float32) for name in file.files}

    @cached_property
    def ideal_pictures(self) -> Vectors:
        """What a picture of each class would be if nothing else were in it, unit rows (n, dim)."""
        # Only classes that are a visible thing: an ideal picture without looks would be all meaning, and no real
        # picture could ever score a fair share of it.
        concepts = np.array(CLASSES, np.int64)
        classes = np.flatnonzero(concepts >= 0)
        meanings = self.joint["class_texts"][classes]
        looks = self.joint["concept_looks"][concepts[classes]]
        return unit(np.hstack([unit(meanings), LOOK_WEIGHT * unit(looks)]))


def likeliest(logits: Floats) -> Floats:
    """The softened probabilities of the ten likeliest classes, zero for the others: (n, 1000)."""
    odds = np.exp((logits - logits.max(axis=1, keepdims=True)) / TEMPERATURE)
    least = np.partition(odds, -TOP_CLASSES, axis=1)[:, -TOP_CLASSES, None]
    return np.where(odds >= least, odds, np.float32(0))


def _product(rows: Floats, basis: Floats) -> Floats:
    """rows @ basis, summed in one order: BLAS would give other last bits with another number of threads."""
    return np.asarray(np.einsum("ij,jk->ik", rows, basis))


def unit(rows: NDArray[np.floating]) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def load(name: str = "", **options: object) -> Starter:
    """The encoder `starter`; it has no variants and no options."""
    if name or options:
        raise UsageError("the encoder 'starter' has no variants and takes no options: write just starter")
    return Starter()
