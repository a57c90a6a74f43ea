"""Pictures and words to vectors of one space: one file per encoder, each with `load(name, **options)`."""

# ruff: noqa: F403 - a type checker reads all names of these modules, a program those that are listed

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.encoders._installing import *
    from eyespot.encoders._layouts import *
    from eyespot.encoders._pictures import *
    from eyespot.encoders._saving import *
    from eyespot.encoders._text_caveats import *
    from eyespot.encoders._torch import *
else:
    __getattr__, __all__ = lazy(
        __name__,
        {
            "_installing": "bring encoder_of get model_here offer probe try_out",
            "_layouts": "VARIANTS",
            "_pictures": "PictureEncoder text_list upright_picture",
            "_saving": "name_in refuse_if_lost save trainable",
            "_text_caveats": "NEGATION",
            "_torch": "Device TorchEncoder",
        },
    )
