"""Validation: how far up held-out queries find their own images, each under its own map."""

from __future__ import annotations

import numpy as np
import torch

from eyespot.adapters.quari.network import Network
from eyespot.adapters.quari.training.data import Pairs, unit
from eyespot.adapters.quari.training.loss import cosines

AT_ONCE = 256  # queries
MEASURE = "RR"


def reciprocal_rank(network: Network, pairs: Pairs) -> float:
    """RR: the mean of 1 / rank of a text's image among all distinct images of the pairs, without noise.

    Of equal scores the own image stands last, so that a network that scores all alike does not look good.
    """
    rows, own = np.unique(pairs.image[pairs.of], return_inverse=True)
    device = network.pos_emb.device
    images = torch.from_numpy(unit(pairs.images[rows])).to(device)  # (distinct, E)
    was, found = network.training, []
    network.eval()
    with torch.no_grad():
        for at in range(0, len(pairs), AT_ONCE):
            texts = torch.from_numpy(unit(pairs.texts[at : at + AT_ONCE])).to(device)
            found.append(_ranks(cosines(network(texts), images), torch.from_numpy(own[at : at + AT_ONCE]).to(device)))
    network.train(was)
    return float((1 / torch.cat(found).double()).mean())


def _ranks(scores: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    return (scores >= scores.gather(1, own[:, None])).sum(dim=1)
