"""Sends requests to an AWS service (`AwsClient`) and reports their outcomes (`Reply`).

botocore retries requests whose answer was lost. The service's error may then be about a second
attempt, although the first was carried out. So it is recorded of each attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
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

from icebergds.catalog.aws.failures import error_code, failure, setup_failure, shown_cause
from icebergds.catalog.pointer.pointer import Swap, applied, refused, uncertain
from icebergds.catalog.unconnected import unconnected
from icebergds.errors import CommitStateUnknownError, IcebergError, StorageError
from icebergds.io.aws_session import botocore_client
from icebergds.io.aws_settings import AwsSettings

__all__ = ["AwsClient", "Reply", "aws_client"]


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of a request.

    Attributes:
        service: the service's name, for messages.
        body: the answer; empty if the request failed.
        code: the service's name of the error, such as `EntityNotFoundException`; empty if it has
            none.
        error: why it failed; None if it succeeded.
        uncertain: whether it failed but may have been carried out, or may still be.
        cause: botocore's error, if it may be shown.
    """

    service: str
    body: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    error: StorageError | None = None
    uncertain: bool = False
    cause: Exception | None = None

    def require(self, key: str) -> Any:
        """A part of the answer. Raises StorageError if the request failed, or lacks it."""
        self.check()
        if key not in self.body:
            raise StorageError(f"the answer of {self.service} is incomplete: it has no {key}")
        return self.body[key]

    def check(self) -> None:
        """Raises StorageError if the request failed."""
        if self.error is not None:
            raise self.error from self.cause

    def swap(self, error: IcebergError | None = None) -> Swap:
        """The outcome of a request to set a pointer.

        Args:
            error: why it was refused, if it was; by default the error of the reply.
        """
        if self.error is None:
            return applied()
        if self.uncertain:
            reason = self.error.reason
            return uncertain(error or self.error, pending=True, reason=reason, cause=self.cause)
        return refused(error or self.error, self.cause)

    def confirmed(self, what: str, is_done: Callable[[], bool]) -> bool:
        """Whether the request was carried out; if not, that is certain.

        Args:
            what: what the request does, such as `drop table lake.db.t`.
            is_done: checks for the effect; called if the answer was lost.

        Raises:
            CommitStateUnknownError: it has no effect yet, but may still be carried out.
        """
        if self.error is None or not self.uncertain:
            return self.error is None
        try:
            done = is_done()
        except Exception as error:
            raise self._unknown(what) from error
        if not done:
            raise self._unknown(what) from self.cause
        return True

    def _unknown(self, what: str) -> CommitStateUnknownError:
        reason = "" if self.error is None else self.error.reason
        return CommitStateUnknownError(
            f"it is unknown whether the attempt to {what} succeeded: {reason}"
        )


@dataclass(frozen=True, slots=True)
class AwsClient:
    """Sends requests to one service with botocore, which signs and retries them.

    Attributes:
        common: parameters of every request.
    """

    settings: AwsSettings
    common: Mapping[str, str] = field(default_factory=dict)

    def send(self, operation: str, **parameters: Any) -> Reply:
        """Sends a request.

        Args:
            operation: the method of botocore's client, such as `get_table`.
            parameters: those of the operation; None leaves one out.
        """
        with noted_attempts() as doubts:
            try:
                body = getattr(self._client(), operation)(**self._given(parameters))
                return Reply(self._place, body)
            except Exception as error:
                doubtful = any(doubts) or not is_certain(error)
                return self._failed(operation, error, doubtful)

    def pages(self, operation: str, **parameters: Any) -> Iterator[Reply]:
        """The pages of a long answer; the last may be a failed reply."""
        try:
            paginator = self._client().get_paginator(operation)
            for page in paginator.paginate(**self._given(parameters)):
                yield Reply(self._place, page)
        except Exception as error:
            yield self._failed(operation, error, doubtful=False)

    def wait(self, waiter: str, operation: str, seconds: int, **parameters: Any) -> Reply:
        """Waits until a resource is ready.

        Args:
            waiter: the name of botocore's waiter, such as `table_exists`.
            operation: the operation that it polls.
            seconds: how long to wait.
        """
        try:
            waiting = self._client().get_waiter(waiter)
            given = self._given(parameters)
            waiting.wait(**given, WaiterConfig={"Delay": 1, "MaxAttempts": seconds})
        except Exception as error:
            return self._failed(operation, error, doubtful=False)
        return Reply(self._place)

    @property
    def _place(self) -> str:
        return f"{self.settings.service} for catalog {self.settings.catalog}"

    def _client(self) -> Any:
        client = botocore_client(self.settings)
        note_attempts(client)
        return client

    def _given(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.common, **{k: v for k, v in parameters.items() if v is not None}}

    def _failed(self, operation: str, error: Exception, doubtful: bool) -> Reply:
        action = "".join(word.capitalize() for word in operation.split("_"))
        return Reply(
            self._place,
            code=error_code(error),
            error=failure(self.settings, action, error),
            uncertain=doubtful,
            cause=shown_cause(self.settings, error),
        )


def aws_client(settings: AwsSettings, common: Mapping[str, str]) -> AwsClient:
    """The client of a catalog.

    Args:
        common: parameters of every request.

    Raises:
        InvalidOptionError: the settings do not allow one: no region, no such profile.
    """
    try:
        botocore_client(settings)
    except Exception as error:
        raise setup_failure(settings, error) from shown_cause(settings, error)
    return AwsClient(settings, common)


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
