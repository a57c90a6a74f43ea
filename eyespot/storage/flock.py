"""Locks of open files, without any import that takes time: a served search needs them."""

import fcntl


def lock_now(handle: int, shared: bool = False) -> bool:
    """Lock an open file as long as it is open, without waiting; False where somebody else holds it."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
