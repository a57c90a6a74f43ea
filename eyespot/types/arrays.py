"""Arrays that flow between the rooms, named by what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]  # (rows, dim), each row of unit length
    Pixels: TypeAlias = NDArray[Any]  # one picture as a model takes it, or a batch of them
    Mask: TypeAlias = NDArray[np.bool_]  # (rows,), True where a row may be found
else:
    # The command line needs this file to show its help, and numpy is half of what that would cost.
    Vectors = Pixels = Mask = Any
