"""Sends one HTTP request; distinguishes unsent requests from those without an answer."""

from __future__ import annotations

import ssl
from typing import Any

import requests

from icebergds.catalog.rest.auth.base import SignedRequest
from icebergds.catalog.rest.options import HttpOptions
from icebergds.catalog.unconnected import causes, unconnected


class UnsentError(Exception):
    """The request was certainly not sent.

    Attributes:
        may_pass: whether sending it later may succeed; False if it is malformed.
    """

    def __init__(self, reason: str, may_pass: bool = True) -> None:
        super().__init__(reason)
        self.may_pass = may_pass


class LostError(Exception):
    """The request may have been sent, but there is no complete answer."""


def send(
    session: requests.Session, options: HttpOptions, request: SignedRequest
) -> requests.Response:
    """Sends a request without following redirects.

    Raises:
        UnsentError, LostError: there is no answer. Their message is short and without secrets.
    """
    failure: UnsentError | LostError
    try:
        return session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.data or None,
            # Otherwise, credentials of ~/.netrc would be sent.
            auth=_as_it_is,
            timeout=(options.connect_timeout_s, options.read_timeout_s),
            allow_redirects=False,
            verify=options.verify,
            cert=options.certificate,
            proxies=None
            if options.proxy is None
            else {"http": options.proxy, "https": options.proxy},
        )
    except requests.RequestException as error:
        failure = _failure(error, options)
    except OSError as error:
        # The file of a certificate does not exist.
        failure = UnsentError(_told(error), may_pass=False)
    except ValueError as error:
        # A header with non-Latin characters. The error quotes it.
        failure = _malformed(error)
    # Not chained: errors of requests contain the request, with its secrets.
    raise failure


def _as_it_is(request: Any) -> Any:
    return request


def _failure(error: requests.RequestException, options: HttpOptions) -> UnsentError | LostError:
    if isinstance(error, requests.ConnectTimeout):
        return UnsentError(f"no connection within {options.connect_timeout_s:g} s")
    if isinstance(error, requests.ReadTimeout):
        return LostError(f"none within {options.read_timeout_s:g} s")
    if (missing := unconnected(error)) is not None:
        return UnsentError(_told(missing))
    chain = list(causes(error))
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return UnsentError(f"its certificate is not trusted: {cause.verify_message}")
    if not isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError):
        return LostError(_told(error)) if _maybe_sent(error) else _malformed(error)
    why = _told(chain[-1])
    if isinstance(error, requests.exceptions.SSLError) and "WRONG_VERSION_NUMBER" in why:
        why = f"{why}; if the server does not speak TLS, its uri begins with http://"
    return LostError(why)


def _malformed(error: Exception) -> UnsentError:
    reason = f"the address or a header is malformed ({type(error).__name__})"
    return UnsentError(reason, may_pass=False)


def _maybe_sent(error: requests.RequestException) -> bool:
    """Whether a request that failed in another way may have been sent; not if it is malformed."""
    return not isinstance(error, ValueError) or isinstance(
        error, requests.exceptions.ContentDecodingError
    )


def _told(error: BaseException) -> str:
    """The message of an error, without object addresses."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error)
    return text.rpartition(">: ")[2] if ">: " in text else text or type(error).__name__
