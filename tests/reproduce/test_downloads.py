"""`eyespot download`, with the hub's own client against a mirror of its protocol, and plain files of other hosts."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eyespot.reproduce.downloads import download
from eyespot.types import EyespotError, UsageError
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
def test_a_model_comes_whole_with_its_commit(tmp_path: Path) -> None:
    with hub(HubMirror(REPOS)) as mirror:
        done = eyespot(tmp_path, mirror, "download", "hub:owner/model", "--out", "here", "--json")
        commit = mirror.commit("owner/model")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["revision"] == commit
    assert (tmp_path / "here" / "model.safetensors").read_bytes() == WEIGHTS
    assert any("/blobs/" in request for request in mirror.requests)  # where the redirect led


@pytest.mark.long
def test_files_of_a_data_set_are_chosen_by_pattern(tmp_path: Path) -> None:
    words = ("download", "hub:datasets/owner/set@main", "--out", "set", "--files", "data/test-*")
    with hub(HubMirror(REPOS)) as mirror:
        done = eyespot(tmp_path, mirror, *words)
        nothing = eyespot(tmp_path, mirror, *words[:-1], "*.tar", "--out", "none")

    assert done.returncode == 0, done.stderr
    files = {str(path.relative_to(tmp_path / "set")) for path in (tmp_path / "set").rglob("*.*") if path.is_file()}
    assert {name for name in files if not name.startswith(".cache")} == {"data/test-0.parquet"}
    assert nothing.returncode == 1 and "has no file that matches *.tar; check --files" in nothing.stderr


@pytest.mark.long
def test_a_download_that_was_cut_goes_on(tmp_path: Path) -> None:
    """The client asks again from the byte that it has, in this run or in the next; it keeps pieces of 10 MiB."""
    large = WEIGHTS * 24
    repos = {"owner/model": {"model.safetensors": large}}
    with hub(HubMirror(repos, cut=12_000_000)) as mirror:
        first = eyespot(tmp_path, mirror, "download", "hub:owner/model", "--out", "here")
        words = ("download", "hub:owner/model", "--out", "here")
        done = first if first.returncode == 0 else eyespot(tmp_path, mirror, *words)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "here" / "model.safetensors").read_bytes() == large
    starts = [int(span.removeprefix("bytes=").partition("-")[0]) for span in mirror.ranges]
    assert starts and all(0 < start <= 12_000_000 for start in starts)


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("hub:owner/model@0123abc", "there is no such revision); check the revision"),
        ("hub:owner/nothing", "there is no such model, or it is private); check the name"),
        ("hub:owner/closed", "its terms are not accepted yet); accept them there, then log in with: hf auth login"),
        ("hub:owner/secret", "there is no such model, or it is private); check the name"),
    ],
)
def test_what_the_hub_refuses_is_one_sentence_with_the_way_out(source: str, sentence: str, tmp_path: Path) -> None:
    mirror = HubMirror(REPOS, gated=frozenset({"owner/closed"}), private=frozenset({"owner/secret"}))
    with hub(mirror):
        done = eyespot(tmp_path, mirror, "download", source, "--out", "here")

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"eyespot: could not get {source} from the model hub (") and sentence in line
    assert line.endswith("put its files into here by hand")


@pytest.mark.long
def test_the_encoder_is_fetched_from_the_mirror_too(tmp_path: Path) -> None:
    """What `eyespot index -e hf:…` fetches when a recipe first uses it: the same client, the same sentences."""
    pytest.importorskip("transformers")
    with hub(HubMirror(REPOS)) as mirror:
        (tmp_path / "photos").mkdir()
        done = eyespot(tmp_path, mirror, "index", "photos", "-g", "g", "-e", "hf:owner/model@wrong")

    assert done.returncode == 1 and "there is no such revision); check the revision" in done.stderr


# -- other hosts --------------------------------------------------------------------------------------------------


def blob(mirror: HubMirror) -> str:
    return f"{mirror.url}/blobs/{hashlib.sha256(WEIGHTS).hexdigest()}"


def test_a_file_of_a_host_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    with hub(HubMirror(REPOS, cut=500_000)) as mirror:
        with pytest.raises(EyespotError, match="was cut after 500,000 bytes; run the same line again"):
            download(blob(mirror), tmp_path)
        assert not [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
        done = download(blob(mirror), tmp_path)

    assert done.place.read_bytes() == WEIGHTS and done.bytes == len(WEIGHTS) - 500_000
    assert mirror.ranges == ["bytes=500000-"] and [path.name for path in tmp_path.iterdir()] == [done.place.name]


def test_a_line_that_breaks_without_a_length_leaves_no_file(tmp_path: Path) -> None:
    with hub(HubMirror(REPOS)) as mirror, pytest.raises(EyespotError, match="was cut after"):
        download(blob(mirror).replace("/blobs/", "/chunked/"), tmp_path)

    assert all(path.name.startswith(".") for path in tmp_path.iterdir())


def test_a_run_that_was_killed_with_every_byte_there_only_names_the_file(tmp_path: Path) -> None:
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    (tmp_path / f".{digest}.part").write_bytes(WEIGHTS)
    (tmp_path / f".{digest}.part.etag").write_text(f'"{digest}"')
    with hub(HubMirror(REPOS)) as mirror:
        done = download(blob(mirror), tmp_path)

    assert done.bytes == 0 and done.place.read_bytes() == WEIGHTS and mirror.ranges == [f"bytes={len(WEIGHTS)}-"]
    assert [path.name for path in tmp_path.iterdir()] == [digest]


def test_more_bytes_here_than_the_host_has_are_another_file(tmp_path: Path) -> None:
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    (tmp_path / f".{digest}.part").write_bytes(WEIGHTS + b"more")
    (tmp_path / f".{digest}.part.etag").write_text(f'"{digest}"')
    with hub(HubMirror(REPOS)) as mirror:
        with pytest.raises(EyespotError, match="has changed meanwhile; run the same line again"):
            download(blob(mirror), tmp_path)
        done = download(blob(mirror), tmp_path)

    assert done.place.read_bytes() == WEIGHTS


def test_a_file_that_is_here_is_not_fetched_again(tmp_path: Path) -> None:
    with hub(HubMirror(REPOS)) as mirror:
        download(blob(mirror), tmp_path)
        count = len(mirror.requests)
        download(blob(mirror), tmp_path)

    assert len(mirror.requests) == count


@pytest.mark.long
def test_the_digest_of_a_file_is_checked(tmp_path: Path) -> None:
    with hub(HubMirror(REPOS)) as mirror:
        words = ("download", blob(mirror), "--out", "here", "--sha256")
        good = eyespot(tmp_path, mirror, *words, hashlib.sha256(WEIGHTS).hexdigest())
        bad = eyespot(tmp_path, mirror, *words, "0" * 64)

    assert good.returncode == 0, good.stderr
    assert bad.returncode == 1 and "delete it and download it again" in bad.stderr


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/datasets/owner/closed/resolve/main/config.json", "accept its terms there"),
        ("/datasets/owner/secret/resolve/main/config.json", "it wants a login"),
        ("/nowhere/file.zip", "it is not there any more"),
    ],
)
def test_what_a_host_refuses_is_one_sentence(path: str, sentence: str, tmp_path: Path) -> None:
    mirror = HubMirror(REPOS, gated=frozenset({"owner/closed"}), private=frozenset({"owner/secret"}))
    with hub(mirror), pytest.raises(EyespotError, match=sentence):
        download(mirror.url + path, tmp_path)


@pytest.mark.parametrize("source", ["file:///etc/passwd", "ftp://host/file", "photo.jpg", "https://host/", "hub:name"])
def test_what_is_no_address_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        download(source, tmp_path)
