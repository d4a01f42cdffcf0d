"""Records, for each attempt of a request, whether it may have been carried out.

botocore retries requests whose answer was lost. The service's error may then be about a second
attempt, although the first was carried out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProxyConnectionError,
)

from icebergds.catalog.unconnected import unconnected

__all__ = ["is_certain", "note_attempts", "noted_attempts"]


@contextmanager
def noted_attempts() -> Iterator[list[bool]]:
    """A list that gets an entry for each attempt in the block: True if it is not `is_certain`."""
    noted: list[bool] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note_attempts(client: Any) -> None:
    """Makes a botocore client record its attempts, if it does not yet."""
    client.meta.events.register("response-received", _note, unique_id=_note.__qualname__)


def is_certain(error: Exception) -> bool:
    """Whether a failed attempt was certainly not carried out, and will not be."""
    if isinstance(error, ClientError):
        answer = error.response
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        code = answer.get("Error", {}).get("Code", "")
        return 400 <= status < 500 and status != 408 and code not in _TIMED_OUT
    if isinstance(error, ProxyConnectionError):
        return unconnected(error) is not None
    return isinstance(error, _NOT_SENT)


_noted: ContextVar[list[bool] | None] = ContextVar("noted", default=None)
_NOT_SENT = (
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)
# They have the status code of a client error.
_TIMED_OUT = (
    "OperationTimeoutException",
    "RequestTimeout",
    "RequestTimeoutException",
    "TransactionInProgressException",
)


def _note(
    parsed_response: dict[str, Any] | None = None, exception: Exception | None = None, **_: Any
) -> None:
    noted = _noted.get()
    if noted is not None:
        noted.append(not is_certain(exception or ClientError(parsed_response or {}, "")))
