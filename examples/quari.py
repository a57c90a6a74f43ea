"""Train QuARI on pairs of a photo and its title, then search with it. Needs the extra [torch].

The sizes and the 200 pairs are for a quick try: such an adapter finds no more than the plain search, and is kept here
only to show the steps. The preset `identity` starts at the plain search; `released` is that of the authors' code.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

import eyespot
from eyespot import sample
from eyespot.adapters.quari import Config, Pairs, TrainingData, train
from eyespot.adapters.quari.training import preset
from eyespot.gallery import index
from eyespot.search import Adapted, paired_gain

gallery = Path("sample-gallery")
index(gallery, [str(sample.photos())], [eyespot.load_encoder("starter")])
collection = eyespot.open(gallery)

rows = range(len(collection.view.live))
titles = [photo["title"] for photo in collection.view.facts(rows)]
pairs = Pairs(collection.encoder.encode_texts(titles), collection.view.vectors(rows), of=np.arange(len(titles)))

recipe, form = preset("identity")
config = Config(pairs.dim, low_rank_dim=4, hidden_dim=32, nhead=4, feature_extractor="starter", **form)
settings = replace(recipe, batch=32, epochs=2, semi_positives=0, device="cpu", keep_anyway=True)
training, held_out = pairs.split(share=0.2, most=40, seed=0)
result = train(TrainingData(training, held_out, test=paired_gain), config, settings, Path("quari-run"))
print(f"{result.step} steps; mean reciprocal rank: {result.comparison}")

search = Adapted.of(collection, Path("quari-run") / "model", k=5)
run = search([eyespot.Query.words("a windmill")])
print(eyespot.Hits(run))
