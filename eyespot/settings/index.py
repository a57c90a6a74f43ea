"""How a gallery is brought up to date."""

from __future__ import annotations

from eyespot.settings.fields import ENCODER, Settings, Texts, setting
from eyespot.settings.search import ClusterSettings


class ReadSettings(Settings):
    """How many read pictures at once."""

    workers: int = setting(
        "Threads or processes that read, or workers on Ray; 0: all cores.",
        default=0,
        ge=0,
        le=256,
        env="EYESPOT_WORKERS",
    )
    retry_failed: bool = setting("Retry what could not be read before.", default=False)


class IndexSettings(ReadSettings, ClusterSettings):
    """One run of indexing."""

    encoder: str | None = setting("Add or update this space only.", **ENCODER)
    crops: int | None = setting(
        "Embed each picture as the mean of it and of N parts (4, 5 or 9), in a space of its own.", metavar="N"
    )
    memory: str | None = setting(
        "The most that decoding takes in all of them together, as in 2G or 800M.",
        metavar="SIZE",
        env="EYESPOT_DECODE_MEMORY",
        usual="half of what is free, 0.5G to 2G",
    )
    half: bool = setting("Store new vectors in float16, half the size, from now on.", default=False)
    codes: bool = setting("Also store int8 codes: fast exact search in little memory.", default=False)
    ocr: bool = setting("Also read the text in pictures, once; needs the extra [ocr].", default=False)
    repair: bool = setting("Read every file of the gallery, and make again what is damaged.", default=False)
    forget: bool = setting("Forget pictures that no longer exist, even if they are many.", default=False)
    remove: Texts = setting("Remove this folder, tar or list from the gallery; its files are not touched.", default=())
    watch: bool = setting("Go on: index new and changed photos as they come; Ctrl-C ends.", default=False)
    dry_run: bool = setting("Only count all pictures and the new ones.", default=False)
