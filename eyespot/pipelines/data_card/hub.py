"""What hubs read of a set: `croissant.json` with tables, columns and digests, and the head of its `README.md`.

Croissant 1.0 (mlcommons.org/croissant) with the fields of its extension for responsible AI (RAI 1.0). What nobody
answered on the card is left out. `datasets` loads the first configuration of the head if none is named.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eyespot.formats.folders import configurations
from eyespot.pipelines.data_card.content import Card
from eyespot.storage.atomic import write_whole
from eyespot.storage.digests import file_sha256

Tables = Mapping[str, Mapping[str, str]]
"""Configurations: name → split → the table's file, relative to the set."""


def write_readme(card: Card, tables: Tables, folder: Path) -> None:
    """`README.md` out of the `card.md` that lies in the folder, in its place."""
    write_head(card, tables, folder, (folder / "card.md").read_text(encoding="utf-8"))
    (folder / "card.md").unlink()


def write_head(card: Card, tables: Tables, folder: Path, text: str) -> None:
    """`README.md` with a text of its own under the head, which is YAML."""
    lines = ["---", f"pretty_name: {json.dumps(card.content.title)}"]
    lines += [f"license: {json.dumps(card.content.licence)}"] if card.content.licence else []
    whole = "\n".join([*lines, *configurations(tables), "---", "", text])
    write_whole(folder / "README.md", lambda file: file.write(whole.encode("utf-8", "replace")))


CROISSANT = "croissant.json"
WHOLE = "whole"  # the split of a table that is not divided
FORMATS = {".parquet": "application/x-parquet", ".csv": "text/csv"}
RAI: Mapping[str, tuple[str, ...]] = {
    "dataCollection": ("collection.means", "collection.sampling"),
    "dataCollectionRawData": ("collection.source", "preparation.raw"),
    "dataCollectionMissingData": ("composition.missing",),
    "dataPreprocessingProtocol": ("preparation.steps",),
    "dataAnnotationProtocol": ("composition.labels",),
    "annotatorDemographics": ("collection.workers",),
    "dataBiases": ("uses.caution",),
    "dataLimitations": ("uses.unfit", "composition.errors"),
    "dataUseCases": ("motivation.purpose", "uses.used", "uses.others"),
    "dataSocialImpact": ("composition.offensive",),
    "personalSensitiveInformation": ("composition.people", "composition.sensitive", "composition.confidential"),
    "dataReleaseMaintenancePlan": ("maintenance.keeper", "maintenance.updates", "maintenance.removal"),
}
"""RAI's fields by the answers of the datasheet that fill them."""
CONTEXT = json.loads(Path(__file__).with_name("croissant.json").read_text("utf-8"))


def write_croissant(card: Card, tables: Tables, folder: Path) -> None:
    """`croissant.json` of tables that lie in the folder; a split `whole` is a table by itself."""
    files = sorted({place for splits in tables.values() for place in splits.values() if (folder / place).is_file()})
    description = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": card.content.title,
        "description": card.content.about or card.content.title,
        "version": "1.0.0",
        **_card_fields(card),
        "distribution": [
            {
                **{"@type": "cr:FileObject", "@id": place, "name": place, "contentUrl": place},
                **{"contentSize": f"{(folder / place).stat().st_size} B", "sha256": file_sha256(folder / place)},
                "encodingFormat": FORMATS[Path(place).suffix],
            }
            for place in files
        ],
        "recordSet": [
            _records(folder, name if split == WHOLE else f"{name}-{split}", place)
            for name, splits in tables.items()
            for split, place in splits.items()
            if place in files
        ],
    }
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    write_whole(folder / CROISSANT, lambda file: file.write(text.encode("utf-8", "replace")))


# -- what the card says ---------------------------------------------------------------------------------------------


def _card_fields(card: Card) -> dict[str, Any]:
    answers = {f"{one.section}.{one.name}": one.answer for one in card.datasheet if one.answer}
    fields: dict[str, Any] = {"license": card.content.licence or answers.get("distribution.licence", "")}
    fields["citeAs"] = card.content.citation
    makers = answers.get("motivation.makers")
    fields["creator"] = [{"@type": "Organization", "name": makers}] if makers else []
    day = re.search(r"\b\d{4}-\d{2}-\d{2}\b", answers.get("distribution.when", ""))
    fields["datePublished"] = day[0] if day else ""
    address = re.search(r"https?://\S+[^\s.,;)]", answers.get("distribution.how", ""))
    fields["url"] = address[0] if address else ""
    rai = {name: " ".join(answers[one] for one in sources if one in answers) for name, sources in RAI.items()}
    rai["dataAnnotationAnalysis"] = " ".join(
        f"{check.what} ({check.level}): {check.text}" for check in card.content.checks
    )
    models = (json.loads(step.settings).get("models", {}) for step in card.steps if step.settings)
    named = {str(model.get("use")) for each in models for model in each.values() if isinstance(model, dict)}
    rai["machineAnnotationTools"] = ", ".join(sorted(named))
    fields |= {f"rai:{name}": text for name, text in rai.items()}
    return {name: value for name, value in fields.items() if value}


# -- tables ---------------------------------------------------------------------------------------------------------


def _records(folder: Path, name: str, place: str) -> dict[str, Any]:
    fields = []
    for column, kind in _columns(folder / place):
        source: dict[str, Any] = {"fileObject": {"@id": place}, "extract": {"column": column}}
        if kind == "sc:ImageObject":
            source["transform"] = {"jsonPath": "bytes"}
        field = {"@type": "cr:Field", "@id": f"{name}/{column}", "name": column, "dataType": kind, "source": source}
        fields.append(field)
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _columns(path: Path) -> Iterator[tuple[str, str]]:
    """A table's columns with their types; those that are lists or tables themselves are left out."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            yield from ((column, "sc:Text") for column in next(csv.reader(file), []))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    tests: dict[str, Callable[[Any], bool]] = {
        "sc:Text": pa.types.is_string,
        "sc:Boolean": pa.types.is_boolean,
        "sc:Integer": pa.types.is_integer,
        "sc:Float": pa.types.is_floating,
        "sc:Date": lambda kind: pa.types.is_date(kind) or pa.types.is_timestamp(kind),
        "sc:ImageObject": lambda kind: pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0,
    }
    for column in pq.read_schema(path):
        yield from ((column.name, kind) for kind, is_one in tests.items() if is_one(column.type))
