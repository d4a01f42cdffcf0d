"""Defines errors of requests to a catalog's server, and settles unknown outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from icebergds.errors import CommitStateUnknownError, IcebergError, StorageError


class RestError(StorageError):
    """A request that the server refused or did not answer.

    Attributes:
        status: the HTTP status of the answer; None if there was no readable answer.
        kind: the server's name for the error, such as `NoSuchTableException`; may be empty.
        explanation: the server's message; may be empty.
        maybe_done: whether the request may still have taken effect, now or later.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        kind: str = "",
        explanation: str = "",
        maybe_done: bool = False,
        location: str = "",
    ) -> None:
        super().__init__(reason, location=location)
        self.status = status
        self.kind = kind
        self.explanation = explanation
        self.maybe_done = maybe_done

    @property
    def outcome_unknown(self) -> bool:
        return self.maybe_done


@contextmanager
def refusals(errors: Mapping[int, Callable[[RestError], IcebergError]]) -> Iterator[None]:
    """Translates errors in the block by their status; others propagate.

    Args:
        errors: creates the error for a status. Errors of requests that may have taken effect
            propagate.
    """
    try:
        yield
    except RestError as error:
        make = None if error.status is None else errors.get(error.status)
        if make is None or error.maybe_done:
            raise
        raise make(error) from None


@contextmanager
def reading_answer() -> Iterator[None]:
    """Wraps reading the answer to a request that the server confirmed.

    Raises:
        RestError: it cannot be read; the request may have taken effect.
    """
    try:
        yield
    except Exception as error:
        reason = f"the server confirmed it, but its answer cannot be read: {error}"
        raise RestError(reason, maybe_done=True) from None


def settle(what: str, error: RestError, is_done: Callable[[], bool]) -> None:
    """Returns if a request that seems to have failed has taken effect.

    Args:
        what: what the request does, such as `drop table lake.db.t`.
        error: how it failed.
        is_done: checks whether it has taken effect.

    Raises:
        RestError: it has certainly not taken effect.
        CommitStateUnknownError: it may have taken effect, or may still do so.
    """
    if not error.maybe_done:
        raise error
    try:
        done = is_done()
    except Exception as failure:
        raise unknown_outcome(what, error, failure) from None
    if not done:
        raise unknown_outcome(what, error)


def unknown_outcome(
    what: str, error: RestError, failure: Exception | None = None
) -> CommitStateUnknownError:
    """The error for a request with an unknown outcome.

    Args:
        failure: why the outcome could not be checked.
    """
    looked = "" if failure is None else f"; it could not be looked for: {failure}"
    return CommitStateUnknownError(
        f"it is unknown whether the server has done this: {what} ({error.reason}{looked})"
    )
