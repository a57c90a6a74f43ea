"""Each official layout is read as it is: small files of our own writing, and the published ones where they are."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.runs import beir, circo, eccv, ilias, inquire, karpathy, read_qrels, read_run, rmir, write_run
from eyespot.runs.judged import JudgedQueries
from eyespot.runs.matrix import read_run_of_images
from eyespot.runs.trec import trec_order
from eyespot.types import Qrels, Run, UsageError
from tests.wording import raises
from tests.worlds.runs import CONFORMANCE, SHARED

conformance = pytest.mark.skipif(not CONFORMANCE.is_dir(), reason="the conformance data are not beside the repository")


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    return written(path, "".join(json.dumps(row) + "\n" for row in rows))


QUERIES = (
    ",query_id,query_text,supercategory,category,iconic_group\n"
    '0,3,"A mongoose, standing",Behavior,Defensive and Survival Behaviors,Mammals\n'
    "1,4,A meadowlark,Behavior,Social,\n"
)
ANNOTATIONS = "query_id,image_id,image_path\n3,70,train/046/a b.jpg\n3,71,train/046/c.jpg\n9,70,train/046/a b.jpg\n"


def test_inquire_queries_with_what_is_annotated_of_them(tmp_path: Path) -> None:
    queries, annotations = written(tmp_path / "queries.csv", QUERIES), written(tmp_path / "ann.csv", ANNOTATIONS)
    found = inquire.read(queries, annotations)
    assert found.queries["3"]["text"] == "A mongoose, standing"
    assert found.queries["4"] == {
        "text": "A meadowlark",
        "supercategory": "Behavior",
        "category": "Social",
        "iconic_group": "",
    }
    assert found.qrels.grades == {"3": {"70": 1, "71": 1}, "4": {}}
    assert found.images["70"]["path"] == "train/046/a b.jpg"
    assert read_qrels(annotations).grades == {"3": {"70": 1, "71": 1}, "9": {"70": 1}}
    assert list(read_qrels(annotations, "inquire:image_path").grades["9"]) == ["train/046/a b.jpg"]
    ours = written(tmp_path / "ours.csv", "query_id,image_id,relevant\n3,70,1\n3,71,0\n")
    assert read_qrels(ours).grades == {"3": {"70": 1, "71": 0}}


@pytest.mark.parametrize("grade", ["grade", "relevance", "rel", "label", "score"])
def test_a_table_with_grades_is_not_a_list_of_relevant_pairs(grade: str, tmp_path: Path) -> None:
    rows = [("q", "a", "0"), ("q", "b", "2"), ("p", "c", "0.5")]
    expected = {"q": {"a": 0, "b": 2}, "p": {"c": 0.5}}
    for name, sep, query, image in [
        ("a.csv", ",", "query_id", "image_id"),
        ("b.csv", ",", "query", "image"),
        ("c.tsv", "\t", "qid", "docno"),
    ]:
        lines = "".join(sep.join(row) + "\n" for row in [(query, image, grade), *rows])
        assert read_qrels(written(tmp_path / name, lines)).grades == expected
    listed = [{"query": query, "image": image, grade: float(value)} for query, image, value in rows]
    lines = "".join(json.dumps(row) + "\n" for row in listed)
    assert read_qrels(written(tmp_path / "d.jsonl", lines)).grades == expected
    assert read_qrels(written(tmp_path / "e.json", json.dumps(listed))).grades == expected


def hub(folder: Path) -> Path:
    rows = [
        {
            "image": {"bytes": b"\xff\xd8", "path": None},
            "query": text,
            "query_id": query,
            "relevant": relevant,
            "clip_score": score,
            "inat24_image_id": image,
            "inat24_file_name": f"train/{image}.jpg",
            "supercategory": "Behavior",
            "category": "Social",
            "iconic_group": "Birds",
            "latitude": 1.5,
        }
        for query, text, image, relevant, score in [
            (3, "a mongoose", 70, 0, 0.25),
            (3, "a mongoose", 71, 1, 0.5),
            (4, "a lark", 71, 0, 0.125),
        ]
    ]
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows[:2]), folder / "data" / "test-00000-of-00002.parquet")
    pq.write_table(pa.Table.from_pylist(rows[2:]), folder / "data" / "test-00001-of-00002.parquet")
    return folder


def test_inquire_rerank_from_the_hub(tmp_path: Path) -> None:
    folder = hub(tmp_path / "rerank")
    found = inquire.read_rerank((folder / "data").glob("*.parquet"))
    assert found.queries["3"] == {
        "text": "a mongoose",
        "supercategory": "Behavior",
        "category": "Social",
        "iconic_group": "Birds",
    }
    assert found.qrels.grades == {"3": {"70": 0, "71": 1}, "4": {"71": 0}}
    assert found.images["70"] == {"path": "train/70.jpg", "latitude": 1.5}
    assert dict(read_run(folder)) == {"3": [("71", 0.5), ("70", 0.25)], "4": [("71", 0.125)]}
    assert read_qrels(folder).grades == found.qrels.grades
    assert read_qrels(folder / "data" / "test-00001-of-00002.parquet").grades == {"4": {"71": 0}}


@pytest.mark.skipif(not (SHARED / "data" / "inquire").is_dir(), reason="INQUIRE's queries are not there")
def test_inquire_published_queries() -> None:
    found = [inquire.read(SHARED / "data" / "inquire" / f"inquire_queries_{split}.csv") for split in ("val", "test")]
    assert [len(judged.queries) for judged in found] == [50, 200]
    assert {facts["supercategory"] for facts in found[1].queries.values()} == {
        "Species",
        "Context",
        "Behavior",
        "Appearance",
    }


def test_ilias_queries_share_the_positives_of_their_instance(tmp_path: Path) -> None:
    lists = tmp_path / "image_ids"
    written(lists / "image_query_ids.txt", "cup_1/query/Q00.jpg,x\ncup_2/query/Q00.jpg,x\n")
    written(lists / "text_query_ids.txt", "cup_1/query/T00.txt\n")
    (lists / "positive_ids.txt.gz").write_bytes(gzip.compress(b"cup_1/pos/P 0.jpg,0.5,7\ncup_1/pos/P1.jpg,0.25,70\n"))
    written(lists / "mini_ilias_yfcc100m_ids.txt", "yfcc/1.jpg\nyfcc/2.jpg\n")
    found = ilias.read(tmp_path)
    assert found.queries["cup_1/query/T00.txt"] == {"kind": "text", "instance": "cup_1"}
    assert found.qrels.grades == {
        "cup_1/query/Q00.jpg": {"cup_1/pos/P 0.jpg": 1, "cup_1/pos/P1.jpg": 1},
        "cup_2/query/Q00.jpg": {},
        "cup_1/query/T00.txt": {"cup_1/pos/P 0.jpg": 1, "cup_1/pos/P1.jpg": 1},
    }
    assert found.images["cup_1/pos/P 0.jpg"] == {"instance": "cup_1", "scale": 0.5, "clutter": 7.0}
    assert list(ilias.distractors(tmp_path)) == ["yfcc/1.jpg", "yfcc/2.jpg"]
    assert read_qrels(tmp_path).grades == read_qrels(lists, "ilias").grades == found.qrels.grades

    written(lists / "text_query_ids.txt", "cup_1/query/T00.txt\ncup_1/query/T00.txt\n")
    with raises(UsageError):
        ilias.read(tmp_path)


def karpathy_row(number: int, split: str, captions: int, **ids: Any) -> dict[str, Any]:
    first = 10 * number
    sentences = [{"raw": f"caption {first + at}", "sentid": first + at, "tokens": []} for at in range(captions)]
    return {"split": split, "filename": f"{number}.jpg", "imgid": number, "sentences": sentences, **ids}


def test_karpathy_takes_five_captions_of_an_image_both_ways(tmp_path: Path) -> None:
    rows = [karpathy_row(1, "test", 6, cocoid=391895, filepath="val2014"), karpathy_row(2, "train", 5)]
    path = written(tmp_path / "dataset_coco.json", {"images": rows, "dataset": "coco"})
    captions = karpathy.read(path)
    assert captions.images == {"391895": {"path": "val2014/1.jpg"}}
    assert captions.texts["10"] == {"text": "caption 10", "image": "391895"}
    assert karpathy.text_to_image(captions).qrels.grades == {str(10 + at): {"391895": 1} for at in range(5)}
    assert read_qrels(path, "karpathy:i2t").grades == {"391895": dict.fromkeys(["10", "11", "12", "13", "14"], 1)}
    assert read_qrels(path).grades == karpathy.text_to_image(captions).qrels.grades
    assert list(karpathy.read(path, split="train").images) == ["2"]


def test_eccv_folder(tmp_path: Path) -> None:
    for name in ("original", "cxc", "eccv"):
        written(tmp_path / f"{name}_caption_to_image.json", {"7": [1, 2], "8": [2]})
        written(tmp_path / f"{name}_image_to_caption.json", {"1": [7], "2": [7, 8]})
    np.save(tmp_path / "coco_test_ids.npy", np.array([8, 7]))
    assert read_qrels(tmp_path).grades == {"7": {"1": 1, "2": 1}, "8": {"2": 1}}
    assert read_qrels(tmp_path, "cxc:i2t").grades == {"1": {"7": 1}, "2": {"7": 1, "8": 1}}
    assert list(eccv.read(tmp_path, "coco", "i2t").images) == ["8", "7"]
    assert list(eccv.read(tmp_path).images) == ["1", "2"]
    with raises(UsageError):
        read_qrels(tmp_path, "eccv:up")
    np.save(tmp_path / "coco_test_ids.npy", np.array([{}], dtype=object))
    with raises(UsageError):
        eccv.read(tmp_path, "eccv", "i2t")


def test_circo_annotations_and_submission(tmp_path: Path) -> None:
    entry = {
        "reference_img_id": 27,
        "target_img_id": 35,
        "relative_caption": "has two people",
        "shared_concept": "a girl",
        "gt_img_ids": [35, 52],
        "id": 0,
        "semantic_aspects": ["cardinality"],
    }
    hidden = {"reference_img_id": 28, "relative_caption": "is red", "shared_concept": "a car", "id": 1}
    path = written(tmp_path / "val.json", [entry, hidden])
    found = circo.read(path)
    assert found.qrels.grades == read_qrels(path).grades == {"0": {"35": 1, "52": 1}, "1": {}}
    assert (found.queries["0"]["image"], found.queries["0"]["target"]) == ("27", "35")
    orders = {"0": [str(at) for at in range(60)], "1": ["35"]}
    write_run(Run.from_orders(orders), tmp_path / "sub.json", "circo")
    assert json.loads((tmp_path / "sub.json").read_text()) == {"0": list(range(50)), "1": [35]}
    assert [hit.image for hit in read_run(tmp_path / "sub.json")["0"]] == orders["0"][:50]
    with raises(UsageError):
        write_run(Run.from_orders({"0": ["a"]}), tmp_path / "sub.json", "circo")


def test_beir_folder_and_its_qrels_file(tmp_path: Path) -> None:
    jsonl(tmp_path / "corpus.jsonl", {"_id": "a b", "text": "x"}, {"_id": "c", "text": "y"})
    jsonl(tmp_path / "queries.jsonl", {"_id": "q", "text": "what"}, {"_id": "unused", "text": "no"})
    path = written(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq\ta b\t2\nq\tc\t0\n")
    found = beir.read(tmp_path)
    assert found.queries == {"q": {"text": "what"}}
    assert found.qrels.grades == read_qrels(tmp_path).grades == read_qrels(path).grades == {"q": {"a b": 2, "c": 0}}
    assert found.images == {"a b": {"text": "x"}, "c": {"text": "y"}}


def test_mteb_tables_of_parquet_with_pictures(tmp_path: Path) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "corpus": [{"id": "a", "image": {"bytes": b"\xff", "path": "a.jpg"}, "modality": "image"}],
        "queries": [{"id": "q", "text": "what"}],
        "qrels": [{"query-id": "q", "corpus-id": "a", "score": 1.0}],
    }
    for name, rows in tables.items():
        (tmp_path / name).mkdir()
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name / "test-00000-of-00001.parquet")
    found = beir.read(tmp_path)
    assert found.qrels.grades == {"q": {"a": 1}} and found.images == {"a": {"modality": "image"}}


def test_beir_is_written_as_it_is_read(tmp_path: Path) -> None:
    made = JudgedQueries(
        {"q 1": {"text": "wha\nt"}}, Qrels({"q 1": {"a b": 2, "é": 0}}), {"a b": {"path": "a b.jpg"}, "é": {}}
    )
    beir.write(made, tmp_path / "set")
    found = beir.read(tmp_path / "set")
    assert (found.queries, found.qrels.grades, found.images) == (made.queries, made.qrels.grades, made.images)
    with raises(UsageError):
        beir.write(JudgedQueries({}, Qrels({"q\t": {"a": 1}})), tmp_path / "set")


def test_rmir_in_our_layout_and_in_a_mapped_one(tmp_path: Path) -> None:
    query = {"id": "q", "image": "i", "question": "what opens it?", "kind": "functional", "split": "test"}
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    jsonl(ours / "queries.jsonl", query)
    jsonl(ours / "qrels.jsonl", {"query": "q", "image": "a"}, {"query": "q", "image": "b", "grade": 0})
    pq.write_table(pa.table({"image": ["a", "b"], "width": [1, 2]}), ours / "pool.parquet")
    jsonl(
        theirs / "test.jsonl", {"qid": "q", "img": "i", "text": "what opens it?", "kind": "functional", "split": "test"}
    )
    jsonl(theirs / "qrels.jsonl", {"query": "q", "image": "a"}, {"query": "q", "image": "b", "grade": 0})
    jsonl(theirs / "pool.jsonl", {"image": "a", "width": 1}, {"image": "b", "width": 2})
    columns = {"id": "qid", "image": "img", "question": "text"}
    written(theirs / "mapping.json", {"queries": {"file": "test.jsonl", "columns": columns}})
    first, second = rmir.read(ours), rmir.read(theirs)
    assert first.queries["q"]["text"] == second.queries["q"]["text"] == "what opens it?"
    assert first.qrels.grades == second.qrels.grades == read_qrels(theirs).grades == {"q": {"a": 1, "b": 0}}
    assert first.images == second.images == {"a": {"width": 1}, "b": {"width": 2}}
    assert list(first.among("kind", "functional").queries) == ["q"] and not first.among("kind", "causal").queries


def test_a_similarity_matrix_both_ways(tmp_path: Path) -> None:
    scores = np.array([[0.1, 0.9, 0.9], [0.5, 0.2, 0.3]], dtype=np.float32)
    np.savez(tmp_path / "run.npz", scores=scores, queries=[7, 8], images=["a", "b b", "c"])
    run = read_run(tmp_path / "run.npz")
    assert [hit.image for hit in run["7"]] == ["b b", "c", "a"]
    assert run["8"][0] == ("a", 0.5)
    turned = read_run(tmp_path / "run.npz", "npz:i2t")
    assert {query: [hit.image for hit in hits] for query, hits in turned.items()} == {
        "a": ["8", "7"],
        "b b": ["7", "8"],
        "c": ["7", "8"],
    }
    assert read_run_of_images(tmp_path / "run.npz", depth=1).header["depth"] == 1


def test_the_best_of_a_matrix_keep_ties_in_order() -> None:
    from eyespot.runs.matrix import ranked_matrix

    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, (20, 40)).astype(float)  # (queries, images), many ties
    images = [str(at) for at in range(40)]
    whole, cut = (ranked_matrix(images[:20], images, scores, depth) for depth in (40, 7))
    assert all(cut[query] == whole[query][:7] for query in whole)
    assert [hit.image for hit in whole["3"]] == [str(at) for at in np.argsort(-scores[3], kind="stable")]


def test_places_that_nothing_filled_are_left_out(tmp_path: Path) -> None:
    ids, scores = np.array([[5, 7], [6, -1]]), np.array([[1.0, 0.5], [0.25, -3e38]])
    np.savez(tmp_path / "run.npz", queries=["p", "q"], ids=ids, scores=scores)
    assert dict(read_run(tmp_path / "run.npz")) == {"p": [("5", 1.0), ("7", 0.5)], "q": [("6", 0.25)]}


def test_trec_order_is_trec_evals() -> None:
    run = Run({"q": [("b", 1.0 + 1e-12), ("a", 1.0), ("c", 1.0), ("d", 0.5)]})
    assert [hit.image for hit in trec_order(run)["q"]] == ["c", "b", "a", "d"]


FAULTS: list[tuple[Any, dict[str, Any]]] = [
    (
        ilias.read,
        {"image_query_ids.txt": "cup/query/Q0.jpg\n", "positive_ids.txt": "cup/pos/P0.jpg,0.5,7\ncup/pos/P1.jpg,0.5\n"},
    ),
    (
        beir.read,
        {"queries.jsonl": '{"_id": "q", "text": "x"}\n', "qrels/test.tsv": "query-id\tcorpus-id\tscore\nlost\ta\t2\n"},
    ),
    (rmir.read, {"../secret.jsonl": "{}", "mapping.json": {"queries": {"file": "../secret.jsonl"}}}),
    *(
        (lambda folder: rmir.place(folder, "queries"), {"mapping.json": mapping})
        for mapping in ([], {"queries": "q.jsonl"}, {"queries": {"columns": []}}, {"queries": {"file": 3}})
    ),
]


@pytest.mark.parametrize(("read", "files"), FAULTS, ids=range(len(FAULTS)))
def test_what_is_wrong_with_a_set_is_told(tmp_path: Path, read: Any, files: dict[str, Any]) -> None:
    """A line of too few fields, a query that is not there, a mapping that leads out, and such as are none."""
    for name, value in files.items():
        written(tmp_path / "set" / name, value)
    with raises(UsageError):
        read(tmp_path / "set")
