"""What comes over HTTP from hosts that send without end, slowly, more than was promised, or what was sent to them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from eyespot.models import hub, web
from eyespot.models.downloads import download
from eyespot.models.web import HostBusy, NotThere
from eyespot.types import EyespotError
from tests.worlds.misbehaving import Host, misbehaving

SECRETS = ("ada", "p4ss/word", "s1gnature", "hf_t0ken")
ADDRESS = "http://ada:p4ss%2Fword@{}/echo/file.bin?key=s1gnature"


@pytest.fixture
def host() -> Iterator[str]:
    with misbehaving() as place:
        yield place


@pytest.mark.parametrize("kind", ["drip", "slow"])
def test_what_drips_ends(kind: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte at a time is no silence; the whole has a deadline, and so has the head."""
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
    monkeypatch.setattr(hub, "SETTLED", 0)
    blob = tmp_path / "blobs" / ("7d21" * 16)
    blob.parent.mkdir()
    blob.write_bytes(bytes(hub.LARGE))
    read = []
    monkeypatch.setattr(hub, "file_sha256", lambda place: read.append(place) or place.read_bytes()[:1].hex())
    first, again = hub.digest([blob]), hub.digest([blob])
    blob.write_bytes(b"\1" + bytes(hub.LARGE - 1))

    assert first == again and len(read) == 1
    assert hub.digest([blob]) != first


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
        asked = f"Retry-After: {wait}\r\n" * (wait is not None)
        head = f"HTTP/1.1 503 Busy\r\nDate: Wed, 21 Oct 2015 07:28:00 GMT\r\n{asked}Content-Length: 0\r\n\r\n"
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
