"""A finished set for others: a folder, a dataset of the Hugging Face hub, or a draft on Zenodo.

Each holds the set with its version, `CITATION.cff` (Citation File Format 1.2) and `SHA256SUMS`. Nothing becomes public
by itself: a dataset on the hub is private and a deposit on Zenodo a draft, until their owner says otherwise there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from eyespot.models import web
from eyespot.models.hub import quiet
from eyespot.storage.atomic import whole_folder
from eyespot.storage.digests import file_sha256
from eyespot.storage.text_files import json_of
from eyespot.types import EyespotError, UsageError

CROISSANT, CITATION, SUMS = "croissant.json", "CITATION.cff", "SHA256SUMS"
VERSION = re.compile(r"\d+\.\d+\.\d+")
HUB, ZENODO = "hub:", "zenodo"
HOST = "https://zenodo.org"  # ZENODO_URL names another, such as https://sandbox.zenodo.org
ANSWER, SILENCE = 1 << 22, 120.0  # bytes, and seconds without one


@dataclass(frozen=True)
class Release:
    """A set in its folder, what its `croissant.json` says of it, and the version that it gets."""

    folder: Path
    about: Mapping[str, Any]
    version: str

    @classmethod
    def of(cls, folder: Path, version: str) -> Release:
        """The release of a set; `UsageError` for a folder that is none, lacks a licence, or was changed by hand."""
        if not (folder / CROISSANT).is_file() or not (folder / "README.md").is_file():
            raise UsageError(f"{folder} is not a finished set; name OUT/set, which eyespot build rmir or recos wrote")
        if not VERSION.fullmatch(version):
            raise UsageError(f"a version is three numbers, as in 1.0.0, not {version!r}")
        about = {"datePublished": date.today().isoformat(), **json_of(folder / CROISSANT)}
        if not about.get("license"):
            raise UsageError("the set has no licence; write licence = … under [card] in its recipe and build it again")
        for one in about["distribution"]:
            if not (place := folder / one["contentUrl"]).is_file() or file_sha256(place) != one["sha256"]:
                raise UsageError(f"{place} is not as it was built; build the set again, which takes a moment")
        return cls(folder, about, version)

    def write(self, place: Path) -> None:
        """The set with its version, citation and checksums in a new folder."""
        with whole_folder(place) as out:
            shutil.copytree(self.folder, out, dirs_exist_ok=True)
            about = json.dumps({**self.about, "version": self.version}, indent=2, ensure_ascii=False)
            (out / CROISSANT).write_text(f"{about}\n", encoding="utf-8")
            (out / CITATION).write_text("".join(f"{line}\n" for line in self._citation()), encoding="utf-8")
            files = sorted(path for path in out.rglob("*") if path.is_file())
            sums = [f"{file_sha256(path)}  {path.relative_to(out).as_posix()}\n" for path in files]
            (out / SUMS).write_text("".join(sums), encoding="utf-8")

    @property
    def red(self) -> int:
        """How many checks of its card are red."""
        return str(self.about.get("rai:dataAnnotationAnalysis", "")).count(" (red): ")

    @property
    def makers(self) -> list[str]:
        """Who made the set, as its datasheet says; nobody where that is open."""
        return [one["name"] for one in self.about.get("creator", ())]

    def _citation(self) -> Iterator[str]:
        quoted = json.dumps  # a string of JSON is one of YAML
        yield "cff-version: 1.2.0"
        yield "message: If you use this data set, please cite it."
        yield "type: dataset"
        yield f"title: {quoted(self.about['name'])}"
        yield f"version: {quoted(self.version)}"
        if " " not in self.about["license"]:  # an identifier of SPDX, which is all that the format takes
            yield f"license: {quoted(self.about['license'])}"
        yield "authors:"
        yield from (f"  - name: {quoted(name)}" for name in self.makers or ["unnamed"])
        named = {"datePublished": "date-released", "url": "url"}
        yield from (f"{name}: {quoted(self.about[key])}" for key, name in named.items() if key in self.about)


def publish(release: Release, to: str) -> str:
    """Send a release to a new folder, `hub:OWNER/NAME` or `zenodo`; where it is now."""
    if to.startswith(HUB):
        return _to_hub(release, to.removeprefix(HUB))
    if to == ZENODO:
        return _to_zenodo(release)
    release.write(Path(to))
    return to


def _to_hub(release: Release, name: str) -> str:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise UsageError(f"a dataset of the hub is hub:OWNER/NAME, not {HUB}{name}")
    with quiet(), TemporaryDirectory() as temporary:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError

        release.write(place := Path(temporary) / "set")
        api, version = HfApi(), f"v{release.version}"
        try:
            address = api.create_repo(name, repo_type="dataset", private=True, exist_ok=True)
            api.upload_folder(repo_id=name, folder_path=place, repo_type="dataset", commit_message=f"Version {version}")
            api.create_tag(name, tag=version, repo_type="dataset", exist_ok=True)
        except (HfHubHTTPError, OSError, ValueError) as error:
            why = str(error).strip().splitlines()[0]
            raise EyespotError(f"{name} cannot be sent to the hub ({why}); log in with: hf auth login") from None
    return str(address)


# -- Zenodo: developers.zenodo.org ----------------------------------------------------------------------------------


def _to_zenodo(release: Release) -> str:
    """A new draft with one zip, for Zenodo keeps no folders; the address where its owner looks at it and publishes."""
    host, token = os.environ.get("ZENODO_URL", HOST).rstrip("/"), os.environ.get("ZENODO_TOKEN", "").strip()
    if not token:
        raise UsageError(f"set ZENODO_TOKEN to a token with deposit:write, from {host}/account/settings/applications")
    metadata = {
        "title": release.about["name"],
        "upload_type": "dataset",
        "description": release.about["description"],
        "creators": [{"name": name} for name in release.makers or ["unnamed"]],
        "version": release.version,
        "notes": f"Licence: {release.about['license']}",
    }
    with TemporaryDirectory() as temporary:
        release.write(place := Path(temporary) / "set")
        packed = Path(shutil.make_archive(str(Path(temporary) / "packed"), "zip", place))
        draft = _zenodo_answer(f"{host}/api/deposit/depositions", token, json.dumps({"metadata": metadata}).encode())
        with packed.open("rb") as data:
            _zenodo_answer(
                f"{draft['links']['bucket']}/set-{release.version}.zip", token, data, size=packed.stat().st_size
            )
    return str(draft["links"]["html"])


def _zenodo_answer(url: str, token: str, data: bytes | BinaryIO, *, size: int | None = None) -> Any:
    """What Zenodo answers to JSON, or to a file of this many bytes."""
    kind = {"Content-Type": "application/json"} if size is None else {"Content-Length": str(size)}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream", **kind}
    try:
        status, _, body = web.exchange(url, headers, data, silence=SILENCE, most=ANSWER, method="PUT" if size else None)
    except (OSError, HTTPException, ValueError) as error:
        raise EyespotError(f"{web.public(url)} cannot be reached ({web.redacted(str(error), token)})") from None
    text = web.redacted(body.decode("utf-8", "replace"), token)
    if not 200 <= status < 300:
        raise EyespotError(f"Zenodo says {status} ({' '.join(text.split())[:200]}); check ZENODO_TOKEN and its scope")
    return json.loads(text)
