"""Exchange runs, judgements, labels and detections with the programs of others, and compare what both sides read.

    python scripts/read_runs.py PHOTOS     in an empty folder; 1 if something is read otherwise than it was written

`eyespot convert` writes each format that another evaluator reads, and reads what these write: the values of two
measures must be equal, query by query. Label Studio's and MegaDetector's own code writes the JSON that `eyespot import`
reads.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from read_doors import eyespot, label, named, truth  # type: ignore[import-not-found]

Values = Mapping[str, tuple[float, float]]
"""nDCG@10 and average precision of each query."""


def write_world(folder: Path) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Judgements and a run of 12 queries, with grades up to 3, ids of all alphabets, and queries that find nothing."""
    draw = random.Random(7)
    images = [f"photo-{number}" for number in range(60)] + ["Zürich/ibex.jpg", "鳥", "a:b;c,d"]
    qrels = {f"q{query}": {image: draw.randint(0, 3) for image in draw.sample(images, 20)} for query in range(12)}
    run = {
        query: {image: 1 - place / 41 + draw.random() / 100 for place, image in enumerate(draw.sample(images, 40))}
        for query in qrels
    }
    folder.mkdir()
    rows = {query: sorted(found.items(), key=lambda hit: -hit[1]) for query, found in run.items()}
    lines = [f"{q} Q0 {image} {rank} {score!r} eyespot\n" for q in rows for rank, (image, score) in enumerate(rows[q])]
    (folder / "run.txt").write_text("".join(lines), encoding="utf-8")
    judged = [f"{query} 0 {image} {grade}\n" for query in qrels for image, grade in qrels[query].items()]
    (folder / "qrels.txt").write_text("".join(judged), encoding="utf-8")
    return qrels, run


def own_values(qrels: Path, run: Path) -> Values:
    """As `eyespot metrics` has them."""
    found = json.loads(eyespot("metrics", qrels, run, "-m", "nDCG@10", "-m", "AP", "--json", "--per-query"))
    return {query: (row["nDCG@10"], row["AP"]) for query, row in found["queries"].items()}


# -- evaluators -------------------------------------------------------------------------------------------------


def with_ir_measures(qrels: Path, run: Path) -> Values:
    """Of TREC files."""
    measures = import_module("ir_measures")
    kinds = (measures.nDCG @ 10, measures.AP)
    judged, ranked = measures.read_trec_qrels(str(qrels)), measures.read_trec_run(str(run))
    values: dict[str, dict[str, float]] = {}
    for one in measures.iter_calc(kinds, judged, ranked):
        values.setdefault(one.query_id, {})[str(one.measure)] = one.value
    return {query: (row["nDCG@10"], row["AP"]) for query, row in values.items()}


def with_pytrec_eval(qrels: Path, run: Path) -> Values:
    """Of JSON, whose objects it takes as they are."""
    judged, ranked = (json.loads(path.read_text(encoding="utf-8")) for path in (qrels, run))
    found = import_module("pytrec_eval").RelevanceEvaluator(judged, {"ndcg_cut_10", "map"}).evaluate(ranked)
    return {query: (row["ndcg_cut_10"], row["map"]) for query, row in found.items()}


def with_ranx(qrels: Path, run: Path) -> Values:
    """Of TREC, JSON or parquet files, with the columns that eyespot names."""
    ranx = import_module("ranx")
    if run.suffix == ".parquet":
        # Its from_parquet knows no text but as objects, which pandas 3 does not read it as.
        text, columns = {"query": object, "image": object}, {"q_id_col": "query", "doc_id_col": "image"}
        tables = [import_module("pandas").read_parquet(path).astype(text) for path in (qrels, run)]
        judged = ranx.Qrels.from_df(tables[0].astype({"grade": int}), score_col="grade", **columns)
        ranked = ranx.Run.from_df(tables[1], score_col="score", **columns)
    else:
        judged, ranked = ranx.Qrels.from_file(str(qrels)), ranx.Run.from_file(str(run))
    ranx.evaluate(judged, ranked, ["ndcg@10", "map"], make_comparable=True)
    return {query: (ranked.scores["ndcg@10"][query], ranked.scores["map"][query]) for query in ranked.scores["map"]}


def with_beir(qrels: Path, run: Path) -> Values:
    """The judgements as its own loader has them from a BEIR folder, the run as JSON."""
    _, queries, judged = import_module("beir.datasets.data_loader").GenericDataLoader(str(qrels)).load(split="test")
    assert set(queries) == set(judged)
    ranked = json.loads(run.read_text(encoding="utf-8"))
    found = import_module("pytrec_eval").RelevanceEvaluator(judged, {"ndcg_cut_10", "map"}).evaluate(ranked)
    return {query: (row["ndcg_cut_10"], row["map"]) for query, row in found.items()}


READERS: list[tuple[str, Callable[[Path, Path], Values], str, str]] = [
    ("ir_measures", with_ir_measures, "qrels.txt", "run.txt"),
    ("pytrec_eval-terrier", with_pytrec_eval, "qrels.json", "run.json"),
    ("ranx", with_ranx, "qrels.txt", "run.trec"),
    ("ranx", with_ranx, "qrels.json", "run.json"),
    ("ranx", with_ranx, "qrels.parquet", "run.parquet"),
    ("beir", with_beir, "beir", "run.json"),
]


def read_by_others(world: Path, truth_values: Values) -> int:
    """How many programs read what `eyespot convert` wrote otherwise."""
    out, wrong = Path("converted"), 0
    out.mkdir()
    names = {name for _, _, *pair in READERS for name in pair}
    for name in sorted(names):
        holds = "run" if name.startswith("run") else "qrels"
        beir = ["--to", "beir"] if name == "beir" else []
        eyespot("convert", world / f"{holds}.txt", out / name, f"--{holds}", *beir)
    for program, read, qrels, run in READERS:
        wrong += differs(f"{named(program)} reads {qrels} and {run}", read(out / qrels, out / run), truth_values)
    return wrong


def write_by_others(qrels: Any, run: Any, truth_values: Values) -> int:
    """How many files of other programs eyespot reads otherwise."""
    ranx, numpy, out, wrong = import_module("ranx"), import_module("numpy"), Path("written"), 0
    out.mkdir()
    for ending in ("json", "trec", "parquet"):
        ranx.Qrels(qrels).save(str(out / f"qrels.{ending}"))
        ranx.Run(run, name="ranx").save(str(out / f"run.{ending}"))
        for holds in ("qrels", "run"):
            eyespot("convert", out / f"{holds}.{ending}", out / f"{holds}-{ending}.txt", f"--{holds}")
        values = own_values(out / f"qrels-{ending}.txt", out / f"run-{ending}.txt")
        wrong += differs(f"eyespot reads {named('ranx')}'s {ending}", values, truth_values)
    images = sorted({image for found in run.values() for image in found})
    scores = numpy.array(
        [[found.get(image, -float(at)) for at, image in enumerate(images, 1)] for found in run.values()]
    )
    numpy.savez(out / "matrix.npz", scores=scores, queries=[*run], images=images)
    eyespot("convert", out / "matrix.npz", out / "matrix.txt", "--run")
    values = own_values(out / "qrels-json.txt", out / "matrix.txt")
    return wrong + differs(f"eyespot reads {named('numpy')}'s npz", values, own_values_of_all(qrels, scores, images))


def own_values_of_all(qrels: Any, scores: Any, images: list[str]) -> Values:
    """pytrec_eval on a whole matrix, which ranks every image."""
    run = {query: dict(zip(images, map(float, row), strict=True)) for query, row in zip(qrels, scores, strict=True)}
    found = import_module("pytrec_eval").RelevanceEvaluator(qrels, {"ndcg_cut_10", "map"}).evaluate(run)
    return {query: (row["ndcg_cut_10"], row["map"]) for query, row in found.items()}


def differs(what: str, found: Values, known: Values) -> bool:
    """Whether values are not those that they must be, which is printed."""
    far = [
        query
        for query in known
        for pair in zip(found.get(query, (-1, -1)), known[query], strict=True)
        if abs(pair[0] - pair[1]) > 1e-9
    ]
    print(f"{what}: {len(found)} queries{f', other values for {sorted(set(far))[:3]}' if far else ''}")
    return bool(far) or found.keys() != known.keys()


# -- labels and detections --------------------------------------------------------------------------------------


def label_studio() -> int:
    """How many of Label Studio's two exports, made by its own converter, give other marks than were exported."""
    from eyespot.curate.annotate.annotation_store import AnnotationStore
    from eyespot.curate.annotate.label_studio import tasks_of

    def marks(gallery: Path) -> set[tuple[str, str, str, str | None]]:
        with AnnotationStore(gallery / "ledger.sqlite") as store:
            return {(task.query, task.image, *mark) for task in tasks_of(store) for mark in task.marks.items()}

    gallery, wrong = Path("labelled"), 0
    shutil.copytree("plain", gallery)
    label(gallery, [*truth(gallery)])
    eyespot("export", "label-studio", "tasks", "-g", gallery)
    config = Path("tasks", "labels.xml").read_text(encoding="utf-8")
    converter = import_module("label_studio_sdk.converter").Converter(config, "tasks")
    for kind, convert in {"json": converter.convert_to_json, "json-min": converter.convert_to_json_min}.items():
        convert("tasks/tasks.json", kind, is_dir=False)
        into = Path(shutil.copytree("plain", f"from-{kind}"))
        eyespot("import", "label-studio", Path(kind, "result.json"), "-g", into)
        same = marks(into) == marks(gallery) != set()
        wrong += not same
        print(f"eyespot imports {named('label-studio-sdk')}'s {kind}: {'the' if same else 'OTHER'} marks")
    return wrong


def detectors(photos: Path) -> int:
    """1 if a box or a species of the detectors' files is not a fact then."""
    names, boxes = sorted(path.name for path in photos.glob("*.jpg"))[:2], [0.1, 0.2, 0.3, 0.4]
    taxon = "0a1b;mammalia;carnivora;canidae;vulpes;vulpes;red fox"
    final = {"class": taxon, "score": 0.88, "source": "classifier"}
    raw = {"classes": [taxon], "scores": [0.8]}
    animal = {"category": "1", "label": "animal", "conf": 0.9, "bbox": boxes}
    seen = [{**animal, "raw_classifications": raw, "processed_classification": final}]
    predictions: list[dict[str, Any]] = [{"filepath": name, "detections": seen} for name in names]
    speciesnet = {"info": {"format_version": "20261015"}, "predictions": predictions}
    Path("speciesnet.json").write_text(json.dumps(speciesnet), encoding="utf-8")
    taxonomy = import_module("megadetector.utils.wi_taxonomy_utils")  # which reads SpeciesNet's file and checks its own
    taxonomy.generate_md_results_from_predictions_json("speciesnet.json", "converted.json")
    found = [{"file": name, "detections": [{"category": "1", "conf": 0.9, "bbox": boxes}]} for name in names]
    batch = import_module("megadetector.detection.run_detector_batch")
    batch.write_results_to_file([*found, {"file": "broken.jpg", "failure": "Failure image access"}], "found.json")
    shutil.copytree("plain", "detected")
    wrong = 0
    for verb, file, species in (
        ("megadetector", "found.json", False),
        ("megadetector", "converted.json", True),
        ("speciesnet", "speciesnet.json", True),
    ):
        eyespot("import", verb, file, "--photos", photos, "-g", "detected", codes=(0, 3))
        where = "boxes LIKE '%0.9, 0.1, 0.2, 0.3, 0.4%'" + (" AND species = 'Vulpes vulpes'" if species else "")
        paths = eyespot("search", "--where", where, "--paths", "-g", "detected").split()
        same = sorted(Path(path).name for path in paths) == names
        wrong += not same
        print(f"eyespot imports {file} of {named('megadetector-utils')}: {'the' if same else 'OTHER'} facts")
    return wrong


def main() -> int:
    """The exit code."""
    photos = Path(sys.argv[1]).resolve()
    qrels, run = write_world(Path("world"))
    values = own_values(Path("world/qrels.txt"), Path("world/run.txt"))
    wrong = read_by_others(Path("world"), values) + write_by_others(qrels, run, values)
    eyespot("index", photos, "-g", "plain")
    return 1 if wrong + label_studio() + detectors(photos) else 0


if __name__ == "__main__":
    sys.exit(main())
