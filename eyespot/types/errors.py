"""Errors that people read: what went wrong and the way out, in one sentence."""

from __future__ import annotations


class EyespotError(Exception):
    """What went wrong and the way out, in one sentence; the command line prints it and ends with `exit_code`."""

    exit_code = 1


class UsageError(EyespotError):
    """The request itself is wrong: an unknown name, a malformed filter, options that exclude each other."""

    exit_code = 2


class NothingFound(EyespotError):
    """The request was fine and there is nothing to give."""

    exit_code = 4
