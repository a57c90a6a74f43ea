"""A gallery that workers on a cluster embed has the bytes of one that this process embeds, killed workers or not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("ray")

from eyespot import rooms
from eyespot.cluster.starting import Cluster
from eyespot.cluster.workers import Embedder, WorkerPool
from eyespot.gallery.indexing import Options, Summary, index
from eyespot.types import Encoder, EyespotError
from tests.cluster.conftest import killing
from tests.gallery.test_killed import collection, contents
from tests.worlds import draw

COUNT = 50


@pytest.fixture(scope="module")
def starter() -> Encoder:
    encoder: Encoder = rooms.load("encoders", "starter")
    return encoder


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two roots with a twin, an empty file and a torn one."""
    return collection(tmp_path_factory.mktemp("photos"), COUNT)


@pytest.fixture(scope="module")
def plain(photos: Path, starter: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The gallery as this process makes it, in several shards."""
    gallery = tmp_path_factory.mktemp("plain")
    made(gallery, photos, starter, Options(shard_rows=20))
    return gallery


@pytest.fixture(scope="module")
def shards(plain: Path) -> list[object]:
    """What lies in the shards of that gallery, facts and vectors."""
    return contents(plain)


def made(gallery: Path, photos: Path, encoder: Encoder, options: Options) -> Summary:
    return index(gallery, [str(root) for root in sorted(photos.iterdir())], [encoder], options)


def test_the_gallery_has_the_bytes_of_a_plain_one(
    tmp_path: Path, photos: Path, shards: list[object], starter: Encoder
) -> None:
    with WorkerPool(Cluster(3)) as crew:
        summary = made(tmp_path, photos, starter, Options(shard_rows=20, reader_factory=crew))

    assert (summary.embedded, len(summary.failures)) == (COUNT, 2)
    assert contents(tmp_path) == shards and len(shards) > 2
    with WorkerPool(Cluster(4000)) as crew:  # more than there is room for, if they began
        assert made(tmp_path, photos, starter, Options(reader_factory=crew)).embedded == 0


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_killed_workers_leave_the_same_gallery(
    tmp_path: Path, photos: Path, shards: list[object], starter: Encoder, kills: int
) -> None:
    """A job is short and kills are many: it is done from the start again until they have all hit."""
    hit, job = 0, 0
    while hit < kills:
        job += 1
        with WorkerPool(Cluster(2)) as crew, killing(Embedder, kills - hit, 0.5) as dead:
            made(tmp_path / str(job), photos, starter, Options(shard_rows=20, reader_factory=crew))
        hit += len(dead)

        assert contents(tmp_path / str(job)) == shards


def test_new_photos_join_a_gallery_that_was_made_without_workers(
    tmp_path: Path, plain: Path, photos: Path, starter: Encoder
) -> None:
    gallery, more = tmp_path / "gallery", tmp_path / "more"
    shutil.copytree(plain, gallery)
    draw(more / "a" / "new.jpg", 1000)
    with WorkerPool(Cluster(2)) as crew:
        summary = made(gallery, more, starter, Options(reader_factory=crew))

    assert (summary.embedded, summary.pictures) == (1, COUNT + 1)
    with pytest.raises(EyespotError, match="--workers"), WorkerPool(Cluster(4, cpus=2)) as crew:
        made(tmp_path / "none", photos, starter, Options(reader_factory=crew))  # more than there is room for
