"""A gallery as a LlamaIndex retriever, here over the sample photos. Needs llama-index-core."""

from pathlib import Path

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle

import eyespot
from eyespot import sample
from eyespot.gallery import index


class EyespotRetriever(BaseRetriever):
    """Image nodes, which models that see get as pictures."""

    def __init__(self, gallery: Path, k: int = 5, where: str | None = None) -> None:
        super().__init__()
        self.collection, self.k, self.where = eyespot.open(gallery), k, where

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self.collection.search(query_bundle.query_str, k=self.k, where=self.where)
        nodes = [ImageNode(id_=hit.id, text=hit.title, image_path=str(hit.path)) for hit in hits]
        return [NodeWithScore(node=node, score=hit.score) for node, hit in zip(nodes, hits, strict=True)]


gallery = Path("sample-gallery")
index(gallery, [str(sample.photos())], [eyespot.load_encoder("starter")])
for found in EyespotRetriever(gallery).retrieve("a windmill"):
    print(f"{found.score:.3f}  {found.node.image_path}")
