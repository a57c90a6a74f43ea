"""The query log: a line for each search, under the logger `eyespot.search.query_log`.

`eyespot --verbose search …` and `eyespot --verbose serve` show it. The words of a query are private, so a line has
counts and times only; a program that wants them sets this logger to DEBUG.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from eyespot.search.query_language import format_query
from eyespot.types import Query

log = logging.getLogger(__name__)


@contextmanager
def logged(query: Query | None) -> Iterator[None]:
    """Log a search when it is over, with how long it took; None is a search by items alone."""
    terms = () if query is None else query.terms
    begun = perf_counter()
    try:
        yield
    except Exception as error:
        log.info("search by %d terms failed: %s", len(terms), type(error).__name__)
        raise
    log.info("search by %d terms took %.0f ms", len(terms), (perf_counter() - begun) * 1000)
    if query is not None and log.isEnabledFor(logging.DEBUG):
        log.debug("its terms: %s", format_query(query))
