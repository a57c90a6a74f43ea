"""Search photos by words and let a judge look at the first hits again; what is done once is not done again."""

import eyespot
from eyespot import sample
from eyespot.search import JudgeRerank, Nearest

collection = eyespot.index(sample.photos(), "sample-gallery")
search = eyespot.Chain(Nearest.of(collection, k=50), JudgeRerank.of(collection, "encoder:starter", depth=10))
run = search([eyespot.Query.words("a windmill", "windmill")])
print(eyespot.Hits(run)[:5])
