"""How a gallery is brought up to date, in this process or on a cluster."""

from __future__ import annotations

from eyespot.settings.fields import ENCODER, RESEARCH, Settings, Texts, setting


class ClusterSettings(Settings):
    """A Ray cluster whose workers search, or read and embed."""

    ray: str | None = setting(
        "Work on a Ray cluster: local, auto, HOST:PORT or ray://HOST:PORT.",
        metavar="ADDRESS",
        env="EYESPOT_RAY",
        panel=RESEARCH,
    )
    workers: int = setting("Workers on Ray; 0: one per GPU or processor.", default=0, ge=0, le=4096, panel=RESEARCH)


class ReadSettings(Settings):
    """How many read pictures at once."""

    workers: int = setting("Readers, here or on Ray; 0: all cores.", default=0, ge=0, le=256, env="EYESPOT_WORKERS")
    retry_failed: bool = setting("Retry what could not be read before.", default=False)


class IndexSettings(ReadSettings, ClusterSettings):
    """One run of indexing."""

    encoder: str | None = setting("Add or update this space only.", **ENCODER)
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
