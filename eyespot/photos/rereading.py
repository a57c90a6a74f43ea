"""Reading the picture of a row again, from the first place that still holds the bytes that were indexed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eyespot.photos.found import reason
from eyespot.photos.pictures import BadPicture, open_picture
from eyespot.photos.places import read_again
from eyespot.photos.videos.facts import id_at

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class NotReread:
    """Why there is no picture; `passing` if it may be there another time: a disk is away, or the file has changed."""

    reason: str
    passing: bool
    is_away: bool


def reread(id: str, places: Sequence[str], min_side: int | None) -> Image | NotReread:
    """The picture, upright in RGB."""
    whys, is_away, has_changed = [], False, False
    for place in places:
        try:
            data = read_again(place)
            # Whether these are not the bytes that were indexed; an imported row whose id is no digest is taken at its
            # word
            if re.fullmatch("[0-9a-f]{32}", id) is None or id_at(place, data) == id:
                return open_picture(data, min_side).image
            whys.append("changed since it was indexed; run eyespot index first")
            has_changed = True
        except BadPicture as bad:
            whys.append(bad.reason)
        except OSError as error:
            whys.append(reason(error))
            is_away = True
        except MemoryError:
            whys.append("too large for this machine's memory")
    return NotReread(whys[0], is_away or has_changed, is_away)
