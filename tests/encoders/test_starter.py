"""The built-in encoder: its vectors, what it knows of English, and its quality on real photos where they are."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tiny_models
from hypothesis import given, settings, strategies as st
from PIL import Image

from eyespot import rooms, sample
from eyespot.encoders.starter import DATA, Starter, likeliest, load, unit
from eyespot.encoders.starter.networks import threads
from eyespot.encoders.starter.words import (
    CLASSES,
    CLEAR,
    CLEAR_SHARE,
    LEAST_SHARE,
    unframed,
    visible_nouns,
    weakest_match,
)
from eyespot.types import Localizer, UsageError
from scripts.build_starter import REFERENCE_TEXTS, drawn_pictures
from tests.examples import examples
from tests.wording import raises

PHOTOS = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def starter() -> Starter:
    return load()


@pytest.fixture(scope="module")
def reference() -> dict[str, np.ndarray]:
    with np.load(DATA / "reference.npz") as file:
        return {name: file[name].astype(np.float32) for name in file.files}


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (unit(a) * unit(b)).sum(1)


def test_texts_in_numpy_agree_with_the_runtime(starter: Starter) -> None:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "1")  # or activations are rounded to eight bits
    network = onnxruntime.InferenceSession((DATA / "text.onnx").read_bytes(), options)
    for text in [*REFERENCE_TEXTS, "", "a", "zzzz ## 🦩", "word " * 200]:
        ids = np.array([starter.sentences.tokenizer.encode(text).ids], np.int64)
        (whole,) = network.run(None, {"ids": ids, "mask": np.ones_like(ids)})
        assert np.abs(starter.sentences([text]) - whole).max() < 1e-6, text


def test_vectors_have_not_changed_under_the_same_revision(starter: Starter, reference: dict[str, np.ndarray]) -> None:
    assert cosines(starter.encode_pixels(drawn_pictures()), reference["pictures"]).min() > 0.99999
    assert cosines(starter.encode_texts(REFERENCE_TEXTS), reference["texts"]).min() > 0.99999


@pytest.mark.long
def test_the_bits_do_not_hang_on_the_number_of_threads() -> None:
    """A worker of a cluster has one processor, another process all of them; BLAS sums otherwise for each number."""
    code = (
        "import hashlib, numpy as np\nfrom eyespot.encoders.starter import load\n"
        "pixels = np.random.default_rng(0).integers(0, 256, (4, 260, 260, 3), np.uint8)\n"
        "texts = load().encode_texts(['a heron', 'a heron', 'word ' * 200])\n"
        "print(hashlib.sha256(load().encode_pixels(pixels).tobytes() + texts.tobytes()).hexdigest())"
    )
    digests = set()
    for number in "124":
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "EYESPOT_THREADS"), number)
        env = os.environ | threads | {"OPENBLAS_CORETYPE": "Haswell"}  # of the kernels that differ; others ignore it
        child = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        digests.add(child.stdout)

    assert len(digests) == 1


@settings(max_examples=examples(40), deadline=None)
@given(text=st.text(max_size=80))
def test_any_text_is_read(starter: Starter, text: str) -> None:
    assert abs(np.linalg.norm(starter.encode_texts([text])) - 1) < 1e-5
    assert starter.caveat(text) is None or starter.caveat(text).startswith("starter ")


def test_read_squashes_any_shape_and_keeps_every_corner(starter: Starter) -> None:
    picture = Image.new("RGB", (700, 90), "black")
    picture.paste("white", (640, 0, 700, 90))
    pixels = starter.read(picture)
    assert pixels.shape == (260, 260, 3) and pixels.dtype == np.uint8
    assert pixels[:, -1].min() > 200 and pixels[:, 0].max() < 50


@pytest.mark.parametrize(
    "text", ["penguin", "a penguin", "The penguin.", "a photo of a penguin", "Pictures of penguin"]
)
def test_frames_and_articles_do_not_matter(text: str) -> None:
    assert unframed(text).lower() == "penguin"


def test_nouns_are_found_in_the_plural_and_as_phrases(starter: Starter) -> None:
    one = visible_nouns("goose", starter.lexicon)
    assert one and visible_nouns("three geese", starter.lexicon) == one
    assert len(visible_nouns("a fire engine", starter.lexicon)) == 1
    assert visible_nouns("why is it so", starter.lexicon) == []


def test_the_lexicon_finds_every_line_and_nothing_else(starter: Starter) -> None:
    lines = (DATA / "words.txt").read_text().splitlines()
    entries = [line.partition("\t")[0] for line in lines]
    assert entries == sorted(set(entries))
    picked = [*lines[:3], *lines[::997], *lines[-3:]]
    found = {line.partition("\t")[0]: starter.lexicon.concepts(line.partition("\t")[0]) for line in picked}
    assert found == {line.partition("\t")[0]: [int(n) for n in line.partition("\t")[2].split()] for line in picked}
    assert all(starter.lexicon.concepts(f"{entry}qq") is None for entry in ("", *entries[::997]))


ENGLISH = """a photo of a penguin|two dogs running on the beach|grey heron|Eiffel Tower|Mona Lisa|red-billed chough
Santiago de Compostela cathedral|a man surfing a big wave|Rio de Janeiro beach|die cast model car|iPhone on a desk
sunset over the sea|van Gogh painting|café|Ardea cinerea|a nest of Parus major|Turdus merula|42||a car in the snow"""
OTHER_LANGUAGES = """ein Hund auf der Wiese|der rote Vogel|Katze auf dem Sofa|un chien sur la plage|une maison rouge
un perro en la playa|una casa con jardín|los pájaros de la montaña|il gatto nero|een rode vogel|hund på stranden
ein Pinguin am Strand"""
OTHER_SCRIPTS = "собака на пляже|красная птица|海滩上的狗|犬|كلب على الشاطئ|σκύλος"


def kind_of(caveat: str | None) -> str:
    """What a caveat names: "another language", "another script", unknown words, or nothing."""
    found = [kind for kind in ("another language", "another script", "it may not know") if kind in str(caveat)]
    return "" if caveat is None else " ".join(found)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (ENGLISH, ""),
        (OTHER_LANGUAGES, "another language"),
        (OTHER_SCRIPTS, "another script"),
        ("Hund|Schmetterling|chien|perro|flores amarillas|Nothoprocta perdicaria", "it may not know"),
    ],
    ids=["English", "languages", "scripts", "words"],
)
def test_what_is_no_english_is_named_as_such(starter: Starter, texts: str, kind: str) -> None:
    listed = texts.replace("\n", "|").split("|")

    assert {text: kind_of(starter.caveat(text)) for text in listed} == dict.fromkeys(listed, kind)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a red bird", "colours (red)"),
        ("two dogs", "counts (two)"),
        ("3 birds", "counts (3)"),
        ("a dog jumping", "actions (jumping)"),
        ("a smiling child", "actions (smiling), people (child)"),
        ("a fisherman", "people (fisherman)"),
        ("children in the snow", "people (children)"),
        ("a girl in orange", "colours (orange)"),
        ("an orange", None),
        ("a city at night", "scenes (city, night)"),
        ("screenshot of an invoice", "text (screenshot, invoice)"),
        ("quarterly sales figures", "text (sales)"),
        ("boarding pass", "text (boarding)"),
        ("a dog 🦩", "emoji (🦩)"),
        ("the of and", 'no word of "the of and" names one'),
        ("happiness", 'no word of "happiness" names one'),
        ("a buterfly", "buterfly (did you mean butterfly?)"),
        ("flamigno", "flamigno (did you mean flamingo?)"),
        ("dogs without people", "as in: dogs - people"),
        ("a dog that is not black", "as in: a dog - black"),
        ("a heron " * 300, "reads 256 of 605 tokens; it ends at ‘…"),
        ("a cake", "knows cake only by things that are a little like it"),
        ("a spotted big cat", None),
        ("a morning glory and a black bear beside something in a building", None),
    ],
)
def test_what_it_cannot_see_is_said_by_the_words_of_the_query(starter: Starter, text: str, said: str | None) -> None:
    caveat = starter.caveat(text)

    assert caveat is None if said is None else said in caveat


def test_an_ideal_picture_of_a_class_is_a_match_for_its_name(starter: Starter) -> None:
    names = (DATA / "classes.txt").read_text().splitlines()[::61]
    best = (starter.encode_texts(names) @ starter.ideal_pictures.T).max(1)
    assert all(score > starter.weakest_match(name) for name, score in zip(names, best, strict=True))


def test_ideal_pictures_are_unit_vectors_of_meaning_and_looks(starter: Starter) -> None:
    nouns = [visible_nouns(name, starter.lexicon) for name in (starter.data / "classes.txt").read_text().splitlines()]
    assert [concepts[-1][0] if concepts else -1 for concepts in nouns] == CLASSES
    np.testing.assert_allclose(np.linalg.norm(starter.ideal_pictures, axis=1), 1, atol=1e-6)
    looks = np.linalg.norm(starter.ideal_pictures[:, 256:], axis=1)  # a class without looks would be all meaning
    assert len(looks) > 990 and looks.min() > 0.8


@given(scores=st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=30))
def test_doubt_asks_for_a_share_and_a_lead(scores: list[float]) -> None:
    ideal = np.array(scores)
    share = CLEAR_SHARE if ideal.max() >= CLEAR else LEAST_SHARE
    assert weakest_match(ideal) >= max(share * ideal.max(), ideal.mean())


def test_the_manifest_names_the_files_that_are_there(starter: Starter) -> None:
    manifest = json.loads((DATA / "manifest.json").read_text())
    digests = {name: hashlib.sha256((DATA / name).read_bytes()).hexdigest() for name in manifest["files"]}
    assert digests == manifest["files"]
    assert hashlib.sha256("".join(digests.values()).encode()).hexdigest()[:16] == starter.space.weights


def test_the_networks_stay_below_sixty_megabytes_and_the_licences_lie_beside_them() -> None:
    assert sum((DATA / name).stat().st_size for name in ("image.onnx", "text.onnx")) < 60e6
    assert {file.stem for file in (DATA / "LICENSES").iterdir()} >= {"apache-2.0", "efficientnet-lite2", "wordnet"}


def test_loading_and_a_text_query_need_no_torch() -> None:
    code = "from eyespot.encoders.starter import load; import sys; load().encode_texts(['owl']); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "onnx", "numba", "PIL"} & set(modules)


@pytest.mark.parametrize(("rest", "options"), [("large", {}), ("", {"side": 300})])
def test_variants_and_options_are_refused(rest: str, options: dict[str, int]) -> None:
    with raises(UsageError):
        load(rest, **options)


def test_threads_are_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYESPOT_THREADS", "3")
    assert threads() == 3
    for nonsense in ("many", "0", "-1", "100000"):
        monkeypatch.setenv("EYESPOT_THREADS", nonsense)
        with pytest.raises(UsageError, match="EYESPOT_THREADS"):
            threads()


@pytest.mark.slow
@pytest.mark.skipif(not PHOTOS.is_dir(), reason="the real photos are not here")
def test_on_real_photos_it_beats_plain_conse() -> None:
    bench = Path(__file__).resolve().parents[2] / "bench" / "starter.py"
    lines = subprocess.run(
        [sys.executable, bench, "--json", "--quick"], capture_output=True, text=True, check=True
    ).stdout
    ratios = {line["name"]: (line["ratio"], line["goal"]) for line in map(json.loads, lines.splitlines())}
    assert all(ratio < 1 for ratio, _ in ratios.values())
    assert ratios["starter chilean_birds:all mAP"][0] <= ratios["starter chilean_birds:all mAP"][1]


# -- where an encoder sees something ------------------------------------------------------------------------------


PLANTED = {"a fish": "categorization__fish22", "a windmill": "categorization__windmill"}


@pytest.fixture(scope="module")
def heat_starter() -> Any:
    return rooms.load("encoders", "starter")


def photo(name: str) -> Image.Image:
    return Image.open(sample.photos() / f"{name}.jpg").convert("RGB")


def beside(left: str, right: str) -> Image.Image:
    made = Image.new("RGB", (800, 400))
    for at, name in ((0, left), (400, right)):
        made.paste(photo(name).resize((400, 400)), (at, 0))
    return made


def share_on_the_left(values: Any) -> float:
    """Of what speaks for the query, how much lies in the left half; the middle column counts half to each side."""
    mass = np.maximum(values, 0).sum(0)
    half = len(mass) // 2
    middle = mass[half] / 2 if len(mass) % 2 else 0.0
    return float((mass[:half].sum() + middle) / mass.sum())


@pytest.mark.parametrize(("left", "right"), list(permutations(PLANTED, 2)))
def test_the_heat_of_words_lies_on_the_photo_that_they_name(heat_starter: Any, left: str, right: str) -> None:
    (vector,) = heat_starter.encode_texts([left])

    assert isinstance(heat_starter, Localizer)
    assert share_on_the_left(heat_starter.heat(beside(PLANTED[left], PLANTED[right]), vector).values) > 0.65


def test_the_heat_of_starter_is_the_derivative_of_its_score(heat_starter: Any) -> None:
    picture, (query,) = photo("categorization__windmill"), heat_starter.encode_texts(["a windmill"])
    features, logits, cells, weights = heat_starter.located.run(None, {"pixels": heat_starter.read(picture)[None]})
    bias = logits[0] - weights @ features[0]
    direction = cells[0, :, 2, 3] / 81

    def score(step: float) -> float:
        """The score of the picture with a little more of one cell."""
        moved = features[0].astype(np.float64) + step * direction
        meaning = likeliest((weights @ moved + bias)[None])[0] @ heat_starter.joint["class_texts"]
        look = moved @ heat_starter.joint["look_basis"]
        vector = np.concatenate([meaning / np.linalg.norm(meaning), 2 * look / np.linalg.norm(look)])
        return float(vector @ query / np.linalg.norm(vector))

    assert score(0) == pytest.approx(
        float(heat_starter.encode_pixels(heat_starter.read(picture)[None])[0] @ query), abs=1e-5
    )
    slope = (score(0.05) - score(-0.05)) / 0.1
    assert float(heat_starter.heat(picture, query).values[2, 3]) == pytest.approx(slope, rel=0.02)


def of_hub(kind: str, folder: Path) -> Any:
    return rooms.load("encoders", f"hf:{getattr(tiny_models, kind)(folder)}", device="cpu")


def clip(folder: Path) -> Any:
    return of_hub("hf_clip", folder)


def siglip(folder: Path) -> Any:
    return of_hub("hf_siglip", folder)


def open_clip(folder: Path) -> Any:
    weights = tiny_models.tiny_clip_weights(folder)
    return rooms.load("encoders", f"open_clip:tiny-clip/{weights}", device="cpu")


@pytest.mark.parametrize("made", [clip, siglip, open_clip])
def test_the_heat_of_patches_lies_on_the_half_that_looks_like_the_query(made: Any, tmp_path: Path) -> None:
    """The query is what tells one texture from another; the picture has one of them left and the other right."""
    pytest.importorskip("torch")
    encoder, shares = made(tmp_path), []
    textures = [np.random.default_rng(seed).integers(0, 256, (32, 32, 3), np.uint8) for seed in range(8)]
    whole = [encoder.encode_pixels(encoder.read(Image.fromarray(one))[None])[0] for one in textures]
    for left, right in permutations(range(8), 2):
        difference = whole[left] - whole[right]
        halves = np.concatenate([textures[left][:, :16], textures[right][:, 16:]], 1)
        heat = encoder.heat(Image.fromarray(halves), difference / np.linalg.norm(difference))
        assert heat.values.shape == (4, 4) and heat.values.dtype == np.float32
        shares.append(share_on_the_left(heat.values))

    # Measured: 0.59 of the pairs with CLIP's class token, which mixes much before the last block, 0.7 and more else
    assert np.mean(np.array(shares) > 0.5) > (0.55 if made is clip else 0.7)


def test_the_heat_of_a_patch_is_what_its_loss_costs_to_first_order(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    encoder, picture = siglip(tmp_path), tiny_models.pictures()[0]
    (query,) = encoder.encode_texts(["a heron"])
    pixels = torch.from_numpy(encoder.read(picture)[None])
    block = encoder.patches(picture.size, pixels[0].numpy()).block

    def score(patch: int, step: float) -> float:
        """The score with one patch a little nearer to the mean patch."""

        def enter(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
            tokens = given[0].clone()
            tokens[0, patch] += step * (given[0][0].mean(0) - given[0][0, patch])
            return (tokens, *given[1:])

        hook = block.register_forward_pre_hook(enter)
        vector = encoder.encode_pixels(pixels.numpy())[0].astype(np.float64)
        hook.remove()
        return float(vector @ query)

    heat = encoder.heat(picture, query).values.ravel()
    slopes = [(score(patch, -0.05) - score(patch, 0.05)) / 0.1 for patch in range(16)]
    np.testing.assert_allclose(heat, np.array(slopes) - np.mean(slopes), rtol=0.05, atol=2e-6)


def test_a_grid_covers_what_the_model_sees_of_a_wide_picture(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    wide, (query,) = Image.new("RGB", (80, 40), "red"), clip(tmp_path / "c").encode_texts(["a"])

    assert clip(tmp_path / "c").heat(wide, query).box == pytest.approx((0.25, 0, 0.75, 1))
    assert siglip(tmp_path / "s").heat(wide, np.zeros(32, np.float32)).box == (0, 0, 1, 1)
    assert open_clip(tmp_path / "o").heat(wide, np.zeros(16, np.float32)).box == pytest.approx((0.25, 0, 0.75, 1))
