"""Training QuARI: from pairs of a text's and an image's vector to a checkpoint, interrupted at will.

    from eyespot.adapters.quari.training.loop import train      # needs torch, all else here does not
    recipe, form = preset("identity")
    done = train(TrainingData(pairs, held_out, semi, paired_gain), Config(768, **form), recipe, Path("run"))

QuARI (NeurIPS 2025), section 3.3 and appendix A; there is a preset for each published form, and one that
starts at the frozen space.
"""

from eyespot.adapters.quari.training.data import Pairs, TrainingData
from eyespot.adapters.quari.training.settings import ABLATIONS, PRESETS, SIZES, TrainingSettings, ablated, preset

__all__ = ["ABLATIONS", "PRESETS", "SIZES", "Pairs", "TrainingData", "TrainingSettings", "ablated", "preset"]
