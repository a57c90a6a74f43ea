"""Search photos by words and let a judge look at the first hits again; what is done once is not done again."""

from pathlib import Path

import eyespot
from eyespot import sample
from eyespot.gallery import index
from eyespot.search import JudgeRerank, Nearest

gallery = Path("sample-gallery")
index(gallery, [str(sample.photos())], [eyespot.load_encoder("starter")])
collection = eyespot.open(gallery)
search = eyespot.Chain(Nearest.of(collection, k=50), JudgeRerank.of(collection, "encoder:starter", depth=10))
run = search([eyespot.Query.words("a windmill")])
for hit in run["q"][:5]:
    print(f"{hit.score:.3f}  {run.facts[hit.image]['title']}")
