"""Pictures as endpoints take them: no larger than a model looks at, JPEG in base64."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from eyespot.llms.errors import NoReply
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

    Reader: TypeAlias = Callable[[Path], Image]

SIDE = 768  # pixels of the longer side
QUALITY = 90


@dataclass(frozen=True)
class JpegEncoder:
    """Files to base64 JPEG whose longer side has at most `side` pixels; `read` decodes a file, upright, in RGB.

    What leaves is always encoded anew: the file's position, owner and other metadata stay here.
    """

    read: Reader
    side: int = SIDE

    def __post_init__(self) -> None:
        if self.side < 1:
            raise UsageError(f"a picture of {self.side} pixels shows nothing; give a side of 1 or more")

    def __call__(self, path: Path) -> str:
        """The picture's data; `NoReply` names the file that cannot be read."""
        try:
            image = self.read(path)
        except Exception as error:  # decoders raise whatever they like at damaged files
            raise NoReply(f"{path.name} cannot be read ({error})") from None
        smaller = image.convert("RGB")
        smaller.thumbnail((self.side, self.side))
        smaller.info = {}
        buffer = BytesIO()
        smaller.save(buffer, "JPEG", quality=QUALITY)
        return base64.b64encode(buffer.getvalue()).decode()
