"""The shape of a QuARI hypernetwork: the `hparams` of a released checkpoint, and which preset it follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from eyespot.types import UsageError

PRESETS = ("released", "paper", "arxiv-2025-05")
OF_ARXIV = ("use_residual", "separate_decoders")  # what only the preset "arxiv-2025-05" reads


@dataclass(frozen=True)
class Config:
    """Sizes and switches of the hypernetwork; the defaults are those of the authors' code (the paper gives none).

    `preset` "released": W = I + anchor_scale · U Vᵀ with U and V divided by their Frobenius norms, and a query that
    keeps a share `query_residual_weight` of itself; "paper": rows map to x V Uᵀ, no identity, no norms;
    "arxiv-2025-05", the public code of 27 May 2025: rows map to x U Vᵀ, the query by a map of its own, to which
    `use_residual` adds the query, and which without `separate_decoders` is the map of the images.
    """

    embedding_dim: int
    low_rank_dim: int = 64
    hidden_dim: int = 512
    num_steps: int = 4
    nhead: int = 8
    num_layers: int = 4
    dropout: float = 0.1
    query_residual_weight: float = 0.5
    use_fro_norm: bool = True
    anchor_scale: float = 0.8
    preset: str = "released"
    use_residual: bool = False
    separate_decoders: bool = True
    feature_extractor: str | None = None

    def __post_init__(self) -> None:
        for name in ("embedding_dim", "low_rank_dim", "hidden_dim", "num_steps", "nhead", "num_layers"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise UsageError(f"{name} of a QuARI checkpoint is a whole number of 1 or more, not {value!r}")
        for name in ("dropout", "query_residual_weight", "anchor_scale"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise UsageError(f"{name} of a QuARI checkpoint is a number, not {value!r}")
        if not isinstance(self.feature_extractor, str | None):
            raise UsageError("the feature_extractor of a QuARI checkpoint is the name of an encoder")
        if self.preset not in PRESETS:
            raise UsageError(f"the presets of a QuARI checkpoint are {', '.join(PRESETS)}, not {self.preset!r}")
        if self.hidden_dim % self.nhead or self.hidden_dim % 2:
            raise UsageError(f"hidden_dim {self.hidden_dim} must be even and a multiple of nhead {self.nhead}")

    @property
    def decoders(self) -> tuple[str, ...]:
        """The names of the decoders: of the query or its map, of U and of V."""
        if self.preset != "arxiv-2025-05":
            return "query_decoder", "dec_u_img", "dec_v_img"
        return ("dec_u_text", "dec_v_text", "dec_u_img", "dec_v_img") if self.separate_decoders else ("dec_u", "dec_v")

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Config:
        """From a `config.yml`, hparams under their own key; `UsageError` for those that nobody knows."""
        found = document.get("hparams")
        if not isinstance(found, Mapping):
            raise UsageError("a QuARI config.yml has no hparams; expected embedding_dim, low_rank_dim, hidden_dim, …")
        known = {field.name for field in fields(cls)} - {"feature_extractor"}
        if strange := sorted(map(str, set(found) - known)):
            raise UsageError(
                f"a QuARI config.yml has the unknown hparam {strange[0]}; known: {', '.join(sorted(known))}"
            )
        if "embedding_dim" not in found:
            raise UsageError("a QuARI config.yml says no embedding_dim")
        return cls(**found, feature_extractor=document.get("feature_extractor"))

    def as_yaml(self) -> dict[str, Any]:
        """What a released `config.yml` holds; `preset` only where it is not the released one."""
        unread = ("feature_extractor", *{"released": ("preset", *OF_ARXIV), "paper": OF_ARXIV}.get(self.preset, ()))
        hparams = {name: value for name, value in sorted(asdict(self).items()) if name not in unread}
        return {"feature_extractor": self.feature_extractor, "hparams": hparams}
