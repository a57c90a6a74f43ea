"""Packages that some tests need: the first test that uses one imports it, so that collecting the suite loads none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest


class LazyModule:
    """A package that is imported when something of it is used; what uses it is skipped where it is missing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # which pytest and its plugins look for in everything they collect
            raise AttributeError(attribute)
        return getattr(pytest.importorskip(self._name), attribute)


def lazy_import(name: str) -> Any:
    """The package `name`, not imported yet."""
    return LazyModule(name)


def requires(*names: str) -> pytest.MarkDecorator:
    """Skips tests where a package is missing, without importing it."""
    missing = [name for name in names if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@contextmanager
def without(name: str) -> Iterator[None]:
    """As where a package is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, None)
        yield
