"""Validation: how far up held-out queries find their own images, each under its own map."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from eyespot.adapters.quari.network import TorchHypernetwork
from eyespot.adapters.quari.training.data import Pairs, unit
from eyespot.adapters.quari.training.loss import cosines

AT_ONCE = 256  # queries
MEASURE = "RR"


def reciprocal_rank(network: TorchHypernetwork, pairs: Pairs) -> float:
    """RR: the mean of 1 / rank of a text's image among all distinct images of the pairs, without noise.

    Of equal scores the own image stands last, so that a network that scores all alike does not look good.
    """
    was = network.training
    network.eval()
    found = _mean(pairs, network.pos_emb.device, lambda texts, images: cosines(network(texts), images))
    network.train(was)
    return found


def frozen_rank(pairs: Pairs) -> float:
    """The same measure of the vectors as they are, which an adapter has to beat."""
    return _mean(pairs, torch.device("cpu"), lambda texts, images: texts @ images.T)


def _mean(pairs: Pairs, device: torch.device, scores: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> float:
    rows, own = np.unique(pairs.image[pairs.of], return_inverse=True)
    images = torch.from_numpy(unit(pairs.images[rows])).to(device)  # (distinct, E)
    found = []
    with torch.no_grad():
        for at in range(0, len(pairs), AT_ONCE):
            texts = torch.from_numpy(unit(pairs.texts[at : at + AT_ONCE])).to(device)
            ranks_scores = scores(texts, images)
            ranks_own = torch.from_numpy(own[at : at + AT_ONCE]).to(device)
            ranks = (ranks_scores >= ranks_scores.gather(1, ranks_own[:, None])).sum(dim=1)
            found.append(ranks)
    return float((1 / torch.cat(found).double()).mean())
