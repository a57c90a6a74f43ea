"""How a gallery is served: to browsers and programs, and to assistants."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from eyespot.settings import DEPTH
from eyespot.settings.fields import ENCODER, GALLERY, Settings, Texts, setting
from eyespot.settings.judge import BudgetSettings, PricesSetting
from eyespot.settings.search import BackendSettings


class McpSettings(Settings):
    """One gallery for assistants."""

    gallery: Path | None = setting("The gallery to serve.", **GALLERY)
    encoder: str | None = setting("Search this encoder's space.", **ENCODER)
    allow: Literal["judge", "positions", "judge,positions"] | None = setting(
        "Let assistants do more than read: judge (store verdicts), positions (and owners), or both."
    )


class ServeSettings(McpSettings, BackendSettings, PricesSetting, BudgetSettings):
    """One server: what it serves, who may come in, and what visitors may use."""

    host: str = setting("The address to listen on; any address except this machine needs tokens.", default="127.0.0.1")
    port: int = setting("The port to listen on; 0 takes a free one.", default=8000, ge=0, le=65535)
    tokens: Path | None = setting("A file with lines ROLE NAME TOKEN (reader, annotator, owner).")
    always_token: bool = setting("Require tokens on this machine too: behind a proxy.", default=False)
    allow_host: Texts = setting("A host name of the server; repeatable.", default=())
    refuse: Path | None = setting("A file of words that queries must not contain, one per line.")
    adapt: Texts = setting(
        "An adapter that people can choose: a QuARI checkpoint, or linear:FILE.", default=(), metavar="NAME=CKPT"
    )
    rerank: Texts = setting("A judge that people can use for re-ranking; repeatable.", default=(), metavar="NAME=JUDGE")
    depth: int = setting("How many of the first hits a judge looks at.", default=DEPTH, ge=1, le=1000)
    review: tuple[Path, ...] = setting("A review queue, a .jsonl file; repeatable.", default=())
    cache: Path | None = setting("The folder for thumbnails and uploads.", usual="GALLERY/web")
    max_upload: int = setting("The largest upload in MiB.", default=20, ge=1, le=500)
    originals: str = setting("From which role on people may open original files.", default="owner", metavar="ROLE")
    timeout: float = setting("Seconds after which a request times out.", default=30.0, ge=1)
