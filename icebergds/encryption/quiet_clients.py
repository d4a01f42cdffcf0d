"""Keeps clients of key services from logging requests and answers, which contain keys."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["quiet_clients"]


@contextmanager
def quiet_clients() -> Iterator[None]:
    """Drops what clients log for debugging in the block, in this thread."""
    for name in _LOGGERS:
        # A filter that is there is not added again.
        logging.getLogger(name).addFilter(_drops)
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


_QUIET = ContextVar("quiet", default=False)
# Those that log bodies. Filters of their parents would not see what they log.
_GOOGLE = "google.cloud.kms_v1.services.key_management_service"
_LOGGERS = (
    "botocore.endpoint",
    "botocore.parsers",
    f"{_GOOGLE}.client",
    f"{_GOOGLE}.transports.rest",
)


def _drops(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG or not _QUIET.get()
