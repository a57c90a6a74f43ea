"""Small rankings and judgements, drawn or written out, and where the official numbers are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from eyespot.metrics import Aligned
from eyespot.types import Qrels, Run

SHARED = Path(__file__).resolve().parents[3] / "shared"
CONFORMANCE = SHARED / "conformance"

# What people name pictures: spaces, quotes, commas, hashes, accents, other scripts.
IDS = st.text(st.sampled_from("aZ09 _-./'\"#,;|\\éß漢😀"), min_size=1, max_size=12).filter(lambda id: id == id.strip())
SCORES = st.floats(allow_nan=False, allow_infinity=False)
GRADES = st.integers(-2, 5)

rankings = st.dictionaries(IDS, st.dictionaries(IDS, SCORES, min_size=1, max_size=6), max_size=5)
judgements = st.dictionaries(IDS, st.dictionaries(IDS, GRADES, min_size=1, max_size=6), max_size=5)


def run_of(rankings: dict[str, dict[str, float]]) -> Run:
    """The run that ranks by descending score, equal scores in the order of the dict."""
    hits = {query: sorted(images.items(), key=lambda pair: -pair[1]) for query, images in rankings.items()}
    return Run(hits)


def plain(rows: Run | Qrels) -> dict[str, list[tuple[str, float]]]:
    """What a run or qrels say, as plain lists in their order."""
    values = rows.score if isinstance(rows, Run) else rows.grade
    found: dict[str, list[tuple[str, float]]] = {query: [] for query in rows.queries}
    for query, image, value in zip(rows.query, rows.image, values.tolist(), strict=True):
        found[query].append((image, value))
    return found


def conformance(name: str) -> Path:
    """A file or folder of the official numbers; the test is skipped where it is not there."""
    place = Path(__file__).resolve().parents[3] / "shared" / "conformance" / name
    if not place.exists():
        pytest.skip(f"needs {place}")
    return place


def ranking(grades: list[int], relevant: int | None = None, scores: list[float] | None = None) -> Aligned:
    """One query's ranking: the grade of each hit, best first; R if more is relevant than was found."""
    ideal = sorted((grade for grade in grades if grade > 0), reverse=True)
    ideal += [1] * ((relevant or len(ideal)) - len(ideal))
    given = scores if scores is not None else [-float(rank) for rank in range(len(grades))]
    return Aligned(
        ["q"], np.array([0, len(grades)]), np.array(grades), np.array(given), np.array([0, len(ideal)]), np.array(ideal)
    )


@st.composite
def graded(draw: st.DrawFn, top: int = 1, ties: bool = False) -> Aligned:
    """A ranking of up to 12 hits with grades up to `top`, unjudged ones among them, and up to 5 relevant not found."""
    grades = draw(st.lists(st.integers(-1, top), min_size=1, max_size=12))
    found = sum(grade > 0 for grade in grades)
    scores = sorted(
        draw(
            st.lists(st.integers(0, 3 if ties else 10**6), min_size=len(grades), max_size=len(grades), unique=not ties)
        ),
        reverse=True,
    )
    return ranking(grades, found + draw(st.integers(0, 5)), [float(score) for score in scores])
