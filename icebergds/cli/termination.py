"""Ends a command on SIGTERM as on Ctrl-C: what is not committed is deleted, and told."""

from __future__ import annotations

import signal
from types import FrameType

STATUS = 128 + signal.SIGTERM
"""The exit status of a command that SIGTERM ended."""


def heed_termination() -> None:
    """Has SIGTERM do what Ctrl-C does from now on, unless the process ignores either."""
    if callable(signal.getsignal(signal.SIGINT)) and (
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ):
        signal.signal(signal.SIGTERM, _end)


def is_terminated() -> bool:
    """Whether SIGTERM came."""
    return _came


_came = False


def _end(number: int, frame: FrameType | None) -> None:
    global _came
    _came = True
    # Spark and commits have handlers of their own.
    handle = signal.getsignal(signal.SIGINT)
    if callable(handle):
        handle(signal.SIGINT, frame)
