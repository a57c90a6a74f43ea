"""Validation: how far up held-out queries find their own images in the whole gallery, each under its own map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eyespot.adapters.quari.card import FrozenComparison, PairedTest
from eyespot.adapters.quari.mining import distinct
from eyespot.adapters.quari.network import AdaptedBatch, TorchHypernetwork
from eyespot.adapters.quari.training.data import Ids, Pairs, TrainingData, unit
from eyespot.adapters.quari.training.loss import cosines
from eyespot.types import Vectors

Values = NDArray[np.float64]
QUERIES, IMAGES = 256, 1 << 15  # scored at once
MOST_WORK = 10**13  # products of one validation; over a gallery of millions fewer queries are run
FEWEST = 200  # queries
COPY = 0.8  # the cosine of an image with its altered copy, where nothing but vectors is known


@dataclass(frozen=True, eq=False)
class HeldOutQueries:
    """Queries (n, E) and the whole gallery (m, E), all of unit length.

    own: the row of each query's image (n,). subject: which queries belong together, being of one image or having the
    same words, (n,). same: (query, image) pairs (p, 2), images that other texts with the query's words are of.
    """

    texts: Vectors
    gallery: Vectors
    own: Ids
    subject: Ids
    same: NDArray[np.int64]

    def only(self, rows: Ids) -> HeldOutQueries:
        """Some of the queries."""
        number = np.full(len(self.texts), -1)
        number[rows] = np.arange(len(rows))
        same = np.column_stack([number[self.same[:, 0]], self.same[:, 1]])
        same = same[same[:, 0] >= 0]
        return HeldOutQueries(self.texts[rows], self.gallery, self.own[rows], self.subject[rows], same)

    def adapted(self, network: TorchHypernetwork) -> Values:
        """RR of each subject, (subjects,), under the network's maps, without noise."""
        was = network.training
        network.eval()
        found = self._values(network, cosines)
        network.train(was)
        return found

    def frozen(self, device: torch.device) -> Values:
        """The same measure of the vectors as they are, which an adapter has to beat."""

        def plain(views: AdaptedBatch, images: Tensor) -> Tensor:
            return torch.einsum("ne,ce->cn" if images.ndim == 2 else "cne,ce->cn", images, views.queries)

        return self._values(None, plain, device)

    def _values(
        self,
        network: TorchHypernetwork | None,
        scores: Callable[[AdaptedBatch, Tensor], Tensor],
        device: torch.device | None = None,
    ) -> Values:
        place = device if network is None else network.pos_emb.device
        gallery = torch.from_numpy(self.gallery)
        ranks = []
        with torch.no_grad():
            for at in range(0, len(self.texts), QUERIES):
                rows = slice(at, at + QUERIES)
                texts = torch.from_numpy(self.texts[rows]).to(place)
                none = texts.new_zeros(len(texts), texts.shape[1], 1)
                views = AdaptedBatch(texts, none, none, 1.0) if network is None else network(texts)
                ranks.append(self._ranks(rows, views, gallery, scores))
        reciprocal = 1 / np.concatenate(ranks)  # (n,)
        _, subject = np.unique(self.subject, return_inverse=True)
        return np.asarray(np.bincount(subject, reciprocal) / np.bincount(subject))

    def _ranks(
        self, rows: slice, views: AdaptedBatch, gallery: Tensor, scores: Callable[[AdaptedBatch, Tensor], Tensor]
    ) -> Values:
        """Of equal scores the own image stands last: a network that scores all alike does not look good."""
        place, own = views.queries.device, self.own[rows]
        owns = scores(views, gallery[torch.from_numpy(own)][:, None].to(place))  # (queries, 1)
        same = self.same[(self.same[:, 0] >= rows.start) & (self.same[:, 0] < rows.start + len(own))]
        pairs = np.concatenate([np.column_stack([np.arange(len(own)), own]), same - [rows.start, 0]])
        before = torch.zeros(len(own), dtype=torch.int64, device=place)
        for at in range(0, len(gallery), IMAGES):
            ahead = scores(views, gallery[at : at + IMAGES].to(place)) >= owns
            here = pairs[(pairs[:, 1] >= at) & (pairs[:, 1] < at + IMAGES)]
            query, image = torch.from_numpy(here[:, 0]).to(place), torch.from_numpy(here[:, 1] - at).to(place)
            ahead[query, image] = False
            before += ahead.sum(dim=1)
        return np.asarray(1.0 + before.cpu().numpy())


def held_out_queries(material: TrainingData, work: int, seed: int) -> tuple[HeldOutQueries, HeldOutQueries]:
    """The queries that choose a model and those that test the chosen one: no subject is in both.

    work: products that one query takes with one image, so that a validation over millions asks fewer queries.
    """
    held = material.held_out
    if held is None:
        raise ValueError("nothing is held out")
    both = _together(material.pairs, held)
    start = len(both) - len(held)
    gallery_rows = np.unique(both.image)
    rows = np.arange(start, len(both))
    own = np.searchsorted(gallery_rows, both.image[both.of])  # (texts,), all of them
    whole = HeldOutQueries(
        unit(held.texts),
        unit(both.images[gallery_rows]),
        own[rows],
        both.subject[rows],
        _same_words(distinct(both.texts), own, start),
    )
    most = max(FEWEST, MOST_WORK // max(1, work * len(whole.gallery)))
    if len(whole.texts) > most:
        whole = whole.only(np.sort(np.random.default_rng([seed, 1]).permutation(len(whole.texts))[:most]))
    subjects = np.unique(whole.subject)
    if len(subjects) < 2:
        return whole, whole
    chosen = np.random.default_rng([seed, 2]).permutation(subjects)[: len(subjects) // 2]
    choosing = np.isin(whole.subject, chosen)
    return whole.only(np.flatnonzero(choosing)), whole.only(np.flatnonzero(~choosing))


def picture_queries(material: TrainingData, testing: HeldOutQueries, seed: int) -> HeldOutQueries:
    """The images of these held-out queries, altered, as queries: crops where the material has some, else with noise."""
    shown = np.unique(testing.own)
    if material.crops is not None:
        gallery_rows = np.unique(material.pairs.image)
        found = np.searchsorted(gallery_rows, material.pairs.image[material.crops.of])
        rows = np.flatnonzero(np.isin(found, shown))
        queries, shown = unit(material.crops.texts[rows]), found[rows]
    else:
        noise = np.random.default_rng([seed, 3]).standard_normal((len(shown), testing.gallery.shape[1]))
        queries = unit(COPY * testing.gallery[shown] + (1 - COPY**2) ** 0.5 * unit(noise))
    return HeldOutQueries(queries, testing.gallery, shown, shown, np.zeros((0, 2), np.int64))


def compare(queries: HeldOutQueries, network: TorchHypernetwork, test: PairedTest) -> FrozenComparison:
    """The network against the vectors as they are, over the subjects."""
    model, frozen = queries.adapted(network), queries.frozen(network.pos_emb.device)
    found = test(frozen, model)
    return FrozenComparison(
        model=float(model.mean()),
        frozen=float(frozen.mean()),
        interval=found.interval,
        p=found.p,
        spread=float((model - frozen).std(ddof=1)) if len(model) > 1 else 0.0,
        images=len(model),
        queries=len(queries.texts),
        gallery=len(queries.gallery),
    )


def _together(pairs: Pairs, held: Pairs) -> Pairs:
    """All pairs over one gallery, those held out last."""
    texts = np.concatenate([pairs.texts, held.texts])
    if held.images is pairs.images:
        return Pairs(texts, pairs.images, np.concatenate([pairs.of, held.of]), pairs.ids)
    ids = None if pairs.ids is None or held.ids is None else [*pairs.ids, *held.ids]
    images = np.concatenate([pairs.images, held.images])
    return Pairs(texts, images, np.concatenate([pairs.of, held.of + len(pairs.images)]), ids)


def _same_words(words: Ids, own: Ids, start: int) -> NDArray[np.int64]:
    """(query, image) for the images of all other texts with a query's words; queries are the texts from `start` on."""
    order = np.argsort(words, kind="stable")
    lows, highs = (np.searchsorted(words[order], words[start:], side) for side in ("left", "right"))
    found = [
        np.column_stack([np.full(high - low, query), own[order[low:high]]])
        for query, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True))
        if high - low > 1
    ]
    return np.concatenate([np.zeros((0, 2), np.int64), *found])
