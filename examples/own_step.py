"""A pipeline with a step of your own: it keeps photos of at least 0.1 megapixels and says why it drops the others.

Finished records are stored under `photo-pipeline`: run it again after a kill and it continues.
"""

from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from eyespot import sample
from eyespot.pipelines import Added, BatchStep, Context, Drop, Keep, MapStep, Record, Records, Step, run

PIXELS = 100_000


def list_photos(_records: Records, _context: Context) -> Iterator[Added]:
    for path in sorted(sample.photos().glob("*.jpg")):
        yield Added({"id": path.stem, "path": str(path)})


def keep_large(record: Record, _context: Context) -> Keep | Drop:
    with Image.open(record["path"]) as image:
        width, height = image.size
    if width * height < PIXELS:
        return Drop(record, "too small", f"{width} x {height}")
    return Keep({**record, "width": width, "height": height})


steps = [
    Step("photos", BatchStep(list_photos)),
    Step("large", MapStep(keep_large, workers=2), settings={"pixels": PIXELS}),
]
for result in run(steps, Path("photo-pipeline")):
    print(f"{result.step.name}: {result.counts.kept} kept, {sum(result.counts.dropped.values())} dropped")
