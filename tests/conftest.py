"""What every test may use."""

from __future__ import annotations

import os
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent
HUB_CACHE = tempfile.TemporaryDirectory(prefix="eyespot-hub-")
sys.path.insert(0, str(TESTS))
# before anything that counts processors is imported: tests run side by side, and threads that wait for each other by
# spinning take many times as long on a machine that is busy
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# before any client of the hub is imported: tests ask no network and see no cache of the developer's
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_CACHE"] = HUB_CACHE.name
os.environ["XDG_STATE_HOME"] = HUB_CACHE.name  # a test is no search of whoever runs it
# A shell starts its background jobs (`make test &`) with SIGINT ignored, and nohup SIGHUP, which children inherit
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

import torchvision_stub  # noqa: E402

from tests import networks  # noqa: E402
from tests.examples import register_profiles  # noqa: E402
from tests.lazy_import import without  # noqa: E402
from tests.made_once import open_store  # noqa: E402
from tests.wording import start_over  # noqa: E402

MADE_ONCE = open_store()
register_profiles()
torchvision_stub.install()
networks.install()
FLUSH = os.fsync


def flush_unless_file(handle: int) -> None:
    """`os.fsync` that waits for no disk: what a test writes need not outlive it, and each wait takes milliseconds.

    Power cuts are tried in processes of their own (`tests/worlds/power_cuts.py`), which flush and say so.
    """
    mode = os.fstat(handle).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        FLUSH(handle)


os.fsync = flush_unless_file  # type: ignore[assignment]


def pytest_runtest_setup(item: pytest.Item) -> None:
    start_over(item.nodeid)


@pytest.fixture
def child_env() -> dict[str, str]:
    """The environment for a child Python that is to import torchvision, transformers or open_clip."""
    path = [str(TESTS / "stub_site"), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in path if part)}


@pytest.fixture
def without_figures() -> Iterator[None]:
    """As without the extra [plots]: to draw takes three quarters of the seconds of `eyespot eval`."""
    with without("matplotlib"):
        yield


@pytest.fixture(scope="session")
def hub_cache() -> Path:
    """The model hub's cache of this test run, where `tiny_models.published` puts models."""
    return Path(HUB_CACHE.name)


@pytest.fixture(scope="session")
def starter() -> Any:
    from eyespot import rooms

    return rooms.load("encoders", "starter")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Any]:
    from eyespot.ledger.judgements import Judgements

    with Judgements(tmp_path / "ledger.sqlite") as opened:
        yield opened
