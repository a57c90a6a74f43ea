"""A gallery as a LangChain retriever, here over the sample photos. Needs langchain-core."""

from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

import eyespot
from eyespot import sample
from eyespot.gallery import index


class EyespotRetriever(BaseRetriever):
    """Documents whose metadata holds what the gallery knows of a photo: path, score, labels."""

    collection: Any
    k: int = 5
    where: str | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        hits = self.collection.search(query, k=self.k, where=self.where)
        return [Document(id=hit.id, page_content=hit.title, metadata={**hit.facts, "score": hit.score}) for hit in hits]


gallery = Path("sample-gallery")
index(gallery, [str(sample.photos())], [eyespot.load_encoder("starter")])
for document in EyespotRetriever(collection=eyespot.open(gallery)).invoke("a windmill"):
    print(f"{document.metadata['score']:.3f}  {document.page_content}")
