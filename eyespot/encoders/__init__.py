"""Pictures and words to vectors of one space: one file per encoder, each with `load(name, **options)`."""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.encoders._installing import bring, encoder_of, get, model_here, offer, probe, try_out
    from eyespot.encoders._layouts import VARIANTS
    from eyespot.encoders._pictures import PictureEncoder, text_list, upright_picture
    from eyespot.encoders._saving import name_in, refuse_if_lost, save, trainable
    from eyespot.encoders._text_caveats import NEGATION
    from eyespot.encoders._torch import Device, TorchEncoder

__all__ = [
    "NEGATION",
    "VARIANTS",
    "Device",
    "PictureEncoder",
    "TorchEncoder",
    "bring",
    "encoder_of",
    "get",
    "model_here",
    "name_in",
    "offer",
    "probe",
    "refuse_if_lost",
    "save",
    "text_list",
    "trainable",
    "try_out",
    "upright_picture",
]

if not TYPE_CHECKING:  # so that type checkers refuse a name that is not there
    __getattr__ = lazy(
        __name__,
        {
            "NEGATION": "_text_caveats",
            "VARIANTS": "_layouts",
            **dict.fromkeys(("bring", "encoder_of", "get", "model_here", "offer", "probe", "try_out"), "_installing"),
            **dict.fromkeys(("Device", "TorchEncoder"), "_torch"),
            **dict.fromkeys(("name_in", "refuse_if_lost", "save", "trainable"), "_saving"),
            **dict.fromkeys(("PictureEncoder", "text_list", "upright_picture"), "_pictures"),
        },
    )
