"""`eyespot tag`: labels as a column, by the nearest label or by the verdicts of a person."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

import eyespot
from eyespot import sample
from eyespot.judges.person import PersonJudge
from eyespot.ledger.judgements import Judgements
from eyespot.search.calibrated import Calibrated
from eyespot.search.chain import chain_of
from eyespot.search.judge_rerank import JudgeRerank, judge_named
from eyespot.search.tagging import LabelSet, tags
from eyespot.settings.search import RankingSettings
from eyespot.types import Query
from tests.cli.conftest import done, gallery_of_samples, run_json
from tests.command import refuses, run_eyespot
from tests.worlds import index_gallery
from tests.worlds.galleries import facts_by_name

TOWERS = re.compile(r"tower|castle|lighthouse|windmill", re.IGNORECASE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty of the sample photos, the first with a label that somebody else gave."""
    folder = tmp_path_factory.mktemp("made") / "sixty"
    gallery = gallery_of_samples(folder, sorted(sample.photos().glob("*.jpg"))[::3][:60])
    place = next(row["path"] for row in eyespot.open(gallery).view.facts([0]))
    (folder / "labels.csv").write_text(f"file_name,bird_by\n{place},ada\n")
    index_gallery(gallery, folder / "labels.csv", encoders=())
    return gallery


@pytest.fixture
def gallery(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "g"))


def column(gallery: Path, name: str) -> dict[str, object]:
    return {file: row.get(name) for file, row in facts_by_name(gallery).items()}


def judged_by_ada(gallery: Path, text: str, grouped: bool = False) -> None:
    """Ada judges thirty of the hits, as a calibration spreads them."""
    judge = judge_named("person:ada")
    assert isinstance(judge, PersonJudge)
    ada = replace(judge, ask=lambda about: "y" if TOWERS.search(about.split("\n")[1]) else "n")
    query, collection = Query.words(text), eyespot.open(gallery)
    with Judgements(gallery / "ledger.sqlite") as ledger:
        chain = chain_of(collection, RankingSettings(by="both"), k=100, grouped=grouped)
        Calibrated(JudgeRerank(ada, ledger, 100), 30)(query, collection.answers([query], chain)[0])


@pytest.mark.long
def test_labels_become_a_column_that_filters_until_they_are_given_anew(gallery: Path) -> None:
    words = ("tag", "a tower, an animal", "-g", gallery)
    shown = done(*words, "--others", "food", "--json")

    counts = {name: label["pictures"] for name, label in json.loads(shown.stdout)["labels"].items()}
    stored = column(gallery, "tag")
    assert counts == {name: list(stored.values()).count(name) for name in ("a tower", "an animal")}
    assert sum(counts.values()) < len(stored), "what is nearer to food gets no label"
    found = done("search", "--label", "tag=a tower", "-g", gallery, "--paths", "-k", 100).stdout
    assert {Path(path).name for path in found.splitlines()} == {k for k, v in stored.items() if v == "a tower"}
    by, scores = column(gallery, "tag_by"), column(gallery, "tag_score")
    assert {by[name] for name, label in stored.items() if label} == {"starter, zero-shot"}
    assert all((scores[name] is None) == (label is None) for name, label in stored.items())
    assert "no person calibrated 'a tower', 'an animal'" in shown.stderr

    done(*words, "--column", "other_tag")
    done("tag", "a machine, food", "-g", gallery)

    assert set(column(gallery, "tag").values()) <= {"a machine", "food"}
    assert set(column(gallery, "other_tag").values()) == {"a tower", "an animal"}


@pytest.mark.parametrize(
    "words",
    [
        "' , '",
        "'a dog, a dog'",
        "'a dog' --others 'a dog'",
        "'a dog' --column 'A B'",
        "'a dog' --column bird",
        "'a dog' --calibrated-by encoder:starter",
    ],
)
def test_what_makes_no_sense_is_one_sentence(words: str, made: Path) -> None:
    """Nor is a column taken beside the labels that something else wrote."""
    refuses("tag", *shlex.split(words), "-g", made)

    assert "ada" in column(made, "bird_by").values()


def test_a_dry_run_writes_nothing(gallery: Path) -> None:
    before = {path: path.read_bytes() for path in gallery.rglob("*.*") if path.name != "digests.txt"}

    shown = done("tag", "a tower, an animal", "-g", gallery, "--dry-run")

    assert re.fullmatch(r" +\d+  a tower\n +\d+  an animal\n", shown.stdout)
    assert {path: path.read_bytes() for path in gallery.rglob("*.*") if path.name != "digests.txt"} == before


def test_verdicts_of_a_person_make_probabilities(gallery: Path) -> None:
    judged_by_ada(gallery, "a tower")

    ledger = (gallery / "ledger.sqlite").rename(gallery.parent / "ada.sqlite")
    line = ("tag", "a tower", "-g", gallery, "--calibrated-by", "person:ada", "--ledger", ledger)
    shown = done(*line, "--likely", 0.6, "--json")

    labels = json.loads(shown.stdout)["labels"]
    stored, probabilities = column(gallery, "tag"), column(gallery, "tag_probability")
    assert labels["a tower"]["calibrated"] is True
    assert "no person calibrated" not in shown.stderr
    assert 0 < labels["a tower"]["pictures"] < len(stored)
    assert all(float(str(probabilities[name])) >= 0.6 for name, label in stored.items() if label)


@pytest.mark.long
def test_verdicts_on_the_best_of_each_group_speak_for_its_copies(made: Path, tmp_path: Path) -> None:
    """The page spreads verdicts over groups, the terminal over photos."""
    gallery = tmp_path / "g"
    shutil.copytree(made, gallery)
    (tmp_path / "copies").mkdir()
    for photo in sorted((made.parent / "photos").glob("*.jpg"))[::4]:
        Image.open(photo).save(tmp_path / "copies" / f"copy-{photo.name}", quality=88)
    index_gallery(gallery, tmp_path / "copies")
    judged_by_ada(gallery, "a tower", grouped=True)

    line = ("tag", "a tower", "-g", gallery, "--calibrated-by", "person:ada", "--likely", 0.6)
    assert run_json(*line)["labels"]["a tower"]["calibrated"] is True
    stored = column(gallery, "tag_probability")
    pairs = [(stored[name], stored[name.removeprefix("copy-")]) for name in stored if name.startswith("copy-")]
    assert any(first for first, _ in pairs) and all(first == second for first, second in pairs)


def test_verdicts_that_are_not_spread_calibrate_nothing(gallery: Path) -> None:
    refuses("tag", "a tower", "-g", gallery, "--calibrated-by", "person:ada", code=4)
    assert not any(column(gallery, "tag").values())


def test_pictures_in_a_tar_are_labelled_as_others_are(made: Path, tmp_path: Path) -> None:
    photos = sorted((made.parent / "photos").iterdir())
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        archive.add(photos[0], "first.jpg")
    index_gallery(tmp_path / "g", tmp_path / "0.tar", photos[1])

    done("tag", "a tower, an animal", "-g", tmp_path / "g")

    labels = column(tmp_path / "g", "tag")
    assert labels.keys() == {"first.jpg", photos[1].name} and None not in labels.values()


def test_pictures_that_were_imported_keep_the_facts_of_their_table(gallery: Path, tmp_path: Path) -> None:
    done("export", "npy", tmp_path / "v", "-g", gallery)
    done("import", "npy", tmp_path / "v", "-g", tmp_path / "h", "-e", "starter")

    shown = done("tag", "a tower", "--column", "seen", "-g", tmp_path / "h", code=3)

    assert "has the facts of the table that it was imported with" in shown.stderr


def test_filters_limit_which_pictures_get_labels(gallery: Path) -> None:
    before = eyespot.open(gallery).view.facts(list(range(60)))
    wide = sum(facts["width"] > 330 for facts in before)

    def counted(*words: object) -> int:
        ran = run_eyespot("tag", "a tower", "-g", gallery, "-e", "starter", "--dry-run", "--json", *words)
        assert ran.returncode in (0, 4), ran.stderr  # 4: the filter leaves none
        return int(json.loads(ran.stdout)["labels"]["a tower"]["pictures"]) if ran.returncode == 0 else 0

    assert 0 < wide < 60
    assert counted("--where", "width > 330") == wide
    assert counted("--after", "2000") == sum(facts["taken"] is not None for facts in before)
    assert counted("--undated") == sum(facts["taken"] is None for facts in before)
    assert counted("--before", "1990") == counted("--near", "0,0,1") == counted("--label", "camera=none") == 0


COSINES = st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3)


@given(COSINES)
def test_the_nearest_label_wins_and_others_give_none(cosines: list[float]) -> None:
    chosen = LabelSet(["a", "b"], ["c"]).chosen("x", np.array(cosines, np.float32))

    best = "abc"[int(np.argmax(np.array(cosines, np.float32)))]
    assert chosen == (None if best == "c" else (best, None))


@given(COSINES, st.floats(0, 1), st.floats(0.01, 1))
def test_a_calibrated_label_is_borne_where_it_is_likely(cosines: list[float], p: float, likely: float) -> None:
    chosen = LabelSet(["a", "b"], ["c"], {"a": {"x": p}}, likely).chosen("x", np.array(cosines, np.float32))

    free = "abc"[int(np.argmax(np.array(cosines, np.float32)))] == "b"
    assert chosen == (("a", p) if p >= likely else ("b", None) if free else None)


def test_rows_are_those_of_the_gallery(made: Path) -> None:
    collection = eyespot.open(made)
    ids = [facts["id"] for facts in collection.view.facts(list(range(60)))]

    assert [(tag.row, tag.id) for tag in tags(collection, LabelSet(["a tower", "food"]))] == list(enumerate(ids))
