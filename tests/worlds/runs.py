"""Small rankings and judgements, drawn or written out, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

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
