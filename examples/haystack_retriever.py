"""A gallery as a Haystack component in a pipeline, here over the sample photos. Needs haystack-ai."""

from pathlib import Path

from haystack import Document, Pipeline, component

import eyespot
from eyespot import sample
from eyespot.gallery import index


@component
class EyespotRetriever:
    """Documents whose `file_path` the components for pictures read; `filters` is a condition for `where`."""

    def __init__(self, gallery: str, top_k: int = 5) -> None:
        self.collection, self.top_k = eyespot.open(gallery), top_k

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: str | None = None, top_k: int | None = None) -> dict[str, list[Document]]:
        hits = self.collection.search(query, k=top_k or self.top_k, where=filters)
        return {
            "documents": [
                Document(id=hit.id, content=hit.title, score=hit.score, meta={"file_path": str(hit.path)})
                for hit in hits
            ]
        }


gallery = Path("sample-gallery")
index(gallery, [str(sample.photos())], [eyespot.load_encoder("starter")])
pipeline = Pipeline()
pipeline.add_component("photos", EyespotRetriever(str(gallery)))
for document in pipeline.run({"photos": {"query": "a windmill"}})["photos"]["documents"]:
    print(f"{document.score:.3f}  {document.meta['file_path']}")
