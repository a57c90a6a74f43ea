"""Training QuARI: from pairs of a text's and an image's vector to a checkpoint, interrupted at will.

    from eyespot.adapters.quari.training.loop import train      # needs torch, all else here does not
    done = train(Material(pairs, held_out, semi), Config(embedding_dim=768), PRESETS["released"], Path("run"))

QuARI (NeurIPS 2025), section 3.3 and appendix A; where the authors' code differs from the paper there are two presets.
"""

from eyespot.adapters.quari.training.data import Pairs, TrainingData
from eyespot.adapters.quari.training.settings import ABLATIONS, PRESETS, TrainingSettings, ablated

__all__ = ["ABLATIONS", "PRESETS", "Pairs", "TrainingData", "TrainingSettings", "ablated"]
