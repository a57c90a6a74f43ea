"""Pictures and words to vectors of one space: one file per encoder, each with `load(name, **options)`."""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.encoders._installing import (
        bring as bring,
        encoder_of as encoder_of,
        get as get,
        model_here as model_here,
        offer as offer,
        probe as probe,
        try_out as try_out,
    )
    from eyespot.encoders._layouts import VARIANTS as VARIANTS
    from eyespot.encoders._pictures import (
        PictureEncoder as PictureEncoder,
        text_list as text_list,
        upright_picture as upright_picture,
    )
    from eyespot.encoders._saving import (
        name_in as name_in,
        refuse_if_lost as refuse_if_lost,
        save as save,
        trainable as trainable,
    )
    from eyespot.encoders._text_caveats import NEGATION as NEGATION
    from eyespot.encoders._torch import Device as Device, TorchEncoder as TorchEncoder
else:  # so that type checkers refuse a name that is not there
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
