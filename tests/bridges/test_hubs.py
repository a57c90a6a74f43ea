"""A finished set for others: in a folder, on the hub by the hub's own client, as a draft on Zenodo."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow.parquet as pq
import pytest
import yaml

from eyespot.benchmarks.rmir import tasks
from eyespot.types import Note
from tests.command import refuses, run_eyespot
from tests.worlds import rmir
from tests.worlds.servers import Quiet, listening

CARD = """
[card]
licence = "CC-BY-4.0"
[card.motivation]
makers = "Ada's laboratory"
"""

TOKEN = "planted-token-0123456789"


class Host(Quiet):
    """The hub and Zenodo: what they were sent lies in `taken` by method and path."""

    taken: dict[str, bytes]
    refuse = False

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.taken[f"{self.command} {self.path}"] = data
        host, given = f"http://{self.headers['Host']}", self.headers["Authorization"]
        self.taken["token"] = given.encode()
        answer: object = {"url": f"{host}/datasets/ada/robins"}
        if self.path.endswith("/preupload/main"):
            files = json.loads(data)["files"]
            answer = {"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in files]}
        elif "/commit/" in self.path:
            answer = {
                "success": True,
                "commitOid": "0" * 40,
                "commitUrl": f"{host}/datasets/ada/robins/commit/{'0' * 40}",
            }
        elif self.path == "/api/deposit/depositions":
            answer = {"links": {"bucket": f"{host}/bucket", "html": f"{host}/deposit/7"}}
        elif self.path == "/api/validate-yaml":
            answer = {"errors": [], "warnings": []}
        status, answer = (403, {"message": f"no scope for {given}"}) if self.refuse else (200, answer)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    place = rmir.recipe(folder, rmir.photos(folder / "photos"))
    place.write_text(place.read_text(encoding="utf-8") + CARD, encoding="utf-8")
    rmir.made(place, folder / "out")
    return folder / "out" / "set"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Host]]:
    """A host of both, which the environment names; each request carries the planted token."""
    kind = type("OneHost", (Host,), {"taken": {}, "refuse": False})
    with listening(kind) as place:
        address = f"http://{place}"
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        for name, value in {"ZENODO_URL": address, "ZENODO_TOKEN": TOKEN, "HF_TOKEN": TOKEN}.items():
            monkeypatch.setenv(name, value)
        yield kind


def published(*words: object) -> dict[str, Any]:
    done = run_eyespot("build", "publish", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_folder_has_version_citation_and_checksums_that_sha256sum_takes(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    report = published(built, "--to", out, "--version", "1.2.0")

    assert (report["at"], report["version"]) == (str(out), "1.2.0") and report["red"] >= 1  # seven queries are too few
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out, check=True)
    described = json.loads((out / "croissant.json").read_text())
    assert described["version"] == "1.2.0" and re.fullmatch(r"\d{4}-\d\d-\d\d", described["datePublished"])
    cited = yaml.safe_load((out / "CITATION.cff").read_text())
    assert (cited["version"], cited["license"], cited["authors"]) == (
        "1.2.0",
        "CC-BY-4.0",
        [{"name": "Ada's laboratory"}],
    )
    names = {path.relative_to(built) for path in built.rglob("*")}
    more = {path.relative_to(out).name for path in out.rglob("*") if path.relative_to(out) not in names}
    assert more == {"CITATION.cff", "SHA256SUMS"}
    assert pq.read_table(out / "queries.parquet").equals(pq.read_table(built / "queries.parquet"))
    assert "is there" in refuses("build", "publish", built, "--to", out)


def test_an_evaluation_names_the_set_by_version_and_digest(built: Path, tmp_path: Path) -> None:
    published(built, "--to", tmp_path / "release", "--version", "1.2.0")
    digest = hashlib.sha256((tmp_path / "release" / "SHA256SUMS").read_bytes()).hexdigest()[:16]

    sets = [tasks(folder, "test")[0].unofficial for folder in (built, tmp_path / "release")]
    assert sets[0] == (Note("set", "the set is tiny"),)
    assert sets[1] == (Note("set", f"the set is tiny 1.2.0, sha256:{digest} of SHA256SUMS"),)
    qrels = tmp_path / "release" / "qrels.parquet"
    pq.write_table(pq.read_table(qrels).slice(1), qrels)
    assert tasks(tmp_path / "release", "test")[0].unofficial[0].endswith("1.2.0, changed since it was published")


def test_the_hub_gets_it_private_with_a_tag(built: Path, host: type[Host]) -> None:
    report = published(built, "--to", "hub:ada/robins")

    created = json.loads(host.taken["POST /api/repos/create"])
    assert (created["name"], created["organization"], created["type"]) == ("robins", "ada", "dataset")
    assert created.get("private") or created["visibility"] == "private"  # by the client's version
    lines = [json.loads(line) for line in host.taken["POST /api/datasets/ada/robins/commit/main"].splitlines()]
    sent = {one["value"]["path"]: base64.b64decode(one["value"]["content"]) for one in lines if one["key"] == "file"}
    assert sent["queries.parquet"] == (built / "queries.parquet").read_bytes()
    sums = dict(reversed(line.split("  ")) for line in sent["SHA256SUMS"].decode().splitlines())
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in sent.items() if name != "SHA256SUMS"}
    assert json.loads(host.taken["POST /api/datasets/ada/robins/tag/main"])["tag"] == "v1.0.0"
    assert report["at"].endswith("/datasets/ada/robins") and host.taken["token"].decode().endswith(TOKEN)


def test_zenodo_gets_a_draft_with_one_zip(built: Path, host: type[Host]) -> None:
    report = published(built, "--to", "zenodo", "--version", "2.0.0")

    metadata = json.loads(host.taken["POST /api/deposit/depositions"])["metadata"]
    assert (metadata["upload_type"], metadata["version"], metadata["creators"]) == (
        "dataset", "2.0.0", [{"name": "Ada's laboratory"}]
    )  # fmt: skip
    with ZipFile(BytesIO(host.taken["PUT /bucket/set-2.0.0.zip"])) as packed:
        assert packed.testzip() is None and packed.read("README.md") == (built / "README.md").read_bytes()
    assert report["at"].endswith("/deposit/7") and not any("publish" in path for path in host.taken)


@pytest.mark.parametrize("to", ["hub:ada/robins", "zenodo"])
def test_a_host_that_refuses_is_one_sentence_without_the_token(built: Path, host: type[Host], to: str) -> None:
    host.refuse = True
    done = run_eyespot("build", "publish", built, "--to", to)

    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) <= 2  # the card's red checks come first
    assert "403" in done.stderr and TOKEN not in done.stderr + done.stdout


def test_what_is_not_ready_is_refused(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZENODO_TOKEN", raising=False)
    for words in (("--to", "hub:robins"), ("--to", "zenodo"), ("--to", tmp_path / "a", "--version", "first")):
        refuses("build", "publish", built, *words)
    refuses("build", "publish", tmp_path, "--to", tmp_path / "b")
    copy = tmp_path / "set"
    subprocess.run(["cp", "-r", built, copy], check=True)
    (copy / "queries.parquet").write_bytes(b"another")
    refuses("build", "publish", copy, "--to", tmp_path / "c")
    about = json.loads((copy / "croissant.json").read_text())
    (copy / "croissant.json").write_text(json.dumps({**about, "license": ""}))
    refuses("build", "publish", copy, "--to", tmp_path / "d")
    assert not [name for name in "abcd" if (tmp_path / name).exists()]
