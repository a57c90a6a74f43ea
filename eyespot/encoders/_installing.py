"""A model from the hub or a folder onto this machine: its files chosen by their layout, checked, opened once."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from eyespot.encoders._graphs import read_graph
from eyespot.encoders._layouts import ExportLayout, beside, described, layout_of
from eyespot.encoders.onnx import SETTINGS, OnnxEncoder, checked
from eyespot.models.downloads import fetch
from eyespot.models.installed import RECORD, Installed, find, place_of, read_record
from eyespot.models.repository import HubFile, Repository, listed
from eyespot.models.table import Entry, entries, entry
from eyespot.storage.atomic import make_folder, put_file, write_whole
from eyespot.storage.digests import file_sha256
from eyespot.storage.locks import in_turn
from eyespot.storage.text_files import toml_of, toml_text
from eyespot.types import Encoder, EyespotError, Progress, UsageError, Vectors, no_progress

SAMPLES = ("a heron at the water's edge", "two red bicycles", "an empty street at night", "a bowl of soup")
GOLDEN, APART = 32, 0.05  # numbers of a vector in the table of models, and how far off they may be, as a share
_ABOUT = ("LICENSE", "LICENSE.md", "LICENSE.txt", "README.md")


@dataclass(frozen=True)
class Offer:
    """What `get` would fetch: the files of a commit, and their bytes."""

    repository: Repository
    files: tuple[HubFile, ...]
    bytes: int


def offer(entry: Entry, variant: str) -> Offer:
    """What a model needs of its repository, found by the names of its files.

    Raises: UsageError if it is offered in no such variant, EyespotError if the hub does not have it.
    """
    if entry.needs:
        raise UsageError(f"{entry.name} needs {entry.needs}")
    repository = listed(entry.repo, entry.revision or None, instead="name a folder that has it: --from FOLDER")
    root = entry.root
    paths = [file.path.removeprefix(root) for file in repository.files if file.path.startswith(root)]
    wanted = {root + name for name in _needed(*layout_of(paths, variant, entry.repo), paths)} | set(_ABOUT)
    chosen = tuple(file for file in repository.files if file.path in wanted)
    for file in chosen:
        pinned = entry.sha256.get(file.path)
        if pinned is not None and pinned != file.digest:
            raise EyespotError(
                f"{entry.repo} has another {file.path} than the table of models names; nothing was fetched"
            )
    return Offer(repository, chosen, sum(file.size for file in chosen))


def _needed(layout: ExportLayout, towers: tuple[str, str], paths: Sequence[str]) -> list[str]:
    """Towers, the files of weights that are named after them, tokenizer and descriptions."""
    weights = [path for path in paths for tower in towers if path.startswith((f"{tower}_data", f"{tower}.data"))]
    return [*towers, *weights, layout.tokenizer, *beside(paths)]


def get(entry: Entry, variant: str, offered: Offer, tell: Progress = no_progress) -> Installed:
    """Fetch and install what was offered; what a kill left is gone on with, and is not a model before it is whole."""
    folder, commit = place_of(entry.name, variant), offered.repository.commit
    make_folder(folder)
    with in_turn(folder):  # another eyespot may be fetching it
        before = find(entry.name, variant)
        if before is not None and before.revision != commit:  # files of two commits are not a model
            before.forget(stay={file.path.removeprefix(entry.root) for file in offered.repository.files})
        repository, root = offered.repository, entry.root
        there = [replace(file, path=file.path.removeprefix(root)) for file in repository.files]
        inside = [replace(file, path=file.path.removeprefix(root)) for file in offered.files]
        coming = sum(file.size for file in inside if not (folder / file.path).is_file())
        if coming > (free := shutil.disk_usage(folder).free):
            raise EyespotError(f"{folder} has room for {free / 1e6:,.0f} MB, not for {coming / 1e6:,.0f} MB; make room")
        fetch(repository, inside, folder, tell, root=root)
        missing = [name for name in _external(folder) if not (folder / name).is_file()]
        fetch(repository, [file for file in there if file.path in missing], folder, tell, root=root)
        if entry.tokenizer and not any(file.path.endswith("tokenizer.json") for file in inside):
            other = listed(entry.tokenizer)
            wanted = [file for file in other.files if file.path in ("tokenizer.json", "tokenizer_config.json")]
            fetch(other, wanted, folder)
        return _finished(entry, variant, commit, folder)


def _external(folder: Path) -> list[str]:
    """The files of weights that towers name, below the folder."""
    towers = [path for path in folder.rglob("*.onnx") if path.is_file()]
    return [str((path.parent / name).relative_to(folder)) for path in towers for name in read_graph(path).external]


def bring(entry: Entry, variant: str, source: Path) -> Installed:
    """Install from a folder: an export as the hub lays it out, the hub's cache, or another machine's model folder."""
    if not source.is_dir():
        raise UsageError(f"{source} is not a folder; name one that holds the export")
    cached = source / f"models--{entry.repo.replace('/', '--')}"
    source = cached if cached.is_dir() else source  # below the hub's cache as a whole
    wanted, at = entry.revision, source
    snapshots = sorted(source.glob("snapshots/*"), key=lambda path: (path.name == wanted, path.stat().st_mtime))
    origin, commit = (snapshots[-1], snapshots[-1].name) if snapshots else (source, "")
    if records := sorted(source.rglob(RECORD)):
        origin, commit = _recorded(records, entry.name, variant)
    if not (commit or wanted).startswith(wanted):
        way_out = f"take that one: eyespot models get {entry.name}@{commit} --from {at}"
        raise UsageError(f"{at} holds {entry.name} at commit {commit}, not {wanted}; {way_out}")
    if (origin / entry.folder).is_dir():
        origin /= entry.folder
    paths = [path.relative_to(origin).as_posix() for path in sorted(origin.rglob("*")) if path.is_file()]
    needed = _needed(*layout_of(paths, variant, origin), paths)
    folder = place_of(entry.name, variant)
    for name in sorted({*needed, *_external(origin), *_ABOUT}.intersection(paths)):
        make_folder((folder / name).parent)
        part = folder.joinpath(name).with_name(f".{Path(name).name}.part")
        shutil.copyfile(origin / name, part)
        put_file(part, folder / name)
    return _finished(entry, variant, commit, folder)


def _recorded(records: Sequence[Path], name: str, variant: str) -> tuple[Path, str]:
    """The folder of a model that another machine installed, every byte compared, and its commit."""
    made = {record.parent: read_record(record) for record in records}
    folder = next((at for at, one in made.items() if (one.name, one.variant) == (name, variant)), None)
    if folder is None:
        there = ", ".join(sorted(one.encoder.removeprefix("model:") for one in made.values()))
        raise UsageError(f"{records[0].parent} holds {there}, and no {name} in {variant}; name the folder that has it")
    if wrong := made[folder].damaged(folder):
        raise EyespotError(f"{folder} has other bytes in {', '.join(wrong)} than were installed there; copy it again")
    return folder, made[folder].revision


def _finished(entry: Entry, variant: str, commit: str, folder: Path) -> Installed:
    """Write the settings of a whole export, open it once, and record it."""
    values = described(folder, variant, entry.known) | {"revision": commit}
    write_whole(folder / SETTINGS, lambda file: file.write(toml_text(values).encode()))
    (folder / RECORD).unlink(missing_ok=True)
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    names = [name for name in names if name != RECORD and not Path(name).name.startswith(".")]  # another run's
    digests = {name: file_sha256(folder / name) for name in names}
    for name, digest in digests.items():
        if entry.sha256.get(entry.root + name, digest) != digest:
            raise EyespotError(f"{folder / name} is another file than the table of models names; get it from the hub")
    sizes = {name: (folder / name).stat().st_size for name in names}
    made = Installed(entry.name, variant, entry.repo, commit, values["licence"], digests, sizes)
    try:
        try_out(made)
    except EyespotError as error:
        raise EyespotError(f"{entry.name} was fetched whole and does not work: {error}") from error
    made.record()
    return made


def encoder_of(model: Installed, batch: int | None = None) -> OnnxEncoder:
    """A model that is here as an encoder."""
    settings = checked(toml_of(model.folder / SETTINGS), model.folder)
    return OnnxEncoder(model.folder, settings, model.encoder, batch)


def probe(encoder: Encoder) -> Vectors:
    """The vectors of two built-in pictures and four texts, (6, dim)."""
    from PIL import Image

    pictures = [Image.linear_gradient("L").convert("RGB"), Image.radial_gradient("L").convert("RGB").resize((300, 200))]
    seen = encoder.encode_pixels(np.stack([encoder.read(picture) for picture in pictures]))
    return np.concatenate([seen, encoder.encode_texts(SAMPLES)])


def try_out(model: Installed) -> bool:
    """Whether the table of models has vectors to compare with.

    Raises: EyespotError unless the pictures and texts of `probe` get vectors that are finite, differ, and are those of
    the table.
    """
    made = probe(encoder_of(model))
    if not np.isfinite(made).all() or any(np.allclose(made[at], made[at + 1], atol=1e-4) for at in (0, 2)):
        raise EyespotError(f"{model.encoder} gives different pictures or texts the same vector, or none")
    known = entries().get(model.name)
    golden = np.array(known.golden.get(model.variant, []) if known and known.revision == model.revision else [])
    apart = (
        np.linalg.norm(made[:, :GOLDEN] - golden, axis=1) / np.linalg.norm(golden, axis=1) if len(golden) else golden
    )
    if (apart > APART).any():
        raise EyespotError(f"{model.encoder} gives other vectors than the table of models; get it again, or report it")
    return len(golden) > 0


def model_here(name: str, variant: str) -> Installed:
    """A model by NAME, NAME@COMMIT or NAME:VARIANT. `UsageError` with the line that fetches it if it is not here."""
    name, variant = name.partition(":")[0], name.partition(":")[2] or variant
    bare, _, commit = name.partition("@")
    found = find(bare, variant)
    if found is not None and found.revision.startswith(commit):
        return found
    size = entry(name).mb
    about = f" ({size / 1000:.1f} GB)" if size and variant == "fp32" else ""
    more = "" if variant == "fp32" else f" --variant {variant}"
    there = f"here at commit {found.revision or 'unknown'}" if found else "not on this machine"
    raise UsageError(f"{bare} is {there}; get it{about}: eyespot models get {name}{more}")
