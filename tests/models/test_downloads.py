"""`eyespot download`, with the hub's own client against a mirror of its protocol, and plain files of other hosts."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eyespot.models import repository
from eyespot.models.downloads import download
from eyespot.models.web import HostBusy
from eyespot.types import EyespotError, UsageError
from tests.command import refuses, run_eyespot
from tests.wording import check_wording, raises
from tests.worlds.hub_mirror import HubMirror, hub

WEIGHTS = bytes(range(256)) * 4096  # one megabyte
REPOS = {
    "owner/model": {"config.json": b'{"a": 1}', "model.safetensors": WEIGHTS},
    "owner/set": {"data/test-0.parquet": WEIGHTS[:9000], "data/train-0.parquet": b"train", "README.md": b"about"},
    "owner/closed": {"config.json": b"{}"},
}


def eyespot(tmp_path: Path, mirror: HubMirror, *words: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, whose hub is the mirror and whose cache is empty."""
    pytest.importorskip("huggingface_hub")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "EYESPOT_"))}
    env |= {"HF_ENDPOINT": mirror.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1"}
    env |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DOWNLOAD_TIMEOUT": "20"}
    line = [sys.executable, "-m", "eyespot.cli", *map(str, words)]
    return subprocess.run(line, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)


@pytest.mark.long
def test_a_model_comes_whole_with_its_commit_and_of_a_data_set_what_a_pattern_chooses(tmp_path: Path) -> None:
    words = ("download", "hub:datasets/owner/set@main", "--out", "set", "--files", "data/test-*")
    with hub(HubMirror(REPOS)) as mirror:
        done = eyespot(tmp_path, mirror, "download", "hub:owner/model", "--out", "here", "--json")
        chosen = eyespot(tmp_path, mirror, *words)
        nothing = eyespot(tmp_path, mirror, *words[:-1], "*.tar", "--out", "none")
        commit = mirror.commit("owner/model")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["revision"] == commit
    assert (tmp_path / "here" / "model.safetensors").read_bytes() == WEIGHTS
    assert any("/blobs/" in request for request in mirror.requests)  # where the redirect led
    files = {str(path.relative_to(tmp_path / "set")) for path in (tmp_path / "set").rglob("*.*") if path.is_file()}
    assert chosen.returncode == 0, chosen.stderr
    assert {name for name in files if not name.startswith(".cache")} == {"data/test-0.parquet"}
    assert nothing.returncode == 1 and "*.tar" in nothing.stderr


@pytest.mark.long
@pytest.mark.parametrize("source", ["hub:owner/model@0123abc", "hub:owner/nothing", "hub:owner/closed"])
def test_what_the_hub_refuses_is_one_sentence_with_the_way_out(source: str, tmp_path: Path) -> None:
    with hub(HubMirror(REPOS, gated=frozenset({"owner/closed"}))) as mirror:
        done = eyespot(tmp_path, mirror, "download", source, "--out", "here")

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    check_wording(line)


def blob(mirror: HubMirror) -> str:
    return f"{mirror.url}/blobs/{hashlib.sha256(WEIGHTS).hexdigest()}"


def test_a_file_of_a_host_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    with hub(HubMirror(REPOS, cut=500_000)) as mirror:
        with raises(HostBusy):
            download(blob(mirror), tmp_path)
        assert not [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
        done = download(blob(mirror), tmp_path)
        count = len(mirror.requests)
        download(blob(mirror), tmp_path)

    assert done.place.read_bytes() == WEIGHTS and done.bytes == len(WEIGHTS) - 500_000
    assert mirror.ranges == ["bytes=500000-"] and [path.name for path in tmp_path.iterdir()] == [done.place.name]
    assert len(mirror.requests) == count  # a file that is here is not fetched again


def test_the_digest_of_a_file_is_checked(tmp_path: Path) -> None:
    with hub(HubMirror(REPOS)) as mirror:
        words = ("download", blob(mirror), "--out", tmp_path, "--sha256")
        good = run_eyespot(*words, hashlib.sha256(WEIGHTS).hexdigest())
        refuses(*words, "0" * 64, code=1)

    assert good.returncode == 0, good.stderr


def test_a_line_that_breaks_without_a_length_leaves_no_file(tmp_path: Path) -> None:
    with hub(HubMirror(REPOS)) as mirror, pytest.raises(EyespotError, match="was cut"):
        download(blob(mirror).replace("/blobs/", "/chunked/"), tmp_path)

    assert all(path.name.startswith(".") for path in tmp_path.iterdir())


def test_a_full_disk_keeps_what_has_come(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with hub(HubMirror(REPOS)) as mirror:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
        try:
            with pytest.raises(EyespotError, match="cannot be written"):
                download(blob(mirror), tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert download(blob(mirror), tmp_path).place.read_bytes() == WEIGHTS


@pytest.mark.parametrize("commit", [[], None, {}, {"sha": 1}, {"sha": "a" * 40}])
def test_a_mirror_that_answers_nonsense_is_one_sentence(commit: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    pages = iter([commit, [1]])
    monkeypatch.setattr(repository, "_answer", lambda *_: (next(pages), "", 1))
    with pytest.raises(EyespotError, match="does not speak the hub's protocol"):
        repository.listed("org/name")


def test_a_list_of_files_without_an_end_is_not_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is small; all together have the limit."""
    with hub(HubMirror(REPOS, endless=True)) as mirror:
        monkeypatch.setenv("HF_ENDPOINT", mirror.url)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        monkeypatch.setattr(repository, "MOST", 4000)
        with pytest.raises(EyespotError, match="owner/model sends more than"):
            repository.listed("owner/model")
    assert len(mirror.requests) < 40


def test_a_run_that_was_killed_with_every_byte_there_only_names_the_file(tmp_path: Path) -> None:
    """More bytes than the host has are another file."""
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    for folder, data in (("every", WEIGHTS), ("more", WEIGHTS + b"more")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f".{digest}.part").write_bytes(data)
        (tmp_path / folder / f".{digest}.part.etag").write_text(f'"{digest}"')
    with hub(HubMirror(REPOS)) as mirror:
        done = download(blob(mirror), tmp_path / "every")
        with raises(EyespotError):
            download(blob(mirror), tmp_path / "more")
        again = download(blob(mirror), tmp_path / "more")

    assert done.bytes == 0 and done.place.read_bytes() == WEIGHTS and mirror.ranges[0] == f"bytes={len(WEIGHTS)}-"
    assert [path.name for path in (tmp_path / "every").iterdir()] == [digest]
    assert again.place.read_bytes() == WEIGHTS


@pytest.mark.parametrize("path", ["/datasets/owner/closed/resolve/main/config.json", "/nowhere/file.zip"])
def test_what_a_host_refuses_is_one_sentence(path: str, tmp_path: Path) -> None:
    with hub(HubMirror(REPOS, gated=frozenset({"owner/closed"}))) as mirror, raises(EyespotError):
        download(mirror.url + path, tmp_path)


@pytest.mark.parametrize(
    "source", ["file:///etc/passwd", "ftp://host/file", "photo.jpg", "https://host/", "https://[x/y", "hub:name"]
)
def test_what_is_no_address_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        download(source, tmp_path)
