"""Train QuARI on pairs of a photo and its title, then search with it. Needs the extra [torch].

The sizes and the 200 pairs are for a quick try: such an adapter finds less than the plain search. The defaults of
`Config` and `TrainingSettings` are those of the authors' code, for millions of pairs.
"""

from pathlib import Path

import numpy as np

import eyespot
from eyespot import sample
from eyespot.adapters.quari import Config, Pairs, TrainingData, TrainingSettings, train
from eyespot.gallery import index
from eyespot.search import Adapted

gallery = Path("sample-gallery")
index(gallery, [str(sample.photos())], [eyespot.load_encoder("starter")])
collection = eyespot.open(gallery)

rows = range(len(collection.view.live))
titles = [photo["title"] for photo in collection.view.facts(rows)]
pairs = Pairs(collection.encoder.encode_texts(titles), collection.view.vectors(rows), of=np.arange(len(titles)))

config = Config(pairs.dim, low_rank_dim=4, hidden_dim=32, nhead=4, feature_extractor="starter")
settings = TrainingSettings(batch=32, epochs=2, semi_positives=0, device="cpu")
training, held_out = pairs.split(share=0.1, most=20, seed=0)
result = train(TrainingData(training, held_out), config, settings, Path("quari-run"))
print(f"{result.step} steps; mean reciprocal rank {result.best:.3f}, without an adapter {result.frozen:.3f}")

search = Adapted.of(collection, result.model, k=5)
run = search([eyespot.Query.words("a windmill")])
for hit in run["q"]:
    print(f"{hit.score:.3f}  {run.facts[hit.image]['title']}")
