"""Downloads: the hub by its own client, plain files, and hosts that send without end, slowly or something else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from eyespot.models import hub as hub_client, repository, web
from eyespot.models.downloads import download
from eyespot.models.web import HostBusy, NotThere
from eyespot.types import EyespotError, UsageError
from tests.command import refuses, run_eyespot
from tests.wording import check_wording, raises
from tests.worlds.hub_mirror import HubMirror, hub
from tests.worlds.misbehaving import Host
from tests.worlds.servers import listening

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


SECRETS = ("ada", "p4ss/word", "s1gnature", "hf_t0ken")
ADDRESS = "http://ada:p4ss%2Fword@{}/echo/file.bin?key=s1gnature"


@pytest.fixture
def host() -> Iterator[str]:
    with listening(Host) as place:
        yield place


@pytest.mark.parametrize("kind", ["drip", "slow"])
def test_what_drips_ends(kind: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte at a time does not count as silence; the whole has a deadline, and so has the head."""
    monkeypatch.setattr(web, "START", 0.3)
    with pytest.raises(HostBusy, match=r"cut after|cannot get"):
        download(f"http://{host}/{kind}/x.bin", tmp_path)


@pytest.mark.parametrize("kind", ["endless", "long"])
def test_no_more_comes_than_was_promised(kind: str, host: str, tmp_path: Path) -> None:
    """Nor in a small answer, and nothing of it stays."""
    url, part = f"http://{host}/{kind}/x.bin", tmp_path / "x.part"
    with pytest.raises(EyespotError, match="sends more than the 1,000 bytes"):
        web.grow(part, url, "x.bin", size=1000)
    with pytest.raises(EyespotError, match="sends more than the 1,000 bytes"):
        web.read(url, 1000)
    assert not part.exists()


def test_an_answer_without_a_length_has_a_limit(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "UNSTATED", 1 << 20)
    with pytest.raises(EyespotError, match="sends more than the 1,048,576 bytes"):
        download(f"http://{host}/endless/x.bin", tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.stat().st_size]


def test_no_credential_comes_back(host: str, tmp_path: Path) -> None:
    """The host says again what it was sent: as user and password, in the query, as a token, and in its reason."""
    sentences = []
    for url in (ADDRESS.format(host), ADDRESS.format("127.0.0.1:1"), ADDRESS.format(f"{host}:x")):
        with pytest.raises(EyespotError) as refused:
            download(url, tmp_path)
        sentences.append(str(refused.value))
        with pytest.raises(EyespotError) as refused:
            web.read(url, 1000, headers={"Authorization": "Bearer hf_t0ken"})
        sentences.append(str(refused.value))

    assert not [(secret, text) for secret in SECRETS for text in sentences if secret in text]
    assert web.redacted("no s1gnature for ada with p4ss/word", ADDRESS.format(host)) == "no *** for *** with ***"


@pytest.mark.parametrize("kind", ["file", "ftp"])
def test_a_redirect_leads_to_other_hosts_alone(kind: str, host: str) -> None:
    with pytest.raises(EyespotError):
        web.read(f"http://{host}/{kind}", 1000)


def test_a_digest_is_of_the_bytes_whatever_a_file_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file of the hub's cache is called by its SHA-256; read once, and again when it has changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(hub_client, "SETTLED", 0)
    blob = tmp_path / "blobs" / ("7d21" * 16)
    blob.parent.mkdir()
    blob.write_bytes(bytes(hub_client.LARGE))
    read = []
    monkeypatch.setattr(hub_client, "file_sha256", lambda place: read.append(place) or place.read_bytes()[:1].hex())
    first, again = hub_client.digest([blob]), hub_client.digest([blob])
    blob.write_bytes(b"\1" + bytes(hub_client.LARGE - 1))

    assert first == again and len(read) == 1
    assert hub_client.digest([blob]) != first


@pytest.mark.parametrize("length", ["abc", "4, 4", "9" * 5000])
def test_a_length_is_a_number(length: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def send(self: Host) -> None:
        self.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nfour".encode())
        self.close_connection = True

    monkeypatch.setattr(Host, "do_GET", send)
    with pytest.raises(HostBusy, match="was cut after 4 bytes") if length.isdecimal() else nullcontext():
        assert web.grow(tmp_path / "x.part", f"http://{host}/x", "x") == 4


@pytest.mark.parametrize(("wait", "seconds"), [("7", 7), ("Wed, 21 Oct 2015 07:28:34 GMT", 34), ("soon", 1), (None, 1)])
def test_a_busy_host_is_waited_for_by_its_own_clock(
    wait: str | None, seconds: float, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(self: Host) -> None:
        header = f"Retry-After: {wait}\r\n" * (wait is not None)
        head = f"HTTP/1.1 503 Busy\r\nDate: Wed, 21 Oct 2015 07:28:00 GMT\r\n{header}Content-Length: 0\r\n\r\n"
        self.wfile.write(head.encode())

    monkeypatch.setattr(Host, "do_GET", send)
    with pytest.raises(HostBusy, match="answers 503") as busy:
        web.read(f"http://{host}/x", 1)
    assert busy.value.wait == seconds


def test_an_address_is_sent_as_a_browser_sends_it(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters of all scripts are quoted, what is quoted stays; a user has a password, which may be empty."""
    seen = []

    def send(self: Host) -> None:
        seen.append((self.path, self.headers["Authorization"]))
        self.send_error(416)

    monkeypatch.setattr(Host, "do_GET", send)
    with pytest.raises(EyespotError, match="answers 416"):  # to no range: no bytes of the file
        web.read(f"http://ada@{host}/a b/K\u00e4fer%2F1.csv?a=\u00e4+%2B", 1000)
    assert seen == [("/a%20b/K%C3%A4fer%2F1.csv?a=%C3%A4+%2B", f"Basic {base64.b64encode(b'ada:').decode()}")]


def test_what_is_not_there_is_told_apart(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "do_GET", lambda self: self.send_error(404))
    with pytest.raises(NotThere):
        web.read(f"http://{host}/x", 1000)
