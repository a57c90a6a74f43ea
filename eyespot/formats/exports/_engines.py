"""What the exports for search engines share: codes of one bit a dimension, and the recipe that goes with them.

A code holds the signs of a vector less the mean of all that are exported, in a sixteenth of the memory of float16. The
code of a query has its own signs: q · x and q · (x - mean) rank alike. The vectors then put candidates in order.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.storage.atomic import write_whole

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

CANDIDATES = 1000
_RECIPE = """\
# {engine}: {rows} pictures with vectors of `{encoder}` ({dim} numbers)

Written by `eyespot export {name}`. When an engine is worth its upkeep, and what it gives up, is on eyespot's page
`docs/engines.md`.

{load}

## Search

Where the gallery lies:

```python
import numpy as np
import eyespot
from eyespot.search.embedding import embed

collection = eyespot.open(GALLERY)
query = embed([collection.query("a heron")], collection.encoder)[0]          # (dim,), of unit length
signs = np.packbits(query > 0)                                               # compared with `signs` by Hamming distance
ids = ...                                                                    # of {candidates} candidates of the engine
chosen = np.zeros(int(collection.view.starts[-1]), bool)
chosen[collection.view.rows_of(ids)] = True
nearest = collection.index.search(query[None], 50, chosen)                   # exact among them: nearest.rows, .scores
```

The last line gives the order and the scores of eyespot's exact search; the answer equals it if the candidates contain
it. `collection.index.search(query[None], 50)` says what they should contain: measure the share on your own queries, in
words as people write them, before you choose the number of candidates. Hamming distances alone miss many pictures that
words mean; the product of the query's numbers with the bits, or a search by `vector`, misses fewer.
"""


def write_recipe(rows: ExportRows, folder: Path, engine: tuple[str, str], load: str, mean: Any) -> None:
    """`README.md`, and `codes.json` with the encoder, the length of a vector and the mean that new pictures need."""
    space = rows.view.space
    name, title = engine
    text = _RECIPE.format(
        engine=title, name=name, rows=len(rows), encoder=space.encoder, dim=space.dim, load=load, candidates=CANDIDATES
    )
    write_whole(folder / "README.md", lambda file: file.write(text.encode()))
    config = {"encoder": space.encoder, "revision": space.revision, "dim": space.dim, "mean": mean.tolist()}
    write_whole(folder / "codes.json", lambda file: file.write(json.dumps(config).encode()))


def mean_of(rows: ExportRows) -> Any:
    """The mean of the vectors that are exported, (dim,) float32."""
    import numpy as np

    total, count = np.zeros(rows.view.space.dim), 0
    for chunk in rows.chunks():
        total += chunk.vectors.astype(np.float64).sum(axis=0)
        count += len(chunk.vectors)
    return (total / max(count, 1)).astype(np.float32)


def signs_of(vectors: Any, mean: Any) -> Any:
    """The codes of vectors (rows, dim): (rows, dim / 8) bytes, the first dimension in the highest bit of the first."""
    import numpy as np

    return np.packbits(vectors.astype(np.float32) > mean, axis=1)
