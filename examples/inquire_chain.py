"""An INQUIRE experiment as one chain: the 50 nearest pictures, re-ranked by a judge, scored with INQUIRE's measures.

The sample photos with their categories stand in for iNat24 and INQUIRE's judgements, and an encoder for the judge. With
a gallery of iNat24 and a judge such as "openai:gpt-5-mini" the chain is the experiment of the paper (Vendrow et al.,
INQUIRE, NeurIPS 2024).
"""

import eyespot
from eyespot import Chain, Qrels, Query, sample
from eyespot.search import JudgeRerank, Nearest

CATEGORIES = {"windmill": "renewable", "fish": "fishes", "tool": "tools", "monument": "monuments", "animal": "animals"}

collection = eyespot.index(sample.photos(), "sample-gallery")

queries = [Query.words(f"a {word}", id=word) for word in CATEGORIES]
photos = collection.view.facts(range(len(collection.view.live)))
relevant = {
    word: {photo["id"]: 1 for photo in photos if photo["category"].endswith(category)}
    for word, category in CATEGORIES.items()
}
qrels = Qrels(relevant)

nearest = Nearest.of(collection, k=50)
reranked = Chain(nearest, JudgeRerank.of(collection, "encoder:starter", depth=50))

scores = eyespot.evaluate(reranked(queries), qrels, "inquire")
for label, mean in scores.means.items():
    low, high = scores.interval(label)
    print(f"{label:8} {mean:.3f}  [{low:.3f}, {high:.3f}]")
(ap, *_) = eyespot.compare(nearest(queries), reranked(queries), qrels, "inquire").pairs
print(f"against the first stage: {ap.difference:+.3f} {ap.measure}, p = {ap.corrected_p:.2f}")
